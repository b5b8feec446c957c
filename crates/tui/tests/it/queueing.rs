//! Messages that wait: the queue, what an interrupt does to it, what is taken back.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;
use windlass_core::id::InjectionId;
use windlass_tui::app::{Effect, Input, Leaving, Phase, SavedDrafts, Steered};
use windlass_tui::composer::Draft;
use windlass_tui::keys::{Code, Event as Typed, Key};

use crate::composing::sent;
use crate::world::{World, event};

#[test]
fn messages_queue_while_it_works_and_go_out_after() {
    let mut world = World::new(80, 24);
    world.input(Input::Phase(Phase::Working));
    world.types("first\nsecond\n");
    assert_eq!(sent(&world.take_effects()), Vec::<String>::new());
    assert!(world.shown().contains("queued: first"), "{}", world.shown());
    world.input(Input::Phase(Phase::Idle));
    assert_eq!(sent(&world.take_effects()), ["first"]);
}

#[test]
fn queued_messages_are_moved_removed_edited_and_sent_now() {
    let mut world = World::new(80, 24);
    world.input(Input::Phase(Phase::Working));
    world.types("one\ntwo\nthree\n");
    world.key(Key::alt(Code::Up));
    world.key(Key::shift(Code::Up));
    world.key(Key::plain(Code::Char('s')));
    assert_eq!(world.take_effects(), [Effect::Steer(Draft::of("three"))]);
    world.key(Key::alt(Code::Up));
    world.key(Key::plain(Code::Enter));
    assert_eq!(world.app.writing.composer.text(), "two");
    assert_eq!(world.app.outgoing.queue.len(), 1);
}

#[test]
fn escape_interrupts_and_twice_takes_the_last_message_back() {
    let mut world = World::new(80, 24);
    world.input(Input::Phase(Phase::Working));
    world.types("later\n");
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.take_effects(), [Effect::Interrupt]);
    world.now += Duration::from_millis(200);
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.app.writing.composer.text(), "later");
    world.input(Input::Phase(Phase::Idle));
    assert_eq!(world.take_effects(), []);
}

/// What was queued before an interrupt waits for the person; what they write after it is read first.
#[test]
fn a_message_after_an_interrupt_goes_before_the_queue() {
    let mut world = World::new(80, 24);
    world.begin("go");
    world.input(Input::Phase(Phase::Working));
    world.types("from before\n");
    world.key(Key::plain(Code::Escape));
    world.input(Input::Phase(Phase::Idle));
    world.take_effects();
    world.types("from after\n");
    assert_eq!(world.take_effects(), [Effect::Send(Draft::of("from after"))]);
    assert!(world.shown().contains("queued: from before"), "{}", world.shown());
    assert!(world.shown().contains("the queue is on hold"), "{}", world.shown());
    // It waits through that turn too, until it is sent on.
    world.input(Input::NotSent { draft: Draft::of("from after"), why: "no".to_owned() });
    world.key(Key::ctrl('c'));
    world.input(Input::Phase(Phase::Working));
    world.input(Input::Phase(Phase::Idle));
    assert_eq!(world.take_effects(), []);
    world.types("\n");
    assert_eq!(world.take_effects(), [Effect::Send(Draft::of("from before"))]);
    // Nothing is held any more.
    world.input(Input::NotSent { draft: Draft::of("from before"), why: "no".to_owned() });
    world.key(Key::ctrl('c'));
    world.input(Input::Phase(Phase::Working));
    world.types("the next\n");
    world.input(Input::Phase(Phase::Idle));
    assert_eq!(world.take_effects(), [Effect::Send(Draft::of("the next"))]);
}

/// A message that waits belongs to its conversation. Only the text is offered to another one of the directory.
#[test]
fn what_was_queued_for_a_conversation_is_not_sent_in_another() {
    let mut world = World::new(80, 24);
    world.types("a first message\n");
    let saved = SavedDrafts::for_directory(&world.app);
    let mut next = World::new(80, 24);
    saved.restore(&mut next.app, false);
    assert!(next.shown().contains("❯ a first message"), "nothing was said yet: {}", next.shown());
    world.begin("a first message");
    world.input(Input::Phase(Phase::Working));
    world.types("queued\n");
    world.types("a draft");
    let mut next = World::new(80, 24);
    SavedDrafts::for_directory(&world.app).restore(&mut next.app, false);
    assert!(next.shown().contains("❯ a draft"), "{}", next.shown());
    assert!(!next.shown().contains("queued"), "{}", next.shown());
    let mut same = World::new(80, 24);
    SavedDrafts::of(&world.app).restore(&mut same.app, false);
    assert!(same.shown().contains("queued: queued"), "{}", same.shown());
}

/// An interrupt from another terminal holds what is queued here too.
#[test]
fn an_interrupt_from_elsewhere_holds_the_queue() {
    let mut world = World::new(80, 24);
    let task = world.begin("go");
    world.input(Input::Phase(Phase::Working));
    world.types("and then this\n");
    let paused = json!({ "from": "running", "to": "paused", "reason": "user" });
    world.record(task, event("status_changed", paused));
    world.input(Input::Phase(Phase::Idle));
    assert!(sent(&world.take_effects()).is_empty());
    assert!(world.shown().contains("the queue is on hold"), "{}", world.shown());
}

/// What was sent into the turn and waits in the mailbox is taken back before the turn is interrupted: else the agent
/// would read it first.
#[test]
fn escape_takes_back_what_was_sent_into_the_turn() {
    for is_quick in [false, true] {
        let mut world = World::new(80, 24);
        world.begin("go");
        world.input(Input::Phase(Phase::Working));
        let steered = Steered { draft: Draft::of("not that one"), request: "r".to_owned() };
        world.app.outgoing.steered.push(steered.clone());
        assert!(world.shown().contains("sent, not read yet: not that one"), "{}", world.shown());
        world.key(Key::plain(Code::Escape));
        let withdraw = Effect::Withdraw { message: steered.clone(), interrupts: true };
        assert_eq!(world.take_effects(), [withdraw]);
        if is_quick {
            world.key(Key::plain(Code::Escape));
            world.input(Input::Withdrawn(steered.draft));
        } else {
            world.input(Input::Withdrawn(steered.draft));
            assert!(world.shown().contains("queued: not that one"), "{}", world.shown());
            world.key(Key::plain(Code::Escape));
        }
        assert_eq!(world.app.writing.composer.text(), "not that one");
        assert!(world.app.outgoing.queue.is_empty());
    }
}

/// What the agent has read cannot be taken back.
#[test]
fn a_message_that_was_read_stays_sent() {
    let mut world = World::new(80, 24);
    let task = world.begin("go");
    world.input(Input::Phase(Phase::Working));
    let steered = Steered { draft: Draft::of("faster"), request: "r".to_owned() };
    world.app.outgoing.steered.push(steered);
    let id = InjectionId::derived("r", "message");
    world.record(
        task,
        event(
            "injection_received",
            json!({ "id": id, "injection_type": "user_message", "content": "faster" }),
        ),
    );
    assert!(!world.shown().contains("not read yet"), "{}", world.shown());
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.take_effects(), [Effect::Interrupt]);
}

/// Whoever edits a message in the middle of the queue does not want it at its end.
#[test]
fn an_edited_message_returns_to_its_place_in_the_queue() {
    let mut world = World::new(80, 24);
    world.input(Input::Phase(Phase::Working));
    world.types("one\ntwo\nthree\n");
    world.key(Key::alt(Code::Up));
    world.key(Key::plain(Code::Up));
    world.key(Key::plain(Code::Enter));
    assert_eq!(world.app.writing.composer.text(), "two");
    world.types(" and a half\nfour\n");
    assert_eq!(queued(&world), ["one", "two and a half", "three", "four"]);
    // What is written instead of it is another message.
    world.key(Key::alt(Code::Up));
    world.key(Key::plain(Code::Up));
    world.key(Key::plain(Code::Up));
    world.key(Key::plain(Code::Enter));
    world.key(Key::ctrl('c'));
    world.types("five\n");
    assert_eq!(queued(&world), ["one", "three", "four", "five"]);
}

fn queued(world: &World) -> Vec<String> {
    world.app.outgoing.queue.iter().map(Draft::expanded).collect()
}

/// A next message would begin the work again, or fail as the one before.
#[test]
fn work_that_is_stopped_or_fails_holds_the_queue() {
    let endings = [
        json!({ "from": "running", "to": "cancelled", "reason": "user" }),
        json!({ "from": "running", "to": "failed", "reason": "error" }),
        json!({ "from": "running", "to": "blocked", "reason": "timeout" }),
        json!({ "from": "running", "to": "paused", "reason": "shutdown" }),
    ];
    for ending in endings {
        let mut world = World::new(80, 24);
        let task = world.begin("go");
        world.input(Input::Phase(Phase::Working));
        world.types("and then this\n");
        world.record(task, event("status_changed", ending.clone()));
        world.input(Input::Phase(Phase::Idle));
        assert!(sent(&world.take_effects()).is_empty(), "{ending}");
        assert!(world.shown().contains("the queue is on hold"), "{}", world.shown());
        world.types("\n");
        assert_eq!(sent(&world.take_effects()), ["and then this"], "{ending}");
    }
}

/// It continues by itself: nobody is waited for, and the queue waits for its end.
#[test]
fn a_parked_task_says_when_it_is_tried_again() {
    let mut world = World::new(80, 24);
    let task = world.begin("go");
    world.input(Input::Phase(Phase::Working));
    world.input(Input::Terminal(Typed::Focus(false)));
    world.types("and then this\n");
    let until = Timestamp::from_second(3600).unwrap();
    let parked = json!({
        "from": "running", "to": "paused", "reason": "model_outage", "until": until,
        "detail": "no answer",
    });
    world.record(task, event("status_changed", parked));
    world.input(Input::Phase(Phase::Idle));
    assert_eq!(world.take_effects(), []);
    let clock = until.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string();
    let shown = world.shown();
    let line =
        format!("paused (model_outage): no answer; tried again at {clock}, or when you write");
    assert!(shown.contains(&line), "{shown}");
    assert!(shown.contains(&format!("paused; tried again at {clock}")), "{shown}");
    assert!(!shown.contains("on hold") && !shown.contains("waiting for you"), "{shown}");
    let ended = [("paused", "running", "user"), ("running", "paused", "awaiting_message")];
    for (from, to, reason) in ended {
        let moved = json!({ "from": from, "to": to, "reason": reason });
        world.record(task, event("status_changed", moved));
    }
    world.input(Input::Phase(Phase::Idle));
    assert_eq!(sent(&world.take_effects()), ["and then this"]);
    assert!(world.shown().contains("waiting for you"), "{}", world.shown());
}

/// Enter or Ctrl+S: a command is for the terminal, and no message to the agent.
#[test]
fn a_command_is_run_however_it_is_sent() {
    for send in [Key::plain(Code::Enter), Key::ctrl('s')] {
        let mut world = World::new(80, 24);
        world.begin("go");
        world.input(Input::Phase(Phase::Working));
        for text in ["/mode plan", "!ls", "/tmp/a is a path"] {
            world.types(text);
            world.key(send);
        }
        world.types("!");
        world.key(send);
        let shown = world.shown();
        assert!(shown.contains("write the command that is to run after the `!`"), "{shown}");
        let effects = world.take_effects();
        let commands = [Effect::Slash("/mode plan".to_owned()), Effect::Shell("ls".to_owned())];
        assert_eq!(effects[..2], commands);
        let messages = queued(&world).len() + effects[2..].len();
        assert_eq!(messages, 1, "{effects:?}");
    }
}

/// What was offered for the work is of no use any more, and nobody is thrown out while they read it.
#[test]
fn work_that_ends_while_a_person_leaves_is_said() {
    let mut world = World::new(80, 24);
    world.begin("go");
    world.input(Input::Phase(Phase::Working));
    world.key(Key::ctrl('d'));
    assert!(world.shown().contains("the agent is still working"), "{}", world.shown());
    world.input(Input::Phase(Phase::Idle));
    let shown = world.shown();
    assert!(shown.contains("the work has ended; Ctrl+D leaves"), "{shown}");
    assert!(!shown.contains("still working"), "{shown}");
    world.take_effects();
    world.key(Key::ctrl('d'));
    assert_eq!(world.take_effects(), [Effect::Leave(Leaving::Park)]);
}
