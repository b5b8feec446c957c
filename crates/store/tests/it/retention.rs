//! Removing finished tasks.

use windlass_core::command::{Deliverable, DeliverableType};
use windlass_core::event::{Event, TaskCreated};
use windlass_core::id::TaskId;
use windlass_core::injection::Injection;
use windlass_core::status::TaskStatus;
use windlass_store::{KeepReason, Level, Store};

use crate::world::{World, at, child_of, created, injection_id, moved, reply};

/// A task that ended at `second`, with a message in its journal.
async fn finished(store: &Store, new: TaskCreated, second: i64) -> TaskId {
    let task = store.tasks().create(at(0), new).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let message = Injection::message(injection_id(), "hello");
    store.mailbox().inject(task, message, at(1)).await.unwrap();
    owner.stream(task).unwrap().drain(at(1)).await.unwrap();
    let published = Event::DeliverablePublished(Deliverable {
        filepath: "output/report.md".to_owned(),
        description: "what was found".to_owned(),
        kind: DeliverableType::Report,
        content: None,
        size_bytes: None,
    });
    let events = vec![
        moved(TaskStatus::Todo, TaskStatus::Running),
        reply(&"x".repeat(5000)),
        published,
        moved(TaskStatus::Running, TaskStatus::Done),
    ];
    owner.append(at(second), events, Level::Written).await.unwrap();
    task
}

fn going(store: &Store) -> Vec<TaskId> {
    let plan = store.tasks().retention().plan(at(100)).unwrap();
    plan.going.into_iter().map(|tree| tree.root).collect()
}

#[tokio::test]
async fn only_old_finished_tasks_go() {
    let world = World::new();
    let store = world.open();
    let old = finished(&store, created(), 10).await;
    let recent = finished(&store, created(), 200).await;
    let waiting = store.tasks().create(at(0), created()).await.unwrap().task();
    let plan = store.tasks().retention().plan(at(100)).unwrap();
    assert_eq!((plan.recent, plan.unfinished), (1, 1));
    assert_eq!(plan.going[0].published, ["output/report.md"]);
    assert_eq!(going(&store), [old]);

    // Asked for or not, only what may go does.
    let pruned = store.tasks().retention().remove(vec![old, waiting]).await.unwrap();
    assert_eq!((pruned.tasks, pruned.events), (1, 6));
    assert!(store.tasks().get(old).unwrap().is_none());
    assert!(store.journal().of(old).unwrap().is_empty());
    for task in [recent, waiting] {
        assert!(store.tasks().get(task).unwrap().is_some());
    }
    assert_eq!(store.projections().verify().unwrap(), []);
}

#[tokio::test]
async fn what_somebody_needs_stays_and_the_reason_is_named() {
    let world = World::new();
    let store = world.open();
    let blocker = finished(&store, created(), 10).await;
    let next = TaskCreated { dependency_blockers: vec![blocker], ..created() };
    let next = store.tasks().create(at(0), next).await.unwrap().task();
    let promised = finished(&store, created(), 10).await;
    let parent = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(parent).await.unwrap();
    owner.create_child(at(1), child_of(parent, parent)).await.unwrap();
    let ended = vec![
        moved(TaskStatus::Todo, TaskStatus::Running),
        moved(TaskStatus::Running, TaskStatus::Failed),
    ];
    owner.append(at(11), ended, Level::Written).await.unwrap();
    drop(owner);
    rusqlite::Connection::open(world.dir.path().join("windlass.db"))
        .unwrap()
        .execute(
            "INSERT INTO commitments (id, task_id, title, state, opened_by, created_at, updated_at)
             VALUES ('cmt_1', ?1, 'tests', 'claimed', 'ada', '', '')",
            [promised.to_string()],
        )
        .unwrap();
    let plan = store.tasks().retention().plan(at(100)).unwrap();
    assert_eq!(plan.going, []);
    let mut staying = plan.staying;
    staying.sort_by_key(|(task, _)| *task);
    let mut expected = vec![
        (blocker, KeepReason::NeededBy(next)),
        (promised, KeepReason::OpenCommitment),
        (parent, KeepReason::UnfinishedBelow),
    ];
    expected.sort_by_key(|(task, _)| *task);
    assert_eq!(staying, expected);
}

#[tokio::test]
async fn a_session_is_what_is_left_of_it() {
    let world = World::new();
    let store = world.open();
    let session = created().command.session_id;
    let in_session = || {
        let mut new = created();
        new.command.session_id = session;
        new
    };
    let old = finished(&store, in_session(), 10).await;
    finished(&store, in_session(), 200).await;
    store.tasks().retention().remove(vec![old]).await.unwrap();
    assert_eq!(store.projections().verify().unwrap(), []);
    assert_eq!(store.sessions().get(session).unwrap().unwrap().tasks.len(), 1);
}

#[tokio::test]
async fn space_is_given_back() {
    let world = World::new();
    let store = world.open();
    let mut tasks = Vec::new();
    for _ in 0..40 {
        tasks.push(finished(&store, created(), 10).await);
    }
    drop(store);
    let size = || std::fs::metadata(world.dir.path().join("windlass.db")).unwrap().len();
    let before = size();
    let store = world.open();
    store.tasks().retention().remove(tasks).await.unwrap();
    store.tasks().retention().compact().await.unwrap();
    drop(store);
    assert!(size() + 200_000 < before, "{before} → {}", size());
    assert_eq!(world.open().projections().verify().unwrap(), []);
}
