//! Runs of workflows that are silent for long and are not stalled: a command takes its time, or a person does.

use std::time::Duration;

use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::workflows::NewRun;
use windlass_coordinator::{Coordinator, CoordinatorLimits};
use windlass_core::axes::Axes;
use windlass_core::command::ExecutionConfig;
use windlass_core::error::ErrorType;
use windlass_core::event::Driver;
use windlass_core::id::TaskId;
use windlass_testkit::{Answer, Gate, by_hand};

use crate::world::World;

const HANG: Duration = Duration::from_secs(600);

/// A service, and a run of this workflow that was handed to it.
async fn run_of(world: &World, file: &str) -> (Coordinator, TaskId) {
    let directory = world.stage.workspace();
    let place = directory.join(".windlass/workflows");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("w.yaml"), file).unwrap();
    by_hand(
        &directory,
        "git init -q -b main; git config user.name Ada; git config user.email a@b.c",
    );
    by_hand(&directory, "git add -A; git commit -qm start");
    let limits = CoordinatorLimits { hang: HANG, ..CoordinatorLimits::default() };
    let coordinator = world.coordinator().clone().with_limits(limits);
    let run = NewRun {
        workflow: "w".to_owned(),
        title: String::new(),
        inputs: std::collections::BTreeMap::new(),
        directory,
        axes: Axes::headless(),
        execution_config: ExecutionConfig::default(),
        driver: Driver::Service,
        user_id: None,
        cost_budget: None,
        session: None,
    };
    let run = coordinator.workflows().start(run).await.unwrap();
    (coordinator, run)
}

/// Answers what the run asks, as soon as it does.
async fn answer(coordinator: &Coordinator, text: &str) {
    loop {
        if let Some(asked) = coordinator.inbox().open().unwrap().into_iter().next() {
            coordinator.inbox().answer(asked.row.question.id, text, "ada").await.unwrap();
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// The runs that are failed as stalled when this much time has passed without a word.
async fn stalled_after(world: &World, coordinator: &Coordinator, time: Duration) -> Vec<TaskId> {
    let step = Duration::from_secs(30);
    for _ in 0..time.as_secs() / step.as_secs() {
        world.stage.advance(SignedDuration::try_from(step).unwrap());
        let stalled = coordinator.schedules().timer().tick().await.unwrap().stalled;
        if !stalled.is_empty() {
            return stalled;
        }
    }
    Vec::new()
}

/// A command that may take two hours by its file is not failed after ten minutes, but after those.
#[tokio::test]
async fn a_run_is_not_stalled_while_its_command_has_time() {
    let world = World::routed("replies: [{say: done}]", "never asked");
    let file =
        "worktree: false\nsteps:\n  - {name: slow, type: script, command: make, timeout: 2h}\n";
    let (coordinator, run) = run_of(&world, file).await;
    let stop = CancellationToken::new();
    coordinator.tasks().drive(run, &stop).await.unwrap();
    answer(&coordinator, "Approve").await;
    let gate = Gate::new();
    world.stage.server.next(Answer::script("say: never").gated(0, &gate));
    let late = async {
        world.stage.server.requests_reach(1).await;
        let first = stalled_after(&world, &coordinator, Duration::from_secs(2 * 60 * 60)).await;
        (first, stalled_after(&world, &coordinator, HANG * 2).await)
    };
    let (driven, stalled) = tokio::join!(coordinator.tasks().drive(run, &stop), late);
    assert_eq!(stalled, (Vec::new(), vec![run]));
    assert!(driven.is_err(), "it is left where it stalled");
    let row = world.store().tasks().get(run).unwrap().unwrap();
    assert_eq!(row.error.unwrap().error_type, ErrorType::Hung);
}

/// A question stops the clocks, also of what is at work beside it.
#[tokio::test]
async fn a_run_is_not_stalled_while_a_person_is_asked() {
    let world = World::routed("replies: [{say: done}]", "never asked");
    let file = "
steps:
  - name: both
    type: parallel
    join: false
    steps:
      - {name: choose, type: ask, question: 'Which way?', options: [left, right]}
      - {name: work, type: agent, spell: \"Work\\non it.\"}
";
    let (coordinator, run) = run_of(&world, file).await;
    let gate = Gate::new();
    world.stage.server.next(Answer::script("say: never").gated(0, &gate));
    let stop = CancellationToken::new();
    let late = async {
        world.stage.server.requests_reach(1).await;
        while coordinator.inbox().open_in_tree(run).unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let first = stalled_after(&world, &coordinator, Duration::from_secs(24 * 60 * 60)).await;
        answer(&coordinator, "left").await;
        (first, stalled_after(&world, &coordinator, HANG * 3).await)
    };
    let (driven, stalled) = tokio::join!(coordinator.tasks().drive(run, &stop), late);
    assert_eq!(stalled, (Vec::new(), vec![run]));
    assert!(driven.is_err(), "it is left where it stalled");
}
