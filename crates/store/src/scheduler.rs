//! The state of service tasks in the scheduler (MS-138, MS-139), which is not their status (MS-142).
//! Not projections.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row};
use windlass_core::id::TaskId;
use windlass_core::schedule::SchedulerStatus;
use windlass_core::status::TaskStatus;

use crate::error::Fault;
use crate::row::{self, Columns};
use crate::words::{CLAIMED, CONSUMED, DISPATCHED, DUE, EXPIRED, QUEUED, SERVICE};
use crate::{Error, Level, Store};

/// A task's row in the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerRow {
    /// The task of the service.
    pub task_id: TaskId,
    /// Whether it is queued, claimed or consumed.
    pub status: SchedulerStatus,
    /// When it may start.
    pub due_at: Option<Timestamp>,
    /// The worker that has claimed it.
    pub claimed_by: Option<String>,
    /// When an agent began to work on it.
    pub dispatched_at: Option<Timestamp>,
    /// When that run ended.
    pub consumed_at: Option<Timestamp>,
    /// When it no longer needs to be started.
    pub expires_at: Option<Timestamp>,
}

/// Which service tasks may start, and which worker has them.
#[derive(Clone, Copy)]
pub struct Scheduler<'a> {
    pub(crate) store: &'a Store,
}

impl Scheduler<'_> {
    /// Puts a task into the queue, to start at `due`; one that is at work stays where it is.
    pub async fn enqueue(
        self,
        task: TaskId,
        due: Timestamp,
        expires: Option<Timestamp>,
    ) -> Result<(), Error> {
        self.store
            .write(Level::Written, move |tx| {
                tx.prepare_cached(&format!(
                    "INSERT INTO task_scheduler (task_id, status, due_at, expires_at)
                 VALUES (?1, '{QUEUED}', ?2, ?3)
                 ON CONFLICT (task_id) DO UPDATE SET status = '{QUEUED}', due_at = ?2,
                     claimed_by = NULL, expires_at = coalesce(?3, expires_at)
                 WHERE status IN ('{QUEUED}', '{DUE}', '{CONSUMED}', '{EXPIRED}')"
                ))?
                .execute((
                    task.to_string(),
                    row::instant(due),
                    expires.map(row::instant),
                ))?;
                Ok(())
            })
            .await
    }

    /// Marks tasks whose time has come.
    pub async fn mark_due(self, tasks: Vec<TaskId>) -> Result<(), Error> {
        self.store
            .write(Level::Written, move |tx| {
                let mut due = tx.prepare_cached(&format!(
                    "UPDATE task_scheduler SET status = '{DUE}'
                     WHERE task_id = ?1 AND status = '{QUEUED}'"
                ))?;
                for task in tasks {
                    due.execute([task.to_string()])?;
                }
                Ok(())
            })
            .await
    }

    /// Takes a task for a worker; `false` when another worker has claimed it.
    pub async fn claim(self, task: TaskId, by: &str) -> Result<bool, Error> {
        let by = by.to_owned();
        self.store
            .write(Level::Written, move |tx| {
                let claimed = tx
                    .prepare_cached(&format!(
                        "INSERT INTO task_scheduler (task_id, status, claimed_by)
                     VALUES (?1, '{CLAIMED}', ?2)
                     ON CONFLICT (task_id) DO UPDATE SET status = '{CLAIMED}', claimed_by = ?2
                     WHERE status <> '{CLAIMED}' OR claimed_by = ?2"
                    ))?
                    .execute((task.to_string(), by))?;
                Ok(claimed == 1)
            })
            .await
    }

    /// Marks a task that an agent works on. The holder of its lock does this, whatever was claimed before.
    pub async fn mark_dispatched(self, task: TaskId, by: &str, at: Timestamp) -> Result<(), Error> {
        let by = by.to_owned();
        self.store
            .write(Level::Written, move |tx| {
                tx.prepare_cached(&format!(
                    "INSERT INTO task_scheduler (task_id, status, claimed_by, dispatched_at)
                 VALUES (?1, '{DISPATCHED}', ?2, ?3)
                 ON CONFLICT (task_id) DO UPDATE SET status = '{DISPATCHED}', dispatched_at = ?3,
                     claimed_by = ?2, consumed_at = NULL"
                ))?
                .execute((task.to_string(), by, row::instant(at)))?;
                Ok(())
            })
            .await
    }

    /// Marks a task whose scheduled run has ended.
    pub async fn mark_consumed(self, task: TaskId, at: Timestamp) -> Result<(), Error> {
        self.store
            .write(Level::Written, move |tx| {
                tx.prepare_cached(&format!(
                    "UPDATE task_scheduler SET status = '{CONSUMED}', consumed_at = ?2,
                     claimed_by = NULL
                 WHERE task_id = ?1"
                ))?
                .execute((task.to_string(), row::instant(at)))?;
                Ok(())
            })
            .await
    }

    /// Marks tasks that nobody started in time; returns how many.
    pub async fn expire(self, now: Timestamp) -> Result<usize, Error> {
        self.store
            .write(Level::Written, move |tx| {
                Ok(tx
                    .prepare_cached(&format!(
                        "UPDATE task_scheduler SET status = '{EXPIRED}'
                     WHERE status IN ('{QUEUED}', '{DUE}') AND expires_at <= ?1"
                    ))?
                    .execute([row::instant(now)])?)
            })
            .await
    }

    /// A task's row in the scheduler.
    pub fn get(self, task: TaskId) -> Result<Option<SchedulerRow>, Error> {
        self.store.read(|tx| {
            let mut statement =
                tx.prepare_cached("SELECT * FROM task_scheduler WHERE task_id = ?1")?;
            let mut rows = statement.query([task.to_string()])?;
            rows.next()?.map(scheduler_row).transpose()
        })
    }

    /// A new task's place in the queue of its session, from 1, when `per_session` tasks may be at work.
    /// `None` for a task that has a slot, or needs none.
    pub fn queue_place(self, task: TaskId, per_session: usize) -> Result<Option<usize>, Error> {
        self.store.read(|tx| {
            let counted: Option<(i64, i64)> = tx
                .prepare_cached(&format!(
                    "SELECT
                        (SELECT count(*) FROM tasks AS other
                         WHERE other.session_id = tasks.session_id AND other.driver = '{SERVICE}'
                           AND other.parent_id IS NULL
                           AND other.status IN (SELECT value FROM json_each(?3))),
                        (SELECT count(*) FROM tasks AS other
                         WHERE other.session_id = tasks.session_id AND other.driver = '{SERVICE}'
                           AND other.parent_id IS NULL AND other.status = ?2
                           AND (other.created_at, other.id) < (tasks.created_at, tasks.id))
                     FROM tasks WHERE id = ?1 AND status = ?2 AND driver = '{SERVICE}'
                       AND parent_id IS NULL"
                ))?
                .query_row(
                    (
                        task.to_string(),
                        TaskStatus::Todo.as_str(),
                        row::statuses(TaskStatus::holds_session_slot),
                    ),
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            let Some((at_work, ahead)) = counted else { return Ok(None) };
            let whole = |count: i64| usize::try_from(count).unwrap_or(0);
            let free = per_session.saturating_sub(whole(at_work));
            Ok((whole(ahead) + 1).checked_sub(free).filter(|place| *place > 0))
        })
    }

    /// Service tasks that a process says it drives, each with the number of events in its whole tree. A number
    /// that does not grow is a tree that does nothing.
    pub fn progress(self) -> Result<Vec<(TaskId, u64)>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(&format!(
                "SELECT id, (SELECT sum(last_seq) FROM tasks WHERE root_id = root.id)
                 FROM tasks AS root
                 WHERE driver = '{SERVICE}' AND parent_id IS NULL AND status IN (?1, ?2)
                   AND EXISTS (SELECT 1 FROM task_runtime WHERE task_id = root.id)"
            ))?;
            let mut rows = statement
                .query([TaskStatus::Running, TaskStatus::Verifying].map(TaskStatus::as_str))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let task = row::parse("tasks", &row.get::<_, String>(0)?)?;
                found.push((task, row.get::<_, i64>(1)?.unsigned_abs()));
            }
            Ok(found)
        })
    }
}

fn scheduler_row(row: &Row<'_>) -> Result<SchedulerRow, Fault> {
    let of = Columns { table: "task_scheduler", row };
    Ok(SchedulerRow {
        task_id: of.text("task_id")?,
        status: of.text("status")?,
        due_at: of.optional("due_at")?,
        claimed_by: of.raw("claimed_by")?,
        dispatched_at: of.optional("dispatched_at")?,
        consumed_at: of.optional("consumed_at")?,
        expires_at: of.optional("expires_at")?,
    })
}
