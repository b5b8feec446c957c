//! What there is to do for a worker: tasks that a service drives and that could go on now.
//!
//! A task is ready when nothing but a process is missing: it was never started and there is a place for it,
//! it was handed back, or what it waited for has come. That may still lie in the mailbox, or stand in the
//! journal already because a process died after it had taken it in. One that says it runs may have lost
//! its process; its lock tells.

use jiff::Timestamp;
use windlass_core::id::TaskId;

use crate::error::Fault;
use crate::{Error, Scheduler, row};

/// New work that waits for no other task, where its session has a place: begun tasks have one each, and
/// older new ones come first. (ES-090)
const FRESH: &str = "
    tasks.status = 'todo'
    AND NOT EXISTS (
        SELECT 1 FROM json_each(coalesce(tasks.dependency_blockers, '[]')) AS blocker
        WHERE NOT EXISTS (SELECT 1 FROM tasks AS other
                          WHERE other.id = blocker.value AND other.status = 'done'))
    AND ?2 > (
        SELECT count(*) FROM tasks AS other
        WHERE other.session_id = tasks.session_id AND other.driver = 'service'
            AND other.parent_id IS NULL
            AND (other.status IN ('running', 'verifying', 'reviewing', 'blocked', 'retrying')
                 OR other.status = 'todo'
                    AND (other.created_at, other.id) < (tasks.created_at, tasks.id)))";

/// About to run again, or parked by the end of a process.
const HANDED_BACK: &str = "
    tasks.status = 'retrying' OR tasks.status = 'paused' AND tasks.status_reason = 'shutdown'";

/// Blocked on questions of its tree that are all answered.
const ANSWERED: &str = "
    tasks.status = 'blocked' AND tasks.status_reason IN ('question', 'budget') AND NOT EXISTS (
        SELECT 1 FROM tasks AS one JOIN questions ON questions.task_id = one.id
        WHERE one.root_id = tasks.id AND questions.state = 'open')";

/// Parked, and something came that lets it go on: in the mailbox of its tree, or as the last event.
const CALLED: &str = "
    tasks.status IN ('blocked', 'paused') AND (
        EXISTS (
            SELECT 1 FROM tasks AS one JOIN injections AS mail ON mail.task_id = one.id
            WHERE one.root_id = tasks.id AND mail.delivered_at IS NULL AND (WAKES))
        OR EXISTS (
            SELECT 1 FROM (SELECT body ->> '$.injection_type' AS type, body FROM events
                           WHERE stream = tasks.id AND seq = tasks.last_seq
                               AND kind = 'injection_received') AS mail
            WHERE (WAKES)))";

/// Told to wait by its model's server, and that time has come. Both are instants in UTC; whole seconds do.
const WAITED: &str = "
    tasks.status = 'paused' AND tasks.status_reason = 'rate_limited'
    AND substr(tasks.next_action_at, 1, 19) <= substr(?3, 1, 19)";

/// What lets a parked task go on; mail alone is not always enough (ES-076).
const WAKES: &str = "
    mail.type = 'hitl_response'
    OR mail.body ->> '$.control.control' IN ('resume', 'cancel', 'expire')
    OR tasks.status_reason IN ('schedule', 'awaiting_message')
       AND mail.type IN ('user_message', 'external_event')
    OR tasks.status_reason = 'schedule' AND mail.type = 'system_control'
       AND coalesce(mail.body ->> '$.control.control', 'watch') = 'watch'";

impl Scheduler<'_> {
    /// Tasks that are ready to go on now, the oldest first; at most `limit`, and at most `per_session` of
    /// one session at work.
    pub fn ready_tasks(
        self,
        now: Timestamp,
        per_session: usize,
        limit: usize,
    ) -> Result<Vec<TaskId>, Error> {
        let called = CALLED.replace("WAKES", WAKES);
        let ready = [FRESH, HANDED_BACK, ANSWERED, &called, WAITED];
        let ready = ready.map(|one| format!("({one})")).join(" OR ");
        self.listed(&ready, now, per_session, limit)
    }

    /// Whether so many tasks or more wait for a service to start them.
    pub fn has_waiting_tasks(self, so_many: usize) -> Result<bool, Error> {
        let before = i64::try_from(so_many).unwrap_or(i64::MAX).saturating_sub(1);
        self.store.read(|tx| {
            Ok(tx
                .prepare_cached(
                    "SELECT EXISTS (
                         SELECT 1 FROM tasks WHERE driver = 'service' AND parent_id IS NULL
                             AND status NOT IN ('done', 'failed', 'cancelled') AND status = 'todo'
                         LIMIT 1 OFFSET ?1)",
                )?
                .query_row([before], |row| row.get(0))?)
        })
    }

    /// The tasks that should be running, whether or not a process drives them.
    pub fn running_tasks(self) -> Result<Vec<TaskId>, Error> {
        let running =
            "tasks.status IN ('running', 'verifying', 'reviewing') AND ?2 > 0 AND ?3 > ''";
        self.listed(running, Timestamp::MIN, usize::MAX, usize::MAX)
    }

    /// Every task of a service that has not ended, without those below it.
    pub fn live_tasks(self) -> Result<Vec<TaskId>, Error> {
        self.listed("?2 > 0 AND ?3 > ''", Timestamp::MIN, usize::MAX, usize::MAX)
    }

    /// The tasks of a service that ended after `since`.
    pub fn ended_tasks(self, since: Timestamp) -> Result<Vec<TaskId>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT id FROM tasks
                 WHERE driver = 'service' AND parent_id IS NULL AND completed_at IS NOT NULL
                     AND completed_at > ?1 ORDER BY completed_at",
            )?;
            let mut rows = statement.query([row::instant(since)])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(row::parse("tasks", &row.get::<_, String>(0)?)?);
            }
            Ok(found)
        })
    }

    fn listed(
        self,
        condition: &str,
        now: Timestamp,
        per_session: usize,
        limit: usize,
    ) -> Result<Vec<TaskId>, Error> {
        let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(&format!(
                "SELECT tasks.id FROM tasks
                 WHERE tasks.driver = 'service' AND tasks.parent_id IS NULL
                     AND tasks.status NOT IN ('done', 'failed', 'cancelled') AND ({condition})
                 ORDER BY tasks.created_at, tasks.id LIMIT ?1"
            ))?;
            let mut rows =
                statement.query((number(limit), number(per_session), row::instant(now)))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(row::parse("tasks", &row.get::<_, String>(0)?)?);
            }
            Ok::<_, Fault>(found)
        })
    }
}
