//! What the tables of the ledger demand of a row, beside having its columns.

use rusqlite::Connection;

use crate::world::World;

fn database(world: &World) -> Connection {
    drop(world.open());
    Connection::open(world.dir.path().join("windlass.db")).unwrap()
}

/// A column with its demands, such as `retry_count NOT NULL DEFAULT 0`.
fn column(database: &Connection, table: &str, name: &str) -> String {
    let find = "SELECT pk, \"notnull\", dflt_value FROM pragma_table_info(?1) WHERE name = ?2";
    let (key, filled, default): (bool, bool, Option<String>) = database
        .query_row(find, [table, name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap();
    let key = if key { " KEY" } else { "" };
    let filled = if filled { " NOT NULL" } else { "" };
    let default = default.map_or(String::new(), |value| format!(" DEFAULT {value}"));
    format!("{name}{key}{filled}{default}")
}

/// MS-129, MS-132, MS-134: what is always known of a task, what it begins with, what it may lack.
#[test]
fn a_new_task_has_id_axes_status_and_zero_counts() {
    let world = World::new();
    let database = database(&world);
    let names = [
        "id",
        "work_mode",
        "run_control",
        "permission_profile",
        "model_mode",
        "status",
        "retry_count",
        "max_retries",
        "cost_budget",
        "cost_spent",
    ];
    let columns = names.map(|name| column(&database, "tasks", name));
    assert_eq!(
        columns,
        [
            "id KEY",
            "work_mode NOT NULL",
            "run_control NOT NULL",
            "permission_profile NOT NULL",
            "model_mode NOT NULL",
            "status NOT NULL",
            "retry_count NOT NULL DEFAULT 0",
            "max_retries NOT NULL DEFAULT 3",
            "cost_budget",
            "cost_spent NOT NULL DEFAULT 0",
        ]
    );
}

/// MS-138, MS-140, MS-141: a row of these is a task's, and a move has its time.
#[test]
fn rows_beside_a_task_belong_to_one() {
    let world = World::new();
    let database = database(&world);
    for table in ["task_scheduler", "task_runtime"] {
        let find = "SELECT \"table\" || '.' || \"to\" FROM pragma_foreign_key_list(?1) \
                    WHERE \"from\" = 'task_id'";
        let target: String = database.query_row(find, [table], |row| row.get(0)).unwrap();
        assert_eq!(target, "tasks.id", "{table}");
    }
    assert_eq!(column(&database, "task_scheduler", "task_id"), "task_id KEY");
    assert_eq!(column(&database, "task_runtime", "task_id"), "task_id KEY");
    assert_eq!(column(&database, "task_transitions", "id"), "id KEY");
    assert_eq!(column(&database, "task_transitions", "timestamp"), "timestamp NOT NULL");
    let sql: String = database
        .query_row("SELECT sql FROM sqlite_schema WHERE name = 'task_transitions'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert!(sql.contains("AUTOINCREMENT"), "{sql}");
}
