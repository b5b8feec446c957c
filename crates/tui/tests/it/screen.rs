//! The writer behind a terminal emulator: what is on the screen and what is above it.

use windlass_coordinator::{Preview, PreviewContent};
use windlass_core::id::CallId;
use windlass_tui::app::{Input, Phase};
use windlass_tui::host::Layout;
use windlass_tui::keys::{Code, Event, Key};
use windlass_tui::overlay::{Overlay, Page, PageLine, ViewKind};
use windlass_tui::screen::{Abilities, Frame, Screen, Size};
use windlass_tui::text::Signs;

use crate::world::{World, call, result};

/// How often each of these lines is in a text.
fn counts(text: &str, words: &str, numbers: std::ops::Range<usize>) -> Vec<usize> {
    let all = |n: usize| text.lines().filter(|line| line.trim() == format!("{words} {n}")).count();
    numbers.map(all).collect()
}

fn talk(world: &mut World, replies: usize) {
    let task = world.begin("count");
    for n in 0..replies {
        world.reply(task, &format!("answer {n}"));
        world.paint();
    }
}

#[test]
fn committed_rows_are_printed_once_into_the_scrollback() {
    let mut world = World::new(60, 12);
    talk(&mut world, 40);
    let all = world.all();
    assert_eq!(counts(&all, "answer", 0..40), [1; 40], "{all}");
    assert_eq!(all.matches("windlass[").count() + all.matches("❯ a message").count(), 1, "{all}");
}

#[test]
fn a_growing_and_shrinking_zone_loses_and_repeats_nothing() {
    let mut world = World::new(60, 12);
    let task = world.begin("count");
    for n in 0..20 {
        world.types("several lines of text");
        world.key(Key::ctrl('j'));
        world.paint();
        if n % 3 == 0 {
            world.ask("rm -r build");
            world.paint();
            world.input(Input::Questions(Vec::new()));
        }
        world.reply(task, &format!("answer {n}"));
        world.paint();
        if n % 5 == 0 {
            world.key(Key::ctrl('c'));
            world.paint();
        }
    }
    let all = world.all();
    assert_eq!(counts(&all, "answer", 0..20), [1; 20], "{all}");
}

#[test]
fn after_every_resize_everything_is_there_once() {
    let mut world = World::new(80, 24);
    talk(&mut world, 60);
    for (columns, rows) in [(40, 24), (120, 10), (20, 6), (80, 40), (79, 24), (80, 3), (80, 24)] {
        world.resize(columns, rows);
        let all = world.all();
        assert_eq!(counts(&all, "answer", 0..60), [1; 60], "{columns}×{rows}:\n{all}");
        assert_eq!(
            all.matches("[C][M][N][S]").count() + all.matches("chat | manual").count(),
            1,
            "{all}"
        );
    }
}

#[test]
fn prose_is_wrapped_for_the_new_width() {
    let mut world = World::new(80, 24);
    let task = world.begin("explain");
    world.reply(task, "The quick brown fox jumps over the lazy dog and runs away from it.");
    world.resize(30, 24);
    assert!(world.shown().contains("The quick brown fox jumps"), "{}", world.shown());
    assert!(world.shown().contains("\nover the lazy dog and runs"), "{}", world.shown());
    world.resize(100, 24);
    assert!(
        world.shown().contains("over the lazy dog and runs away from it."),
        "{}",
        world.shown()
    );
}

#[test]
fn an_address_is_never_broken_by_us() {
    let mut world = World::new(30, 24);
    let task = world.begin("where?");
    let address = "https://example.org/a/very/long/path/that/does/not/fit";
    world.reply(task, address);
    world.paint();
    let contents = world.parser.screen().contents();
    assert!(contents.replace('\n', "").contains(address), "{contents}");
}

#[test]
fn nothing_new_writes_no_byte() {
    let mut world = World::new(80, 24);
    talk(&mut world, 5);
    world.paint();
    let before = world.written;
    for _ in 0..600 {
        world.wait(std::time::Duration::from_millis(100));
        world.paint();
    }
    assert_eq!(world.written, before);
    assert_eq!(world.app.next_wake(), None);
}

#[test]
fn a_frame_costs_its_own_rows_however_long_the_conversation_is() {
    let mut world = World::new(80, 24);
    talk(&mut world, 3);
    world.paint();
    let cost = |world: &mut World| {
        let before = world.written;
        world.types("x");
        world.paint();
        world.written - before
    };
    let early = cost(&mut world);
    let task = world.begin("more");
    for n in 0..2_000 {
        world.reply(task, &format!("answer {n}"));
    }
    world.paint();
    assert!(cost(&mut world) <= early + 8);
}

#[test]
fn the_cursor_stands_where_the_person_writes() {
    let mut world = World::new(40, 12);
    world.begin("x");
    world.types("ab漢字🙂e\u{301}");
    world.paint();
    let (row, column) = world.parser.screen().cursor_position();
    let line = world.parser.screen().contents().lines().nth(usize::from(row)).unwrap().to_owned();
    assert!(line.starts_with("❯ ab漢字"), "{line}");
    assert_eq!(column, 2 + 2 + 4 + 2 + 1);
    assert!(!world.parser.screen().hide_cursor());
}

#[test]
fn hostile_text_is_shown_and_obeyed_nowhere() {
    let mut world = World::new(80, 24);
    let attack = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[?1049h\u{202e}evil";
    let task = world.begin(attack);
    world.reply(task, attack);
    let id = CallId::new(jiff::Timestamp::UNIX_EPOCH);
    world.record(task, call(id, &format!("echo '{attack}'")));
    world.paste(attack);
    world.ask(attack);
    let shown = world.all();
    assert!(!world.parser.screen().alternate_screen());
    assert!(shown.contains("evil"), "{shown}");
    assert!(shown.contains(r"\x1b]0;owned\x07"), "what is approved shows its escapes: {shown}");
}

#[test]
fn a_terminal_without_unicode_gets_ascii() {
    let size = Size { columns: 40, rows: 10 };
    let mut screen = Screen::new(size, Abilities { signs: Signs::Ascii, colours: false });
    let zone = Frame { rows: vec!["❯ a – b … 漢 é".to_owned()], cursor: Some((0, 2)) };
    let text = screen.paint(&["│ ─ ✓".to_owned()], &zone);
    assert!(text.is_ascii(), "{text:?}");
    assert!(text.contains("> a - b ~ ?? ?") && text.contains("| - +"), "{text:?}");
}

/// Its font has the letters of Western Europe, and few signs.
#[test]
fn the_console_of_linux_gets_letters_and_ascii() {
    let size = Size { columns: 60, rows: 10 };
    let mut screen = Screen::new(size, Abilities { signs: Signs::Latin, colours: false });
    let tree = ["├── größer", "└── ┌─┐ ☐ ☑ ░█ »so« 3 × 4"].map(str::to_owned);
    let text = screen.paint(&tree, &Frame::default());
    assert!(text.contains("+-- größer"), "{text:?}");
    assert!(text.contains("+-- +-+ o + .# >so< 3 x 4"), "{text:?}");
}

#[test]
fn a_stream_loses_no_character() {
    let mut world = World::new(80, 24);
    let task = world.begin("talk");
    world.input(Input::Phase(Phase::Working));
    let text: String = (0..400).map(|n| format!("word{n} 漢🙂\n\n")).collect();
    world.reply(task, &text);
    let all = world.all();
    for n in 0..400 {
        assert!(all.contains(&format!("word{n} 漢🙂")), "word{n}");
    }
}

#[test]
fn leaving_removes_the_zone_and_keeps_what_was_printed() {
    let mut world = World::new(60, 12);
    talk(&mut world, 3);
    world.types("unsent");
    world.paint();
    let text = world.screen.leave();
    world.parser.process(text.as_bytes());
    let shown = world.parser.screen().contents();
    assert!(shown.trim_end().ends_with("answer 2"), "{shown}");
}

#[test]
fn a_small_terminal_shows_the_end_of_a_long_text() {
    let mut world = World::new(20, 6);
    world.types("one two three four five six seven eight nine ten");
    assert!(world.shown().contains("nine\n  ten"), "{}", world.shown());
    world.key(Key::plain(Code::Home));
    world.paint();
    let (row, _) = world.parser.screen().cursor_position();
    assert!(usize::from(row) < 6);
}

#[test]
fn a_zone_that_the_terminal_has_broken_is_removed() {
    let mut screen = Screen::new(
        Size { columns: 20, rows: 6 },
        Abilities { signs: Signs::Unicode, colours: false },
    );
    let zone = |cursor| Frame { rows: vec!["a".repeat(15), "b".repeat(15)], cursor };
    screen.paint(&[], &zone(Some((1, 3))));
    screen.resize(Size { columns: 10, rows: 6 });
    screen.reflow();
    let text = screen.paint(&[], &zone(Some((1, 3))));
    // The first row takes two now, so the zone begins two rows above the cursor.
    assert!(text.contains("\u{1b}[2A\r\u{1b}[J"), "{text:?}");
}

/// What was printed on the other screen while it was there is printed into the scrollback when it ends.
#[test]
fn the_layout_is_switched_inside_a_conversation() {
    let mut world = World::new(60, 12);
    talk(&mut world, 3);
    world.types("/tui full\n");
    assert_eq!(world.app.layout, Layout::Full);
    assert_eq!(world.take_effects(), []);
    world.types("/tui sideways\n");
    assert!(world.shown().contains("`/tui inline` or `/tui full`"), "{}", world.shown());
    world.key(Key::alt(Code::Char('l')));
    assert_eq!(world.app.layout, Layout::Inline);
}

#[test]
fn raw_prints_what_was_written_without_marks_and_breaks() {
    let mut world = World::new(40, 12);
    let task = world.begin("explain");
    let line = "Use **this** one: a line that is longer than the terminal, which breaks it itself.";
    world.types("/raw\n");
    world.reply(task, line);
    world.paint();
    let contents = world.parser.screen().contents();
    assert!(contents.replace('\n', "").contains(line), "{contents}");
    // A terminal knows that the rows are one line, and copies them as one.
    let row = (0..12u16).find(|row| world.parser.screen().row_wrapped(*row));
    assert!(row.is_some(), "the terminal has broken it:\n{contents}");
    world.types("/raw\n");
    world.reply(task, "Now **as before**.");
    assert!(world.shown().contains("Now as before."), "{}", world.shown());
}

/// In the middle of a sentence it begins a row of its own, which the terminal breaks: there it can be opened.
#[test]
fn an_address_in_a_sentence_is_never_broken_by_us() {
    let mut world = World::new(30, 24);
    let task = world.begin("where?");
    let address = "https://example.org/a/very/long/path/that/does/not/fit";
    world.reply(task, &format!("You will find it at {address} as before."));
    world.paint();
    let screen = world.parser.screen();
    let contents = screen.contents();
    assert!(contents.replace('\n', "").contains(address), "{contents}");
    let row = (0..24u16).find(|row| screen.row_wrapped(*row));
    let first = row.and_then(|row| screen.rows(0, 30).nth(usize::from(row)));
    assert!(first.is_some_and(|row| row.starts_with("https://")), "{contents}");
    assert!(contents.contains("\nas before."), "{contents}");
}

/// Zellij and Windows Terminal lose rows that are inserted by scroll regions.
#[test]
fn no_scroll_region_and_no_mouse_is_ever_asked_for() {
    let size = Size { columns: 40, rows: 10 };
    let mut screen = Screen::new(size, Abilities { signs: Signs::Unicode, colours: true });
    let zone = Frame { rows: vec!["one".to_owned(), "two".to_owned()], cursor: Some((1, 0)) };
    let rows: Vec<String> = (0..30).map(|n| format!("row {n}")).collect();
    let mut written = screen.paint(&rows, &zone);
    written += &screen.reprint(&rows, &zone);
    written += &screen.paint_overlay(&zone);
    written += &screen.leave();
    let ends = written
        .split("\u{1b}[")
        .skip(1)
        .map(|rest| rest.chars().find(|char| char.is_ascii_alphabetic()).unwrap_or_default());
    let ends: std::collections::BTreeSet<char> = ends.collect();
    assert!(!ends.contains(&'r') && !ends.contains(&'L'), "{ends:?}");
    assert!(!written.contains("\u{1b}[?100"), "{written:?}");
}

/// It has no alternate screen, unless it is told to have one.
#[test]
fn what_a_page_covers_is_printed_again_in_gnu_screen() {
    let mut world = World::new(40, 12);
    world.input(Input::Terminal(Event::GnuScreen));
    let task = world.begin("count");
    let rows: Vec<String> = (0..30).map(|n| format!("- row {n}")).collect();
    world.reply(task, &rows.join("\n"));
    let before = (world.shown(), world.all());
    let page = Page::new(ViewKind::Help, "keys", vec![PageLine::of("a key")]);
    world.input(Input::Loaded(Box::new(Overlay::Page(page))));
    assert!(world.shown().contains("a key") && !world.shown().contains("row 29"));
    world.key(Key::plain(Code::Escape));
    assert_eq!((world.shown(), world.all()), before);
    // What is said meanwhile is printed too.
    let page = Page::new(ViewKind::Help, "keys", vec![PageLine::of("a key")]);
    world.input(Input::Loaded(Box::new(Overlay::Page(page))));
    world.paint();
    world.reply(task, "and one more");
    world.paint();
    world.key(Key::plain(Code::Escape));
    let shown = world.shown();
    assert!(shown.contains("• row 29") && shown.contains("and one more"), "{shown}");
    assert!(!shown.contains("a key"), "{shown}");
}

/// What it scrolls away cannot be cleared, and what is cleared is scrolled away.
#[test]
fn neither_a_page_nor_a_resize_repeats_anything_in_gnu_screen() {
    let mut world = World::new(60, 12);
    world.input(Input::Terminal(Event::GnuScreen));
    let task = world.begin("count");
    let rows: Vec<String> = (0..40).map(|n| format!("- row {n} of the long list")).collect();
    world.reply(task, &rows.join("\n"));
    world.paint();
    let page = Page::new(ViewKind::Help, "keys", vec![PageLine::of("a key")]);
    world.input(Input::Loaded(Box::new(Overlay::Page(page))));
    world.paint();
    // More than the screen has room for comes meanwhile.
    let late: Vec<String> = (0..20).map(|n| format!("- row {n} that is late")).collect();
    world.reply(task, &late.join("\n"));
    world.paint();
    world.key(Key::plain(Code::Escape));
    // The emulator breaks it into several rows.
    world.reply(task, &format!("see https://example.com/{}", "long/".repeat(40)));
    world.paint();
    for columns in [50, 70, 60] {
        world.resize(columns, 12);
        let all = world.all();
        let early = (0..40).map(|n| format!("row {n} of"));
        for row in early.chain((0..20).map(|n| format!("row {n} that"))) {
            assert_eq!(all.matches(&row).count(), 1, "{row} at {columns} columns:\n{all}");
        }
        assert_eq!(all.matches("waiting for you").count(), 1, "{all}");
        assert!(!all.contains("a key"), "{all}");
    }
}

#[test]
fn a_running_command_ticks_with_its_last_line() {
    let mut world = World::new(80, 24);
    let task = world.begin("build it");
    world.input(Input::Phase(Phase::Working));
    let id = CallId::new(jiff::Timestamp::UNIX_EPOCH);
    world.record(task, call(id, "make all"));
    let printed = |world: &mut World, text: &str| {
        let live = PreviewContent::Output { call: id, text: text.to_owned() };
        world.input(Input::Preview(Box::new(Preview { task, live })));
    };
    printed(&mut world, "compiling one\n");
    world.wait(std::time::Duration::from_secs(5));
    let shown = world.shown();
    assert!(shown.contains("make all 0:05") && shown.contains("compiling one"), "{shown}");
    printed(&mut world, "compiling two\n");
    world.wait(std::time::Duration::from_secs(1));
    let shown = world.shown();
    assert!(shown.contains("make all 0:06") && shown.contains("compiling two"), "{shown}");
    assert!(!shown.contains("compiling one"), "{shown}");
}

#[test]
fn a_cut_output_says_how_all_of_it_is_seen() {
    let mut world = World::new(80, 24);
    let task = world.begin("list them");
    let id = CallId::new(jiff::Timestamp::UNIX_EPOCH);
    world.record(task, call(id, "seq 200"));
    let all: Vec<String> = (1..=200).map(|n| n.to_string()).collect();
    world.record(task, result(id, &all.join("\n")));
    let shown = world.all();
    assert!(!shown.contains("\n  150\n"), "{shown}");
    assert!(shown.contains("(Ctrl+T shows all)"), "{shown}");
}

/// What was printed long ago is the terminal's and the journal's, not ours.
#[test]
fn only_a_window_of_what_was_printed_is_kept() {
    let mut world = World::new(80, 24);
    let task = world.begin("write");
    for n in 0..2_000 {
        world.reply(task, &format!("{n} {}", "words ".repeat(200)));
    }
    let kept = world.app.transcript.rows(world.app.form(), usize::MAX);
    let bytes: usize = kept.iter().map(String::len).sum();
    assert!(bytes < 600 * 1024, "{bytes} bytes");
    assert!(kept[0].contains("/transcript"), "{}", kept[0]);
    assert!(kept.iter().any(|row| row.starts_with("1999 ")));
}

/// The shell and the editor have set a title of their own.
#[test]
fn the_title_is_written_again_after_another_program() {
    let mut world = World::new(80, 24);
    assert!(world.screen.set_title("a").contains("]0;a"));
    assert_eq!(world.screen.set_title("a"), "");
    world.screen.forget();
    assert!(world.screen.set_title("a").contains("]0;a"));
}
