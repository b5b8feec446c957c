//! What may be wrong besides the journal, and what can be made again.

use std::fs;

use rusqlite::Connection;
use windlass_store::DriftKind;

use crate::world::{World, at, created};

fn alter(world: &World, sql: &str) {
    let database = Connection::open(world.dir.path().join("windlass.db")).unwrap();
    database.execute_batch(sql).unwrap();
}

/// MS-041
#[tokio::test]
async fn derived_tables_and_indexes_are_made_again() {
    let world = World::new();
    let store = world.open();
    store.tasks().create(at(0), created()).await.unwrap();
    drop(store);
    alter(&world, "DROP TABLE deliverables; DROP INDEX questions_open;");
    let store = world.open();
    let found = store.health().schema_drift().unwrap();
    let names: Vec<_> = found.iter().map(|drift| (drift.name.as_str(), drift.problem)).collect();
    assert_eq!(
        names,
        [("deliverables", DriftKind::Missing), ("questions_open", DriftKind::Missing)]
    );
    assert_eq!(store.health().restore_schema().await.unwrap(), 2);
    assert_eq!(store.health().schema_drift().unwrap(), []);
    store.projections().rebuild().await.unwrap();
    assert_eq!(store.projections().verify().unwrap(), []);
}

/// What somebody else has added is named and left alone; so is a table that is not a fold of the journal.
#[tokio::test]
async fn what_cannot_be_made_again_is_only_named() {
    let world = World::new();
    drop(world.open());
    alter(&world, "CREATE TABLE notes (text TEXT); DROP TABLE standing_rules;");
    let store = world.open();
    let found = store.health().schema_drift().unwrap();
    assert!(found.iter().all(|drift| !drift.is_derived), "{found:?}");
    assert_eq!(store.health().restore_schema().await.unwrap(), 0);
}

/// MS-035
#[tokio::test]
async fn only_locks_that_nobody_holds_are_removed() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let stale = store.dir().locks().join("task_00000000000000000000000009.lock");
    fs::write(&stale, "1 1\n").unwrap();
    assert_eq!(store.health().stale_locks().unwrap(), std::slice::from_ref(&stale));
    assert_eq!(store.health().processes().unwrap(), [std::process::id()]);
    assert_eq!(store.health().remove_stale_locks().unwrap(), 1);
    assert!(!stale.exists());
    assert!(store.owners().driving_process(task).unwrap().is_some());
    drop(owner);
}

/// A workspace that holds something may be the only copy of it.
#[tokio::test]
async fn leftovers_of_unknown_tasks_are_removed_and_their_files_are_not() {
    let world = World::new();
    let store = world.open();
    let [trace, empty, full] = [
        store.dir().traces().join("task_00000000000000000000000001"),
        store.dir().workspaces().join("task_00000000000000000000000002"),
        store.dir().workspaces().join("task_00000000000000000000000003"),
    ];
    for directory in [&trace, &empty, &full] {
        fs::create_dir_all(directory).unwrap();
    }
    fs::write(trace.join("a.jsonl"), "").unwrap();
    fs::write(full.join("work.txt"), "mine").unwrap();
    assert_eq!(store.health().orphaned_directories().unwrap().len(), 3);
    assert_eq!(store.health().remove_orphaned_directories().unwrap(), 2);
    assert!(!trace.exists() && !empty.exists() && full.join("work.txt").exists());
}
