//! Sessions: their state on the wire, their limits, one trigger at a time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::SignedDuration;
use windlass_coordinator::views::EntryStatus;
use windlass_coordinator::{
    BoxFuture, CoordinatorLimits, Error, Lease, SubmitOptions, TriggerOutcome,
};
use windlass_core::event::Deadline;
use windlass_core::id::SessionId;
use windlass_core::schedule::{DeadlineAction, SchedulerStatus};
use windlass_core::status::TaskStatus;
use windlass_store::{Filter, Store};

use crate::world::{START, World, at, command};

/// Tasks differ by when they were made.
const SECOND: SignedDuration = SignedDuration::from_secs(1);

const NEW: &str = r#"{"decision":"new_task","goal":"work"}"#;

/// ES-077, ES-078, ES-082: a session and its tasks, in the JSON of the contract.
#[tokio::test]
async fn a_session_is_shown_with_the_fields_of_the_contract() {
    let world = World::routed("replies: [{say: done}]", NEW);
    let action = DeadlineAction::PauseAndNotify;
    let options = SubmitOptions {
        user_id: Some("ada".to_owned()),
        deadline: Some(Deadline { at: at("2026-11-16T00:00:00Z"), action }),
        ..SubmitOptions::default()
    };
    let first = world.task_in(world.session, "first", options).await.unwrap();
    world.stage.advance(SECOND);
    let second = world.task("second").await;
    world.drive(second).await;
    world.stage.advance(SECOND);
    let third = world.task("third").await;
    let pause = windlass_core::injection::Control::Pause;
    world.coordinator().control().steer(third, pause, "ada").await.unwrap();
    let state = world.coordinator().sessions().view(world.session).unwrap();
    let json = serde_json::to_value(&state).unwrap();
    let fields = |value: &serde_json::Value| {
        value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(fields(&json), "active_task_id session_id tasks user_id");
    assert_eq!(json["session_id"], world.session.to_string());
    assert_eq!(json["user_id"], "ada");
    assert_eq!(json["active_task_id"], third.to_string());
    let entry = &json["tasks"][0];
    assert_eq!(entry["task_id"], first.to_string());
    assert_eq!(entry["goal_summary"], "first");
    assert_eq!(entry["status"], "RUNNING");
    assert_eq!(entry["deadline"], "2026-11-16T00:00:00Z");
    assert_eq!(entry["deadline_action"], "pause_and_notify");
    assert!(entry["agent_session_id"].is_string() && entry["created_at"] == START);
    assert_eq!(
        fields(entry),
        "agent_session_id created_at deadline deadline_action goal_summary status task_id"
    );
    assert_eq!(json["tasks"][1]["status"], "COMPLETED");
    assert!(json["tasks"][1]["completed_at"].is_string());
    assert_eq!(json["tasks"][2]["status"], "PAUSED");
    assert!(json["tasks"][2]["paused_at"].is_string());
}

/// ES-082: of the ten statuses, a session shows these five words.
#[test]
fn a_sessions_tasks_have_five_statuses() {
    let entry = |status| EntryStatus::of(status, windlass_core::status::StatusReason::User);
    let entries: Vec<_> =
        TaskStatus::ALL.iter().map(|&one| format!("{one} {}", entry(one))).collect();
    let expected = [
        "todo RUNNING",
        "running RUNNING",
        "verifying RUNNING",
        "reviewing RUNNING",
        "blocked RUNNING",
        "paused PAUSED",
        "retrying RUNNING",
        "done COMPLETED",
        "failed FAILED",
        "cancelled CANCELLED",
    ];
    assert_eq!(entries, expected);
}

/// MS-131: a task that waits for others does not start before they are done.
#[tokio::test]
async fn a_task_with_open_blockers_does_not_start() {
    let world = World::routed("replies: [{say: done}]", NEW);
    let first = world.stage.submit().await;
    let mut draft = world.stage.draft();
    draft.dependency_blockers = vec![first];
    let second = world.coordinator().tasks().submit(draft).await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let refused = world.coordinator().tasks().drive(second, &stop).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Dependencies { blockers, .. } if *blockers == [first]),
        "{refused}"
    );
    assert_eq!(world.status(second), TaskStatus::Todo);
    assert_eq!(world.stage.server.request_count(), 0);
    world.drive(first).await;
    world.drive(second).await;
    assert_eq!(world.status(second), TaskStatus::Done);
}

/// ES-015, ES-033, ES-090, MS-142: the fourth task waits in line, and takes the place that becomes free.
#[tokio::test]
async fn the_fourth_task_of_a_session_is_queued_with_its_place() {
    let world = World::routed("replies: [{say: done}]", NEW);
    let mut started = Vec::new();
    for number in 1..=5 {
        world.stage.advance(SECOND);
        let submitted = world
            .coordinator()
            .tasks()
            .submit_command(
                command(world.session, &format!("task {number}")),
                SubmitOptions::default(),
            )
            .await
            .unwrap();
        started.push(submitted);
    }
    let places: Vec<_> = started.iter().map(|one| one.place).collect();
    assert_eq!(places, [None, None, None, Some(1), Some(2)]);
    let tasks: Vec<_> = started.iter().map(|one| one.task).collect();
    assert_eq!(world.coordinator().queue().ready().unwrap(), tasks[..3]);
    let fourth = world.store().scheduler().get(tasks[3]).unwrap().unwrap();
    assert_eq!(fourth.status, SchedulerStatus::Queued);
    assert_eq!(world.status(tasks[3]), TaskStatus::Todo);
    let entries = world.coordinator().sessions().view(world.session).unwrap().tasks;
    assert_eq!(entries[4].queue_place, Some(2));
    world.drive(tasks[0]).await;
    assert_eq!(world.coordinator().queue().place(tasks[3]).unwrap(), None);
    assert_eq!(world.coordinator().queue().place(tasks[4]).unwrap(), Some(1));
    assert_eq!(world.coordinator().queue().ready().unwrap(), tasks[1..4]);
}

/// ES-090: a fourth that comes as a message is answered with its place.
#[tokio::test]
async fn a_message_that_has_to_wait_says_so() {
    let world = World::routed("replies: []", NEW);
    for _ in 0..3 {
        world.say("more work").await.unwrap();
        world.stage.advance(SECOND);
    }
    let handled = world.say("more work").await.unwrap();
    assert!(matches!(handled, TriggerOutcome::Started { place: Some(1), .. }), "{handled:?}");
    assert!(world.replies()[0].contains("queued, number 1 in line"), "{:?}", world.replies());
}

/// ES-091: a sixth session is refused with words; a session whose tasks have ended no longer counts.
#[tokio::test]
async fn the_sixth_session_of_a_user_is_refused() {
    let world = World::routed("replies: [{say: done}]", NEW);
    let options =
        |user: &str| SubmitOptions { user_id: Some(user.to_owned()), ..SubmitOptions::default() };
    let mut tasks = Vec::new();
    for _ in 0..5 {
        let session = SessionId::new(at(START));
        tasks.push((session, world.task_in(session, "work", options("ada")).await.unwrap()));
    }
    world.stage.advance(SECOND);
    let refused = world.say("and this").await.unwrap_err();
    assert!(matches!(refused, Error::TooManySessions { limit: 5, .. }), "{refused}");
    assert!(!refused.is_transient());
    assert!(world.replies()[0].contains("5 sessions"), "{:?}", world.replies());
    let (known, first) = tasks[0];
    world.task_in(known, "a second there", options("ada")).await.unwrap();
    world.task_in(SessionId::new(at(START)), "work", options("bob")).await.unwrap();
    let second = world.coordinator().sessions().view(known).unwrap().tasks[1].task_id;
    world.drive(first).await;
    world.drive(second).await;
    world.say("and this").await.unwrap();
}

/// What waits to be started is bounded: one task more is refused with words, until another has begun.
#[tokio::test]
async fn a_task_too_many_for_the_service_to_start_is_refused() {
    let mut world = World::routed("replies: [{say: done}]", NEW);
    let limits = CoordinatorLimits { waiting_tasks: 2, ..CoordinatorLimits::default() };
    world.stage.coordinator = world.stage.coordinator.clone().with_limits(limits);
    let first = world.task("one").await;
    let again = command(world.session, "two");
    let submit =
        |command| world.coordinator().tasks().submit_command(command, SubmitOptions::default());
    submit(again.clone()).await.unwrap();
    let refused = submit(command(world.session, "three")).await.unwrap_err();
    assert!(matches!(refused, Error::TooManyWaiting { limit: 2 }), "{refused}");
    assert!(!refused.is_transient(), "its sender is notified, and decides");
    assert!(!submit(again).await.unwrap().new, "what was taken is taken");
    world.say("four").await.unwrap_err();
    assert!(world.replies()[0].contains("2 tasks are already waiting"), "{:?}", world.replies());
    world.drive(first).await;
    submit(command(world.session, "three")).await.unwrap();
}

/// ES-092, ES-093, ES-094: two messages at once are handled one after the other, under a lease.
#[tokio::test]
async fn simultaneous_messages_of_a_session_are_serialized() {
    let world = World::new("replies: []", |input| {
        let line = input.lines().find(|line| line.contains("(active)"));
        Some(match line.and_then(|line| line.split_whitespace().nth(1)) {
            Some(id) => format!(r#"{{"decision":"inject_into_active","task_id":"{id}"}}"#),
            None => NEW.to_owned(),
        })
    });
    let handled = tokio::join!(world.say("one"), world.say("two"), world.say("three"));
    let all = [handled.0.unwrap(), handled.1.unwrap(), handled.2.unwrap()];
    let started = all.iter().filter(|one| matches!(one, TriggerOutcome::Started { .. })).count();
    assert_eq!(started, 1, "{all:?}");
    assert_eq!(world.store().tasks().list(&Filter::default()).unwrap().len(), 1);
    assert_eq!(world.stage.server.most_at_once(), 1);
    assert_eq!(
        world.store().sessions().leases().holder(world.session).unwrap(),
        None,
        "given back"
    );
}

/// Leases of the store that note when they are taken and given back.
struct Noted {
    store: Store,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Lease for Noted {
    fn take<'a>(
        &'a self,
        session: SessionId,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            self.notes.lock().unwrap().push(format!("taken for {} s", ttl.as_secs()));
            let far = at("2026-11-16T08:00:00Z");
            Ok(self.store.sessions().leases().take(session, owner, at(START), far).await?)
        })
    }

    fn give_back<'a>(
        &'a self,
        session: SessionId,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let task = self.store.sessions().get(session)?.unwrap().active_task_id.unwrap();
            let injected = self.store.mailbox().pending(task)?.len();
            self.notes.lock().unwrap().push(format!("given back with {injected} injected"));
            assert!(self.store.sessions().leases().release(session, owner).await?);
            Ok(())
        })
    }
}

/// ES-093: taken before routing, given back after the injection.
#[tokio::test]
async fn a_lease_is_held_from_before_routing_until_after_the_injection() {
    let notes: Arc<Mutex<Vec<String>>> = Arc::default();
    let routed = notes.clone();
    let world = World::new("replies: []", move |_| {
        routed.lock().unwrap().push("routed".to_owned());
        None
    });
    world.task("work").await;
    let store = world.store().clone();
    let leases = Arc::new(Noted { store, notes: notes.clone() });
    let coordinator = world.coordinator().clone().with_leases(leases);
    coordinator.triggers().user_message_received(world.message("faster")).await.unwrap();
    let noted = notes.lock().unwrap().join(", ");
    assert_eq!(noted, "taken for 30 s, routed, given back with 1 injected");
}

/// ES-092: a lease is refused to others until it ends, and given back by its holder only.
#[tokio::test]
async fn a_lease_has_one_holder_and_an_end() {
    let world = World::routed("replies: []", NEW);
    let store = world.store();
    let (now, later) = (at(START), at("2026-11-15T08:00:30Z"));
    assert!(store.sessions().leases().take(world.session, "a", now, later).await.unwrap());
    assert!(!store.sessions().leases().take(world.session, "b", now, later).await.unwrap());
    assert!(!store.sessions().leases().release(world.session, "b").await.unwrap());
    assert!(
        store
            .sessions()
            .leases()
            .take(world.session, "b", later, at("2026-11-15T08:01:00Z"))
            .await
            .unwrap()
    );
    assert!(!store.sessions().leases().release(world.session, "a").await.unwrap(), "it is b's now");
    assert_eq!(CoordinatorLimits::default().session_lease, Duration::from_secs(30));
    assert!(CoordinatorLimits::default().router < CoordinatorLimits::default().session_lease);
}

/// ES-094: a session that somebody else holds is a temporary error.
#[tokio::test]
async fn a_session_that_stays_busy_is_handed_back() {
    let world = World::routed("replies: []", NEW);
    let store = world.store();
    let far = at("2026-11-16T08:00:00Z");
    assert!(
        store.sessions().leases().take(world.session, "somebody", at(START), far).await.unwrap()
    );
    let limits = CoordinatorLimits {
        session_lease: Duration::from_millis(50),
        ..CoordinatorLimits::default()
    };
    let coordinator = world.coordinator().clone().with_limits(limits);
    let busy =
        coordinator.triggers().user_message_received(world.message("hello")).await.unwrap_err();
    assert!(matches!(busy, Error::SessionBusy { .. }) && busy.is_transient(), "{busy}");
}

/// ES-048, ES-172, ES-292, O-32: a command that comes again names the task it made; its workspace is its own.
#[tokio::test]
async fn a_repeated_command_starts_nothing() {
    let world = World::routed("replies: []", NEW);
    let command = command(world.session, "once");
    let first = world
        .coordinator()
        .tasks()
        .submit_command(command.clone(), SubmitOptions::default())
        .await
        .unwrap();
    let again = world
        .coordinator()
        .tasks()
        .submit_command(command, SubmitOptions::default())
        .await
        .unwrap();
    assert!(first.new && !again.new && first.task == again.task);
    let row = world.store().tasks().get(first.task).unwrap().unwrap();
    assert!(row.workspace.ends_with(&format!("workspaces/{}", first.task)), "{}", row.workspace);
    assert!(std::path::Path::new(&row.workspace).is_dir());
    let other = world.task("another").await;
    let other = world.store().tasks().get(other).unwrap().unwrap();
    assert_ne!(other.workspace, row.workspace, "two tasks, two workspaces");
}
