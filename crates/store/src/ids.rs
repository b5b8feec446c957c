//! Finding things by a shortened id: any suffix or prefix that matches exactly one.

use std::str::FromStr;

use rusqlite::Connection;
use windlass_core::id::{CallId, CommitmentId, IssueId, QuestionId, ScheduleId, SessionId, TaskId};

use crate::error::Fault;
use crate::{Error, Store, row};

/// Candidates named when a shortened id matches several.
const CANDIDATES: usize = 10;

/// Characters of an id after its prefix.
const ID_DIGITS: usize = 26;

/// Finds things by a shortened id.
#[derive(Clone, Copy)]
pub struct Ids<'a> {
    pub(crate) store: &'a Store,
}

impl Ids<'_> {
    /// The task that `text` is the id, a unique suffix or a unique prefix of.
    pub fn task(self, text: &str) -> Result<TaskId, Error> {
        let unknown = || Error::UnknownTask(text.to_owned());
        self.store
            .read(|tx| find(tx, ("tasks", "id"), TaskId::PREFIX, text))
            .and_then(|id| id.ok_or_else(unknown))
    }

    /// The same for a question.
    pub fn question(self, text: &str) -> Result<QuestionId, Error> {
        let unknown = || Error::UnknownQuestion(text.to_owned());
        self.store
            .read(|tx| find(tx, ("questions", "id"), QuestionId::PREFIX, text))
            .and_then(|id| id.ok_or_else(unknown))
    }

    /// The same for a commitment.
    pub fn commitment(self, text: &str) -> Result<CommitmentId, Error> {
        let unknown = || Error::UnknownCommitment(text.to_owned());
        self.store
            .read(|tx| find(tx, ("commitments", "id"), CommitmentId::PREFIX, text))
            .and_then(|id| id.ok_or_else(unknown))
    }

    /// The same for a schedule.
    pub fn schedule(self, text: &str) -> Result<ScheduleId, Error> {
        let unknown = || Error::UnknownSchedule(text.to_owned());
        self.store
            .read(|tx| find(tx, ("schedules", "id"), ScheduleId::PREFIX, text))
            .and_then(|id| id.ok_or_else(unknown))
    }

    /// The same for an issue of a plan.
    pub fn issue(self, text: &str) -> Result<IssueId, Error> {
        let unknown = || Error::UnknownIssue(text.to_owned());
        self.store
            .read(|tx| find(tx, ("planning_issues", "id"), IssueId::PREFIX, text))
            .and_then(|id| id.ok_or_else(unknown))
    }

    /// The same for a session.
    pub fn session(self, text: &str) -> Result<Option<SessionId>, Error> {
        self.store.read(|tx| find(tx, ("sessions", "id"), SessionId::PREFIX, text))
    }

    /// The same for a call of which an output is kept.
    pub fn output(self, text: &str) -> Result<Option<String>, Error> {
        self.store.read(|tx| find(tx, ("spawn_logs", "command_id"), CallId::PREFIX, text))
    }
}

/// Looks in a column of a table.
fn find<T: FromStr>(
    tx: &Connection,
    (table, column): (&'static str, &'static str),
    prefix: &str,
    text: &str,
) -> Result<Option<T>, Fault> {
    let Some(digits) = digits(prefix, text) else { return Ok(None) };
    // Only letters and digits are left, so neither pattern contains a wildcard of the person's.
    let sql = format!(
        "SELECT DISTINCT {column} FROM {table} WHERE {column} GLOB ?1 OR {column} GLOB ?2
             ORDER BY {column} DESC LIMIT {}",
        CANDIDATES + 1
    );
    let patterns = (format!("*{digits}"), format!("{prefix}_{digits}*"));
    let candidates: Vec<String> = tx
        .prepare_cached(&sql)?
        .query_map(patterns, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    match candidates.as_slice() {
        [] => Ok(None),
        [one] => row::parse(table, one).map(Some),
        many => {
            let mut candidates = many.to_vec();
            if candidates.len() > CANDIDATES {
                candidates[CANDIDATES] = "…".to_owned();
            }
            Err(Error::Ambiguous { text: text.to_owned(), candidates }.into())
        }
    }
}

/// The digits of a whole or shortened id, as they are stored; `None` when it cannot be one.
fn digits(prefix: &str, text: &str) -> Option<String> {
    let text = text.trim().to_ascii_uppercase();
    let digits = match text.split_once('_') {
        Some((kind, digits)) if kind.eq_ignore_ascii_case(prefix) => digits,
        Some(_) => return None,
        None => &text,
    };
    let sane = (1..=ID_DIGITS).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let normalized = |letter| match letter {
        'I' | 'L' => '1',
        'O' => '0',
        other => other,
    };
    sane.then(|| digits.chars().map(normalized).collect())
}
