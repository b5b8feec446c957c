//! Which tasks a worker can run now.

use windlass_core::event::{Driver, Event, StatusChanged, TaskCreated};
use windlass_core::id::TaskId;
use windlass_core::injection::{Control, Injection};
use windlass_core::question::QuestionKind;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Level, Store};

use crate::outbox::{parked, service_task};
use crate::world::{World, at, created, injection_id, moved, question};

fn ready(store: &Store) -> Vec<TaskId> {
    assert_eq!(store.projections().verify().unwrap(), [], "the index is what the facts say");
    store.scheduler().ready_tasks(at(9), 10).unwrap()
}

#[tokio::test]
async fn a_parked_task_is_ready_when_what_it_waits_for_arrives() {
    let world = World::new();
    let store = world.open();
    let (created, owner) = service_task(&store).await;
    let task = created.command.task_id;
    assert_eq!(ready(&store), [task], "never started");
    owner
        .append(at(1), vec![moved(TaskStatus::Todo, TaskStatus::Running)], Level::Written)
        .await
        .unwrap();
    assert!(ready(&store).is_empty());
    assert_eq!(store.scheduler().running_tasks().unwrap(), [task]);

    owner.append(at(2), vec![parked(StatusReason::User)], Level::Written).await.unwrap();
    store.mailbox().inject(task, Injection::message(injection_id(), "hello"), at(3)).await.unwrap();
    assert!(ready(&store).is_empty(), "a person paused it");
    let resume = Injection::control(injection_id(), Control::Resume);
    store.mailbox().inject(task, resume, at(4)).await.unwrap();
    assert_eq!(ready(&store), [task]);

    // A process journals the mail and dies: the last event still says that the task continues.
    owner.stream(task).unwrap().drain(at(5)).await.unwrap();
    assert_eq!(ready(&store), [task]);
}

#[tokio::test]
async fn a_blocked_task_is_ready_when_its_question_is_answered() {
    let world = World::new();
    let store = world.open();
    let (created, owner) = service_task(&store).await;
    let task = created.command.task_id;
    let asked = question(QuestionKind::AskUser);
    let (from, to) = (TaskStatus::Running, TaskStatus::Blocked);
    let reason = StatusReason::Question;
    let blocked = Event::StatusChanged(StatusChanged::new(from, to, reason));
    let begun = moved(TaskStatus::Todo, TaskStatus::Running);
    let events = vec![begun, Event::QuestionAsked(asked.clone()), blocked];
    owner.append(at(1), events, Level::Written).await.unwrap();
    store.mailbox().inject(task, Injection::message(injection_id(), "hello"), at(2)).await.unwrap();
    assert!(ready(&store).is_empty(), "a message is not an answer");
    let answer = Injection::answer(injection_id(), asked.id, "red");
    store.mailbox().inject(task, answer, at(3)).await.unwrap();
    assert_eq!(ready(&store), [task]);
    owner.stream(task).unwrap().drain(at(4)).await.unwrap();
    assert_eq!(ready(&store), [task], "also when a process died after it read the answer");
}

#[tokio::test]
async fn a_task_that_waits_for_another_is_not_ready() {
    let world = World::new();
    let store = world.open();
    let (first, owner) = service_task(&store).await;
    let blockers = vec![first.command.task_id];
    let second =
        TaskCreated { driver: Driver::Service, dependency_blockers: blockers, ..created() };
    let second = store.tasks().create(at(1), second).await.unwrap().task();
    assert_eq!(ready(&store), [first.command.task_id]);
    let done = vec![
        moved(TaskStatus::Todo, TaskStatus::Running),
        moved(TaskStatus::Running, TaskStatus::Done),
    ];
    owner.append(at(2), done, Level::Written).await.unwrap();
    assert_eq!(ready(&store), [second]);
}

/// ES-090
#[tokio::test]
async fn a_session_starts_only_as_many_tasks_as_it_may() {
    let world = World::new();
    let store = world.open();
    let mut tasks = Vec::new();
    let session = created().command.session_id;
    for second in 0..4 {
        let mut new = TaskCreated { driver: Driver::Service, ..created() };
        new.command.session_id = session;
        tasks.push(store.tasks().create(at(second), new).await.unwrap().task());
    }
    let (_, elsewhere) = service_task(&store).await;
    store.scheduler().limit_sessions(2).await.unwrap();
    let ready = |limit| store.scheduler().ready_tasks(at(9), limit);
    let found = ready(10).unwrap();
    assert_eq!(found.len(), 3, "two of one session, one of another");
    assert!(found.contains(&tasks[0]) && found.contains(&tasks[1]), "the oldest come first");
    assert!(found.contains(&elsewhere.root()));
    assert_eq!(ready(1).unwrap().len(), 1);

    let owner = store.owners().own(tasks[0]).await.unwrap();
    let running = vec![moved(TaskStatus::Todo, TaskStatus::Running)];
    owner.append(at(5), running, Level::Written).await.unwrap();
    let found = ready(10).unwrap();
    assert!(found.contains(&tasks[1]) && !found.contains(&tasks[2]), "a running task has a slot");
    assert_eq!(store.scheduler().queue_place(tasks[3], 2).unwrap(), Some(2));
}

/// ES-378
#[tokio::test]
async fn a_rate_limited_task_is_ready_when_its_time_has_come() {
    let world = World::new();
    let store = world.open();
    let (created, owner) = service_task(&store).await;
    let limited = StatusChanged {
        until: Some(at(20)),
        ..StatusChanged::new(TaskStatus::Running, TaskStatus::Paused, StatusReason::RateLimited)
    };
    let events = vec![moved(TaskStatus::Todo, TaskStatus::Running), Event::StatusChanged(limited)];
    owner.append(at(1), events, Level::Written).await.unwrap();
    let ready = |now| store.scheduler().ready_tasks(at(now), 10).unwrap();
    assert!(ready(19).is_empty());
    assert_eq!(ready(20), [created.command.task_id]);
}

#[tokio::test]
async fn a_session_with_many_tasks_offers_only_those_it_may_start() {
    let world = World::new();
    let store = world.open();
    let session = created().command.session_id;
    let mut tasks = Vec::new();
    for second in 0..20 {
        let mut new = TaskCreated { driver: Driver::Service, ..created() };
        new.command.session_id = session;
        tasks.push(store.tasks().create(at(second), new).await.unwrap().task());
    }
    assert_eq!(ready(&store), tasks[..3]);
    let owner = store.owners().own(tasks[1]).await.unwrap();
    let begun = vec![moved(TaskStatus::Todo, TaskStatus::Running)];
    owner.append(at(30), begun, Level::Written).await.unwrap();
    assert_eq!(ready(&store), [tasks[0], tasks[2]], "it holds a slot");
    let ended = vec![moved(TaskStatus::Running, TaskStatus::Cancelled)];
    owner.append(at(31), ended, Level::Written).await.unwrap();
    assert_eq!(ready(&store), [tasks[0], tasks[2], tasks[3]], "the next one has its slot");
    store.scheduler().limit_sessions(1).await.unwrap();
    assert_eq!(ready(&store), [tasks[0]]);
    store.projections().rebuild().await.unwrap();
    assert_eq!(ready(&store), [tasks[0]]);
}

#[tokio::test]
async fn a_task_stays_ready_when_the_clock_is_set_back() {
    let world = World::new();
    let store = world.open();
    let new = TaskCreated { driver: Driver::Service, ..created() };
    let task = store.tasks().create(at(1000), new).await.unwrap().task();
    assert_eq!(store.scheduler().ready_tasks(at(0), 10).unwrap(), [task]);
}

/// A database as version 4 left it, with a task that waits in it.
#[tokio::test]
async fn an_older_database_gets_its_ready_index() {
    let world = World::new();
    let (task, blocked) = {
        let store = world.open();
        let (first, _) = service_task(&store).await;
        let blockers = vec![first.command.task_id];
        let second =
            TaskCreated { driver: Driver::Service, dependency_blockers: blockers, ..created() };
        let second = store.tasks().create(at(1), second).await.unwrap().task();
        (first.command.task_id, second)
    };
    let older = rusqlite::Connection::open(world.dir.path().join("windlass.db")).unwrap();
    older.execute_batch(crate::world::EVENTS_OF_VERSION_14).unwrap();
    older
        .execute_batch(
            "DROP INDEX task_scheduler_ready; DROP INDEX task_scheduler_timed;
             DROP INDEX task_scheduler_of_session; DROP INDEX tasks_of_session;
             DROP TABLE task_blockers; DROP TABLE scheduler_limits;
             ALTER TABLE task_scheduler DROP COLUMN session_id;
             ALTER TABLE task_scheduler DROP COLUMN ready_since;
             ALTER TABLE task_scheduler DROP COLUMN resume_at;
             DROP INDEX events_contents; ALTER TABLE events DROP COLUMN hash;
             ALTER TABLE events DROP COLUMN content; ALTER TABLE tasks DROP COLUMN last_hash;
             ALTER TABLE sessions DROP COLUMN role; ALTER TABLE tasks DROP COLUMN role;
             DROP TABLE contents; DROP TABLE kept_deliverables; DROP TABLE sums;
             DROP INDEX mode_transitions_by_session; DROP TABLE ratings;
             ALTER TABLE sessions DROP COLUMN last_seq; ALTER TABLE sessions DROP COLUMN last_hash;
             ALTER TABLE sessions DROP COLUMN interactive; ALTER TABLE sessions DROP COLUMN workspace;
             ALTER TABLE sessions DROP COLUMN model; ALTER TABLE sessions DROP COLUMN conversation;
             ALTER TABLE memories DROP COLUMN project; DROP TABLE intent_claims;
             DROP TABLE plans; DROP TABLE plan_tasks; DROP TABLE snapshots;
             DELETE FROM events WHERE stream GLOB 'ses_*';
             PRAGMA user_version = 4;",
        )
        .unwrap();
    drop(older);
    let store = world.open();
    assert_eq!(ready(&store), [task]);
    let owner = store.owners().own(task).await.unwrap();
    let done = vec![
        moved(TaskStatus::Todo, TaskStatus::Running),
        moved(TaskStatus::Running, TaskStatus::Done),
    ];
    owner.append(at(2), done, Level::Written).await.unwrap();
    assert_eq!(ready(&store), [blocked]);
}
