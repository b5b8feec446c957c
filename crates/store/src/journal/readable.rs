//! A task's journal as far as it can be read: damage is named where it stands, and does not hide what follows.
//!
//! It is for people who look at a task. What continues a task reads the journal strictly: it would continue from a
//! state that is not the true one.

use rusqlite::Connection;
use windlass_core::event::Record;
use windlass_core::id::TaskId;

use super::chain::{COLUMNS, Chain, StoredRow};
use super::{StreamCursor, UNREADABLE, hash_at, kept_end, limit_of, to_sql_integer};
use crate::Error;
use crate::error::Fault;

const MISSING: &str = "it is missing";
const NO_CHECKSUM: &str = "it has no checksum";

/// One event of a journal, or the place of some that cannot be read.
#[derive(Clone, Debug)]
pub enum JournalEntry {
    /// An event that matches its checksum.
    Event(Box<Record>),
    /// In its place there is only this.
    Damaged(Damage),
}

impl JournalEntry {
    /// The event, where it can be read.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Event(record) => Some(record),
            Self::Damaged(_) => None,
        }
    }

    /// The same, without a copy.
    pub fn into_record(self) -> Option<Record> {
        match self {
            Self::Event(record) => Some(*record),
            Self::Damaged(_) => None,
        }
    }

    /// Its place among the events of its task; of several that are missing the last one's.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Event(record) => record.seq,
            Self::Damaged(damage) => damage.last,
        }
    }
}

/// Events that cannot be read: one, or several in a row that are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub task: TaskId,
    /// Their places among the events of the task.
    pub first: u64,
    pub last: u64,
    pub problem: &'static str,
}

/// Up to `limit` rows of one task after `seq`, oldest first, and what is wrong between them and at the end.
pub(super) fn readable(
    tx: &Connection,
    task: TaskId,
    after: u64,
    limit: usize,
) -> Result<Vec<JournalEntry>, Fault> {
    let stream = task.to_string();
    let mut cursor = StreamCursor::after(tx, &stream, after)?;
    let sql = format!(
        "SELECT {COLUMNS} FROM events WHERE stream = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
    );
    let mut statement = tx.prepare_cached(&sql)?;
    let mut rows = statement.query((&stream, to_sql_integer(after), limit_of(limit)))?;
    let (mut entries, mut count) = (Vec::new(), 0);
    let damaged =
        |first, last, problem| JournalEntry::Damaged(Damage { task, first, last, problem });
    while let Some(row) = rows.next()? {
        count += 1;
        let stored = StoredRow::read(row)?;
        let (before, seq) = (cursor.chain.seq, stored.seq);
        if seq > before + 1 {
            entries.push(damaged(before + 1, seq - 1, MISSING));
            cursor.chain = Chain { seq: seq - 1, hash: None };
        }
        let here = Chain { seq, hash: stored.hash };
        // It is still a reply, by which rounds are counted.
        let replies = cursor.replies + u32::from(stored.kind == b"llm_response");
        match cursor.record(tx, task, stored) {
            Ok(record) => entries.push(JournalEntry::Event(Box::new(record))),
            Err(Fault::Store(Error::DamagedEvent { problem, .. })) => {
                entries.push(damaged(seq, seq, problem));
            }
            Err(Fault::Store(Error::Unreadable { .. })) => {
                entries.push(damaged(seq, seq, UNREADABLE));
            }
            Err(fault) => return Err(fault),
        }
        (cursor.chain, cursor.replies) = (here, replies);
    }
    if let Some((kept, hash)) = kept_end(tx, &stream)? {
        let last = cursor.chain.seq;
        let is_bare = || Ok::<_, Fault>(hash.is_some() && hash_at(tx, &stream, last)?.is_none());
        if kept > last && count < limit {
            entries.push(damaged(last + 1, kept, MISSING));
        } else if kept == last && count > 0 && is_bare()? {
            entries.pop();
            entries.push(damaged(last, last, NO_CHECKSUM));
        }
    }
    Ok(entries)
}
