//! Schedules: rows that say what happens automatically, and when next. Not projections.

use jiff::{Timestamp, Zoned};
use rusqlite::{Connection, Row};
use windlass_core::id::{ScheduleId, TaskId};
use windlass_core::schedule::{Schedule, ScheduleState};

use crate::error::Fault;
use crate::row::{self, Columns};
use crate::words::{SCHEDULE_ACTIVE, SCHEDULE_ENDED};
use crate::{Error, Level, Store};

/// Schedules of one data directory; more is a mistake.
pub const MAX_SCHEDULES: u32 = 10_000;

/// Ended schedules that are kept for people to read, the newest.
const MAX_ENDED: u32 = 1000;

/// A schedule, its state and its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleRow {
    /// What happens, and when.
    pub schedule: Schedule,
    /// Whether it is active.
    pub state: ScheduleState,
    /// Its next run, by its own clock.
    pub next_at: Option<Zoned>,
    /// Its last run.
    pub last_at: Option<Timestamp>,
    /// Runs so far.
    pub runs: u32,
    /// Runs that were left out.
    pub missed: u32,
    /// Why it ended.
    pub ended_reason: Option<String>,
}

/// How a run moves its schedule forward.
#[derive(Clone, Debug, PartialEq)]
pub struct Advance {
    /// The run that was due; nothing happens when another process was faster.
    pub due: Option<Zoned>,
    /// The next one; `None` ends the schedule.
    pub next: Option<Zoned>,
    /// Whether it ran.
    pub ran: bool,
    /// Runs that were left out.
    pub missed: u32,
}

/// What happens automatically, and when.
#[derive(Clone, Copy)]
pub struct Schedules<'a> {
    pub(crate) store: &'a Store,
}

impl Schedules<'_> {
    /// Adds a schedule, synced.
    pub async fn add(self, schedule: Schedule, next_at: Option<Zoned>) -> Result<(), Error> {
        let schedule = self.store.secrets().clean_value(schedule);
        self.store
            .write(Level::Synced, move |tx| {
                let count: u32 = tx
                    .prepare_cached(&format!(
                        "SELECT count(*) FROM schedules WHERE state <> '{SCHEDULE_ENDED}'"
                    ))?
                    .query_row([], |row| row.get(0))?;
                if count >= MAX_SCHEDULES {
                    return Err(Error::TooManySchedules { limit: MAX_SCHEDULES }.into());
                }
                tx.prepare_cached(&format!(
                    "DELETE FROM schedules WHERE state = '{SCHEDULE_ENDED}' AND id NOT IN
                     (SELECT id FROM schedules WHERE state = '{SCHEDULE_ENDED}'
                      ORDER BY created_at DESC, id DESC LIMIT ?1)"
                ))?
                .execute([MAX_ENDED])?;
                tx.prepare_cached(&format!(
                    "INSERT INTO schedules (id, action, task_id, session_id, body, state, next_at,
                                        next_due, timeout_at, created_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, '{SCHEDULE_ACTIVE}', ?6, ?7, ?8, ?9)"
                ))?
                .execute((
                    schedule.id.to_string(),
                    schedule.action.as_str(),
                    schedule.task_id.map(|id| id.to_string()),
                    schedule.session_id.map(|id| id.to_string()),
                    row::json(&schedule),
                    next_at.as_ref().map(ToString::to_string),
                    next_due(next_at.as_ref(), schedule.timeout_at),
                    schedule.timeout_at.map(row::instant),
                    row::instant(schedule.created_at),
                ))?;
                Ok(())
            })
            .await
    }

    /// The schedule with this id.
    pub fn get(self, id: ScheduleId) -> Result<Option<ScheduleRow>, Error> {
        self.store.read(|tx| Ok(list(tx, "WHERE id = ?1", &[&id.to_string()])?.pop()))
    }

    /// All schedules, those that have ended last.
    pub fn list(self) -> Result<Vec<ScheduleRow>, Error> {
        self.store.read(|tx| {
            list(tx, &format!("ORDER BY state = '{SCHEDULE_ENDED}', created_at, id"), &[])
        })
    }

    /// The active schedules that send messages to a task.
    pub fn of(self, task: TaskId) -> Result<Vec<ScheduleRow>, Error> {
        let filter =
            &format!("WHERE task_id = ?1 AND state = '{SCHEDULE_ACTIVE}' ORDER BY created_at, id");
        self.store.read(|tx| list(tx, filter, &[&task.to_string()]))
    }

    /// Active schedules with something due at `now`, the longest due first, at most `limit`.
    pub fn due(self, now: Timestamp, limit: u32) -> Result<Vec<ScheduleRow>, Error> {
        let filter = format!(
            "WHERE state = '{SCHEDULE_ACTIVE}' AND next_due <= ?1
             ORDER BY next_due, id LIMIT {limit}"
        );
        self.store.read(|tx| list(tx, &filter, &[&row::instant(now)]))
    }

    /// When the next schedule has something to do.
    pub fn next_due(self) -> Result<Option<Timestamp>, Error> {
        self.store.read(|tx| {
            let next: Option<String> = tx
                .prepare_cached(&format!(
                    "SELECT min(next_due) FROM schedules WHERE state = '{SCHEDULE_ACTIVE}'"
                ))?
                .query_row([], |row| row.get(0))?;
            next.map(|next| row::parse("schedules", &next)).transpose()
        })
    }

    /// Moves a schedule to its next run, synced; `false` when another process did so first.
    pub async fn advance(
        self,
        id: ScheduleId,
        advance: Advance,
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.store
            .write(Level::Synced, move |tx| {
                let Some(row) = list(tx, "WHERE id = ?1", &[&id.to_string()])?.pop() else {
                    return Ok(false);
                };
                if row.state != ScheduleState::Active || row.next_at != advance.due {
                    return Ok(false);
                }
                let state = match advance.next {
                    Some(_) => ScheduleState::Active,
                    None => ScheduleState::Ended,
                };
                tx.prepare_cached(&format!(
                    "UPDATE schedules SET next_at = ?2, next_due = ?3, state = ?4, runs = runs + ?5,
                        missed = missed + ?6, last_at = iif(?5, ?7, last_at),
                        ended_reason = iif(?4 = '{SCHEDULE_ENDED}', 'its last run is over', NULL)
                 WHERE id = ?1"
                ))?
                .execute((
                    id.to_string(),
                    advance.next.as_ref().map(ToString::to_string),
                    next_due(advance.next.as_ref(), row.schedule.timeout_at),
                    state.as_str(),
                    advance.ran,
                    advance.missed,
                    row::instant(now),
                ))?;
                Ok(true)
            })
            .await
    }

    /// Pauses a schedule, or resumes it with its next run; synced. `false` when it has ended.
    pub async fn set_state(
        self,
        id: ScheduleId,
        state: ScheduleState,
        next_at: Option<Zoned>,
    ) -> Result<bool, Error> {
        self.store
            .write(Level::Synced, move |tx| {
                let timeout: Option<ScheduleRow> =
                    list(tx, "WHERE id = ?1", &[&id.to_string()])?.pop();
                let timeout = timeout.and_then(|row| row.schedule.timeout_at);
                let changed = tx
                    .prepare_cached(&format!(
                        "UPDATE schedules SET state = ?2, next_at = ?3, next_due = ?4
                     WHERE id = ?1 AND state <> '{SCHEDULE_ENDED}'"
                    ))?
                    .execute((
                        id.to_string(),
                        state.as_str(),
                        next_at.as_ref().map(ToString::to_string),
                        next_due(next_at.as_ref(), timeout),
                    ))?;
                Ok(changed == 1)
            })
            .await
    }

    /// Ends a schedule, saying why; synced.
    pub async fn end(self, id: ScheduleId, reason: &str) -> Result<bool, Error> {
        let reason = reason.to_owned();
        self.store
            .write(Level::Synced, move |tx| {
                let changed = tx
                    .prepare_cached(&format!(
                        "UPDATE schedules SET state = '{SCHEDULE_ENDED}',
                                next_at = NULL, next_due = NULL,
                            ended_reason = ?2
                     WHERE id = ?1 AND state <> '{SCHEDULE_ENDED}'"
                    ))?
                    .execute((id.to_string(), reason))?;
                Ok(changed == 1)
            })
            .await
    }
}

/// When a schedule has something to do: its next run, or its timeout.
fn next_due(next: Option<&Zoned>, timeout: Option<Timestamp>) -> Option<String> {
    next.map(Zoned::timestamp).into_iter().chain(timeout).min().map(row::instant)
}

fn list(tx: &Connection, filter: &str, values: &[&str]) -> Result<Vec<ScheduleRow>, Fault> {
    let mut statement = tx.prepare_cached(&format!("SELECT * FROM schedules {filter}"))?;
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(schedule_row(row)?);
    }
    Ok(found)
}

fn schedule_row(row: &Row<'_>) -> Result<ScheduleRow, Fault> {
    let of = Columns { table: "schedules", row };
    let missing = || -> Fault {
        Error::Malformed { table: "schedules", value: "a row without a body".to_owned() }.into()
    };
    Ok(ScheduleRow {
        schedule: of.json("body")?.ok_or_else(missing)?,
        state: of.text("state")?,
        next_at: of.optional("next_at")?,
        last_at: of.optional("last_at")?,
        runs: of.raw("runs")?,
        missed: of.raw("missed")?,
        ended_reason: of.raw("ended_reason")?,
    })
}
