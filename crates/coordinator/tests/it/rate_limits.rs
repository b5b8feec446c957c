//! Tasks that a model's server has asked to wait: parked, and resumed automatically (ES-378).

use jiff::SignedDuration;
use windlass_coordinator::SubmitOptions;
use windlass_core::command::ResultStatus;
use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::schedule::SchedulerStatus;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_testkit::Answer;

use crate::world::{World, at};

const TWO_HOURS: SignedDuration = SignedDuration::from_hours(2);

fn busy() -> Answer {
    Answer::error(429, "slow down").header("retry-after", "7200")
}

fn standing(world: &World, task: TaskId) -> (TaskStatus, StatusReason) {
    let row = world.store().tasks().get(task).unwrap().unwrap();
    (row.status, row.reason)
}

/// ES-378: a long wait costs nothing, is seen, and ends automatically; neither as stalled nor as out of time.
#[tokio::test]
async fn a_rate_limited_task_is_parked_for_hours_and_resumes_then() {
    let world = World::routed("replies: [{bash: echo one >> done.txt}, {say: done}]", "unused");
    let task = world.task("work").await;
    world.stage.server.next(Answer::script("bash: echo one >> done.txt")).next(busy());
    assert_eq!(world.drive(task).await.status, ResultStatus::Paused);
    assert_eq!(standing(&world, task), (TaskStatus::Paused, StatusReason::RateLimited));
    let row = world.store().tasks().get(task).unwrap().unwrap();
    assert_eq!(row.next_action_at.unwrap().timestamp(), at("2026-11-15T10:00:01Z"));
    let said = row.detail.unwrap();
    assert!(said.starts_with("rate limited: slow down"), "{said}");
    let queued = world.store().scheduler().get(task).unwrap().unwrap();
    assert_eq!(queued.status, SchedulerStatus::Queued);

    world.stage.advance(TWO_HOURS);
    assert!(world.coordinator().queue().ready().unwrap().is_empty(), "never too early");
    world.stage.advance(SignedDuration::from_secs(1));
    assert_eq!(world.coordinator().queue().ready().unwrap(), [task]);
    assert_eq!(world.drive(task).await.status, ResultStatus::Completed);
    let ended = world.store().tasks().get(task).unwrap().unwrap();
    assert_eq!(ended.next_action_at, None);
    let done = std::fs::read_to_string(std::path::Path::new(&ended.workspace).join("done.txt"));
    assert_eq!(done.unwrap(), "one\n", "nothing runs twice");
    assert_eq!(world.store().projections().verify().unwrap(), [], "the journal implies all of it");
}

/// The whole tree waits with a sub-agent, and asks nobody meanwhile.
#[tokio::test]
async fn a_rate_limited_sub_agent_parks_the_tree() {
    let replies = "
match:
  - task: look around
    replies: [{say: seen}]
replies:
  - spawn_agent: {task: look around}
  - say: done
";
    let world = World::routed(replies, "unused");
    let task = world.task("work").await;
    let spawn = "spawn_agent: {task: look around}";
    world.stage.server.next(Answer::script(spawn)).next(busy());
    assert_eq!(world.drive(task).await.status, ResultStatus::Paused);
    assert_eq!(standing(&world, task), (TaskStatus::Paused, StatusReason::RateLimited));
    assert_eq!(world.stage.server.request_count(), 2);
    world.stage.advance(TWO_HOURS + SignedDuration::from_secs(1));
    assert_eq!(world.coordinator().queue().ready().unwrap(), [task]);
    assert_eq!(world.drive(task).await.status, ResultStatus::Completed);
}

/// MS-054: a person's pause also holds what would resume automatically.
#[tokio::test]
async fn a_person_can_pause_a_task_that_waits_for_its_time() {
    let world = World::routed("replies: [{say: done}]", "unused");
    let task = world.task("work").await;
    world.stage.server.next(busy());
    world.drive(task).await;
    world.coordinator().control().steer(task, Control::Pause, "ada").await.unwrap();
    assert_eq!(standing(&world, task), (TaskStatus::Paused, StatusReason::User));
    world.stage.advance(TWO_HOURS * 2);
    assert!(world.coordinator().queue().ready().unwrap().is_empty());
    let id = InjectionId::new(world.coordinator().now());
    world
        .coordinator()
        .messages()
        .inject(task, Injection::control(id, Control::Resume))
        .await
        .unwrap();
    assert_eq!(world.coordinator().queue().ready().unwrap(), [task]);
}

/// A wait of years is a refusal.
#[tokio::test]
async fn a_rate_limit_of_years_fails_the_task() {
    let world = World::routed("replies: [{say: done}]", "unused");
    let task = world.task_in(world.session, "work", SubmitOptions::default()).await.unwrap();
    world.stage.server.next(Answer::error(429, "no").header("retry-after", "99999999"));
    let result = world.drive(task).await;
    assert_eq!(result.status, ResultStatus::Failed);
    assert!(result.error_details.unwrap().retryable);
}

/// ES-374, ES-378: a server that names a time, again and again, is asked then: a minute later, then
/// two, for about a day.
#[tokio::test]
async fn a_server_that_stays_busy_is_asked_less_and_less_often() {
    let world = World::routed("replies: [{say: done}]", "unused");
    let soon = || Answer::error(429, "slow down").header("retry-after", "0");
    let task = world.task("work").await;
    let mut waits = Vec::new();
    let failed = loop {
        for _attempt in 0..4 {
            world.stage.server.next(soon());
        }
        let now = world.coordinator().now();
        let result = world.drive(task).await;
        if result.status != ResultStatus::Paused {
            break result;
        }
        let row = world.store().tasks().get(task).unwrap().unwrap();
        let until = row.next_action_at.unwrap().timestamp();
        waits.push(until.duration_since(now).as_mins());
        world.stage.set_clock(until);
        assert_eq!(world.coordinator().queue().ready().unwrap(), [task]);
    };
    assert_eq!(failed.status, ResultStatus::Failed);
    assert_eq!((waits.len(), &waits[..8]), (24, [1, 2, 4, 8, 16, 32, 64, 64].as_slice()));
    world.coordinator().tasks().retry(task).await.unwrap();
    assert_eq!(world.drive(task).await.status, ResultStatus::Completed, "the next answer counts");
}
