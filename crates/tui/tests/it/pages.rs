//! Pages over the screen: scrolled, searched, with the mode in their header.

use std::time::Duration;

use windlass_core::id::{SessionId, TaskId};
use windlass_tui::app::{Effect, Input};
use windlass_tui::keys::{Code, Key};
use windlass_tui::overlay::{
    Conversations, DiffOf, Item, List, Overlay, Page, PageLine, Target, ViewKind,
};

use crate::world::{COLOURS, World, settings};

fn page(lines: usize) -> Overlay {
    let line = |n: usize| match n % 20 {
        0 => PageLine::heading(format!("heading {n}")),
        19 => PageLine::folded(format!("hidden {n}")),
        _ => PageLine::of(format!("line {n}")),
    };
    let kind = ViewKind::Transcript { task: None };
    Overlay::Page(Page::new(kind, "transcript", (0..lines).map(line).collect()))
}

/// Keys may come before it is drawn for the first time.
#[test]
fn a_page_opens_at_its_end_and_takes_keys_at_once() {
    for keys in ["", "][kj"] {
        let Overlay::Page(page) = page(100) else { panic!() };
        let mut world = world(Overlay::Page(page.from_end()));
        world.types(keys);
        assert!(world.shown().contains("100 %"), "{keys}: {}", world.shown());
    }
}

fn world(overlay: Overlay) -> World {
    let mut world = World::new(60, 12);
    world.input(Input::Loaded(Box::new(overlay)));
    world
}

#[test]
fn a_page_is_scrolled_searched_jumped_and_unfolded() {
    let mut world = world(page(100));
    assert_eq!(top(&mut world), "heading 0");
    world.types("]");
    assert_eq!(top(&mut world), "heading 20");
    world.types("/line 57\n");
    assert_eq!(top(&mut world), "line 57");
    world.types("u[");
    assert_eq!(top(&mut world), "heading 40");
    world.key(Key::plain(Code::PageUp));
    assert!(world.shown().contains("hidden 39"), "{}", world.shown());
    world.key(Key::plain(Code::Escape));
    assert!(world.app.overlay.is_none());
}

/// From where the person is to the end, then from the beginning; and it is said how many there are.
#[test]
fn a_search_goes_round_and_says_what_it_found() {
    let mut world = world(numbered(ViewKind::Transcript { task: None }));
    assert_eq!(top(&mut world), "line 0");
    world.key(Key::plain(Code::End));
    world.types("/LINE 11\n");
    assert_eq!(top(&mut world), "line 11", "from the end it begins again");
    assert!(world.shown().contains("1 of 11: LINE 11 · n next, N previous"), "{}", world.shown());
    world.types("n");
    assert_eq!(top(&mut world), "line 110");
    world.types("n");
    assert!(world.shown().contains("3 of 11"), "also one that is in sight:\n{}", world.shown());
    world.types("NNN");
    assert!(world.shown().contains("11 of 11"), "{}", world.shown());
    world.types("/nowhere\n");
    assert!(world.shown().contains("not found: nowhere"), "{}", world.shown());
}

#[test]
fn hidden_characters_in_a_search_are_shown_and_fit_any_window() {
    for columns in 1..30 {
        let mut world = world(page(30));
        world.resize(columns, 6);
        world.types("/");
        world.paste("\u{9d}\u{7}\u{8}\u{b}a\u{1}\u{1b}[2J");
        assert!(world.app.overlay.is_some());
        assert!(world.shown().contains(r"\x1b[2J") || columns < 10, "{}", world.shown());
    }
}

#[test]
fn what_is_found_is_marked() {
    let mut world = World::with(settings(COLOURS), 60, 12);
    world.input(Input::Loaded(Box::new(numbered(ViewKind::Transcript { task: None }))));
    world.types("/line 7\n");
    world.paint();
    assert!(world.painted.contains("\u{1b}[7mline 7"), "{:?}", world.painted);
}

/// Each line is there in one of its forms.
#[test]
fn an_unfolded_text_takes_the_place_of_its_short_form() {
    let lines = vec![
        PageLine::of("a command"),
        PageLine::brief("… 9 lines"),
        PageLine::folded("the whole output"),
    ];
    let page = Page::new(ViewKind::Transcript { task: None }, "transcript", lines);
    let mut world = world(Overlay::Page(page));
    let shows = |world: &mut World, text: &str| world.shown().contains(text);
    assert!(shows(&mut world, "… 9 lines") && !shows(&mut world, "the whole output"));
    world.types("u");
    assert!(!shows(&mut world, "… 9 lines") && shows(&mut world, "the whole output"));
}

/// The transcript of a task that runs is read again: whoever is at its end stays there, anybody else where they are.
#[test]
fn a_transcript_that_grows_is_followed_at_its_end() {
    let task = TaskId::new(jiff::Timestamp::UNIX_EPOCH);
    let transcript = |count: usize| {
        let lines = (0..count).map(|n| PageLine::of(format!("line {n}"))).collect();
        let kind = ViewKind::Transcript { task: Some(task) };
        Overlay::Page(Page::new(kind, "transcript", lines).from_end().growing(true))
    };
    let mut world = world(transcript(50));
    assert!(world.shown().contains("line 49"), "{}", world.shown());
    assert!(world.app.overlay.as_ref().unwrap().is_live());
    world.input(Input::Refreshed(Box::new(transcript(60))));
    assert!(world.shown().contains("line 59"), "{}", world.shown());
    world.key(Key::plain(Code::PageUp));
    let before = top(&mut world);
    world.input(Input::Refreshed(Box::new(transcript(70))));
    assert_eq!(top(&mut world), before);
}

/// What was said to a key is seen on the page where it was pressed.
/// A notice stands where the keys of a page are named.
#[test]
fn what_was_said_before_does_not_hide_the_keys_of_a_page() {
    let mut world = World::new(80, 24);
    world.input(Input::Notice("sent".to_owned()));
    world.input(Input::Loaded(Box::new(page(5))));
    assert!(world.shown().contains("Esc closes"), "{}", world.shown());
}

#[test]
fn a_notice_is_seen_on_a_page() {
    let mut world = world(page(100));
    world.input(Input::Notice("it pauses after its current step".to_owned()));
    assert!(world.shown().contains("it pauses after its current step"), "{}", world.shown());
    // The next key is answered in its place.
    world.key(Key::plain(Code::Down));
    assert!(world.shown().contains("/ searches"), "{}", world.shown());
}

/// A page that a list has opened leads back to the list, and to what was chosen there.
#[test]
fn a_page_that_was_opened_from_a_list_leads_back_to_it() {
    let ids: Vec<TaskId> = (0..3).map(|_| TaskId::new(jiff::Timestamp::UNIX_EPOCH)).collect();
    let item = |task: &TaskId| Item {
        target: Target::Task(*task),
        line: format!("running {task}"),
        preview: Vec::new(),
    };
    let items = ids.iter().map(item).collect();
    let mut world = world(Overlay::List(List::new(ViewKind::Agents, "sub-agents", items)));
    world.key(Key::plain(Code::Down));
    world.types("t");
    world.input(Input::Loaded(Box::new(numbered(ViewKind::Transcript { task: Some(ids[1]) }))));
    world.take_effects();
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.take_effects(), [Effect::Load(ViewKind::Agents)], "it is read again");
    world.types("p");
    assert_eq!(world.take_effects(), [Effect::Pause(ids[1])]);
    world.key(Key::plain(Code::Escape));
    assert!(world.app.overlay.is_none());
}

/// The first row of the page.
fn top(world: &mut World) -> String {
    world.shown().lines().nth(1).unwrap_or_default().to_owned()
}

fn numbered(kind: ViewKind) -> Overlay {
    let lines = (0..400).map(|n| PageLine::of(format!("line {n}")));
    Overlay::Page(Page::new(kind, "numbered", lines.collect()))
}

#[test]
fn a_single_step_scrolls_one_row_and_quick_ones_go_further() {
    let mut world = world(numbered(ViewKind::Diff(DiffOf::Task)));
    assert_eq!(top(&mut world), "line 0");
    // One at a time, however many.
    for _ in 0..20 {
        world.key(Key::plain(Code::Down));
        world.wait(Duration::from_millis(400));
    }
    assert_eq!(top(&mut world), "line 20");
    // A notch of the wheel is three arrows at once.
    (0..3).for_each(|_| world.key(Key::plain(Code::Up)));
    assert_eq!(top(&mut world), "line 17");
    world.wait(Duration::from_millis(400));
    // Held down, it repeats.
    let mut before = 17;
    let mut steps = Vec::new();
    for _ in 0..30 {
        world.key(Key::plain(Code::Char('j')));
        world.wait(Duration::from_millis(33));
        let now: usize = top(&mut world).trim_start_matches("line ").parse().unwrap();
        steps.push(now - before);
        before = now;
    }
    assert_eq!(steps[..6], [1; 6], "the first are exact: {steps:?}");
    assert!(steps.is_sorted(), "it only gets faster: {steps:?}");
    // Never more than a page less one row, so that each row was in sight.
    assert_eq!(steps[29], 8, "{steps:?}");
}

#[test]
fn another_direction_a_pause_or_another_key_scrolls_exactly_again() {
    let hold = |world: &mut World| (0..30).for_each(|_| world.key(Key::plain(Code::Down)));
    let step = |world: &mut World, key: Code| {
        let number = |row: String| row.trim_start_matches("line ").parse::<usize>().unwrap();
        let before = number(top(world));
        world.key(Key::plain(key));
        number(top(world)).abs_diff(before)
    };
    for kind in [ViewKind::Diff(DiffOf::Turn), ViewKind::Transcript { task: None }] {
        let mut world = world(numbered(kind));
        hold(&mut world);
        assert!(step(&mut world, Code::Down) > 1);
        assert_eq!(step(&mut world, Code::Up), 1, "the other way");
        hold(&mut world);
        world.wait(Duration::from_millis(300));
        assert_eq!(step(&mut world, Code::Down), 1, "after a pause");
        hold(&mut world);
        world.key(Key::plain(Code::Home));
        assert_eq!(step(&mut world, Code::Down), 1, "after another key");
    }
}

#[test]
fn a_page_shows_the_mode_and_leaves_the_screen_unchanged() {
    let mut world = World::new(60, 12);
    world.begin("hello");
    let before = world.shown();
    world.input(Input::Loaded(Box::new(page(5))));
    assert!(world.shown().starts_with("[C][M][N][S]  transcript"), "{}", world.shown());
    world.key(Key::plain(Code::Char('q')));
    assert_eq!(world.shown(), before);
}

#[test]
fn what_happens_under_a_page_is_printed_when_it_closes() {
    let mut world = World::new(60, 12);
    let task = world.begin("hello");
    world.input(Input::Loaded(Box::new(page(5))));
    world.paint();
    world.reply(task, "an answer meanwhile");
    assert!(!world.shown().contains("an answer"));
    world.key(Key::plain(Code::Escape));
    assert!(world.shown().contains("an answer meanwhile"), "{}", world.shown());
}

/// MS-226
#[test]
fn tasks_are_chosen_steered_and_cancelled_only_by_two_presses() {
    let ids: Vec<TaskId> = (0..50).map(|_| TaskId::new(jiff::Timestamp::UNIX_EPOCH)).collect();
    let task = |number: i64| ids[number as usize];
    let item = |second: i64| Item {
        target: Target::Task(task(second)),
        line: format!("task {second}"),
        preview: vec![format!("about {second}")],
    };
    let list = |count: i64| {
        Overlay::List(List::new(ViewKind::Tasks, "tasks", (1..=count).map(item).collect()))
    };
    let mut world = world(list(40));
    world.key(Key::plain(Code::Down));
    world.types("p");
    assert_eq!(world.take_effects(), [Effect::Pause(task(2))]);
    world.types("c");
    world.types("j");
    world.types("c");
    assert_eq!(world.take_effects(), [], "another key in between keeps it");
    world.types("c");
    assert_eq!(world.take_effects(), [Effect::Cancel(task(3))]);
    // Read again, it stays where the person is.
    world.input(Input::Loaded(Box::new(list(41))));
    // It scrolls to what is chosen.
    assert!(world.shown().contains("task 1") && !world.shown().contains("task 41"));
    world.key(Key::plain(Code::End));
    assert!(world.shown().contains("❯ task 41"), "{}", world.shown());
    world.key(Key::plain(Code::Home));
    (0..2).for_each(|_| world.key(Key::plain(Code::Down)));
    world.types("\n");
    assert_eq!(world.take_effects().last(), Some(&Effect::OpenTask(task(3))));
}

/// Where there is no room for all keys, the way out is one of them.
#[test]
fn the_way_out_of_a_page_is_named_in_a_small_window() {
    let task = TaskId::new(jiff::Timestamp::UNIX_EPOCH);
    let item = Item { target: Target::Task(task), line: "a task".to_owned(), preview: Vec::new() };
    for (columns, keys) in [(20, "Esc close"), (40, "Enter watch · t transcript · Esc close")] {
        let list = List::new(ViewKind::Tasks, "tasks", vec![item.clone()]);
        let mut world = World::new(columns, 6);
        world.input(Input::Loaded(Box::new(Overlay::List(list))));
        assert_eq!(world.shown().lines().last(), Some(keys));
        // What is asked comes first.
        world.types("c");
        assert!(world.shown().contains("press c again"), "{}", world.shown());
    }
}

/// Each sub-agent is opened, steered, paused, resumed and cancelled by itself.
#[test]
fn sub_agents_are_steered_singly() {
    let ids: Vec<TaskId> = (0..3).map(|_| TaskId::new(jiff::Timestamp::UNIX_EPOCH)).collect();
    let item = |task: &TaskId| Item {
        target: Target::Task(*task),
        line: format!("running {task}"),
        preview: Vec::new(),
    };
    let list = List::new(ViewKind::Agents, "sub-agents", ids.iter().map(item).collect());
    let mut world = world(Overlay::List(list));
    world.key(Key::plain(Code::Down));
    world.types("prt");
    let opened = Effect::Load(ViewKind::Transcript { task: Some(ids[1]) });
    let wanted = [Effect::Pause(ids[1]), Effect::Resume(ids[1]), opened];
    assert_eq!(world.take_effects(), wanted);
    world.types("m");
    assert_eq!(world.take_effects(), [Effect::WriteTo(ids[1])]);
    world.types("cc");
    assert_eq!(world.take_effects(), [Effect::Cancel(ids[1])]);
    world.input(Input::WriteTo(ids[1]));
    assert!(world.app.overlay.is_none());
    assert!(world.shown().contains("to the sub-agent"), "{}", world.shown());
    world.types("stop after the first failure\n");
    let words = "stop after the first failure".to_owned();
    assert_eq!(world.take_effects(), [Effect::SteerAgent { task: ids[1], words }]);
    assert!(world.app.writing.composer.is_empty());
}

#[test]
fn sessions_are_found_by_typing_and_by_a_paste() {
    let ids: Vec<SessionId> = (0..3).map(|_| SessionId::new(jiff::Timestamp::UNIX_EPOCH)).collect();
    let session = |number: i64| ids[number as usize];
    let item = |second: i64, line: &str| Item {
        target: Target::Session(session(second)),
        line: line.to_owned(),
        preview: Vec::new(),
    };
    let items = vec![item(1, "fix the parser"), item(2, "write the docs")];
    let kind = ViewKind::Sessions(Conversations::OfDirectory);
    let mut world = world(Overlay::List(List::new(kind, "conversations", items)));
    world.types("wri");
    world.paste("te the");
    world.key(Key::plain(Code::Tab));
    assert_eq!(world.take_effects(), [Effect::Load(ViewKind::Sessions(Conversations::Everywhere))]);
    world.types("\n");
    assert_eq!(world.take_effects().last(), Some(&Effect::OpenSession(session(2))));
}

#[test]
fn a_conversation_is_archived_and_taken_back() {
    let session = SessionId::new(jiff::Timestamp::UNIX_EPOCH);
    let list = |of: Conversations| {
        let item = Item {
            target: Target::Session(session),
            line: "fix the parser".to_owned(),
            preview: Vec::new(),
        };
        Overlay::List(List::new(ViewKind::Sessions(of), of.words(), vec![item]))
    };
    let mut world = world(list(Conversations::Everywhere));
    assert!(world.shown().contains("Del archives"), "{}", world.shown());
    world.key(Key::plain(Code::Delete));
    assert_eq!(world.take_effects(), [Effect::Archive(session, true)]);
    world.key(Key::plain(Code::Tab));
    assert_eq!(world.take_effects(), [Effect::Load(ViewKind::Sessions(Conversations::Archived))]);
    world.input(Input::Loaded(Box::new(list(Conversations::Archived))));
    world.key(Key::plain(Code::Delete));
    assert_eq!(world.take_effects(), [Effect::Archive(session, false)]);
    world.types("\n");
    let reopened = [Effect::Archive(session, false), Effect::OpenSession(session)];
    assert_eq!(world.take_effects(), reopened);
    assert!(world.app.overlay.is_none());
}

/// A slow machine has read the list again when the person is already elsewhere.
#[test]
fn a_page_that_was_left_does_not_come_back() {
    let runs = || Overlay::List(List::new(ViewKind::Workflows, "workflows", Vec::new()));
    let mut world = world(runs());
    world.input(Input::Loaded(Box::new(page(5))));
    world.input(Input::Refreshed(Box::new(runs())));
    assert!(world.shown().contains("transcript"), "{}", world.shown());
    world.key(Key::plain(Code::Escape));
    world.input(Input::Refreshed(Box::new(runs())));
    assert!(world.app.overlay.is_none(), "{}", world.shown());
}

#[test]
fn the_end_of_a_long_search_is_seen_where_it_is_typed() {
    let items = ["one", "two"].map(|line| Item {
        target: Target::Text,
        line: line.to_owned(),
        preview: Vec::new(),
    });
    let list = Overlay::List(List::new(ViewKind::Tasks, "tasks", items.to_vec()));
    for (overlay, label) in [(list, "search: "), (page(30), "/")] {
        for (columns, rows) in [(20, 6), (20, 14), (60, 12), (200, 50)] {
            let mut world = world(overlay.clone());
            world.resize(columns, rows);
            world.types("/");
            world.types(&"漢word ".repeat(40));
            world.types("the end");
            let shown = world.shown();
            let row = shown.lines().find(|row| row.starts_with(label)).unwrap();
            assert!(row.starts_with(&format!("{label}…")), "{shown}");
            assert!(row.ends_with("the end") || columns == 20 && row.ends_with("end"), "{shown}");
            let (at, column) = world.parser.screen().cursor_position();
            assert_eq!(shown.lines().nth(usize::from(at)), Some(row), "{shown}");
            assert_eq!(usize::from(column), columns - 1, "{shown}");
        }
    }
}

/// Letters do something again, and they do it with what was found.
#[test]
fn escape_ends_the_search_in_a_list_at_what_it_found() {
    let ids: Vec<TaskId> = (0..5).map(|_| TaskId::new(jiff::Timestamp::UNIX_EPOCH)).collect();
    let names = ["first", "second", "third", "fourth", "fifth"];
    let item = |(task, name): (&TaskId, &str)| Item {
        target: Target::Task(*task),
        line: name.to_owned(),
        preview: Vec::new(),
    };
    let items = ids.iter().zip(names).map(item).collect();
    let mut world = world(Overlay::List(List::new(ViewKind::Tasks, "tasks", items)));
    world.types("/fourth");
    assert!(world.shown().contains("search: fourth  Enter watch · Esc ends the search"));
    assert!(!world.shown().contains("third"), "{}", world.shown());
    world.key(Key::plain(Code::Escape));
    assert!(world.shown().contains("❯ fourth"), "{}", world.shown());
    assert!(world.shown().contains("first"), "{}", world.shown());
    world.types("p");
    assert_eq!(world.take_effects(), [Effect::Pause(ids[3])]);
}

#[test]
fn what_an_empty_list_says_is_whole_in_a_small_window() {
    let mut world = World::new(20, 6);
    let list = List::new(ViewKind::Commitments, "commitments", Vec::new());
    world.input(Input::Loaded(Box::new(Overlay::List(list))));
    let shown = world.shown().lines().map(str::trim).collect::<Vec<_>>().join(" ");
    assert!(shown.contains("there are no commitments"), "{shown}");
}

#[test]
fn a_search_in_the_history_says_when_nothing_is_found() {
    let mut world = World::new(60, 12);
    world.key(Key::ctrl('r'));
    assert!(world.shown().contains("the history is empty"), "{}", world.shown());
    world.key(Key::plain(Code::Escape));
    world.types("one message\n");
    world.key(Key::ctrl('r'));
    world.types("one");
    assert!(world.shown().contains("history: one  Ctrl+R older"), "{}", world.shown());
    world.types("x");
    assert!(world.shown().contains("not in the history: onex"), "{}", world.shown());
    world.key(Key::plain(Code::Backspace));
    assert!(world.shown().contains("history: one  Ctrl+R"), "{}", world.shown());
    world.types(&" word".repeat(30));
    world.types(" at its end");
    assert!(world.shown().contains("word at its end"), "{}", world.shown());
}
