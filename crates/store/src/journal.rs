//! The table `journal`: appending to one stream, and reading records back through the view `events`, which has the
//! names of streams.
//!
//! Invariants:
//! - `seq` counts a stream's events from 1 without gaps.
//! - A record's iteration is not stored: it is the number of model replies up to it, plus one for the
//!   request that has no reply yet.
//! - What does not match its checksum is refused by its name, never read (§15.27).

pub(crate) mod chain;
mod readable;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};
use windlass_core::event::{EVENT_VERSION, Event, Record, TaskCreated};
use windlass_core::id::{SessionId, TaskId};

use crate::error::Fault;
use crate::{Error, Store, contents, projections};
use chain::{COLUMNS, Chain, Hash, StoredRow, StoredTime};
pub use readable::{Damage, JournalEntry};

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
        self.store.read(|tx| all_records(tx, task))
    }

    /// What a task was created with, read from its first event alone; `None` for a task that does not exist.
    pub fn created(self, task: TaskId) -> Result<Option<TaskCreated>, Error> {
        let first = self.after(task, 0, 1)?;
        Ok(first.first().and_then(|record| record.event.created()).cloned())
    }

    /// Up to `limit` records of a task after its event `seq`. Where there are none, the journal must end there.
    pub fn after(self, task: TaskId, seq: u64, limit: usize) -> Result<Vec<Record>, Error> {
        self.store.read(|tx| {
            let records = of_task(tx, task, seq, limit)?;
            if records.is_empty() {
                check_end(tx, task)?;
            }
            Ok(records)
        })
    }

    /// Up to `limit` records of a task from where a follower is, and moves it past them. It ends as in
    /// [`after`](Self::after).
    pub fn read_on(self, bookmark: &mut Bookmark, limit: usize) -> Result<Vec<Record>, Error> {
        self.store.read(|tx| {
            let (task, mut reading) = (bookmark.task, bookmark.cursor(tx)?);
            let records = next_of_task(tx, task, &mut reading, limit)?;
            if records.is_empty() {
                check_end(tx, task)?;
            }
            bookmark.reading = Some(reading);
            Ok(records)
        })
    }

    /// Up to `limit` events of a task after its event `seq`, as far as they can be read. Where some cannot, that is
    /// named in their place. None are returned only at the end.
    pub fn readable(
        self,
        task: TaskId,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, Error> {
        self.store.read(|tx| readable::readable(tx, task, seq, limit))
    }

    /// Up to `limit` records of all tasks after the cursor `pos`. They end before a damaged event; when it is the
    /// next, the error has its position.
    pub fn since(self, pos: i64, limit: usize) -> Result<Vec<Record>, Error> {
        self.since_in(Scope::All, pos, limit)
    }

    /// The same of some tasks only.
    pub fn since_in(self, scope: Scope, pos: i64, limit: usize) -> Result<Vec<Record>, Error> {
        self.store.read(|tx| self::since(tx, scope, pos, limit, &mut StreamCursors::default()))
    }

    /// The same as [`since`](Self::since), for a follower that keeps how far each stream was read.
    pub fn follow(
        self,
        pos: i64,
        limit: usize,
        known: &mut StreamCursors,
    ) -> Result<Vec<Record>, Error> {
        known.forget_many();
        let found = self.store.read(|tx| self::since(tx, Scope::All, pos, limit, known));
        if found.is_err() {
            // The next event of a damaged stream is checked against the one that is damaged.
            *known = StreamCursors::default();
        }
        found
    }

    /// What up to `limit` events of these kinds say, of all tasks after the cursor `pos`, and where each is. As in
    /// [`since`](Self::since), they end before a damaged event.
    pub fn since_of_kinds(
        self,
        kinds: &[&'static str],
        pos: i64,
        limit: usize,
    ) -> Result<Vec<(i64, Event)>, Error> {
        self.store.read(|tx| self::since_of_kinds(tx, kinds, pos, limit))
    }

    /// The cursor of the newest event.
    pub fn end(self) -> Result<i64, Error> {
        self.store.read(|tx| Ok(next_pos(tx)? - 1))
    }
}

/// Whose events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Of every task.
    All,
    /// Of one task, without the agents below it.
    Task(TaskId),
    /// Of the tree that has this root.
    Tree(TaskId),
    /// Of every task of a session.
    Session(SessionId),
}

impl Scope {
    /// Which rows these are, and the value of the third parameter. The positions are found in an index alone, so
    /// that a page of a long journal costs its own rows and not all of them.
    fn condition(self) -> (&'static str, String) {
        match self {
            Self::All => ("pos > ?1 AND +stream GLOB 'task_*' AND ?3 = ''", String::new()),
            Self::Task(task) => (
                "pos IN (SELECT pos FROM events WHERE stream = ?3 AND +pos > ?1
                     ORDER BY +pos LIMIT ?2)",
                task.to_string(),
            ),
            Self::Tree(root) => (
                "pos IN (SELECT pos FROM events
                     WHERE stream IN (SELECT id FROM tasks WHERE root_id = ?3) AND +pos > ?1
                     ORDER BY +pos LIMIT ?2)",
                root.to_string(),
            ),
            Self::Session(session) => (
                "pos IN (SELECT pos FROM events
                     WHERE stream IN (SELECT id FROM tasks WHERE session_id = ?3) AND +pos > ?1
                     ORDER BY +pos LIMIT ?2)",
                session.to_string(),
            ),
        }
    }
}

/// Where a stream ends.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tail {
    pub(crate) seq: u64,
    pub(crate) replies: u32,
    pub(crate) hash: Option<Hash>,
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
    let content = split(tx, &event)?;
    let mut chain = Chain { seq: tail.seq, hash: tail.hash };
    let pos = append_row(tx, task.to_string(), at, content, &mut chain)?;
    let iteration = count(&event, &mut tail.replies);
    (tail.seq, tail.hash) = (chain.seq, chain.hash);
    let record = Record { pos, task, seq: chain.seq, at, iteration, event };
    projections::apply(tx, &record)?;
    Ok(record)
}

/// What goes into the row of an event.
pub(crate) struct Content {
    pub(crate) kind: &'static str,
    pub(crate) body: String,
    /// The hash of what is kept elsewhere.
    pub(crate) hash: Option<Hash>,
}

/// Inserts the next row of a stream and moves its chain; returns its position.
pub(crate) fn append_row(
    tx: &Connection,
    stream: String,
    at: Timestamp,
    content: Content,
    chain: &mut Chain,
) -> Result<i64, Fault> {
    let Content { kind, body, hash } = content;
    if body.len() > MAX_EVENT_BYTES {
        let (bytes, limit) = (body.len(), MAX_EVENT_BYTES);
        return Err(Error::EventTooLarge { bytes, limit }.into());
    }
    let stored = StoredRow {
        pos: next_pos(tx)?,
        stream: stream.into_bytes(),
        seq: chain.seq + 1,
        at: StoredTime::of(at),
        kind: kind.as_bytes().to_vec(),
        version: EVENT_VERSION.into(),
        body: body.into_bytes(),
        content: hash,
        hash: None,
    };
    let checksum = stored.checksum(chain.hash);
    insert(tx, &stored, checksum)?;
    *chain = Chain { seq: stored.seq, hash: Some(checksum) };
    Ok(stored.pos)
}

/// Splits an event into its row and what is kept once for many.
fn split(tx: &Connection, event: &Event) -> Result<Content, Fault> {
    let (hash, rest) = match event {
        Event::AgentStart(start) if start.prelude.is_some() => {
            let kept = start.prelude.as_ref().map(|prelude| contents::keep(tx, prelude));
            let rest = windlass_core::event::AgentStart { prelude: None, ..(**start).clone() };
            (kept.transpose()?, Some(Event::AgentStart(Box::new(rest))))
        }
        Event::PromptChanged(changed) if changed.prelude.is_some() => {
            let kept = changed.prelude.as_ref().map(|prelude| contents::keep(tx, prelude));
            let rest = windlass_core::event::PromptChanged { prelude: None, ..(**changed).clone() };
            (kept.transpose()?, Some(Event::PromptChanged(Box::new(rest))))
        }
        _ => (None, None),
    };
    let (kind, body) = rest.as_ref().unwrap_or(event).parts();
    Ok(Content { kind, body, hash })
}

fn insert(tx: &Connection, stored: &StoredRow, hash: Hash) -> Result<(), Fault> {
    // Our own texts are UTF-8.
    let text = |bytes: &[u8]| Value::Text(String::from_utf8_lossy(bytes).into());
    tx.prepare_cached(
        "INSERT INTO journal (pos, stream, seq, at, kind, v, body, content, hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute((
        stored.pos,
        stream_number(tx, &stored.stream)?,
        to_sql_integer(stored.seq),
        &stored.at,
        text(&stored.kind),
        stored.version,
        text(&stored.body),
        stored.content,
        hash,
    ))?;
    Ok(())
}

/// The number that stands for a stream in its rows; a new stream gets one.
fn stream_number(tx: &Connection, name: &[u8]) -> Result<i64, Fault> {
    let name = String::from_utf8_lossy(name);
    let known = tx
        .prepare_cached("SELECT id FROM streams WHERE name = ?1")?
        .query_row([&name], |row| row.get(0))
        .optional()?;
    match known {
        Some(number) => Ok(number),
        None => Ok(tx
            .prepare_cached("INSERT INTO streams (name) VALUES (?1) RETURNING id")?
            .query_row([&name], |row| row.get(0))?),
    }
}

/// The position of the next event, which its checksum covers; as SQLite would choose it.
fn next_pos(tx: &Connection) -> Result<i64, Fault> {
    let last: Option<i64> = tx
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'journal'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(last.unwrap_or(0) + 1)
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
    let mut reading = StreamCursor::after(tx, &task.to_string(), after)?;
    next_of_task(tx, task, &mut reading, limit)
}

/// The records of one task from where it was read to, oldest first.
fn next_of_task(
    tx: &Connection,
    task: TaskId,
    reading: &mut StreamCursor,
    limit: usize,
) -> Result<Vec<Record>, Fault> {
    let after = to_sql_integer(reading.chain.seq);
    let sql = format!(
        "SELECT {COLUMNS} FROM events WHERE stream = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
    );
    let mut statement = tx.prepare_cached(&sql)?;
    let mut rows = statement.query((task.to_string(), after, limit_of(limit)))?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(reading.record(tx, task, StoredRow::read(row)?)?);
    }
    Ok(records)
}

/// Everything in a task's journal.
pub(crate) fn all_records(tx: &Connection, task: TaskId) -> Result<Vec<Record>, Fault> {
    let records = of_task(tx, task, 0, usize::MAX)?;
    check_end(tx, task)?;
    Ok(records)
}

/// A task's row says how many events there are and what the last checksum is: the last events may be gone, or all
/// checksums.
fn kept_end(tx: &Connection, stream: &str) -> Result<Option<(u64, Option<Hash>)>, Fault> {
    let kept: Option<(i64, Option<Hash>)> = tx
        .prepare_cached("SELECT last_seq, last_hash FROM tasks WHERE id = ?1")?
        .query_row([stream], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(kept.map(|(seq, hash)| (seq.unsigned_abs(), hash)))
}

/// Whether a journal ends where its task's row says.
fn check_end(tx: &Connection, task: TaskId) -> Result<(), Fault> {
    let stream = task.to_string();
    let Some((kept, hash)) = kept_end(tx, &stream)? else { return Ok(()) };
    let last: Option<(i64, i64)> = tx
        .prepare_cached("SELECT seq, pos FROM events WHERE stream = ?1 ORDER BY seq DESC LIMIT 1")?
        .query_row([&stream], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (seq, pos) = last.map_or((0, 0), |(seq, pos)| (seq.unsigned_abs(), pos));
    if kept > seq {
        return Err(chain::damaged(stream.as_bytes(), seq + 1, 0, "it is missing"));
    }
    let is_bare = hash.is_some() && kept == seq && hash_at(tx, &stream, seq)?.is_none();
    match is_bare {
        true => Err(chain::damaged(stream.as_bytes(), seq, pos, "it has no checksum")),
        false => Ok(()),
    }
}

/// The records of tasks after `pos`, oldest first.
pub(crate) fn since(
    tx: &Connection,
    scope: Scope,
    pos: i64,
    limit: usize,
    known: &mut StreamCursors,
) -> Result<Vec<Record>, Fault> {
    let mut records = Vec::new();
    let (condition, of) = scope.condition();
    let sql = format!("SELECT {COLUMNS} FROM events WHERE {condition} ORDER BY pos LIMIT ?2");
    let mut statement = tx.prepare_cached(&sql)?;
    let mut rows = statement.query((pos, limit_of(limit), of))?;
    while let Some(row) = rows.next()? {
        let stored = StoredRow::read(row)?;
        let next = next_of_all(tx, known, stored);
        match next {
            Ok(record) => records.push(record),
            Err(Fault::Store(Error::DamagedEvent { .. })) if !records.is_empty() => break,
            Err(fault) => return Err(fault),
        }
    }
    Ok(records)
}

fn since_of_kinds(
    tx: &Connection,
    kinds: &[&'static str],
    pos: i64,
    limit: usize,
) -> Result<Vec<(i64, Event)>, Fault> {
    let kinds = kinds.iter().map(|kind| format!("'{kind}'")).collect::<Vec<_>>().join(", ");
    let sql = format!(
        "SELECT {COLUMNS} FROM events
         WHERE pos > ?1 AND kind IN ({kinds}) AND +stream GLOB 'task_*' ORDER BY pos LIMIT ?2"
    );
    let mut statement = tx.prepare_cached(&sql)?;
    let mut rows = statement.query((pos, limit_of(limit)))?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let stored = StoredRow::read(row)?;
        let pos = stored.pos;
        match verify_row(tx, stored) {
            Ok(record) => events.push((pos, record.event)),
            Err(Fault::Store(Error::DamagedEvent { .. })) if !events.is_empty() => break,
            Err(fault) => return Err(fault),
        }
    }
    Ok(events)
}

/// A row by itself, checked against the one before it in its stream.
fn verify_row(tx: &Connection, stored: StoredRow) -> Result<Record, Fault> {
    let Some(task) = stored.task() else { return Err(stored.damaged(UNREADABLE)) };
    let before = stored.seq.saturating_sub(1);
    let mut chain = Chain { seq: before, hash: hash_at(tx, &task.to_string(), before)? };
    chain.follow(&stored)?;
    stored.record(tx, task)
}

fn next_of_all(
    tx: &Connection,
    known: &mut StreamCursors,
    stored: StoredRow,
) -> Result<Record, Fault> {
    let Some(task) = stored.task() else { return Err(stored.damaged(UNREADABLE)) };
    let reading = match known.0.entry(task) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(unknown) => unknown.insert(StreamCursor::after(
            tx,
            &task.to_string(),
            stored.seq.saturating_sub(1),
        )?),
    };
    reading.record(tx, task, stored)
}

/// Where a follower is in one task's journal. It keeps what the next events are checked against: reading on costs what
/// is new, however long the journal is.
#[derive(Clone, Debug)]
pub struct Bookmark {
    task: TaskId,
    after: u64,
    reading: Option<StreamCursor>,
}

impl Bookmark {
    /// After the event `seq`; 0 is the beginning.
    pub fn after(task: TaskId, seq: u64) -> Self {
        Self { task, after: seq, reading: None }
    }

    /// Whose journal it is in.
    pub fn task(&self) -> TaskId {
        self.task
    }

    fn cursor(&self, tx: &Connection) -> Result<StreamCursor, Fault> {
        match &self.reading {
            Some(reading) => Ok(reading.clone()),
            None => StreamCursor::after(tx, &self.task.to_string(), self.after),
        }
    }
}

/// How many streams a follower of all keeps its place in.
const MAX_STREAMS: usize = 4096;

/// How far a follower of all tasks has read each stream.
#[derive(Debug, Default)]
pub struct StreamCursors(HashMap<TaskId, StreamCursor>);

impl StreamCursors {
    /// Those of tasks that are still at work come back with their next event.
    fn forget_many(&mut self) {
        if self.0.len() > MAX_STREAMS {
            self.0.clear();
        }
    }
}

/// Where one stream is being read.
#[derive(Clone, Debug)]
struct StreamCursor {
    chain: Chain,
    replies: u32,
}

impl StreamCursor {
    fn after(tx: &Connection, stream: &str, seq: u64) -> Result<Self, Fault> {
        if seq == 0 {
            return Ok(Self { chain: Chain::default(), replies: 0 });
        }
        let chain = Chain { seq, hash: hash_at(tx, stream, seq)? };
        Ok(Self { chain, replies: replies_up_to(tx, stream, seq)? })
    }

    fn record(
        &mut self,
        tx: &Connection,
        task: TaskId,
        stored: StoredRow,
    ) -> Result<Record, Fault> {
        self.chain.follow(&stored)?;
        let mut record = stored.record(tx, task)?;
        record.iteration = count(&record.event, &mut self.replies);
        Ok(record)
    }
}

/// The checksum of an event, where it has one.
fn hash_at(tx: &Connection, stream: &str, seq: u64) -> Result<Option<Hash>, Fault> {
    let hash: Option<Option<Hash>> = tx
        .prepare_cached("SELECT hash FROM events WHERE stream = ?1 AND seq = ?2")?
        .query_row((stream, to_sql_integer(seq)), |row| row.get(0))
        .optional()?;
    Ok(hash.flatten())
}

fn replies_up_to(tx: &Connection, stream: &str, seq: u64) -> rusqlite::Result<u32> {
    tx.prepare_cached(
        "SELECT count(*) FROM events WHERE stream = ?1 AND seq <= ?2 AND kind = 'llm_response'",
    )?
    .query_row((stream, to_sql_integer(seq)), |row| row.get(0))
}

pub(crate) const UNREADABLE: &str = "it cannot be read";

impl StoredRow {
    /// The task whose stream it belongs to.
    pub(crate) fn task(&self) -> Option<TaskId> {
        std::str::from_utf8(&self.stream).ok()?.parse().ok()
    }

    /// The session whose stream it belongs to.
    pub(crate) fn session(&self) -> Option<SessionId> {
        std::str::from_utf8(&self.stream).ok()?.parse().ok()
    }

    /// What it says. Its iteration is not known here.
    pub(crate) fn record(mut self, tx: &Connection, task: TaskId) -> Result<Record, Fault> {
        let body = String::from_utf8(std::mem::take(&mut self.body));
        let body = body.map_err(|_| self.damaged(UNREADABLE))?;
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned).ok();
        let (Some(at), Some(kind)) = (self.at.instant(), text(&self.kind)) else {
            return Err(self.damaged(UNREADABLE));
        };
        let body = match self.content {
            Some(content) => contents::expand(tx, &self, body, content)?,
            None => body,
        };
        let version = u32::try_from(self.version).unwrap_or(u32::MAX);
        let event = Event::from_parts(&kind, version, &upcast(version, body))
            .map_err(|source| Error::Unreadable { pos: self.pos, source: source.into() })?;
        Ok(Record { pos: self.pos, task, seq: self.seq, at, iteration: 0, event })
    }
}

/// Brings an old body to today's shape. Version 1 is today's; the next version adds its step here.
fn upcast(_version: u32, body: String) -> String {
    body
}

fn to_sql_integer(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
