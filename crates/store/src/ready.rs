//! What a worker can do now: which tasks of the service are ready, running, waiting or ended.
//!
//! Whether a task is ready is decided by [`readiness`](windlass_core::readiness). SQL only finds the tasks that
//! could be, and the facts that the rule asks for.

use std::collections::HashMap;

use jiff::{Timestamp, Zoned};
use rusqlite::{Connection, OptionalExtension, Row};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::injection::{Control, InjectionType};
use windlass_core::readiness::{Facts, MailKind};
use windlass_core::status::{StatusReason, TaskStatus};

use crate::error::Fault;
use crate::row::{self, Columns, statuses, task_ids};
use crate::{Error, Scheduler};

impl Scheduler<'_> {
    /// Tasks that are ready to run now, the oldest first; at most `limit`, and at most `per_session` of
    /// one session at work. (ES-090)
    pub fn ready_tasks(
        self,
        now: Timestamp,
        per_session: usize,
        limit: usize,
    ) -> Result<Vec<TaskId>, Error> {
        self.store.read(|tx| {
            let mut sessions = Sessions::read(tx, per_session)?;
            // The first conditions are those of the index.
            let mut statement = tx.prepare_cached(
                "SELECT id, session_id, status, status_reason, next_action_at, last_seq FROM tasks
                 WHERE driver = 'service' AND parent_id IS NULL
                     AND status NOT IN ('done', 'failed', 'cancelled')
                     AND status NOT IN (SELECT value FROM json_each(?1))
                 ORDER BY created_at, id",
            )?;
            let mut rows = statement.query([statuses(TaskStatus::is_running)])?;
            let mut ready = Vec::new();
            while ready.len() < limit
                && let Some(row) = rows.next()?
            {
                let candidate = Candidate::read(row)?;
                if candidate.is_ready(tx, &mut sessions, now)? {
                    ready.push(candidate.id);
                }
            }
            Ok(ready)
        })
    }

    /// Whether `count` tasks or more wait for a service to start them.
    pub fn has_waiting_tasks(self, count: usize) -> Result<bool, Error> {
        let before = i64::try_from(count).unwrap_or(i64::MAX).saturating_sub(1);
        self.store.read(|tx| {
            Ok(tx
                .prepare_cached(
                    "SELECT EXISTS (
                         SELECT 1 FROM tasks WHERE driver = 'service' AND parent_id IS NULL
                             AND status NOT IN ('done', 'failed', 'cancelled') AND status = ?2
                         LIMIT 1 OFFSET ?1)",
                )?
                .query_row((before, TaskStatus::Todo.as_str()), |row| row.get(0))?)
        })
    }

    /// The tasks that should be running, whether or not a process drives them.
    pub fn running_tasks(self) -> Result<Vec<TaskId>, Error> {
        self.store.read(|tx| {
            let sql = "SELECT id FROM tasks
                 WHERE driver = 'service' AND parent_id IS NULL
                     AND status NOT IN ('done', 'failed', 'cancelled')
                     AND status IN (SELECT value FROM json_each(?1))
                 ORDER BY created_at, id";
            task_ids(tx, sql, [statuses(TaskStatus::is_running)])
        })
    }

    /// Every root task of a service that has not ended.
    pub fn live_tasks(self) -> Result<Vec<TaskId>, Error> {
        self.store.read(|tx| {
            let sql = "SELECT id FROM tasks
                 WHERE driver = 'service' AND parent_id IS NULL
                     AND status NOT IN ('done', 'failed', 'cancelled')
                 ORDER BY created_at, id";
            task_ids(tx, sql, [])
        })
    }

    /// The root tasks of a service that ended after `since`.
    pub fn ended_tasks(self, since: Timestamp) -> Result<Vec<TaskId>, Error> {
        self.store.read(|tx| {
            let sql = "SELECT id FROM tasks
                 WHERE driver = 'service' AND parent_id IS NULL AND completed_at IS NOT NULL
                     AND completed_at > ?1 ORDER BY completed_at";
            task_ids(tx, sql, [row::instant(since)])
        })
    }
}

/// How many tasks each session has at work or before the one that is looked at.
struct Sessions {
    limit: usize,
    slots_in_use: HashMap<SessionId, usize>,
}

impl Sessions {
    fn read(tx: &Connection, limit: usize) -> Result<Self, Fault> {
        let mut statement = tx.prepare_cached(
            "SELECT session_id, count(*) FROM tasks
             WHERE driver = 'service' AND parent_id IS NULL
                 AND status NOT IN ('done', 'failed', 'cancelled')
                 AND status IN (SELECT value FROM json_each(?1))
             GROUP BY session_id",
        )?;
        let mut rows = statement.query([statuses(TaskStatus::holds_session_slot)])?;
        let mut slots_in_use = HashMap::new();
        while let Some(row) = rows.next()? {
            let session = row::parse("tasks", &row.get::<_, String>(0)?)?;
            slots_in_use
                .insert(session, usize::try_from(row.get::<_, i64>(1)?).unwrap_or(usize::MAX));
        }
        Ok(Self { limit, slots_in_use })
    }

    /// Whether the session has a slot for its next new task, which has the slot from now on. One that waits
    /// for another task has it too: newer tasks do not overtake it.
    fn take_slot(&mut self, session: SessionId) -> bool {
        let slots_in_use = self.slots_in_use.entry(session).or_default();
        *slots_in_use += 1;
        *slots_in_use <= self.limit
    }
}

/// A task that may be ready.
struct Candidate {
    id: TaskId,
    session: SessionId,
    status: TaskStatus,
    reason: StatusReason,
    resume_at: Option<Timestamp>,
    last_seq: i64,
}

impl Candidate {
    fn read(row: &Row<'_>) -> Result<Self, Fault> {
        let of = Columns { table: "tasks", row };
        Ok(Self {
            id: of.text("id")?,
            session: of.text("session_id")?,
            status: of.text("status")?,
            reason: of.text("status_reason")?,
            resume_at: of.maybe::<Zoned>("next_action_at")?.map(|at| at.timestamp()),
            last_seq: of.raw("last_seq")?,
        })
    }

    fn is_ready(
        &self,
        tx: &Connection,
        sessions: &mut Sessions,
        now: Timestamp,
    ) -> Result<bool, Fault> {
        let is_new = self.status == TaskStatus::Todo;
        let mail = if is_new { Vec::new() } else { self.mail(tx)? };
        let facts = Facts {
            status: self.status,
            reason: self.reason,
            resume_at: self.resume_at,
            has_unfinished_blockers: is_new && self.has_unfinished_blockers(tx)?,
            has_session_slot: is_new && sessions.take_slot(self.session),
            has_open_questions: !is_new && self.has_open_questions(tx)?,
            mail: &mail,
        };
        Ok(facts.is_ready(now))
    }

    /// A blocker that does not exist is not done either.
    fn has_unfinished_blockers(&self, tx: &Connection) -> Result<bool, Fault> {
        Ok(tx
            .prepare_cached(
                "SELECT EXISTS (
                     SELECT 1 FROM tasks, json_each(coalesce(tasks.dependency_blockers, '[]')) AS blocker
                     WHERE tasks.id = ?1 AND NOT EXISTS (
                         SELECT 1 FROM tasks AS other
                         WHERE other.id = blocker.value AND other.status = ?2))",
            )?
            .query_row((self.id.to_string(), TaskStatus::Done.as_str()), |row| row.get(0))?)
    }

    fn has_open_questions(&self, tx: &Connection) -> Result<bool, Fault> {
        Ok(tx
            .prepare_cached(
                "SELECT EXISTS (
                     SELECT 1 FROM tasks JOIN questions ON questions.task_id = tasks.id
                     WHERE tasks.root_id = ?1 AND questions.state = 'open')",
            )?
            .query_row([self.id.to_string()], |row| row.get(0))?)
    }

    /// The kinds of mail that its tree has, and of its last event where that was mail.
    fn mail(&self, tx: &Connection) -> Result<Vec<MailKind>, Fault> {
        let mut statement = tx.prepare_cached(
            "SELECT DISTINCT mail.type AS type, mail.body -> '$.control' AS control
             FROM tasks JOIN injections AS mail ON mail.task_id = tasks.id
             WHERE tasks.root_id = ?1 AND mail.delivered_at IS NULL",
        )?;
        let mut rows = statement.query([self.id.to_string()])?;
        let mut mail = Vec::new();
        while let Some(row) = rows.next()? {
            mail.push(mail_kind(row)?);
        }
        let last = tx
            .prepare_cached(
                "SELECT body ->> '$.injection_type' AS type, body -> '$.control' AS control
                 FROM events WHERE stream = ?1 AND seq = ?2 AND kind = 'injection_received'",
            )?
            .query_row((self.id.to_string(), self.last_seq), |row| Ok(mail_kind(row)))
            .optional()?;
        mail.extend(last.transpose()?);
        Ok(mail)
    }
}

fn mail_kind(row: &Row<'_>) -> Result<MailKind, Fault> {
    let of = Columns { table: "injections", row };
    let kind: InjectionType = of.text("type")?;
    let control: Option<Control> = of.json::<Option<Control>>("control")?.flatten();
    Ok(MailKind::new(kind, control.as_ref()))
}
