//! Deadlines by a set clock, and loops that hang.

use std::time::Duration;

use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::{CoordinatorLimits, Error, SubmitOptions, TriggerOutcome};
use windlass_core::command::ResultStatus;
use windlass_core::error::ErrorType;
use windlass_core::event::Deadline;
use windlass_core::id::TaskId;
use windlass_core::schedule::{DeadlineAction, SchedulerStatus};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_testkit::{Answer, Gate};

use crate::world::{World, at};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

async fn due_at_nine(world: &World, action: DeadlineAction) -> TaskId {
    let deadline = Some(Deadline { at: at("2026-11-15T09:00:00Z"), action });
    let options = SubmitOptions { deadline, ..SubmitOptions::default() };
    world.task_in(world.session, "be quick", options).await.unwrap()
}

async fn tick(world: &World) -> Vec<TriggerOutcome> {
    let ticked = world.coordinator().schedules().timer().tick().await.unwrap();
    ticked.done.into_iter().map(|(_, handled)| handled.unwrap()).collect()
}

fn row(world: &World, task: TaskId) -> windlass_store::TaskRow {
    world.store().tasks().get(task).unwrap().unwrap()
}

const BLOCKED: &str = "
replies:
  - write: {path: report.md, content: half of it}
  - publish_deliverable: {filepath: report.md, description: what there is, type: report}
  - ask_user: {question: go on?}
  - say: done
";

/// ES-056, ES-079, ES-085: at its deadline a task fails, once.
#[tokio::test]
async fn a_deadline_can_fail_the_task() {
    let world = World::routed(BLOCKED, "never asked");
    let task = due_at_nine(&world, DeadlineAction::Fail).await;
    world.drive(task).await;
    assert!(tick(&world).await.is_empty());
    world.stage.advance(HOUR);
    tick(&world).await;
    let failed = row(&world, task);
    assert_eq!((failed.status, failed.reason), (TaskStatus::Failed, StatusReason::Deadline));
    let result = failed.result.unwrap();
    assert_eq!(result.status, ResultStatus::Failed);
    assert_eq!(result.error_details.unwrap().error_type, ErrorType::Deadline);
    assert!(tick(&world).await.is_empty());
}

/// ES-080: or it completes with what it has.
#[tokio::test]
async fn a_deadline_can_complete_the_task_with_what_it_has() {
    let world = World::routed(BLOCKED, "never asked");
    let task = due_at_nine(&world, DeadlineAction::CompletePartial).await;
    world.drive(task).await;
    world.stage.advance(HOUR);
    tick(&world).await;
    let done = row(&world, task);
    assert_eq!((done.status, done.reason), (TaskStatus::Done, StatusReason::Deadline));
    let result = done.result.unwrap();
    assert_eq!(result.status, ResultStatus::Completed);
    assert_eq!(result.deliverables[0].filepath, "report.md");
    assert_eq!(world.store().projections().verify().unwrap(), [], "the journal implies all of it");
}

/// ES-081, ES-389: or it is parked and a person is notified. Once resumed it is not stopped again.
#[tokio::test]
async fn a_deadline_can_park_the_task_and_notify_a_person() {
    let world = World::routed("replies: [{say: done}]", "never asked");
    let task = due_at_nine(&world, DeadlineAction::PauseAndNotify).await;
    world.stage.advance(HOUR);
    tick(&world).await;
    let parked = row(&world, task);
    assert_eq!((parked.status, parked.reason), (TaskStatus::Paused, StatusReason::Deadline));
    assert_eq!(world.replies().len(), 1);
    assert!(world.replies()[0].contains("deadline"), "{:?}", world.replies());
    world.stage.advance(HOUR);
    assert!(tick(&world).await.is_empty());
    world
        .coordinator()
        .control()
        .steer(task, windlass_core::injection::Control::Resume, "ada")
        .await
        .unwrap();
    assert_eq!(world.drive(task).await.status, ResultStatus::Completed);
    assert_eq!(world.replies().len(), 1);
}

/// ES-079, ES-085: a deadline that passes while a command runs ends the command.
#[tokio::test]
async fn a_deadline_ends_what_runs() {
    let world = World::routed("replies: [{bash: sleep 600}, {say: done}]", "never asked");
    let task = due_at_nine(&world, DeadlineAction::Fail).await;
    let coordinator = world.coordinator();
    let mut following = coordinator.feed().follow(task, 0);
    let late = async {
        loop {
            let windlass_coordinator::Update::Event(record) = following.next().await.unwrap()
            else {
                continue;
            };
            if record.event.kind() == "tool_call" {
                break;
            }
        }
        world.stage.advance(HOUR);
        tick(&world).await
    };
    let (result, _) = tokio::join!(world.drive(task), late);
    assert_eq!(result.status, ResultStatus::Failed);
    assert_eq!(result.error_details.unwrap().error_type, ErrorType::Deadline);
}

/// MS-138, MS-139: a task that nobody started before its deadline is expired, and failed.
#[tokio::test]
async fn a_queued_task_whose_deadline_passes_expires() {
    let world = World::routed("replies: []", "never asked");
    let task = due_at_nine(&world, DeadlineAction::CompletePartial).await;
    world.stage.advance(HOUR);
    tick(&world).await;
    assert_eq!(row(&world, task).status, TaskStatus::Failed, "it has no partial result");
    let scheduled = world.store().scheduler().get(task).unwrap().unwrap();
    assert_eq!(scheduled.status, SchedulerStatus::Expired);
}

/// ES-033: a loop that is silent for too long is failed from outside, and evicted.
#[tokio::test]
async fn a_loop_that_stalls_is_failed_from_outside() {
    let world = World::routed("replies: [{say: done}]", "never asked");
    let gate = Gate::new();
    world.stage.server.next(Answer::script("say: never").gated(0, &gate));
    let limits =
        CoordinatorLimits { hang: Duration::from_secs(600), ..CoordinatorLimits::default() };
    let coordinator = world.coordinator().clone().with_limits(limits);
    let task = world.task("hang").await;
    let stop = CancellationToken::new();
    let late = async {
        world.stage.server.requests_reach(1).await;
        assert!(coordinator.schedules().timer().tick().await.unwrap().stalled.is_empty());
        let morning = coordinator.now() + SignedDuration::from_hours(8);
        world.stage.set_clock(morning);
        assert!(
            coordinator.schedules().timer().tick().await.unwrap().stalled.is_empty(),
            "the machine slept"
        );
        loop {
            world.stage.advance(SignedDuration::from_secs(30));
            let stalled = coordinator.schedules().timer().tick().await.unwrap().stalled;
            if !stalled.is_empty() {
                return stalled;
            }
            assert!(coordinator.now() < at("2026-11-15T17:00:00Z"), "it is never failed");
        }
    };
    let (driven, stalled) = tokio::join!(coordinator.tasks().drive(task, &stop), late);
    assert_eq!(stalled, [task]);
    let superseded = driven.unwrap_err();
    assert!(
        matches!(superseded, Error::Store(windlass_store::Error::Superseded { .. })),
        "{superseded}"
    );
    let failed = row(&world, task);
    assert_eq!((failed.status, failed.reason), (TaskStatus::Failed, StatusReason::Timeout));
    assert_eq!(failed.error.unwrap().error_type, ErrorType::Hung);
    assert_eq!(failed.result.unwrap().status, ResultStatus::Failed);
    assert_eq!(world.store().owners().runtime().get(task).unwrap(), None);
    coordinator.tasks().retry(task).await.unwrap();
    assert_eq!(
        coordinator.tasks().drive(task, &stop).await.unwrap().status,
        ResultStatus::Completed
    );
}
