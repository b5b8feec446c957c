//! What there is to do for a worker: tasks that a service drives and that could go on now.
//!
//! A task is ready when nothing but a process is missing: it was never started, was handed back, or what
//! it waited for has come. That may still lie in the mailbox, or stand in the journal already because a
//! process died after it had taken it in. One that says it runs may have lost its process; its lock tells.

use windlass_core::id::TaskId;

use crate::error::Fault;
use crate::{Error, Store, row};

/// New work, unless it waits for other tasks.
const FRESH: &str = "
    tasks.status IN ('todo', 'retrying') AND NOT EXISTS (
        SELECT 1 FROM json_each(coalesce(tasks.dependency_blockers, '[]')) AS blocker
        WHERE NOT EXISTS (SELECT 1 FROM tasks AS other
                          WHERE other.id = blocker.value AND other.status = 'done'))";

/// Parked by the end of a process.
const HANDED_BACK: &str = "tasks.status = 'paused' AND tasks.status_reason = 'shutdown'";

/// Blocked, with every question of its tree answered or an answer or signal on its way.
const ANSWERED: &str = "
    tasks.status = 'blocked' AND (
        tasks.status_reason IN ('question', 'budget') AND NOT EXISTS (
            SELECT 1 FROM tasks AS one JOIN questions ON questions.task_id = one.id
            WHERE one.root_id = tasks.id AND questions.state = 'open')
        OR EXISTS (
            SELECT 1 FROM tasks AS one JOIN injections ON injections.task_id = one.id
            WHERE one.root_id = tasks.id AND injections.delivered_at IS NULL
                AND (injections.type = 'hitl_response'
                     OR injections.body ->> '$.control.control' IN ('cancel', 'pause')))
        OR EXISTS (
            SELECT 1 FROM events
            WHERE events.stream = tasks.id AND events.seq = tasks.last_seq
                AND events.kind = 'injection_received'
                AND events.body ->> '$.control.control' = 'cancel'))";

/// Parked by a person, who has said how it goes on.
const RESUMED: &str = "
    tasks.status = 'paused' AND tasks.status_reason = 'user' AND (
        EXISTS (
            SELECT 1 FROM injections
            WHERE injections.task_id = tasks.id AND injections.delivered_at IS NULL
                AND injections.body ->> '$.control.control' IN ('resume', 'cancel'))
        OR EXISTS (
            SELECT 1 FROM events
            WHERE events.stream = tasks.id AND events.seq = tasks.last_seq
                AND events.kind = 'injection_received'
                AND events.body ->> '$.control.control' IN ('resume', 'cancel')))";

/// Parked until the next message, and there is one.
const CALLED: &str = "
    tasks.status = 'paused' AND tasks.status_reason NOT IN ('user', 'shutdown') AND (
        EXISTS (
            SELECT 1 FROM injections
            WHERE injections.task_id = tasks.id AND injections.delivered_at IS NULL
                AND coalesce(injections.body ->> '$.control.control', '') != 'pause')
        OR EXISTS (
            SELECT 1 FROM events
            WHERE events.stream = tasks.id AND events.seq = tasks.last_seq
                AND events.kind IN ('injection_received', 'question_answered')))";

impl Store {
    /// Up to `limit` tasks that are ready to go on, the oldest first.
    pub fn ready_tasks(&self, limit: usize) -> Result<Vec<TaskId>, Error> {
        let ready = [FRESH, HANDED_BACK, ANSWERED, RESUMED, CALLED];
        let ready = ready.map(|one| format!("({one})")).join(" OR ");
        self.listed(&ready, limit)
    }

    /// The tasks that should be running, whether or not a process drives them.
    pub fn running_tasks(&self) -> Result<Vec<TaskId>, Error> {
        self.listed("tasks.status IN ('running', 'verifying', 'reviewing')", usize::MAX)
    }

    /// Every task of a service that has not ended, without those below it.
    pub fn service_tasks(&self) -> Result<Vec<TaskId>, Error> {
        self.listed("1", usize::MAX)
    }

    fn listed(&self, condition: &str, limit: usize) -> Result<Vec<TaskId>, Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(|tx| {
            let mut statement = tx.prepare_cached(&format!(
                "SELECT tasks.id FROM tasks
                 WHERE tasks.driver = 'service' AND tasks.parent_id IS NULL
                     AND tasks.status NOT IN ('done', 'failed', 'cancelled') AND ({condition})
                 ORDER BY tasks.created_at LIMIT ?1"
            ))?;
            let mut rows = statement.query([limit])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(row::parse("tasks", &row.get::<_, String>(0)?)?);
            }
            Ok::<_, Fault>(found)
        })
    }
}
