//! What is at work: sub-agents, how long it takes, and what a person has said.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use windlass_coordinator::{Preview, PreviewContent, StreamEvent};
use windlass_core::axes::{PermissionProfile, RunControl, WorkMode};
use windlass_core::id::{CallId, QuestionId, TaskId};
use windlass_tui::app::{Input, Phase};

use crate::world::{World, axes, call, event};

/// A conversation with a sub-agent at work.
fn with_sub_agent() -> (World, TaskId, TaskId) {
    let mut world = World::new(80, 24);
    let task = world.begin("check it");
    world.input(Input::Phase(Phase::Working));
    let child = TaskId::new(Timestamp::from_second(7).unwrap());
    let spawn = json!({
        "call": CallId::new(Timestamp::UNIX_EPOCH), "task_id": child, "label": "the tests",
        "task": "run the tests", "timeout_ms": 60_000, "model": "test/model",
        "axes": axes(WorkMode::Build, RunControl::Manual, PermissionProfile::Normal), "depth": 1,
    });
    world.record(task, event("sub_agent_spawn", spawn));
    (world, task, child)
}

/// What a person has read stays where it was read, and nothing that comes later is taken for a part of it.
#[test]
fn a_reply_that_is_interrupted_stays_and_is_marked() {
    let mut world = World::new(80, 24);
    let task = world.begin("tell me");
    world.input(Input::Phase(Phase::Working));
    let request =
        json!({ "model": "test/model", "messages": 2, "estimated_tokens": 900, "hash": "x" });
    world.record(task, event("llm_request", request));
    let preview = |world: &mut World, text: &str| {
        let live = PreviewContent::Reply(StreamEvent::Text(text.to_owned()));
        world.input(Input::Preview(Box::new(Preview { task, live })));
    };
    preview(&mut world, "The first half of **it**");
    let paused = json!({ "from": "running", "to": "paused", "reason": "user" });
    world.record(task, event("status_changed", paused));
    preview(&mut world, " comes late");
    world.input(Input::Phase(Phase::Idle));
    let shown = world.shown();
    assert!(
        shown.contains("┊ The first half of it\n  not finished; the agent does not"),
        "{shown}"
    );
    assert!(!shown.contains("comes late"), "{shown}");
    assert_eq!(shown.matches("The first half").count(), 1, "{shown}");
}

#[test]
fn the_row_of_a_sub_agent_says_what_it_waits_for() {
    let (mut world, _, child) = with_sub_agent();
    let question = json!({
        "id": QuestionId::new(Timestamp::UNIX_EPOCH), "kind": "ask_user", "question": "which?",
    });
    world.record(child, event("question_asked", question));
    assert!(world.shown().contains("the tests: waits for an answer"), "{}", world.shown());
    let moved = |to: &str, reason: &str| {
        event("status_changed", json!({ "from": "running", "to": to, "reason": reason }))
    };
    world.record(child, moved("paused", "user"));
    assert!(world.shown().contains("the tests: paused"), "{}", world.shown());
    // Its own end removes it: its parent says so only when all of them have ended.
    world.record(child, moved("done", "finished"));
    assert!(!world.shown().contains("the tests: paused"), "{}", world.shown());
}

/// What a person has paused is no interruption, and no message continues it.
#[test]
fn a_task_that_waits_for_a_paused_sub_agent_names_it() {
    let (mut world, task, child) = with_sub_agent();
    let moved = |to: &str| {
        event("status_changed", json!({ "from": "running", "to": to, "reason": "user" }))
    };
    world.record(child, moved("paused"));
    world.record(task, moved("paused"));
    world.input(Input::Phase(Phase::Idle));
    let shown = world.all();
    let line = "waits for sub-agent the tests, which you paused; r on /agents resumes it";
    assert!(shown.contains(line) && !shown.contains("interrupted"), "{shown}");
    assert!(!world.shown().contains("waiting for you"), "{}", world.shown());
    world.record(child, moved("running"));
    world.record(task, moved("paused"));
    assert!(world.all().contains("interrupted"), "{}", world.all());
}

/// A terminal that is opened later shows how long the work takes, not how long it looks on.
#[test]
fn the_time_at_work_counts_from_its_beginning() {
    let mut world = World::new(80, 24);
    world.app.opened_at = Timestamp::from_second(1000).unwrap();
    let task = world.begin("build it");
    // Ten seconds on the test's clock; events are stamped by it, a thousand seconds before the terminal was opened.
    world.record(task, call(CallId::new(Timestamp::UNIX_EPOCH), "make"));
    assert!(world.shown().contains("$ make 16:40"), "{}", world.shown());
    world.wait(Duration::from_secs(20));
    assert!(world.shown().contains("$ make 17:00"), "{}", world.shown());
}

/// Emoji, accents, tabs and spaces are what a person wrote; what hides or reorders text is shown.
#[test]
fn what_a_person_wrote_is_shown_as_they_wrote_it() {
    let mut world = World::new(80, 24);
    world.begin("❤\u{fe0f} 👩\u{200d}💻 cafe\u{301}\tdone ");
    let shown = world.shown();
    assert!(shown.contains("❯ ❤\u{fe0f} 👩\u{200d}💻 cafe\u{301}    done"), "{shown:?}");
    let mut world = World::new(80, 24);
    world.begin("a\u{202e}b\u{1b}[2Jc\u{e0041}d");
    let shown = world.shown();
    for hidden in ['\u{202e}', '\u{1b}', '\u{e0041}'] {
        assert!(!shown.contains(hidden), "{shown:?}");
    }
    assert!(shown.contains("202E") && shown.contains("1b"), "{shown:?}");
}

/// What a file holds that a message names is in the message too; it is whole in the transcript and in raw output.
#[test]
fn the_middle_of_a_long_message_is_left_out() {
    let text: Vec<String> = (1..=100).map(|number| format!("line {number}")).collect();
    let mut world = World::new(80, 24);
    world.begin(&text.join("\n"));
    let all = world.all();
    assert!(all.contains("❯ line 1\n"), "{all}");
    assert!(
        all.contains("  line 10\n  … 85 more lines; /transcript has all\n  line 96\n"),
        "{all}"
    );
    assert!(all.contains("  line 100\n"), "{all}");
    let mut world = World::new(80, 24);
    world.begin(&text[..16].join("\n"));
    assert!(!world.all().contains("more line"), "{}", world.all());
    // One that is a single line is cut too.
    let mut world = World::new(40, 24);
    world.begin(&"words ".repeat(1000));
    assert!(world.all().lines().count() < 24, "{}", world.all());
}

/// The event of a change comes with the next message; what was printed at once is not printed again.
#[test]
fn a_change_of_the_mode_is_printed_once() {
    let mut world = World::new(80, 24);
    let task = world.begin("go");
    let [normal, trusted] = [PermissionProfile::Normal, PermissionProfile::Trusted]
        .map(|profile| axes(WorkMode::Build, RunControl::Manual, profile));
    let changed = |from, to| {
        event("mode_changed", json!({ "from": from, "to": to, "reason": "x", "scope": "now" }))
    };
    world.input(Input::ModeSaid(trusted));
    world.record(task, changed(normal, trusted));
    assert!(!world.all().contains("mode:"), "{}", world.all());
    world.record(task, changed(trusted, normal));
    world.record(task, changed(normal, trusted));
    assert!(
        world.all().contains("mode: trusted → normal\nmode: normal → trusted"),
        "{}",
        world.all()
    );
}
