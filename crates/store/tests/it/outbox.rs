//! Messages for other programs, written with the events that cause them.

use windlass_core::command::{ResultStatus, TaskResult, UsageMetrics};
use windlass_core::event::{Driver, Event, StatusChanged, TaskCreated};
use windlass_core::question::QuestionKind;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Level, OutStream, Owner, Store};

use crate::world::{World, at, created, moved, question};

pub async fn service_task(store: &Store) -> (TaskCreated, Owner) {
    let created = TaskCreated { driver: Driver::Service, ..created() };
    let task = store.tasks().create(at(0), created.clone()).await.unwrap().task();
    (created, store.owners().own(task).await.unwrap())
}

/// How a segment of a task ended.
pub fn result(created: &TaskCreated, status: ResultStatus) -> Event {
    let command = &created.command;
    Event::AgentEnd(Box::new(TaskResult {
        task_id: command.task_id,
        session_id: command.session_id,
        command_id: command.command_id,
        status,
        partial: false,
        deliverables: Vec::new(),
        final_message: Some("done".to_owned()),
        evidence_refs: Vec::new(),
        working_memory: None,
        usage: UsageMetrics::default(),
        cost_usd: None,
        error_details: None,
        hitl_request: None,
        contract: None,
    }))
}

pub fn parked(reason: StatusReason) -> Event {
    let (from, to) = (TaskStatus::Running, TaskStatus::Paused);
    Event::StatusChanged(StatusChanged::new(from, to, reason))
}

fn published(store: &Store, stream: OutStream) -> Vec<serde_json::Value> {
    let all = store.bus().outbox().pending(100).unwrap().into_iter();
    let of = all.filter(|one| one.stream == stream);
    of.map(|one| serde_json::from_str(&one.body).unwrap()).collect()
}

/// §15.18, ES-298, ES-302, ES-387, ES-388, ES-389: written with the event that causes it, and gone when
/// published.
#[tokio::test]
async fn results_questions_and_status_updates_are_written_with_their_events() {
    let world = World::new();
    let store = world.open();
    let (created, owner) = service_task(&store).await;
    let asked = question(QuestionKind::AskUser);
    let begun =
        vec![moved(TaskStatus::Todo, TaskStatus::Running), Event::QuestionAsked(asked.clone())];
    owner.append(at(1), begun, Level::Written).await.unwrap();
    let ended = vec![
        moved(TaskStatus::Running, TaskStatus::Done),
        result(&created, ResultStatus::Completed),
    ];
    owner.append(at(2), ended, Level::Synced).await.unwrap();

    let command = created.command.command_id.to_string();
    let hitl = published(&store, OutStream::HitlRequest);
    assert_eq!(hitl.len(), 1);
    assert_eq!(hitl[0]["request_id"], asked.id.to_string());
    assert_eq!(hitl[0]["options"][1], "blue");
    assert_eq!(hitl[0]["command_id"], command);
    let results = published(&store, OutStream::TaskResult);
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["status"], "COMPLETED");
    let updates = published(&store, OutStream::UserMessage);
    assert_eq!(updates.iter().map(|one| &one["status"]).collect::<Vec<_>>(), ["running", "done"]);

    let all = store.bus().outbox().pending(100).unwrap();
    assert!(all.iter().all(|one| one.command_id.as_deref() == Some(&command)));
    let keys: std::collections::HashSet<_> = all.iter().map(|one| &one.key).collect();
    assert_eq!(keys.len(), all.len(), "each has a key of its own");
    store.bus().outbox().remove(all.iter().map(|one| one.id).collect()).await.unwrap();
    assert!(store.bus().outbox().pending(100).unwrap().is_empty());
}

#[tokio::test]
async fn a_foreground_task_and_a_parked_segment_publish_nothing() {
    let world = World::new();
    let store = world.open();
    let foreground = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(foreground).await.unwrap();
    let running = vec![moved(TaskStatus::Todo, TaskStatus::Running)];
    owner.append(at(1), running.clone(), Level::Written).await.unwrap();
    assert!(store.bus().outbox().pending(100).unwrap().is_empty());

    let (created, owner) = service_task(&store).await;
    owner.append(at(1), running, Level::Written).await.unwrap();
    let paused = vec![parked(StatusReason::Shutdown), result(&created, ResultStatus::Paused)];
    owner.append(at(2), paused, Level::Synced).await.unwrap();
    assert!(published(&store, OutStream::TaskResult).is_empty());
    assert_eq!(
        store.scheduler().ready_tasks(at(9), 10).unwrap(),
        [created.command.task_id],
        "another process resumes it"
    );
}

/// ES-299: a task that is cancelled while no agent runs has a result too.
#[tokio::test]
async fn a_status_changed_while_no_agent_runs_is_a_result_too() {
    let world = World::new();
    let store = world.open();
    let (created, owner) = service_task(&store).await;
    let cancelled = vec![moved(TaskStatus::Todo, TaskStatus::Cancelled)];
    owner.append(at(1), cancelled, Level::Synced).await.unwrap();
    let results = published(&store, OutStream::TaskResult);
    assert_eq!(results.len(), 1);
    let read: TaskResult = serde_json::from_value(results[0].clone()).unwrap();
    assert_eq!(read.status, ResultStatus::Cancelled);
    assert_eq!(read.command_id, created.command.command_id);
}

#[tokio::test]
async fn a_stream_keeps_about_as_many_entries_as_it_may() {
    let world = World::new();
    let store = world.open();
    let message = |number: i64| windlass_store::Outgoing {
        id: number,
        key: format!("key {number}"),
        command_id: None,
        stream: OutStream::TaskResult,
        body: number.to_string(),
    };
    store.bus().publish((0..1000).map(message).collect(), 10, at(0)).await.unwrap();
    let kept = store.bus().read(OutStream::TaskResult.as_str(), 0, 1000).unwrap();
    assert!((10..300).contains(&kept.len()), "{}", kept.len());
    assert_eq!(kept.last().unwrap().body, "999", "the newest stay");
}
