//! Reading questions: the inbox, one question, its answer.

use jiff::Timestamp;
use rusqlite::{Connection, Row};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::question::{Answer, Question, QuestionStatus};

use crate::error::Fault;
use crate::row::Columns;
use crate::words::{LIVE, QUESTION_ANSWERED, QUESTION_OPEN};
use crate::{Error, Store, mailbox};

/// Whether a question needs an answer, and the answer it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionState {
    /// Waiting for a person.
    Open,
    /// A person has answered; the task has not read the answer yet.
    Waiting(Answer),
    /// The task knows the answer.
    Answered(Answer),
    /// Nobody needs to answer it now.
    Closed {
        /// Why it needs no answer.
        reason: String,
        /// When it was closed.
        at: Option<Timestamp>,
    },
}

impl QuestionState {
    /// The word for it. A question whose answer waits is answered: nobody can answer it again.
    pub fn status(&self) -> QuestionStatus {
        match self {
            Self::Open => QuestionStatus::Open,
            Self::Waiting(_) | Self::Answered(_) => QuestionStatus::Answered,
            Self::Closed { .. } => QuestionStatus::Closed,
        }
    }

    /// The answer that it has.
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Waiting(answer) | Self::Answered(answer) => Some(answer),
            Self::Open | Self::Closed { .. } => None,
        }
    }
}

/// A question and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionRow {
    /// The task that waits for it.
    pub task: TaskId,
    /// What is asked.
    pub question: Question,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// Whether it needs an answer.
    pub state: QuestionState,
}

/// Questions for people.
#[derive(Clone, Copy)]
pub struct Questions<'a> {
    pub(crate) store: &'a Store,
}

impl Questions<'_> {
    /// Those that a person can answer now, oldest first.
    pub fn open(self) -> Result<Vec<QuestionRow>, Error> {
        // A task that has ended waits for nobody; one that is retried asks again.
        let filter = &format!(
            "WHERE state = '{QUESTION_OPEN}' AND EXISTS (
                     SELECT 1 FROM tasks WHERE tasks.id = questions.task_id
                         AND tasks.{LIVE})"
        );
        let mut rows = self.store.read(|tx| list(tx, filter, &[]))?;
        // An answered question leaves the inbox before the task has read the answer.
        rows.retain(|row| row.state == QuestionState::Open);
        Ok(rows)
    }

    /// All that were ever asked, oldest first.
    pub fn all(self) -> Result<Vec<QuestionRow>, Error> {
        self.store.read(|tx| list(tx, "", &[]))
    }

    /// Questions of one task, oldest first.
    pub fn of(self, task: TaskId) -> Result<Vec<QuestionRow>, Error> {
        self.store.read(|tx| list(tx, "WHERE task_id = ?1", &[&task.to_string()]))
    }

    /// Those that were answered, the last answer first; at most `limit`.
    pub fn recently_answered(self, limit: u32) -> Result<Vec<QuestionRow>, Error> {
        self.store.read(|tx| {
            let sql = format!(
                "SELECT * FROM questions WHERE state = '{QUESTION_ANSWERED}'
                 ORDER BY answered_at DESC, id LIMIT ?1"
            );
            let mut statement = tx.prepare_cached(&sql)?;
            let mut rows = statement.query([limit])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(question_row(tx, row)?);
            }
            Ok(found)
        })
    }

    /// The question with this id.
    pub fn get(self, id: QuestionId) -> Result<Option<QuestionRow>, Error> {
        self.store.read(|tx| find(tx, id))
    }
}

/// The question with this id.
pub(crate) fn find(tx: &Connection, id: QuestionId) -> Result<Option<QuestionRow>, Fault> {
    Ok(list(tx, "WHERE id = ?1", &[&id.to_string()])?.pop())
}

fn list(tx: &Connection, filter: &str, values: &[&str]) -> Result<Vec<QuestionRow>, Fault> {
    let sql = format!("SELECT * FROM questions {filter} ORDER BY asked_at, id");
    let mut statement = tx.prepare_cached(&sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(question_row(tx, row)?);
    }
    Ok(found)
}

fn question_row(tx: &Connection, row: &Row<'_>) -> Result<QuestionRow, Fault> {
    let of = Columns { table: "questions", row };
    let id: QuestionId = of.text("id")?;
    let body = of.json("body")?;
    let question =
        body.ok_or_else(|| Error::Malformed { table: "questions", value: id.to_string() })?;
    let state = match of.text::<QuestionStatus>("state")? {
        QuestionStatus::Open => match mailbox::waiting_answer(tx, id)? {
            Some(answer) => QuestionState::Waiting(answer),
            None => QuestionState::Open,
        },
        QuestionStatus::Answered => QuestionState::Answered(Answer {
            text: of.raw("answer")?,
            by: of.raw("answered_by")?,
            at: of.text("answered_at")?,
        }),
        QuestionStatus::Closed => QuestionState::Closed {
            reason: of.raw::<Option<String>>("closed_reason")?.unwrap_or_default(),
            at: of.optional("closed_at")?,
        },
    };
    Ok(QuestionRow { task: of.text("task_id")?, question, asked_at: of.text("asked_at")?, state })
}
