//! What a worker can do now: which tasks of the service are ready, running, waiting or ended.

use jiff::Timestamp;
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;

use crate::row::{self, statuses, task_ids};
use crate::words::{OF_SERVICE, SERVICE};
use crate::{Error, Level, Scheduler, ready_index};

impl Scheduler<'_> {
    /// Tasks that are ready to run now, the oldest first; at most `limit`. What that costs does not depend on how
    /// many tasks wait.
    pub fn ready_tasks(self, now: Timestamp, limit: usize) -> Result<Vec<TaskId>, Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.store.read(|tx| {
            let mut found: Vec<(String, TaskId)> = Vec::new();
            let heads = [
                "SELECT ready_since, task_id FROM task_scheduler
                 WHERE ready_since IS NOT NULL AND resume_at IS NULL
                 ORDER BY ready_since, task_id LIMIT ?1",
                "SELECT ready_since, task_id FROM task_scheduler
                 WHERE resume_at <= ?2 ORDER BY resume_at LIMIT ?1",
            ];
            for (index, head) in heads.into_iter().enumerate() {
                let mut statement = tx.prepare_cached(head)?;
                let mut rows = match index {
                    0 => statement.query([limit])?,
                    _ => statement.query((limit, row::instant(now)))?,
                };
                while let Some(row) = rows.next()? {
                    let task = row::parse("task_scheduler", &row.get::<_, String>(1)?)?;
                    found.push((row.get(0)?, task));
                }
            }
            found.sort();
            found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(found.into_iter().map(|(_, task)| task).collect())
        })
    }

    /// Sets how many tasks of one session may be at work. Stays in force until it is set again (ES-090).
    pub async fn limit_sessions(self, tasks: usize) -> Result<(), Error> {
        self.store.write(Level::Written, move |tx| ready_index::set_session_limit(tx, tasks)).await
    }

    /// Whether `count` tasks or more wait for a service to start them.
    pub fn has_waiting_tasks(self, count: usize) -> Result<bool, Error> {
        let before = i64::try_from(count).unwrap_or(i64::MAX).saturating_sub(1);
        self.store.read(|tx| {
            Ok(tx
                .prepare_cached(&format!(
                    "SELECT EXISTS (
                         SELECT 1 FROM tasks WHERE {OF_SERVICE} AND status = ?2
                         LIMIT 1 OFFSET ?1)"
                ))?
                .query_row((before, TaskStatus::Todo.as_str()), |row| row.get(0))?)
        })
    }

    /// The tasks that should be running, whether or not a process drives them.
    pub fn running_tasks(self) -> Result<Vec<TaskId>, Error> {
        self.store.read(|tx| {
            let sql = &format!(
                "SELECT id FROM tasks
                 WHERE {OF_SERVICE}
                     AND status IN (SELECT value FROM json_each(?1))
                 ORDER BY created_at, id"
            );
            task_ids(tx, sql, [statuses(TaskStatus::is_running)])
        })
    }

    /// The tasks that have not ended and should not be running, at most `limit` of them after the first `offset`.
    pub fn idle_unfinished_tasks(self, offset: usize, limit: usize) -> Result<Vec<TaskId>, Error> {
        let whole = |count| i64::try_from(count).unwrap_or(i64::MAX);
        self.store.read(|tx| {
            // In the order of the index, which changes little between two looks.
            let sql = &format!(
                "SELECT id FROM tasks
                 WHERE {OF_SERVICE}
                     AND status NOT IN (SELECT value FROM json_each(?1))
                 ORDER BY status, created_at LIMIT ?2 OFFSET ?3"
            );
            task_ids(tx, sql, (statuses(TaskStatus::is_running), whole(limit), whole(offset)))
        })
    }

    /// The root tasks of a service that ended after `since`.
    pub fn ended_tasks(self, since: Timestamp) -> Result<Vec<TaskId>, Error> {
        self.store.read(|tx| {
            let sql = &format!(
                "SELECT id FROM tasks
                 WHERE driver = '{SERVICE}' AND parent_id IS NULL AND completed_at IS NOT NULL
                     AND completed_at > ?1 ORDER BY completed_at"
            );
            task_ids(tx, sql, [row::instant(since)])
        })
    }
}
