//! With a screen reader: everything that is drawn for the eye is said in lines of words, each once.

use std::time::Duration;

use serde_json::json;
use windlass_core::axes::{PermissionProfile, RunControl, WorkMode};
use windlass_core::id::{CallId, TaskId};
use windlass_tui::app::{Input, Phase, SessionFacts, Settings};
use windlass_tui::keys::{Code, Key};
use windlass_tui::overlay::{Item, List, Overlay, Target, ViewKind};

use crate::world::{COLOURS, World, axes, call, event, result, settings};

fn world(columns: usize, rows: usize) -> World {
    World::with(Settings { screen_reader: true, ..settings(COLOURS) }, columns, rows)
}

fn facts(work: WorkMode, control: RunControl, is_paused: bool) -> Input {
    let axes = axes(work, control, PermissionProfile::Trusted);
    let role = Some("executor".to_owned());
    let model = "test/model".to_owned();
    Input::Facts(SessionFacts { axes, role, model, effort: None, is_paused })
}

/// Signs, boxes and spinners that would be read as noise.
const DRAWN: &str = "❯•●─│┊·→↳✓✗…⠋⠙⠹⠸‖▸";

fn assert_only_words(text: &str) {
    assert!(!text.contains(|char| DRAWN.contains(char)), "{text}");
}

/// A turn with a call, a question, an answer, and a message that is taken back.
fn turn(world: &mut World) {
    world.input(facts(WorkMode::Build, RunControl::Autonomous, false));
    let task = world.begin("The test fails. Find out why.");
    world.input(Input::Phase(Phase::Working));
    world.reply(task, "I look at the **test** first:\n\n- `test.sh`\n");
    let id = CallId::new(jiff::Timestamp::UNIX_EPOCH);
    world.record(task, call(id, "sh test.sh"));
    world.wait(Duration::from_secs(31));
    world.record(task, result(id, "one\ntwo\n"));
    world.types("then write a test\n");
    world.key(Key::plain(Code::Escape));
    world.key(Key::plain(Code::Escape));
    world.input(Input::Phase(Phase::Blocked));
    world.ask("rm -r build");
    world.wait(Duration::from_secs(2));
    world.key(Key::plain(Code::Down));
    world.types("1");
    world.input(Input::Questions(Vec::new()));
    world.input(Input::Phase(Phase::Working));
    world.input(facts(WorkMode::Build, RunControl::Autonomous, true));
    world.input(Input::Phase(Phase::Idle));
}

#[test]
fn a_turn_is_said_in_words() {
    let mut world = world(80, 24);
    turn(&mut world);
    let all = world.all();
    assert_only_words(&all);
    insta::assert_snapshot!(all);
}

#[test]
fn a_turn_is_said_in_small_windows_too() {
    for (columns, rows) in [(20, 6), (60, 16), (120, 30), (200, 40), (20, 1)] {
        let mut world = world(columns, rows);
        turn(&mut world);
        let all = world.all().replace('\n', " ");
        assert_only_words(&all);
        for words in ["the agent works", "taken back:", "question:", "1. Allow", "role executor"] {
            let words: Vec<&str> = words.split(' ').collect();
            let is_said = |word: &&str| all.contains(*word);
            assert!(words.iter().all(is_said), "{columns}×{rows}: {words:?}\n{all}");
        }
    }
}

#[test]
fn nothing_is_said_twice_and_nothing_moves() {
    let mut world = world(80, 24);
    turn(&mut world);
    world.paint();
    let before = (world.all(), world.written);
    world.wait(Duration::from_secs(600));
    assert_eq!(world.all(), before.0);
    // While it works, only every half minute.
    world.input(Input::Phase(Phase::Working));
    world.paint();
    let written = world.written;
    for _ in 0..28 {
        world.wait(Duration::from_secs(1));
        world.paint();
    }
    assert_eq!(world.written, written, "a clock ticks");
    assert!(world.app.next_wake().is_some());
    world.wait(Duration::from_secs(2));
    assert!(world.all().contains("the agent is still working, 0:30"), "{}", world.all());
}

#[test]
fn the_choice_that_the_arrows_reach_is_said() {
    let mut world = world(80, 24);
    world.ask("rm -r build");
    world.wait(Duration::from_secs(2));
    world.key(Key::plain(Code::Down));
    assert!(world.all().contains("chosen of 4: 2. Deny; Enter answers"), "{}", world.all());
    let question = json!({
        "id": windlass_core::id::QuestionId::new(jiff::Timestamp::UNIX_EPOCH),
        "kind": "ask_user", "question": "Which format?", "options": [],
    });
    world.input(Input::Questions(vec![crate::world::open(question, None)]));
    assert!(world.all().contains("write your answer"), "{}", world.all());
}

/// A reader follows the cursor: it stands at the entry that is chosen.
#[test]
fn the_cursor_stands_at_the_entry_that_is_chosen() {
    let mut world = world(60, 16);
    let item = |n: i64| Item {
        target: Target::Task(TaskId::new(jiff::Timestamp::from_second(n).unwrap())),
        line: format!("7K2M{n:03} running · {n} m"),
        preview: vec!["more about it".to_owned()],
    };
    let list = List::new(ViewKind::Tasks, "tasks", (1..=5).map(item).collect());
    world.input(Input::Loaded(Box::new(Overlay::List(list))));
    world.key(Key::plain(Code::Down));
    let shown = world.shown();
    assert_only_words(&shown);
    let row = usize::from(world.parser.screen().cursor_position().0);
    assert_eq!(shown.lines().nth(row), Some("selected: 7K2M002 running, 2 m"), "{shown}");
    assert!(shown.starts_with("tasks; chat, manual"), "{shown}");
}

/// The mode that a task changes is said once, though both the journal and the session tell it.
#[test]
fn a_change_of_the_mode_is_said_once() {
    let mut world = world(80, 24);
    let task = world.begin("hello");
    let [from, to] = [WorkMode::Chat, WorkMode::Repair]
        .map(|mode| axes(mode, RunControl::Manual, PermissionProfile::Normal));
    let changed = json!({ "from": from, "to": to, "reason": "", "scope": "now", "source": "user" });
    world.record(task, event("mode_changed", changed));
    world.input(Input::Facts(SessionFacts {
        axes: to,
        role: None,
        model: String::new(),
        effort: None,
        is_paused: false,
    }));
    let all = world.all();
    // Once in a line, and once where the mode always stands.
    assert_eq!(all.matches("mode: repair, manual").count(), 1, "{all}");
    assert_eq!(all.matches("repair").count(), 2, "{all}");
}
