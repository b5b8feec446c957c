//! Where a long list is continued, as answers and addresses have it: a moment and an id.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use windlass_coordinator::outputs::CallOutput;
use windlass_coordinator::views::{ListPlace, ScheduleRow, SessionPlace, SessionRow, TaskRow};
use windlass_coordinator::workflows::RunRow;
use windlass_coordinator::{CommitmentPlace, CommitmentRow};
use windlass_core::id::{CallId, ScheduleId};

use crate::problem::Problem;

/// A place in a list that can be written down.
pub trait Place: Sized {
    /// The place of this text; `None` for one that no list gave.
    fn read(text: &str) -> Option<Self>;
}

impl Place for ListPlace {
    fn read(text: &str) -> Option<Self> {
        read(text).map(|(created_at, id)| Self { created_at, id })
    }
}

impl Place for SessionPlace {
    fn read(text: &str) -> Option<Self> {
        read(text).map(|(updated_at, id)| Self { updated_at, id })
    }
}

impl Place for CommitmentPlace {
    fn read(text: &str) -> Option<Self> {
        read(text).map(|(created_at, id)| Self { created_at, id })
    }
}

/// Where a list of schedules is continued, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchedulePlace {
    created_at: Timestamp,
    id: ScheduleId,
}

impl SchedulePlace {
    pub fn of(row: &ScheduleRow) -> Self {
        Self { created_at: row.schedule.created_at, id: row.schedule.id }
    }
}

impl Place for SchedulePlace {
    fn read(text: &str) -> Option<Self> {
        read(text).map(|(created_at, id)| Self { created_at, id })
    }
}

/// Where a list of calls is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPlace(pub CallId);

impl Place for CallPlace {
    fn read(text: &str) -> Option<Self> {
        read(text).map(|(_, id)| Self(id))
    }
}

fn read<I: FromStr>(text: &str) -> Option<(Timestamp, I)> {
    let (at, id) = text.split_once('~')?;
    Some((at.parse().ok()?, id.parse().ok()?))
}

/// The place of a cursor that a request brings.
pub fn of_cursor<P: Place>(cursor: Option<&str>) -> Result<Option<P>, Problem> {
    let refused = || Problem::bad_request("`cursor` is not the `next` of an answer");
    cursor.map(|text| P::read(text).ok_or_else(refused)).transpose()
}

fn write(at: Timestamp, id: &dyn Display) -> String {
    format!("{at}~{id}")
}

/// The place after a task.
pub fn after_task(row: &TaskRow) -> String {
    write(row.created_at, &row.id)
}

/// The place after a session.
pub fn after_session(row: &SessionRow) -> String {
    write(row.updated_at, &row.id)
}

/// The place after a run.
pub fn after_run(row: &RunRow) -> String {
    write(row.created_at, &row.run)
}

/// The place after a commitment.
pub fn after_commitment(row: &CommitmentRow) -> String {
    write(row.created_at, &row.id)
}

/// The place after a schedule.
pub fn after_schedule(row: &ScheduleRow) -> String {
    write(row.schedule.created_at, &row.schedule.id)
}

/// The place after a call.
pub fn after_call(output: &CallOutput) -> String {
    write(output.at, &output.call.call)
}

/// Entries in one answer, when the request does not say.
const USUAL_LIMIT: usize = 50;

/// Entries in one answer at most.
const MAX_LIMIT: usize = 200;

/// How many entries a request wants.
pub fn limit_of(limit: Option<usize>) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(USUAL_LIMIT);
    match (1..=MAX_LIMIT).contains(&limit) {
        true => Ok(limit),
        false => Err(Problem::bad_request(format!("`limit` is from 1 to {MAX_LIMIT}"))),
    }
}

/// Cuts what was read to a page, and returns the cursor to continue with. One more row than `limit` was asked for, to
/// know whether there are more.
pub fn cut<R>(rows: &mut Vec<R>, limit: usize, after: impl Fn(&R) -> String) -> Option<String> {
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    rows.last().filter(|_| has_more).map(after)
}
