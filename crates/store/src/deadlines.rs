//! Deadlines of tasks: which have passed, and which is next.

use jiff::Timestamp;
use windlass_core::id::TaskId;

use crate::words::LIVE;
use crate::{Error, Store, Tasks, row};

/// The kind of trigger under which a deadline is remembered as acted on.
pub const DEADLINE_TRIGGER: &str = "deadline";

/// The deadlines of live tasks that nobody has acted on.
#[derive(Clone, Copy)]
pub struct Deadlines<'a> {
    store: &'a Store,
}

impl<'a> Tasks<'a> {
    /// Deadlines that have passed or come next.
    pub fn deadlines(self) -> Deadlines<'a> {
        Deadlines { store: self.store }
    }
}

impl Deadlines<'_> {
    /// Live tasks whose deadline has passed and has not been acted on, at most `limit`.
    pub fn overdue_tasks(self, now: Timestamp, limit: u32) -> Result<Vec<TaskId>, Error> {
        let sql = format!("{} AND deadline <= ?1 ORDER BY deadline LIMIT {limit}", deadlines());
        self.store.read(|tx| row::task_ids(tx, &sql, [row::instant(now)]))
    }

    /// The next deadline of a live task that has not been acted on.
    pub fn next(self) -> Result<Option<Timestamp>, Error> {
        self.store.read(|tx| {
            let sql = format!("SELECT min(deadline) FROM tasks WHERE id IN ({})", deadlines());
            let next: Option<String> = tx.prepare_cached(&sql)?.query_row([], |row| row.get(0))?;
            next.map(|next| row::parse("tasks", &next)).transpose()
        })
    }
}

/// Selects deadlines. One that was acted on is among the triggers.
fn deadlines() -> String {
    format!(
        "SELECT id FROM tasks
         WHERE deadline IS NOT NULL AND {LIVE}
             AND NOT EXISTS (SELECT 1 FROM triggers
                             WHERE kind = '{DEADLINE_TRIGGER}' AND triggers.id = tasks.id)"
    )
}
