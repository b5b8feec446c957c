//! The writer: group commit, levels, and what a failure does to whom.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;
use windlass_store::outputs::{Origin, OutputWriter, Stream};
use windlass_store::{CommitPhase, CommitPoint, Error, Level, Options, Store};

use crate::world::{World, at, created, moved, request};

/// A store that keeps every point around its commits.
fn watched(world: &World) -> (Store, Arc<Mutex<Vec<CommitPoint>>>) {
    let points = Arc::new(Mutex::new(Vec::new()));
    let kept = points.clone();
    let hook = move |point| kept.lock().unwrap().push(point);
    let options = Options { on_commit: Some(Arc::new(hook)), ..Options::default() };
    (Store::open(world.dir.path(), options).unwrap(), points)
}

#[tokio::test]
async fn an_append_that_fails_leaves_outputs_to_the_next() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let [mut out, err] = both(&store, Some(task));
    out.write(b"hello").unwrap();
    out.finish_with_next_append(err, task, at(1)).unwrap();
    let refused = vec![moved(TaskStatus::Todo, TaskStatus::Done)];
    owner.append(at(1), refused, Level::Written).await.unwrap_err();
    owner.append(at(2), vec![request()], Level::Written).await.unwrap();
    drop((owner, store));
    let kept = world.open().outputs().get("call_1", Stream::Stdout).unwrap().unwrap();
    assert_eq!(kept.content, "hello");
}

/// AX-038
#[tokio::test]
async fn the_next_append_writes_what_a_command_printed() {
    let world = World::new();
    let (store, points) = watched(&world);
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let before = points.lock().unwrap().len();
    let [mut out, err] = both(&store, Some(task));
    out.write(b"printed").unwrap();
    out.finish_with_next_append(err, task, at(1)).unwrap();
    let content = |store: &Store| {
        store.outputs().get("call_1", Stream::Stdout).unwrap().map(|kept| kept.content)
    };
    assert_eq!(content(&store).as_deref(), Some("printed"));
    assert_eq!(content(&world.open()), None);
    owner.append(at(1), vec![request()], Level::Written).await.unwrap();
    assert_eq!(content(&store).as_deref(), Some("printed"));
    assert_eq!(content(&world.open()).as_deref(), Some("printed"));
    // Each commit has a point before it and one after.
    assert_eq!((points.lock().unwrap().len() - before) / 2, 1);
}

#[tokio::test]
async fn both_streams_of_a_command_take_one_transaction() {
    let world = World::new();
    let (store, points) = watched(&world);
    let [mut out, err] = both(&store, None);
    out.write(b"printed").unwrap();
    out.finish_both(err, at(1)).await.unwrap();
    assert_eq!(points.lock().unwrap().len(), 2);
    drop(store);
    let kept = world.open().outputs().get("call_1", Stream::Stdout).unwrap().unwrap();
    assert_eq!(kept.content, "printed");
}

fn both(store: &Store, task: Option<TaskId>) -> [OutputWriter; 2] {
    [Stream::Stdout, Stream::Stderr].map(|stream| {
        let origin = Origin { command_id: "call_1".to_owned(), stream, task };
        store.outputs().writer(origin).unwrap()
    })
}

#[tokio::test]
async fn all_that_is_queued_goes_into_one_transaction() {
    let world = World::new();
    // The gate holds the writer at a commit while the others queue.
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let commits = Arc::new(AtomicU64::new(0));
    let (held, seen) = (Arc::new(AtomicBool::new(false)), commits.clone());
    let hold = held.clone();
    let hook = move |point: CommitPoint| {
        if point.phase == CommitPhase::Before && hold.load(Ordering::SeqCst) {
            let _ = gate.lock().unwrap().recv();
        }
        seen.store(point.number, Ordering::SeqCst);
    };
    let options = Options { on_commit: Some(Arc::new(hook)), ..Options::default() };
    let store = Store::open(world.dir.path(), options).unwrap();
    let mut owners = Vec::new();
    for _ in 0..33 {
        let task = store.tasks().create(at(0), created()).await.unwrap().task();
        owners.push(store.owners().own(task).await.unwrap());
    }
    let before = commits.load(Ordering::SeqCst);
    held.store(true, Ordering::SeqCst);
    let mut appends = Vec::new();
    for (index, owner) in owners.iter().enumerate() {
        let level = if index == 7 { Level::Synced } else { Level::Written };
        let mut append = Box::pin(owner.append(at(1), vec![request()], level));
        assert!(once(append.as_mut()).await.is_none());
        appends.push(append);
    }
    held.store(false, Ordering::SeqCst);
    drop(open);
    for append in appends {
        append.await.unwrap();
    }
    // The first alone or with a few, the rest together.
    assert!(commits.load(Ordering::SeqCst) - before <= 2);
    assert_eq!(store.journal().since(0, usize::MAX).unwrap().len(), 33 * 2);
}

#[tokio::test]
async fn a_hook_sees_each_commit_before_and_after_and_what_is_synced() {
    let world = World::new();
    let (store, points) = watched(&world);
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    owner.append(at(1), vec![request()], Level::Written).await.unwrap();
    // Nothing changes here, and yet what was written is synced.
    store.sync().await.unwrap();
    owner.append(at(2), vec![request()], Level::Written).await.unwrap();
    owner.append(at(3), vec![request()], Level::Synced).await.unwrap();
    let points = points.lock().unwrap();
    let line = |point: &CommitPoint| {
        let unsynced = point.wal_bytes > point.synced_bytes;
        format!("{} {:?} {:?} {unsynced}", point.number, point.phase, point.level)
    };
    let lines: Vec<_> = points.iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    1 Before Synced false
    1 After Synced false
    2 Before Written false
    2 After Written true
    3 Before Written true
    3 After Written true
    4 Before Written false
    4 After Written true
    5 Before Synced true
    5 After Synced false
    ");
    let lengths: Vec<_> = points.iter().map(|point| point.wal_bytes).collect();
    assert!(lengths.is_sorted());
    let file = world.dir.path().join("windlass.db-wal").metadata().unwrap().len();
    assert_eq!(lengths.last(), Some(&file));
    assert!(points.iter().step_by(2).all(|point| point.phase == CommitPhase::Before));
}

#[tokio::test]
async fn a_refused_write_does_not_fail_the_others() {
    let world = World::new();
    let store = world.open();
    let old_task = store.tasks().create(at(0), created()).await.unwrap().task();
    let old = store.owners().own(old_task).await.unwrap();
    let _new = store.owners().take_over(old_task).await.unwrap();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    for _ in 0..20 {
        let (refused, appended) = tokio::join!(
            old.append(at(1), vec![request()], Level::Written),
            owner.append(at(1), vec![request()], Level::Written),
        );
        assert!(matches!(refused, Err(Error::Superseded { task }) if task == old_task));
        appended.unwrap();
    }
    assert_eq!(store.journal().of(old_task).unwrap().len(), 1);
    assert_eq!(store.journal().of(task).unwrap().len(), 21);
}

#[tokio::test]
async fn a_locked_database_fails_the_writer_but_not_the_readers() {
    let world = World::new();
    let options = Options { busy_wait: Duration::from_millis(20), ..Options::default() };
    let store = Store::open(world.dir.path(), options).unwrap();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let hog = rusqlite::Connection::open(world.dir.path().join("windlass.db")).unwrap();
    hog.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = owner.append(at(1), vec![request()], Level::Written).await.unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error:?}");
    assert_eq!(store.journal().of(task).unwrap().len(), 1);
    hog.execute_batch("ROLLBACK").unwrap();
    owner.append(at(1), vec![request()], Level::Written).await.unwrap();
    assert_eq!(store.journal().of(task).unwrap().len(), 2);
}

#[tokio::test]
async fn what_is_queued_is_committed_when_the_store_closes() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    for _ in 0..50 {
        let mut append = Box::pin(owner.append(at(1), vec![request()], Level::Written));
        // Polled once, so that it is queued, and then given up.
        let _ = once(append.as_mut()).await;
    }
    drop((owner, store));
    assert_eq!(world.open().journal().of(task).unwrap().len(), 51);
}

async fn once<F: Future + Unpin>(future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test]
async fn a_long_journal_survives_checkpoints() {
    let world = World::new();
    let (store, points) = watched(&world);
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let text = "x".repeat(40_000);
    for _ in 0..200 {
        let event = crate::world::reply(&text);
        owner.append(at(1), vec![event], Level::Written).await.unwrap();
    }
    let points = points.lock().unwrap();
    assert!(points.windows(2).any(|pair| pair[1].wal_bytes < pair[0].wal_bytes), "a new WAL began");
    assert!(points.iter().all(|point| point.synced_bytes <= point.wal_bytes));
    assert_eq!(store.journal().of(task).unwrap().len(), 201);
    assert_eq!(store.projections().verify().unwrap(), []);
}
