//! `windlass worker`: several processes, one data directory.

use windlass_core::event::Event;
use windlass_core::status::TaskStatus;
use windlass_testkit::{Answer, Gate, ModelServer};

use crate::world::{On, World};

const WORK: &str = "replies: [{bash: echo one >> notes.txt}, {say: done}]";

/// A dead worker's task is taken over by another; what it had done is not done again.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_workers_task_is_taken_over_by_another() {
    for on in [On::Embedded, On::Redis] {
        let world = World::new(on, ModelServer::start(WORK));
        let gate = Gate::new();
        let doomed = world.start(&["worker"]);
        let held = gate.clone();
        world.model.answer_with(move |request| {
            let second = request.replies == 1;
            second.then(|| Answer::script("say: done").gated(0, &held))
        });
        let submission = world.submit("write a note").await;
        world.model.requests_reach(2).await;
        let runtime = world.store.owners().runtime().get(submission.task).unwrap().unwrap();
        assert_eq!(runtime.process_pid, doomed.id(), "it says who drives");
        doomed.kill();
        let _other = world.start(&["worker"]);
        gate.open();
        world.until_status(submission.task, TaskStatus::Done).await;
        let notes = world.workspace(submission.task).join("notes.txt");
        assert_eq!(std::fs::read_to_string(notes).unwrap(), "one\n", "{on:?}: once");
    }
}

/// Each task is driven by one of two workers.
#[tokio::test(flavor = "multi_thread")]
async fn two_workers_share_the_tasks() {
    let world = World::new(On::Embedded, ModelServer::start(WORK));
    let _workers =
        [world.start(&["worker", "--tasks", "2"]), world.start(&["worker", "--tasks", "2"])];
    let mut tasks = Vec::new();
    for number in 0..8 {
        tasks.push(world.submit(&format!("note {number}")).await.task);
    }
    for task in tasks {
        world.until_status(task, TaskStatus::Done).await;
        let journal = world.journal(task);
        let starts = journal.iter().filter(|one| matches!(one.event, Event::AgentStart(_)));
        assert_eq!(starts.count(), 1);
        let notes = world.workspace(task).join("notes.txt");
        assert_eq!(std::fs::read_to_string(notes).unwrap(), "one\n");
    }
}

/// A worker runs no more tasks than its limit, and records heartbeats.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_runs_up_to_its_limit() {
    let world = World::new(On::Embedded, ModelServer::start("replies: [{say: done}]"));
    let gate = Gate::new();
    for _ in 0..2 {
        world.model.next(Answer::script("say: done").gated(0, &gate));
    }
    let _worker = world.start(&["worker", "--tasks", "2"]);
    let mut tasks = Vec::new();
    for number in 0..5 {
        tasks.push(world.submit(&format!("note {number}")).await.task);
    }
    world.model.requests_reach(2).await;
    let running = || {
        tasks.iter().filter_map(|task| world.store.owners().runtime().get(*task).unwrap()).collect()
    };
    let beats: Vec<windlass_store::RuntimeRow> =
        world.until("two run", || Some(running()).filter(|all: &Vec<_>| all.len() == 2)).await;
    let first = beats[0].last_heartbeat_at;
    let later =
        |all: &Vec<windlass_store::RuntimeRow>| all.iter().all(|one| one.last_heartbeat_at > first);
    world.until("new heartbeats are recorded", || Some(running()).filter(later)).await;
    gate.open();
    for task in &tasks {
        world.until_status(*task, TaskStatus::Done).await;
    }
    assert!(world.model.most_at_once() <= 2);
}
