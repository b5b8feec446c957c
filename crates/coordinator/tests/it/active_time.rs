//! Active time is the time that a task was worked on: neither a clock that is set nor down time counts.

use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::SubmitOptions;
use windlass_core::command::{ExecutionConfig, ResultStatus, TaskResult};
use windlass_core::error::ErrorType;
use windlass_core::id::TaskId;
use windlass_testkit::{Answer, Gate};

use crate::world::{World, command};

const TIMEOUT_SECONDS: u64 = 60;

async fn limited(world: &World) -> TaskId {
    let mut command = command(world.session, "work");
    command.execution_config =
        ExecutionConfig { timeout_seconds: Some(TIMEOUT_SECONDS), ..Default::default() };
    let tasks = world.coordinator().tasks();
    tasks.submit_command(command, SubmitOptions::default()).await.unwrap().task
}

/// Drives a task; `meanwhile` happens while it waits for its first reply.
async fn driven(world: &World, task: TaskId, meanwhile: impl FnOnce()) -> TaskResult {
    let gate = Gate::new();
    world.stage.server.next(Answer::script("bash: echo one").gated(0, &gate));
    let asked = world.stage.server.request_count() + 1;
    let late = async {
        world.stage.server.requests_reach(asked).await;
        meanwhile();
        gate.open();
    };
    tokio::join!(world.drive(task), late).0
}

fn step(world: &World, by: SignedDuration) {
    world.stage.set_clock(world.coordinator().now() + by);
}

#[tokio::test]
async fn a_clock_that_is_set_fails_no_task() {
    for hours in [24, -24, -30 * 24] {
        let world = World::routed("replies: [{bash: echo one}, {say: done}]", "unused");
        let task = limited(&world).await;
        let result = driven(&world, task, || step(&world, SignedDuration::from_hours(hours))).await;
        assert_eq!(result.status, ResultStatus::Completed, "{hours} h");
        assert!(result.usage.duration_ms < TIMEOUT_SECONDS * 1_000, "{hours} h: {result:?}");
        assert_eq!(world.store().projections().verify().unwrap(), []);
    }
}

#[tokio::test]
async fn time_that_is_worked_counts_against_the_limit() {
    let world = World::routed("replies: [{bash: echo one}, {say: done}]", "unused");
    let task = limited(&world).await;
    let worked = SignedDuration::from_secs(61);
    let result = driven(&world, task, || world.stage.advance(worked)).await;
    assert_eq!(result.error_details.unwrap().error_type, ErrorType::Timeout);
    assert!(result.usage.duration_ms >= 61_000);
}

/// A process that is killed stops counting with its last event; the next one counts on from there.
#[tokio::test]
async fn down_time_after_a_crash_is_not_active_time() {
    let world =
        World::routed("replies: [{bash: echo one}, {bash: echo two}, {say: done}]", "unused");
    let task = limited(&world).await;
    let gate = Gate::new();
    world.stage.server.next(Answer::script("bash: echo one"));
    world.stage.server.next(Answer::script("bash: echo two").gated(0, &gate));
    let stop = CancellationToken::new();
    tokio::select! {
        _ = world.coordinator().tasks().drive(task, &stop) => unreachable!("it is waiting"),
        () = world.stage.server.requests_reach(2) => {}
    }
    world.stage.advance(SignedDuration::from_hours(10));
    assert_eq!(world.coordinator().queue().ready().unwrap(), [task]);
    let result = world.drive(task).await;
    assert_eq!(result.status, ResultStatus::Completed);
    assert!(result.usage.duration_ms < TIMEOUT_SECONDS * 1_000, "{result:?}");
}

/// What was worked before a crash is not given back.
#[tokio::test]
async fn active_time_before_a_crash_counts() {
    let world = World::routed("replies: [{bash: echo one}, {say: done}]", "unused");
    let task = limited(&world).await;
    let gates = [Gate::new(), Gate::new()];
    world.stage.server.next(Answer::script("bash: echo one").gated(0, &gates[0]));
    world.stage.server.next(Answer::script("say: done").gated(0, &gates[1]));
    let stop = CancellationToken::new();
    tokio::select! {
        _ = world.coordinator().tasks().drive(task, &stop) => unreachable!("it is waiting"),
        () = async {
            world.stage.server.requests_reach(1).await;
            world.stage.advance(SignedDuration::from_secs(40));
            gates[0].open();
            world.stage.server.requests_reach(2).await;
        } => {}
    }
    let worked = SignedDuration::from_secs(30);
    let result = driven(&world, task, || world.stage.advance(worked)).await;
    assert_eq!(result.error_details.unwrap().error_type, ErrorType::Timeout);
}
