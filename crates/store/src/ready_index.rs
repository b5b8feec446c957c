//! The ready index: columns of `task_scheduler` that say which service tasks could run now, or from a time on.
//!
//! Whether a task is ready is decided by [`readiness`](windlass_core::readiness) alone, with facts that SQL finds.
//!
//! Invariants:
//! - The index is changed in the transaction that changes what it depends on: a status, a question, mail, a blocker.
//! - What a change costs does not depend on how many tasks wait.
//! - A session has at most as many new tasks in the index as it has free slots, the oldest first (ES-090).

use jiff::{Timestamp, Zoned};
use rusqlite::{Connection, OptionalExtension, Row};
use windlass_core::event::{Driver, Event, Record};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::injection::{Control, InjectionType};
use windlass_core::readiness::{MailKind, Readiness, ReadinessFacts};
use windlass_core::status::{StatusReason, TaskStatus};

use crate::error::Fault;
use crate::row::{self, Columns, statuses, task_ids};
use crate::verify::Difference;
use crate::words::{OF_SERVICE, QUESTION_OPEN, QUEUED, TODO};

/// Brings the index up to date after events of a task in the tree of `root`. `status` is the task's own after them.
pub(crate) fn follow(
    tx: &Connection,
    root: TaskId,
    task: TaskId,
    status: TaskStatus,
    records: &[Record],
) -> Result<(), Fault> {
    let (mut moved, mut done, mut touched) = (false, false, false);
    for record in records {
        match &record.event {
            Event::TaskCreated(_) => moved |= task == root,
            Event::StatusChanged(change) => {
                moved |= task == root;
                done |= change.to == TaskStatus::Done;
            }
            Event::QuestionAsked(_)
            | Event::QuestionAnswered(_)
            | Event::QuestionClosed(_)
            | Event::InjectionReceived(_) => touched = true,
            _ => {}
        }
    }
    // Of a parked task it matters whether the last event was mail.
    touched |= task == root && !status.is_running();
    if moved || touched {
        refresh(tx, root, moved)?;
    }
    if done {
        refresh_dependents(tx, task)?;
    }
    Ok(())
}

/// Brings the index up to date after mail for a task.
pub(crate) fn follow_mail(tx: &Connection, task: TaskId) -> Result<(), Fault> {
    let root: Option<String> = tx
        .prepare_cached("SELECT root_id FROM tasks WHERE id = ?1")?
        .query_row([task.to_string()], |row| row.get(0))
        .optional()?;
    match root {
        Some(root) => refresh(tx, row::parse("tasks", &root)?, false),
        None => Ok(()),
    }
}

/// How many tasks of one session may be at work.
pub(crate) fn session_limit(tx: &Connection) -> Result<usize, Fault> {
    let limit: i64 = tx
        .prepare_cached("SELECT value FROM scheduler_limits WHERE name = 'tasks_per_session'")?
        .query_row([], |row| row.get(0))?;
    Ok(usize::try_from(limit).unwrap_or(0))
}

/// Changes that, and the index with it.
pub(crate) fn set_session_limit(tx: &Connection, limit: usize) -> Result<(), Fault> {
    if session_limit(tx)? == limit {
        return Ok(());
    }
    tx.prepare_cached("UPDATE scheduler_limits SET value = ?1 WHERE name = 'tasks_per_session'")?
        .execute([i64::try_from(limit).unwrap_or(i64::MAX)])?;
    sessions(tx)?.into_iter().try_for_each(|session| refresh_session(tx, session))
}

/// Makes the whole index again.
pub(crate) fn refresh_all(tx: &Connection) -> Result<(), Fault> {
    tx.execute(
        "UPDATE task_scheduler SET ready_since = NULL, resume_at = NULL
         WHERE ready_since IS NOT NULL",
        [],
    )?;
    expected_rows(tx)?.into_iter().try_for_each(|entry| entry.write(tx))
}

/// Where the index is not what the facts say.
pub(crate) fn differences(tx: &Connection) -> Result<Vec<Difference>, Fault> {
    let mut wanted: Vec<IndexRow> = expected_rows(tx)?;
    let mut found = Vec::new();
    let mut statement = tx.prepare("SELECT * FROM task_scheduler WHERE ready_since IS NOT NULL")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let kept = IndexRow::read_row(row)?;
        match wanted.iter().position(|entry| *entry == kept) {
            Some(index) => drop(wanted.swap_remove(index)),
            None => found.push(Difference::Surplus { table: INDEX, key: kept.task.to_string() }),
        }
    }
    let missing =
        |entry: IndexRow| Difference::Missing { table: INDEX, key: entry.task.to_string() };
    found.extend(wanted.into_iter().map(missing));
    Ok(found)
}

const INDEX: &str = "task_scheduler_ready";

/// Everything that belongs in the index.
fn expected_rows(tx: &Connection) -> Result<Vec<IndexRow>, Fault> {
    let mut entries = Vec::new();
    for session in sessions(tx)? {
        entries.extend(new_tasks(tx, session)?);
    }
    let sql = format!("SELECT id FROM tasks WHERE {OF_SERVICE} AND status <> '{TODO}'");
    for task in task_ids(tx, &sql, [])? {
        let candidate = Candidate::get(tx, task)?;
        entries.extend(candidate.map(|found| found.entry(tx)).transpose()?.flatten());
    }
    Ok(entries)
}

/// Sessions that have tasks which were not started yet.
fn sessions(tx: &Connection) -> Result<Vec<SessionId>, Fault> {
    let sql =
        format!("SELECT DISTINCT session_id FROM tasks WHERE {OF_SERVICE} AND status = '{TODO}'");
    let mut statement = tx.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(row::parse("tasks", &row.get::<_, String>(0)?)?);
    }
    Ok(found)
}

/// Asks again whether a root task could run. One that has moved may have taken or freed a slot of its session.
fn refresh(tx: &Connection, root: TaskId, moved: bool) -> Result<(), Fault> {
    let Some(candidate) = Candidate::get(tx, root)? else { return Ok(()) };
    // A new task is ready when its session has a slot, which the session decides.
    if candidate.status != TaskStatus::Todo {
        match candidate.entry(tx)? {
            Some(entry) => entry.write(tx)?,
            None => remove(tx, root)?,
        }
    }
    if moved { refresh_session(tx, candidate.session) } else { Ok(()) }
}

/// Asks again which new tasks of a session could run.
fn refresh_session(tx: &Connection, session: SessionId) -> Result<(), Fault> {
    let wanted = new_tasks(tx, session)?;
    let kept = task_ids(
        tx,
        &format!(
            "SELECT entry.task_id FROM task_scheduler AS entry JOIN tasks ON tasks.id = entry.task_id
         WHERE entry.session_id = ?1 AND entry.ready_since IS NOT NULL AND tasks.status = '{TODO}'"
        ),
        [session.to_string()],
    )?;
    for task in kept {
        if !wanted.iter().any(|entry| entry.task == task) {
            remove(tx, task)?;
        }
    }
    wanted.into_iter().try_for_each(|entry| entry.write(tx))
}

/// Asks again about the tasks that wait for one that is done.
fn refresh_dependents(tx: &Connection, blocker: TaskId) -> Result<(), Fault> {
    let sql = "SELECT task_id FROM task_blockers WHERE blocker = ?1";
    for task in task_ids(tx, sql, [blocker.to_string()])? {
        if let Some(dependent) = Candidate::get(tx, task)? {
            refresh_session(tx, dependent.session)?;
        }
    }
    Ok(())
}

/// The new tasks of a session that could run: as many as it has slots, the oldest first. One that waits for another
/// task has a slot too: newer tasks do not overtake it.
fn new_tasks(tx: &Connection, session: SessionId) -> Result<Vec<IndexRow>, Fault> {
    let at_work = format!(
        "SELECT count(*) FROM tasks WHERE {OF_SERVICE} AND session_id = ?1
             AND status IN (SELECT value FROM json_each(?2))"
    );
    let at_work: i64 = tx
        .prepare_cached(&at_work)?
        .query_row((session.to_string(), statuses(TaskStatus::holds_session_slot)), |row| {
            row.get(0)
        })?;
    let free = session_limit(tx)?.saturating_sub(usize::try_from(at_work).unwrap_or(0));
    let oldest = format!(
        "SELECT * FROM tasks WHERE {OF_SERVICE} AND session_id = ?1 AND status = '{TODO}'
         ORDER BY created_at, id LIMIT ?2"
    );
    let mut statement = tx.prepare_cached(&oldest)?;
    let mut rows =
        statement.query((session.to_string(), i64::try_from(free).unwrap_or(i64::MAX)))?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.extend(Candidate::read(row)?.entry(tx)?);
    }
    Ok(entries)
}

/// One task in the index.
#[derive(PartialEq)]
struct IndexRow {
    task: TaskId,
    session: SessionId,
    since: String,
    resume_at: Option<String>,
}

impl IndexRow {
    fn read_row(row: &Row<'_>) -> Result<Self, Fault> {
        let of = Columns { table: "task_scheduler", row };
        Ok(Self {
            task: of.text("task_id")?,
            session: of.text("session_id")?,
            since: of.raw("ready_since")?,
            resume_at: of.raw("resume_at")?,
        })
    }

    fn write(self, tx: &Connection) -> Result<(), Fault> {
        tx.prepare_cached(&format!(
            "INSERT INTO task_scheduler (task_id, status, session_id, ready_since, resume_at)
             VALUES (?1, '{QUEUED}', ?2, ?3, ?4)
             ON CONFLICT (task_id) DO UPDATE SET session_id = ?2, ready_since = ?3, resume_at = ?4
             WHERE ready_since IS NOT ?3 OR resume_at IS NOT ?4"
        ))?
        .execute((
            self.task.to_string(),
            self.session.to_string(),
            self.since,
            self.resume_at,
        ))?;
        Ok(())
    }
}

fn remove(tx: &Connection, task: TaskId) -> Result<(), Fault> {
    tx.prepare_cached(
        "UPDATE task_scheduler SET ready_since = NULL, resume_at = NULL
         WHERE task_id = ?1 AND ready_since IS NOT NULL",
    )?
    .execute([task.to_string()])?;
    Ok(())
}

/// A root task of the service, and what the rule asks about it.
struct Candidate {
    id: TaskId,
    session: SessionId,
    status: TaskStatus,
    reason: StatusReason,
    created_at: String,
    resume_at: Option<Timestamp>,
    last_seq: i64,
}

impl Candidate {
    /// `None` for a task that no service drives.
    fn get(tx: &Connection, task: TaskId) -> Result<Option<Self>, Fault> {
        let mut statement = tx.prepare_cached(
            "SELECT * FROM tasks WHERE id = ?1 AND driver = ?2 AND parent_id IS NULL",
        )?;
        let mut rows = statement.query((task.to_string(), Driver::Service.as_str()))?;
        rows.next()?.map(Self::read).transpose()
    }

    fn read(row: &Row<'_>) -> Result<Self, Fault> {
        let of = Columns { table: "tasks", row };
        Ok(Self {
            id: of.text("id")?,
            session: of.text("session_id")?,
            status: of.text("status")?,
            reason: of.text("status_reason")?,
            created_at: of.raw("created_at")?,
            resume_at: of.optional::<Zoned>("next_action_at")?.map(|at| at.timestamp()),
            last_seq: of.raw("last_seq")?,
        })
    }

    /// Its place in the index. A new task is asked about only when its session has a slot for it.
    fn entry(&self, tx: &Connection) -> Result<Option<IndexRow>, Fault> {
        let is_new = self.status == TaskStatus::Todo;
        let is_parked =
            matches!(self.status, TaskStatus::Blocked | TaskStatus::Reviewing | TaskStatus::Paused);
        let mail = if is_parked { self.mail(tx)? } else { Vec::new() };
        let facts = ReadinessFacts {
            status: self.status,
            reason: self.reason,
            resume_at: self.resume_at,
            has_unfinished_blockers: is_new && self.has_unfinished_blockers(tx)?,
            has_session_slot: is_new,
            has_open_questions: is_parked && self.has_open_questions(tx)?,
            mail: &mail,
        };
        let resume_at = match facts.readiness() {
            Readiness::Ready => None,
            // Whole seconds, as the rule counts them.
            Readiness::ReadyAt(at) => {
                Some(row::instant(Timestamp::from_second(at.as_second()).unwrap_or(at)))
            }
            Readiness::Waiting => return Ok(None),
        };
        let since = self.created_at.clone();
        Ok(Some(IndexRow { task: self.id, session: self.session, since, resume_at }))
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
            .prepare_cached(&format!(
                "SELECT EXISTS (
                     SELECT 1 FROM tasks JOIN questions ON questions.task_id = tasks.id
                     WHERE tasks.root_id = ?1 AND questions.state = '{QUESTION_OPEN}')"
            ))?
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
