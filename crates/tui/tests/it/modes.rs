//! The mode line: words, badge, colours, title, keys.

use windlass_core::axes::{PermissionProfile, RunControl, WorkMode};
use windlass_term::StatusPart;
use windlass_tui::app::{Effect, Input, Phase, Settings};
use windlass_tui::keys::{Code, Event, Key};
use windlass_tui::mode_line::{Mode, ModeLineStyle};
use windlass_tui::overlay::{List, Overlay, Page, PageLine, ViewKind};

use crate::world::{COLOURS, PLAIN, World, axes, permission, settings};

fn mode(work: WorkMode, control: RunControl, profile: PermissionProfile) -> Mode {
    Mode { axes: axes(work, control, profile), role: None, is_paused: false }
}

const BUILD: (WorkMode, RunControl, PermissionProfile) =
    (WorkMode::Build, RunControl::Autonomous, PermissionProfile::Trusted);

fn look(columns: usize) -> ModeLineStyle {
    ModeLineStyle { columns, is_bright: false }
}

fn world(work: WorkMode, control: RunControl, columns: usize, rows: usize) -> World {
    let mut world = World::new(columns, rows);
    let mut facts = world.app.facts.clone();
    facts.axes = axes(work, control, PermissionProfile::Trusted);
    world.input(Input::Facts(facts));
    world
}

/// MS-002, MS-206: while nothing happens, work, a question, a search, the queue, the offer to leave, pages and lists.
#[test]
fn the_mode_is_on_the_screen_whatever_is_shown() {
    let key = |char| Input::Terminal(Event::Key(Key::ctrl(char)));
    let page = || Page::new(ViewKind::Text, "a page", vec![PageLine::of("a line")]);
    let list = || List::new(ViewKind::Tasks, "tasks", Vec::new());
    let open = |overlay| Input::Loaded(Box::new(overlay));
    let states = || {
        [
            ("nothing", Vec::new()),
            ("work", vec![Input::Phase(Phase::Working)]),
            ("a question", vec![Input::Questions(vec![permission(&"rm -r build\n".repeat(40))])]),
            ("a search", vec![key('r')]),
            ("a long text", vec![Input::Terminal(Event::Paste("a line\n".repeat(9)))]),
            ("leaving", vec![Input::Phase(Phase::Working), key('d')]),
            ("a page", vec![open(Overlay::Page(page()))]),
            ("a list", vec![open(Overlay::List(list()))]),
        ]
    };
    for (columns, rows) in [(20, 1), (20, 2), (20, 6), (60, 12), (80, 24), (200, 50)] {
        for layout in ["/tui inline\n", "/tui full\n"] {
            for (name, inputs) in states() {
                let mut world = world(WorkMode::Plan, RunControl::Manual, columns, rows);
                world.types(layout);
                inputs.into_iter().for_each(|input| world.input(input));
                let shown = world.shown();
                let mode = match columns < 80 {
                    true => "[P][M][T][S]",
                    false => "plan | manual | trusted | smart",
                };
                assert_eq!(shown.matches(mode).count(), 1, "{name}, {columns}×{rows}:\n{shown}");
            }
        }
    }
}

/// MS-098, MS-099, MS-219
#[test]
fn the_screen_has_the_mode_in_words_or_as_a_badge() {
    for mode in WorkMode::ALL.iter().copied() {
        let wide = world(mode, RunControl::Assisted, 80, 24).shown();
        let words = format!("windlass {mode} | assisted | trusted | smart ─");
        assert!(wide.lines().any(|row| row.starts_with(&words)), "{wide}");
        let narrow = world(mode, RunControl::Assisted, 79, 24).shown();
        let badge = match mode {
            WorkMode::Chat => "[C][S][T][S]",
            WorkMode::Plan => "[P][S][T][S]",
            WorkMode::Build => "[B][S][T][S]",
            WorkMode::Research => "[R][S][T][S]",
            WorkMode::Review => "review | assisted | trusted | smart",
            WorkMode::Repair => "repair | assisted | trusted | smart",
        };
        let badge = format!("windlass {badge} ─");
        assert!(narrow.lines().any(|row| row.starts_with(&badge)), "{narrow}");
    }
}

/// MS-098, MS-099, MS-206, MS-219
#[test]
fn the_mode_is_in_words_and_below_eighty_columns_a_badge() {
    let (work, control, profile) = BUILD;
    let build = mode(work, control, profile);
    assert_eq!(build.line(PLAIN, look(80)), "windlass build | autonomous | trusted | smart");
    assert_eq!(build.badge(PLAIN, look(79)), "[B][A][T][S]");
    let badge = |work, control, profile| mode(work, control, profile).badge(PLAIN, look(60));
    use PermissionProfile::{Normal, Restricted, Unrestricted};
    use RunControl::{Assisted, Autonomous, Manual};
    assert_eq!(badge(WorkMode::Chat, Manual, Normal), "[C][M][N][S]");
    assert_eq!(badge(WorkMode::Plan, Assisted, Restricted), "[P][S][R][S]");
    assert_eq!(badge(WorkMode::Research, Autonomous, Unrestricted), "[R][A][U][S]");
}

/// MS-100
#[test]
fn repair_and_review_are_said_in_full_at_any_width() {
    let repair = mode(WorkMode::Repair, RunControl::Autonomous, PermissionProfile::Normal);
    assert_eq!(repair.badge(PLAIN, look(40)), "repair | autonomous | normal | smart");
    let shown = world(WorkMode::Repair, RunControl::Autonomous, 40, 24).shown();
    assert!(shown.starts_with("repair | autonomous | trusted | smart"), "{shown}");
    // A window of two columns has no room for it, and keeps room for the text.
    let narrowest = world(WorkMode::Review, RunControl::Manual, 2, 10).shown();
    assert!(narrowest.lines().count() < 10, "{narrowest}");
    for (columns, rows) in [(20, 6), (20, 24), (30, 12)] {
        let shown = world(WorkMode::Review, RunControl::Manual, columns, rows).shown();
        let words: Vec<&str> = shown.split_whitespace().collect();
        for word in ["review", "manual", "trusted", "smart"] {
            assert!(words.contains(&word), "{columns}×{rows}:\n{shown}");
        }
    }
}

/// MS-101, MS-102
#[test]
fn the_badge_is_in_the_header_or_else_in_the_bottom_line() {
    let tall = world(WorkMode::Build, RunControl::Manual, 80, 24).shown();
    let header = tall.lines().find(|line| line.contains("windlass")).unwrap();
    assert!(header.starts_with("windlass build | manual | trusted | smart ──"), "{tall}");
    assert!(header.ends_with("── shop"), "{tall}");
    let low = world(WorkMode::Build, RunControl::Manual, 80, 6).shown();
    assert!(low.lines().last().unwrap().starts_with("build | manual | trusted | smart"), "{low}");
}

/// MS-105
#[test]
fn the_badge_is_never_hidden_while_autonomous() {
    for rows in 1..12 {
        for columns in [20, 40, 79, 120] {
            let mut world = world(WorkMode::Build, RunControl::Autonomous, columns, rows);
            world.input(Input::Phase(Phase::Working));
            world.input(Input::Notice("a notice that takes all the room there is".to_owned()));
            world.types("some text");
            let shown = world.shown();
            let is_there = shown.contains("[B][A][T][S]") || shown.contains("autonomous");
            assert!(is_there, "{columns}×{rows}:\n{shown}");
        }
    }
}

/// MS-103, MS-214, MS-222
#[test]
fn the_title_says_the_mode_and_cannot_control_a_terminal() {
    let (work, control, profile) = BUILD;
    let build = mode(work, control, profile);
    assert_eq!(build.title("shop", false), "windlass[build|A|trusted|smart] shop");
    assert_eq!(
        build.title("a\u{1b}]0;x\u{7}\u{202e}b", true),
        "! windlass[build|A|trusted|smart] a]0;xb"
    );
    let mut world = World::new(80, 24);
    let title = world.app.title();
    assert!(world.screen.set_title(&title).ends_with("windlass[chat|M|normal|smart] shop\u{7}"));
    assert_eq!(world.screen.set_title(&title), "");
}

/// MS-107…MS-114, MS-116…MS-119
#[test]
fn each_value_has_its_colour() {
    let badge = |work, control, profile| mode(work, control, profile).badge(COLOURS, look(80));
    use PermissionProfile::{Normal, Restricted, Trusted, Unrestricted};
    use RunControl::{Assisted, Manual};
    let works = [
        (WorkMode::Chat, "\u{1b}[2mchat"),
        (WorkMode::Plan, "\u{1b}[35mplan"),
        (WorkMode::Build, "\u{1b}[32mbuild"),
        (WorkMode::Review, "\u{1b}[33mreview"),
        (WorkMode::Repair, "\u{1b}[31mrepair"),
        (WorkMode::Research, "\u{1b}[36mresearch"),
    ];
    for (work, wanted) in works {
        assert!(badge(work, Manual, Normal).starts_with(wanted), "{work}");
    }
    for (control, wanted) in [(Manual, "\u{1b}[2mmanual"), (Assisted, "\u{1b}[33massisted")] {
        assert!(badge(WorkMode::Chat, control, Normal).contains(wanted), "{control}");
    }
    for (profile, wanted) in [
        (Restricted, "\u{1b}[32mrestricted"),
        (Normal, "\u{1b}[2mnormal"),
        (Trusted, "\u{1b}[33mtrusted"),
        (Unrestricted, "\u{1b}[31munrestricted"),
    ] {
        assert!(badge(WorkMode::Chat, Manual, profile).contains(wanted), "{profile}");
    }
}

/// MS-107…MS-119, as an emulator shows them, in words and as a badge.
#[test]
fn the_colours_of_the_mode_are_seen_at_any_width() {
    use PermissionProfile::{Normal, Restricted, Trusted, Unrestricted};
    use RunControl::{Assisted, Autonomous, Manual};
    use WorkMode::{Build, Chat, Plan, Repair, Research, Review};
    let works = [
        (Chat, None),
        (Plan, Some(5)),
        (Build, Some(2)),
        (Review, Some(3)),
        (Repair, Some(1)),
        (Research, Some(6)),
    ];
    let controls = [(Manual, None), (Assisted, Some(3)), (Autonomous, Some(2))];
    let profiles =
        [(Restricted, Some(2)), (Normal, None), (Trusted, Some(3)), (Unrestricted, Some(1))];
    for columns in [79, 80] {
        for (work, work_colour) in works {
            for (control, control_colour) in controls {
                for (profile, profile_colour) in profiles {
                    let mut world = World::with(settings(COLOURS), columns, 24);
                    let mut facts = world.app.facts.clone();
                    facts.axes = axes(work, control, profile);
                    world.input(Input::Facts(facts));
                    world.paint();
                    let seen = colours_of_the_mode(&world);
                    let wanted = [work_colour, control_colour, profile_colour, None];
                    assert_eq!(seen, wanted, "{work} {control} {profile}, {columns} columns");
                }
            }
        }
    }
}

/// The colour of each axis in the header; `None` is dim.
fn colours_of_the_mode(world: &World) -> Vec<Option<u8>> {
    let screen = world.parser.screen();
    let columns = screen.size().1;
    let row = screen.rows(0, columns).position(|row| row.starts_with("windlass ")).unwrap();
    let text = screen.rows(0, columns).nth(row).unwrap();
    let mode = text.split(" ─").next().unwrap();
    let is_short = mode.contains('[');
    let mut place = "windlass ".len();
    let parts = mode[place..].split(if is_short { "]" } else { " | " }).take(4);
    let colours = parts.map(|part| {
        let cell = screen.cell(row as u16, place as u16).unwrap();
        place += part.len() + if is_short { "]" } else { " | " }.len();
        match cell.fgcolor() {
            vt100::Color::Idx(colour) => Some(colour),
            vt100::Color::Default => {
                assert!(cell.dim(), "{part} is dim");
                None
            }
            vt100::Color::Rgb(..) => panic!("{part} has a colour of its own"),
        }
    });
    colours.collect()
}

/// MS-106, MS-115
#[test]
fn an_autonomous_badge_pulses_while_it_works() {
    let mut settings = settings(COLOURS);
    settings.animation = true;
    let mut world = World::with(settings, 100, 24);
    let mut facts = world.app.facts.clone();
    facts.axes = axes(BUILD.0, BUILD.1, BUILD.2);
    world.input(Input::Facts(facts));
    world.input(Input::Phase(Phase::Working));
    let mut styles = std::collections::BTreeSet::new();
    for _ in 0..20 {
        world.wait(std::time::Duration::from_millis(120));
        let frame = windlass_tui::view::zone(&world.app);
        let header = frame.rows.iter().find(|row| row.contains("autonomous")).unwrap();
        let before = header.split("autonomous").next().unwrap();
        styles.insert(before.rsplit('\u{1b}').next().unwrap().to_owned());
    }
    assert_eq!(styles.into_iter().collect::<Vec<_>>(), ["[1;32m", "[32m"]);
}

/// MS-220, AX-096
#[test]
fn a_paused_mode_is_dimmed_and_a_role_is_shown() {
    let (work, control, profile) = BUILD;
    let paused = Mode { is_paused: true, ..mode(work, control, profile) };
    assert_eq!(paused.badge(PLAIN, look(80)), "build | autonomous | trusted | smart paused");
    assert_eq!(paused.badge(PLAIN, look(60)), "[B][A][T][S] ‖");
    // Every word of it; nothing keeps its colour or pulses.
    let bright = ModeLineStyle { is_bright: true, ..look(80) };
    let drawn = paused.badge(COLOURS, bright);
    for word in ["build", "autonomous", "trusted", "smart"] {
        assert!(drawn.contains(&format!("\u{1b}[2m{word}\u{1b}[0m")), "{drawn:?}");
    }
    assert_eq!(paused.badge(COLOURS, look(80)), drawn);
    let mut world = World::new(60, 24);
    let mut facts = world.app.facts.clone();
    (facts.axes, facts.is_paused) = (axes(work, control, profile), true);
    world.input(Input::Facts(facts));
    assert!(world.shown().contains("windlass [B][A][T][S] ‖ ─"), "{}", world.shown());
    let auditor = Mode { role: Some("auditor".to_owned()), ..mode(work, control, profile) };
    assert_eq!(auditor.badge(PLAIN, look(60)), "[B][A][T][S] auditor");
}

/// MS-092…MS-097, MS-211: by the enhanced protocol, and by Alt on other terminals.
#[test]
fn keys_change_the_mode() {
    let commands = [
        ('m', "/mode plan"),
        ('a', "/control autonomous"),
        ('s', "/control assisted"),
        ('i', "/control manual"),
        ('r', "/mode repair"),
        ('p', "/permission-profile trusted"),
    ];
    for (char, command) in commands {
        for key in [Key { shift: true, ..Key::ctrl(char) }, Key::alt(Code::Char(char))] {
            let mut world = World::new(80, 24);
            world.key(key);
            assert_eq!(world.take_effects(), [Effect::Slash(command.to_owned())]);
        }
    }
}

/// MS-092, MS-097
#[test]
fn the_cycles_go_through_every_value() {
    use windlass_tui::mode_line::{next_profile, next_work_mode};
    let words = |mut mode: WorkMode| {
        let next = std::iter::repeat_with(|| {
            mode = next_work_mode(mode);
            mode.as_str()
        });
        next.take(6).collect::<Vec<_>>()
    };
    assert_eq!(words(WorkMode::Chat), ["plan", "build", "review", "repair", "research", "chat"]);
    assert_eq!(next_profile(PermissionProfile::Trusted, false), PermissionProfile::Restricted);
    assert_eq!(next_profile(PermissionProfile::Trusted, true), PermissionProfile::Unrestricted);
    assert_eq!(next_profile(PermissionProfile::Unrestricted, true), PermissionProfile::Restricted);
}

/// MS-223
#[test]
fn a_person_who_looks_elsewhere_is_told_and_nobody_else() {
    let mut world = World::new(80, 24);
    world.ask("rm x");
    assert_eq!(world.take_effects(), []);
    world.input(Input::Questions(Vec::new()));
    world.input(Input::Terminal(Event::Focus(false)));
    world.ask("rm x");
    assert_eq!(world.take_effects(), [Effect::Notify("a question waits")]);
    let task = world.begin("go");
    let talk = axes(WorkMode::Build, RunControl::Autonomous, PermissionProfile::Normal);
    let repair = axes(WorkMode::Repair, RunControl::Autonomous, PermissionProfile::Normal);
    let changed = serde_json::json!({
        "from": talk, "to": repair, "reason": "the gate failed", "scope": "now", "source": "repair",
    });
    world.record(task, crate::world::event("mode_changed", changed));
    let words = "the mode was changed for a repair";
    assert_eq!(world.take_effects(), [Effect::Notify(words)]);
}

/// `animation = false`: between two seconds nothing is drawn, however much works.
#[test]
fn without_animation_nothing_moves_but_the_clock() {
    let mut world = world(WorkMode::Build, RunControl::Autonomous, 100, 24);
    world.begin("go");
    world.input(Input::Phase(Phase::Working));
    world.wait(std::time::Duration::from_millis(10));
    world.paint();
    let before = world.written;
    for _ in 0..9 {
        world.wait(std::time::Duration::from_millis(100));
        world.paint();
    }
    assert_eq!(world.written, before);
    assert!(world.app.next_wake().unwrap() >= std::time::Duration::from_secs(11));
    assert!(world.shown().contains("• "), "{}", world.shown());
}

/// `tui.status`: the parts of the bottom line, in the person's order.
#[test]
fn the_bottom_line_has_the_parts_that_were_chosen() {
    let chosen = |status: &[StatusPart]| {
        let settings = Settings { status: status.to_vec(), ..settings(PLAIN) };
        let mut world = World::with(settings, 120, 24);
        let task = world.begin("go");
        world.reply(task, "done");
        let mut facts = world.app.facts.clone();
        (facts.model, facts.effort) = ("test/model".to_owned(), Some("high".to_owned()));
        world.input(Input::Facts(facts));
        world.shown().lines().last().unwrap().to_owned()
    };
    use StatusPart::{Effort, Model, Tokens};
    assert_eq!(chosen(StatusPart::ALL), "waiting for you · 1000 tokens · test/model · effort high");
    assert_eq!(chosen(&[Effort, Tokens]), "waiting for you · effort high · 1000 tokens");
    assert_eq!(chosen(&[Model]), "waiting for you · test/model");
    assert_eq!(chosen(&[]), "waiting for you");
}

/// A remark is about what was just done: the next thing that is done ends it, and another key is no second press.
#[test]
fn a_notice_is_over_when_the_next_thing_is_done() {
    let leave = Key { ctrl: true, ..Key::plain(Code::Char('c')) };
    let mut world = World::new(80, 24);
    world.key(leave);
    assert!(world.shown().contains("press Ctrl+C again to leave"));
    world.types("h");
    assert!(!world.shown().contains("again to leave"), "{}", world.shown());
    world.types("i\n");
    world.take_effects();
    world.key(leave);
    assert!(!world.take_effects().iter().any(|effect| matches!(effect, Effect::Leave(_))));
    assert!(world.shown().contains("press Ctrl+C again to leave"));
    let mut world = World::new(80, 24);
    world.input(Input::Notice("inline: the terminal scrolls".to_owned()));
    world.types("hello");
    assert!(world.shown().contains("inline: the terminal scrolls"), "who types may still read");
    world.types("\n");
    assert!(!world.shown().contains("inline: the terminal scrolls"), "{}", world.shown());
}

#[test]
fn what_was_said_about_a_message_is_over_when_it_is_taken_back() {
    let mut world = World::new(80, 24);
    world.begin("build it");
    world.input(Input::Phase(Phase::Working));
    world.types("and test it");
    world.key(Key::ctrl('s'));
    assert!(world.shown().contains("the agent reads it after the current step"));
    world.key(Key::plain(Code::Escape));
    assert!(!world.shown().contains("the agent reads it"), "{}", world.shown());
}

/// An error has its hint on a line of its own; a row with a line break in it would garble those around it.
#[test]
fn a_notice_of_several_lines_is_one_row() {
    let mut world = World::new(80, 24);
    let words = "`task_1` is already cancelled\n  continue it with `windlass retry`\n";
    world.input(Input::Notice(words.to_owned()));
    let shown = world.shown();
    let notice = "`task_1` is already cancelled; continue it with `windlass retry`";
    assert_eq!(shown.lines().last(), Some(notice), "{shown}");
    let page = Page::new(ViewKind::Help, "keys", vec![PageLine::of("a key")]);
    world.input(Input::Loaded(Box::new(Overlay::Page(page))));
    world.input(Input::Notice(words.to_owned()));
    let shown = world.shown();
    assert_eq!(shown.lines().last(), Some(notice), "{shown}");
}

/// In the smallest window the text's own row says what the bottom line has no room for.
#[test]
fn a_notice_is_seen_in_the_smallest_window() {
    let mut world = World::new(20, 6);
    world.key(Key { ctrl: true, ..Key::plain(Code::Char('c')) });
    let shown = world.shown().replace("\n ", "");
    assert!(shown.contains("press Ctrl+C again to leave"), "{shown}");
}
