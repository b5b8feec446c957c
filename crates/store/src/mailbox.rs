//! The mailbox: how every process but the owner sends messages to a task (§15.4).
//!
//! Invariants:
//! - What was accepted is synced, stays in order, and is delivered exactly once: taking it out and
//!   journaling it are one transaction.
//! - One answer per question, whether it waits here or is in the journal; a second is refused, and
//!   its sender gets the first.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};
use windlass_core::event::{Event, ModeChanged, QuestionAnswered, Record};
use windlass_core::id::{InjectionId, QuestionId, TaskId};
use windlass_core::injection::{Control, Injection, MAX_INJECTION_BYTES};
use windlass_core::question::{Answer, PlanAnswer, QuestionKind, ReviewAnswer};
use windlass_core::session::AxesChange;
use windlass_core::status::TaskStatus;

use crate::error::Fault;
use crate::owner::StreamHead;
use crate::questions::{self, QuestionRow, QuestionState};
use crate::tasks::TaskAxes;
use crate::words::{ANSWER, BLOCKED, MESSAGE, OUTSIDE_EVENT, QUESTION_OPEN};
use crate::{Error, Level, Store, projections, ready_index, row, session_stream, tasks};

/// Messages that may wait for one task; a sender that wants more does not see what happens.
pub const MAX_WAITING: usize = 1000;

/// Room on top of that for answers and control, so that a flooded task can still be stopped.
pub const RESERVED_WAITING: usize = 100;

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// It waits for the task, and survives a power loss.
    New,
    /// A message with its id had been accepted before.
    Already,
}

/// Messages that wait for tasks.
#[derive(Clone, Copy)]
pub struct Mailbox<'a> {
    pub(crate) store: &'a Store,
}

impl Mailbox<'_> {
    /// Puts a message into a task's mailbox. When this returns, it is synced.
    pub async fn inject(
        self,
        task: TaskId,
        injection: Injection,
        at: Timestamp,
    ) -> Result<Acceptance, Error> {
        let body = self.store.secrets().known().redact(&row::json(&injection)).into_owned();
        let attached = injection.metadata.as_ref().map_or(0, |value| value.to_string().len());
        let bytes = injection.content.len() + attached;
        if bytes > MAX_INJECTION_BYTES {
            return Err(Error::MessageTooLarge { bytes, limit: MAX_INJECTION_BYTES });
        }
        // A signal stops a task, also one that has filled the disk.
        let is_urgent = injection.control.is_some();
        let work = move |tx: &Connection| accept(tx, task, &injection, &body, at);
        let accepted = match is_urgent {
            true => self.store.write_urgently(Level::Synced, work).await?,
            false => self.store.write(Level::Synced, work).await?,
        };
        self.store.inner.counters.count_mail();
        Ok(accepted)
    }

    /// Takes back a message that no journal has yet; whether there was one. Its id stays known, so that a repeated
    /// delivery is dropped.
    pub async fn withdraw(
        self,
        task: TaskId,
        message: InjectionId,
        at: Timestamp,
    ) -> Result<bool, Error> {
        self.store
            .write(Level::Synced, move |tx: &Connection| {
                let taken = tx
                    .prepare_cached(
                        "UPDATE injections SET delivered_at = ?3, body = NULL
                         WHERE id = ?1 AND task_id = ?2 AND delivered_at IS NULL",
                    )?
                    .execute((message.to_string(), task.to_string(), row::instant(at)))?;
                ready_index::follow_mail(tx, task)?;
                Ok(taken > 0)
            })
            .await
    }

    /// What waits for a task, oldest first.
    pub fn pending(self, task: TaskId) -> Result<Vec<Injection>, Error> {
        self.store
            .read(|tx| Ok(waiting(tx, task)?.into_iter().map(|mail| mail.injection).collect()))
    }

    /// Whether anything waits for a task.
    pub fn has_mail(self, task: TaskId) -> Result<bool, Error> {
        // Every turn asks this; one statement needs no transaction.
        self.store.inner.readers.read_one(|connection| {
            Ok(connection
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM injections
                                    WHERE task_id = ?1 AND delivered_at IS NULL)",
                )?
                .query_row([task.to_string()], |row| row.get(0))?)
        })
    }
}

/// Whether a message or an event waits that the agent of a task should read.
pub(crate) fn has_news(tx: &Connection, task: TaskId) -> Result<bool, Fault> {
    Ok(tx
        .prepare_cached(&format!(
            "SELECT EXISTS (SELECT 1 FROM injections WHERE task_id = ?1 AND delivered_at IS NULL
                            AND type IN ('{MESSAGE}', '{OUTSIDE_EVENT}'))"
        ))?
        .query_row([task.to_string()], |row| row.get(0))?)
}

/// Whether an answer waits that lets a task continue: to a question of its own, or, if none of its own is open, to
/// one of a blocked task below it.
pub(crate) fn has_answer(tx: &Connection, task: TaskId) -> Result<bool, Fault> {
    Ok(tx
        .prepare_cached(&format!(
            "SELECT EXISTS (
                 SELECT 1 FROM injections AS mail JOIN tasks AS one ON one.id = mail.task_id
                 WHERE mail.delivered_at IS NULL AND mail.type = '{ANSWER}'
                     AND (one.id = ?1
                          OR one.root_id = ?1 AND one.status = '{BLOCKED}' AND NOT EXISTS (
                              SELECT 1 FROM questions WHERE task_id = ?1 AND state = '{QUESTION_OPEN}')))"
        ))?
        .query_row([task.to_string()], |row| row.get(0))?)
}

pub(crate) fn accept(
    tx: &Connection,
    task: TaskId,
    injection: &Injection,
    body: &str,
    at: Timestamp,
) -> Result<Acceptance, Fault> {
    let known: bool = tx
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM injections WHERE id = ?1)")?
        .query_row([injection.id.to_string()], |row| row.get(0))?;
    if known {
        return Ok(Acceptance::Already);
    }
    let question = injection.question.map_or(Ok(()), |question| check_question(tx, task, question));
    match question {
        // Whoever comes second reads the first answer, also when the task has ended since.
        Err(Fault::Store(answered @ Error::AlreadyAnswered { .. })) => return Err(answered.into()),
        checked => {
            check_task(tx, task)?;
            checked?;
        }
    }
    check_room(tx, task, injection)?;
    tx.prepare_cached(
        "INSERT INTO injections (id, task_id, type, question_id, body, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute((
        injection.id.to_string(),
        task.to_string(),
        injection.injection_type.as_str(),
        injection.question.map(|question| question.to_string()),
        body,
        row::instant(at),
    ))?;
    ready_index::follow_mail(tx, task)?;
    Ok(Acceptance::New)
}

fn check_task(tx: &Connection, task: TaskId) -> Result<(), Fault> {
    let status: Option<String> = tx
        .prepare_cached("SELECT status FROM tasks WHERE id = ?1")?
        .query_row([task.to_string()], |row| row.get(0))
        .optional()?;
    let Some(status) = status else { return Err(Error::UnknownTask(task.to_string()).into()) };
    let status: TaskStatus = row::parse("tasks", &status)?;
    match status.is_terminal() {
        true => Err(Error::TaskEnded { task, status }.into()),
        false => Ok(()),
    }
}

fn check_question(tx: &Connection, task: TaskId, question: QuestionId) -> Result<(), Fault> {
    let Some(row) = question_of(tx, task, question)? else {
        return Err(Error::UnknownQuestion(question.to_string()).into());
    };
    match row.state {
        QuestionState::Open => Ok(()),
        QuestionState::Waiting(answer) | QuestionState::Answered(answer) => {
            let Answer { text, by, at } = answer;
            Err(Error::AlreadyAnswered { question, by, text, at }.into())
        }
        QuestionState::Closed { reason, .. } => {
            Err(Error::QuestionClosed { question, reason }.into())
        }
    }
}

/// A question of `task`; `None` when the task has no such question.
fn question_of(
    tx: &Connection,
    task: TaskId,
    question: QuestionId,
) -> Result<Option<QuestionRow>, Fault> {
    Ok(questions::find(tx, question)?.filter(|row| row.task == task))
}

/// The answer to a question that is accepted and not yet in the journal.
pub(crate) fn waiting_answer(
    tx: &Connection,
    question: QuestionId,
) -> Result<Option<Answer>, Fault> {
    let found: Option<(String, String)> = tx
        .prepare_cached(
            "SELECT body, at FROM injections WHERE question_id = ?1 AND delivered_at IS NULL",
        )?
        .query_row([question.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    found.map(|(body, at)| Ok(mail(&body, &at)?.answer())).transpose()
}

fn check_room(tx: &Connection, task: TaskId, injection: &Injection) -> Result<(), Fault> {
    let count: i64 = tx
        .prepare_cached(
            "SELECT count(*) FROM injections WHERE task_id = ?1 AND delivered_at IS NULL",
        )?
        .query_row([task.to_string()], |row| row.get(0))?;
    let urgent = injection.control.is_some() || injection.question.is_some();
    let limit = MAX_WAITING + if urgent { RESERVED_WAITING } else { 0 };
    match usize::try_from(count).unwrap_or(usize::MAX) >= limit {
        true => Err(Error::MailboxFull { task, limit }.into()),
        false => Ok(()),
    }
}

/// Journals all mail of `task` and marks it as delivered.
pub(crate) fn drain(tx: &Connection, task: TaskId, at: Timestamp) -> Result<Vec<Record>, Fault> {
    let Some((mut head, _)) = StreamHead::read(tx, task)? else {
        return Err(Error::UnknownTask(task.to_string()).into());
    };
    let mut records = Vec::new();
    for mail in waiting(tx, task)? {
        let id = mail.injection.id.to_string();
        for event in mail.events(tx, task)? {
            records.push(head.append(tx, task, at, event)?);
        }
        tx.prepare_cached("UPDATE injections SET delivered_at = ?2, body = NULL WHERE id = ?1")?
            .execute((id, row::instant(at)))?;
    }
    if let Some(last) = records.last() {
        projections::update_tail(tx, last, head.tail())?;
        session_stream::follow(tx, &records)?;
        ready_index::follow_mail(tx, task)?;
    }
    Ok(records)
}

fn waiting(tx: &Connection, task: TaskId) -> Result<Vec<Mail>, Fault> {
    let mut statement = tx.prepare_cached(
        "SELECT body, at FROM injections WHERE task_id = ?1 AND delivered_at IS NULL ORDER BY pos",
    )?;
    let mut rows = statement.query([task.to_string()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(mail(&row.get::<_, String>(0)?, &row.get::<_, String>(1)?)?);
    }
    Ok(found)
}

/// A message and when it was accepted.
struct Mail {
    injection: Injection,
    at: Timestamp,
}

fn mail(body: &str, at: &str) -> Result<Mail, Fault> {
    let injection = serde_json::from_str(body)
        .map_err(|_| Error::Malformed { table: "injections", value: body.to_owned() })?;
    Ok(Mail { injection, at: row::parse("injections", at)? })
}

impl Mail {
    fn answer(self) -> Answer {
        Answer { text: self.injection.content, by: self.injection.by, at: self.at }
    }

    /// What the journal says about it. An answer to an open question answers it; the model reads
    /// it as a message only where the agent asked the question, or where it was about the whole task. An
    /// answer that comes too late is still something that a person said.
    fn events(self, tx: &Connection, task: TaskId) -> Result<Vec<Event>, Fault> {
        if let Some(control @ Control::ChangeAxes { .. }) = &self.injection.control {
            return change_of_axes(tx, task, control, &self.injection.by);
        }
        let row = match self.injection.question {
            Some(question) => question_of(tx, task, question)?,
            None => None,
        };
        let asked = match row.map(|row| (row.question, row.state)) {
            // The answer that waits is this one: there is one answer per question.
            Some((asked, QuestionState::Open | QuestionState::Waiting(_))) => asked,
            Some((_, QuestionState::Answered(_) | QuestionState::Closed { .. })) | None => {
                return Ok(vec![Event::InjectionReceived(self.injection)]);
            }
        };
        let (injection, at) = (self.injection.clone(), self.at);
        let (question, kind, answer) = (asked.id, asked.kind, self.answer());
        session_stream::follow_answer(tx, task, &asked, &answer, at)?;
        let answered = Event::QuestionAnswered(QuestionAnswered { question, answer });
        Ok(match kind {
            // What an accepted plan means to the agent, it reads when the plan starts.
            QuestionKind::Plan if accepts_plan(&injection.content) => vec![answered],
            QuestionKind::Review if approves_work(&injection.content) => vec![answered],
            QuestionKind::AskUser | QuestionKind::Plan | QuestionKind::Review => {
                vec![answered, Event::InjectionReceived(injection)]
            }
            QuestionKind::Permission
            | QuestionKind::Runner
            | QuestionKind::Budget
            | QuestionKind::Repair => vec![answered],
        })
    }
}

/// What a task journals of a change of its axes: the change itself. A sub-agent is only tightened (C-12).
fn change_of_axes(
    tx: &Connection,
    task: TaskId,
    control: &Control,
    by: &str,
) -> Result<Vec<Event>, Fault> {
    let Control::ChangeAxes { change, wanted, scope, source, reason } = control else {
        return Ok(Vec::new());
    };
    let Some(now) = tasks::axes_of(tx, task)? else { return Ok(Vec::new()) };
    let TaskAxes { axes: from, role: role_before, is_child } = now;
    let (to, role) = match is_child {
        true => (wanted.tighten(&from), wanted.tightened_role(role_before)),
        false => (wanted.apply(&from), wanted.role_after(role_before)),
    };
    if is_child && (to, role) == (from, role_before) {
        return Ok(Vec::new());
    }
    Ok(vec![Event::ModeChanged(ModeChanged {
        from,
        to,
        role,
        wanted: AxesChange::default(),
        reason: reason.clone(),
        scope: *scope,
        source: *source,
        by: by.to_owned(),
        change: Some(*change),
        reverts: false,
        task: None,
    })])
}

fn accepts_plan(answer: &str) -> bool {
    matches!(PlanAnswer::read(answer), Some(PlanAnswer::Accept(_)))
}

fn approves_work(answer: &str) -> bool {
    ReviewAnswer::read(answer) == Some(ReviewAnswer::Approve)
}
