//! The `events` table: appending to one stream, and reading records back.
//!
//! Invariants:
//! - `seq` counts a stream's events from 1 without gaps.
//! - A record's iteration is not stored: it is the number of model replies up to it, plus one for the
//!   request that has no reply yet.

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{Connection, Row};
use windlass_core::event::{EVENT_VERSION, Event, Record};
use windlass_core::id::TaskId;

use crate::error::Fault;
use crate::{Error, Store, projections, row};

/// The size of one event's body; far more than any tool, reply or message may have.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// The events of all tasks, as they were committed. Appending is the right of a [`Stream`](crate::Stream).
#[derive(Clone, Copy)]
pub struct Journal<'a> {
    pub(crate) store: &'a Store,
}

impl Journal<'_> {
    /// Everything in a task's journal; empty for a task that does not exist.
    pub fn of(self, task: TaskId) -> Result<Vec<Record>, Error> {
        self.store.read(|tx| of_task(tx, task, 0, usize::MAX))
    }

    /// Up to `limit` records of a task after its event `seq`.
    pub fn after(self, task: TaskId, seq: u64, limit: usize) -> Result<Vec<Record>, Error> {
        self.store.read(|tx| of_task(tx, task, seq, limit))
    }

    /// Up to `limit` records of all tasks after the cursor `pos`.
    pub fn since(self, pos: i64, limit: usize) -> Result<Vec<Record>, Error> {
        self.store.read(|tx| self::since(tx, pos, limit))
    }
}

/// Where a stream ends.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tail {
    pub(crate) seq: u64,
    pub(crate) replies: u32,
}

/// Appends one event after `tail`, updates the projections and moves `tail`. After the last event of a
/// transaction the caller calls [`update_tail`](projections::update_tail).
pub(crate) fn append(
    tx: &Connection,
    task: TaskId,
    at: Timestamp,
    event: Event,
    tail: &mut Tail,
) -> Result<Record, Fault> {
    let (kind, body) = event.parts();
    if body.len() > MAX_EVENT_BYTES {
        let (bytes, limit) = (body.len(), MAX_EVENT_BYTES);
        return Err(Error::EventTooLarge { bytes, limit }.into());
    }
    let seq = tail.seq + 1;
    tx.prepare_cached(
        "INSERT INTO events (stream, seq, at, kind, v, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute((task.to_string(), seq as i64, row::instant(at), kind, EVENT_VERSION, body))?;
    let pos = tx.last_insert_rowid();
    let iteration = count(&event, &mut tail.replies);
    tail.seq = seq;
    let record = Record { pos, task, seq, at, iteration, event };
    projections::apply(tx, &record)?;
    Ok(record)
}

/// The iteration of the next event of a stream, counting replies as it goes.
fn count(event: &Event, replies: &mut u32) -> u32 {
    match event {
        Event::LlmResponse(_) => *replies += 1,
        Event::LlmRequest(_) => return *replies + 1,
        _ => {}
    }
    *replies
}

/// The records of one task after `seq`, oldest first.
pub(crate) fn of_task(
    tx: &Connection,
    task: TaskId,
    after: u64,
    limit: usize,
) -> Result<Vec<Record>, Fault> {
    let stream = task.to_string();
    let mut replies = if after == 0 { 0 } else { replies_up_to(tx, &stream, after)? };
    let mut statement = tx.prepare_cached(
        "SELECT pos, stream, seq, at, kind, v, body FROM events
         WHERE stream = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let mut rows = statement.query((stream, whole(after), limit_of(limit)))?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let stored = Stored::read(row)?;
        records.push(stored.record(task, &mut replies)?);
    }
    Ok(records)
}

/// The records of all tasks after `pos`, oldest first.
pub(crate) fn since(tx: &Connection, pos: i64, limit: usize) -> Result<Vec<Record>, Fault> {
    let mut records = Vec::new();
    let mut replies: HashMap<TaskId, u32> = HashMap::new();
    let mut statement = tx.prepare_cached(
        "SELECT pos, stream, seq, at, kind, v, body FROM events
         WHERE pos > ?1 AND stream GLOB 'task_*' ORDER BY pos LIMIT ?2",
    )?;
    let mut rows = statement.query((pos, limit_of(limit)))?;
    while let Some(row) = rows.next()? {
        let stored = Stored::read(row)?;
        let task: TaskId = row::parse("events", &stored.stream)?;
        let replies = match replies.entry(task) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(unknown) => {
                unknown.insert(replies_up_to(tx, &stored.stream, stored.seq - 1)?)
            }
        };
        records.push(stored.record(task, replies)?);
    }
    Ok(records)
}

fn replies_up_to(tx: &Connection, stream: &str, seq: u64) -> rusqlite::Result<u32> {
    tx.prepare_cached(
        "SELECT count(*) FROM events WHERE stream = ?1 AND seq <= ?2 AND kind = 'llm_response'",
    )?
    .query_row((stream, whole(seq)), |row| row.get(0))
}

/// A row of `events` as it is stored.
struct Stored {
    pos: i64,
    stream: String,
    seq: u64,
    at: String,
    kind: String,
    version: u32,
    body: String,
}

impl Stored {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            pos: row.get(0)?,
            stream: row.get(1)?,
            seq: row.get::<_, i64>(2)?.unsigned_abs(),
            at: row.get(3)?,
            kind: row.get(4)?,
            version: row.get(5)?,
            body: row.get(6)?,
        })
    }

    fn record(self, task: TaskId, replies: &mut u32) -> Result<Record, Fault> {
        let at = row::parse("events", &self.at)?;
        let body = upcast(self.version, self.body);
        let event = Event::from_parts(&self.kind, self.version, &body)
            .map_err(|source| Error::Unreadable { pos: self.pos, source: source.into() })?;
        let iteration = count(&event, replies);
        Ok(Record { pos: self.pos, task, seq: self.seq, at, iteration, event })
    }
}

/// Brings an old body to today's shape. Version 1 is today's; the next version adds its step here.
fn upcast(_version: u32, body: String) -> String {
    body
}

fn whole(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
