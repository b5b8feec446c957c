//! The tables as any SQLite program sees them.

use rusqlite::Connection;
use windlass_core::axes::{ModelMode, PermissionProfile, RunControl, Surface, WorkMode};
use windlass_core::command::DeliverableType;
use windlass_core::commitment::{CommitmentState, EvidenceKind};
use windlass_core::event::Driver;
use windlass_core::injection::InjectionType;
use windlass_core::question::QuestionKind;
use windlass_core::status::TaskStatus;
use windlass_store::DeadlineAction;
use windlass_store::outputs::Stream;

use crate::world::{World, at, created};

fn database(world: &World) -> Connection {
    drop(world.open());
    Connection::open(world.dir.path().join("windlass.db")).unwrap()
}

fn columns(database: &Connection, table: &str) -> Vec<String> {
    let mut statement = database.prepare(&format!("PRAGMA table_info({table})")).unwrap();
    let names = statement.query_map([], |row| row.get::<_, String>("name")).unwrap();
    names.map(Result::unwrap).collect()
}

/// MS-129, MS-131, MS-132, MS-134, MS-135, MS-136
#[test]
fn tasks_has_the_columns_of_the_ledger_and_ours() {
    let world = World::new();
    insta::assert_snapshot!(columns(&database(&world), "tasks").join(" "), @"id work_mode run_control permission_profile model_mode status dependency_blockers retry_count max_retries checkpoint_ref cost_budget cost_spent created_at started_at completed_at next_action_at intent_claim session_id command_id parent_id root_id depth driver surface goal workspace status_reason status_detail error result usage plan model container_id paused_at deadline deadline_action turns last_seq updated_at epoch last_hash role");
}

/// MS-138, MS-140, MS-141, AX-088, AX-103
#[test]
fn the_other_tables_of_the_ledger_have_its_columns() {
    let world = World::new();
    let database = database(&world);
    let tables = ["task_scheduler", "task_runtime", "task_transitions", "spawn_logs"]
        .map(|table| format!("{table}: {}", columns(&database, table).join(" ")));
    insta::assert_snapshot!(tables.join("\n"), @r"
    task_scheduler: task_id status due_at claimed_by dispatched_at consumed_at expires_at session_id ready_since resume_at
    task_runtime: task_id process_pid worktree_path current_model context_usage_percent last_heartbeat_at
    task_transitions: id task_id from_status to_status reason scope timestamp
    spawn_logs: command_id stream task_id content meta at
    ");
}

#[test]
fn every_table_of_the_design_exists() {
    let world = World::new();
    let database = database(&world);
    for table in "events sessions tasks task_scheduler task_runtime task_transitions \
        mode_transitions questions injections outbox spawn_logs deliverables commitments evidence \
        planning_issues planning_decisions schedules memories memories_fts workflow_runs"
        .split_ascii_whitespace()
    {
        assert!(!columns(&database, table).is_empty(), "{table}");
    }
}

/// MS-130, MS-139, MS-142: a new word in `core` needs a migration, and this says so.
#[test]
fn checks_allow_exactly_the_variants_of_core() {
    let world = World::new();
    let database = database(&world);
    let sql = |table: &str| -> String {
        let find = "SELECT sql FROM sqlite_schema WHERE name = ?1";
        database.query_row(find, [table], |row| row.get(0)).unwrap()
    };
    macro_rules! check {
        ($($table:literal $column:literal $words:ty;)*) => {$(
            let words: Vec<_> =
                <$words>::ALL.iter().map(|word| format!("'{word}'")).collect();
            let check = format!("CHECK ({} IN ({}))", $column, words.join(", "));
            assert!(sql($table).contains(&check), "{} {check}", $table);
        )*};
    }
    check! {
        "tasks" "work_mode" WorkMode;
        "tasks" "run_control" RunControl;
        "tasks" "permission_profile" PermissionProfile;
        "tasks" "model_mode" ModelMode;
        "tasks" "surface" Surface;
        "tasks" "status" TaskStatus;
        "tasks" "driver" Driver;
        "tasks" "deadline_action" DeadlineAction;
        "sessions" "work_mode" WorkMode;
        "sessions" "run_control" RunControl;
        "sessions" "permission_profile" PermissionProfile;
        "sessions" "model_mode" ModelMode;
        "sessions" "surface" Surface;
        "questions" "kind" QuestionKind;
        "deliverables" "type" DeliverableType;
        "injections" "type" InjectionType;
        "evidence" "type" EvidenceKind;
        "commitments" "state" CommitmentState;
        "spawn_logs" "stream" Stream;
        "workflow_runs" "status" TaskStatus;
    }
    let scheduler =
        "CHECK (status IN ('queued', 'due', 'claimed', 'dispatched', 'consumed', 'expired'))";
    assert!(sql("task_scheduler").contains(scheduler));
    assert!(!sql("tasks").contains("queued"));
}

/// MS-182: what happened, and until when a lease holds, are instants in UTC, whatever the zone of the machine.
#[tokio::test]
async fn instants_are_stored_in_utc() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let session = store.tasks().get(task).unwrap().unwrap().session_id;
    store.sessions().leases().take(session, "a", at(0), at(30)).await.unwrap();
    let database = database(&world);
    for (table, column) in
        [("events", "at"), ("tasks", "created_at"), ("session_leases", "expires_at")]
    {
        let find = format!("SELECT {column} FROM {table}");
        let text: String = database.query_row(&find, (), |row| row.get(0)).unwrap();
        assert!(text.ends_with('Z'), "{table}.{column}: {text}");
        let instant: jiff::Timestamp = text.parse().unwrap();
        assert!(instant == at(0) || instant == at(30), "{table}.{column}: {text}");
    }
}
