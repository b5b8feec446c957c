//! Schedules as a running service keeps them: a monitor is made, parked, checked and ends; tasks start
//! automatically.

use serde_json::Value;
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::Filter;
use windlass_testkit::ModelServer;

use crate::world::{On, World};

const MONITOR: &str = "
match:
  - when: 'Scheduled check: is it green?'
    say: |-
      MONITORING COMPLETE
      it is green
replies:
  - say: I will look again later
  - say: I will look again later
";

fn json(world: &World, args: &[&str]) -> Value {
    let ran = world.command(args).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn parked(records: &[Record]) -> bool {
    records.iter().any(|record| match &record.event {
        Event::StatusChanged(moved) => {
            moved.to == TaskStatus::Paused && moved.reason == StatusReason::Schedule
        }
        _ => false,
    })
}

/// ES-056, ES-284, ES-287, MS-123: from one command line to a finished monitor.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_parks_a_monitor_checks_on_it_and_lets_it_end() {
    let world = World::new(On::Embedded, ModelServer::start(MONITOR));
    let schedule = json(
        &world,
        &[
            "schedule",
            "add",
            "--monitor",
            "tell me when it is green",
            "--check",
            "is it green?",
            "--every",
            "2s",
            "--json",
        ],
    );
    let task: TaskId = schedule["task_id"].as_str().unwrap().parse().unwrap();
    let _serve = world.start(&["serve"]);
    world.until_status(task, TaskStatus::Done).await;
    assert!(parked(&world.journal(task)), "it was parked in between");
    // The schedule sees the task's end a moment later.
    let listed = || json(&world, &["schedule", "list", "--json"]);
    let ended = || Some(listed()).filter(|schedule| schedule["state"] == "ended");
    let ended = world.until("the schedule has ended", ended).await;
    assert_eq!(ended["runs"], 1, "{ended}");
    let result = world.task(task).unwrap().result.unwrap();
    assert!(result.final_message.unwrap().contains("it is green"));
}

/// MS-194: a schedule starts a task automatically, in the service that keeps its time.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_starts_tasks_by_schedule() {
    let world = World::new(On::Embedded, ModelServer::start("replies: [{say: reported}]"));
    json(&world, &["schedule", "add", "--start", "report", "--every", "1s", "--json"]);
    let _serve = world.start(&["serve"]);
    let done = || {
        let tasks = world.store.tasks().list(&Filter::default()).unwrap();
        tasks.into_iter().find(|task| task.status == TaskStatus::Done)
    };
    let task = world.until("a run is over", done).await;
    assert_eq!(task.goal, "report");
    assert_eq!(json(&world, &["schedule", "list", "--json"])["dispatch"], "autonomous_dispatch");
}
