//! Rows of the embedded bus: streams that one group reads, and the control flags of tasks.
//!
//! Invariant: an entry is given to one consumer at a time; one that was not acknowledged can be claimed by
//! another.

use jiff::Timestamp;
use rusqlite::{Connection, Row};
use windlass_core::id::TaskId;

use crate::error::Fault;
use crate::{Error, Level, Outgoing, Store, row};

/// The length of a stream is checked after this many entries, because the check is not free.
const TRIM_EVERY: i64 = 256;

/// Entries of one stream that may wait; if more come, nobody reads it.
pub const MAX_WAITING_ENTRIES: usize = 10_000;

/// One entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusEntry {
    /// Its place; later entries have larger ones.
    pub id: i64,
    /// The stream that it is in.
    pub stream: String,
    /// The same for every repetition of it.
    pub key: Option<String>,
    /// What it says.
    pub body: String,
}

/// Who reads which streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusRead {
    /// The streams that are read.
    pub streams: Vec<String>,
    /// The consumer that entries are given to.
    pub consumer: String,
    /// How many entries are read at most.
    pub limit: usize,
}

/// The streams and control flags of the embedded bus.
#[derive(Clone, Copy)]
pub struct Bus<'a> {
    pub(crate) store: &'a Store,
}

impl Bus<'_> {
    /// Adds an entry to a stream, synced; one whose key the stream already has is dropped, and a full stream refuses more.
    pub async fn submit(
        self,
        stream: &str,
        key: Option<String>,
        body: String,
        at: Timestamp,
    ) -> Result<(), Error> {
        let stream = stream.to_owned();
        self.store
            .write(Level::Synced, move |tx| {
                check_room(tx, &stream, key.as_deref())?;
                add(tx, &stream, key.as_deref(), &body, at)
            })
            .await
    }

    /// Moves messages from the outbox into their streams, where about the newest `keep` of each stay.
    pub async fn publish(
        self,
        messages: Vec<Outgoing>,
        keep: usize,
        at: Timestamp,
    ) -> Result<(), Error> {
        self.store
            .write(Level::Synced, move |tx| {
                for message in &messages {
                    add(tx, message.stream.as_str(), Some(&message.key), &message.body, at)?;
                    if tx.last_insert_rowid() % TRIM_EVERY == 0 {
                        trim(tx, message.stream.as_str(), keep)?;
                    }
                }
                Ok(())
            })
            .await
    }

    /// Whether a stream has entries that no consumer has.
    pub fn has_new(self, streams: &[String]) -> Result<bool, Error> {
        self.store.read(|tx| {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM bus_entries
                 WHERE stream IN ({}) AND consumer IS NULL)",
                places(streams.len())
            );
            let values = rusqlite::params_from_iter(streams);
            Ok(tx.prepare_cached(&sql)?.query_row(values, |row| row.get(0))?)
        })
    }

    /// Gives entries that no consumer has to one, oldest first.
    pub async fn take(self, read: BusRead, at: Timestamp) -> Result<Vec<BusEntry>, Error> {
        self.store
            .write(Level::Written, move |tx| assign(tx, &read, "consumer IS NULL", None, at))
            .await
    }

    /// Gives entries to a consumer that another took before `since` and did not acknowledge.
    pub async fn claim(
        self,
        read: BusRead,
        since: Timestamp,
        at: Timestamp,
    ) -> Result<Vec<BusEntry>, Error> {
        let idle = "consumer IS NOT NULL AND taken_at <= ?";
        self.store.write(Level::Written, move |tx| assign(tx, &read, idle, Some(since), at)).await
    }

    /// Removes an entry that was dealt with.
    pub async fn acknowledge(self, id: i64) -> Result<(), Error> {
        self.store
            .write(Level::Written, move |tx| {
                tx.prepare_cached("DELETE FROM bus_entries WHERE id = ?1")?.execute([id])?;
                Ok(())
            })
            .await
    }

    /// Up to `limit` entries of a stream after `id`, whoever has them.
    pub fn read(self, stream: &str, id: i64, limit: usize) -> Result<Vec<BusEntry>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT id, stream, key, body FROM bus_entries
                 WHERE stream = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            )?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map((stream, id, limit), entry)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// The control flags of all tasks that have one.
    pub fn flags(self) -> Result<Vec<(TaskId, String)>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached("SELECT task_id, flag FROM task_flags")?;
            let mut rows = statement.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push((row::parse("task_flags", &row.get::<_, String>(0)?)?, row.get(1)?));
            }
            Ok(found)
        })
    }

    /// Sets a task's control flag, synced, or removes it.
    pub async fn set_flag(self, task: TaskId, flag: Option<String>) -> Result<(), Error> {
        self.store
            .write(Level::Synced, move |tx| {
                match flag {
                    Some(flag) => tx
                        .prepare_cached(
                            "INSERT OR REPLACE INTO task_flags (task_id, flag) VALUES (?1, ?2)",
                        )?
                        .execute((task.to_string(), flag))?,
                    None => tx
                        .prepare_cached("DELETE FROM task_flags WHERE task_id = ?1")?
                        .execute([task.to_string()])?,
                };
                Ok(())
            })
            .await
    }
}

fn assign(
    tx: &Connection,
    read: &BusRead,
    condition: &str,
    since: Option<Timestamp>,
    at: Timestamp,
) -> Result<Vec<BusEntry>, Fault> {
    let sql = format!(
        "UPDATE bus_entries SET consumer = ?, taken_at = ? WHERE id IN (
             SELECT id FROM bus_entries
             WHERE stream IN ({}) AND {condition} ORDER BY id LIMIT {}
         ) RETURNING id, stream, key, body",
        places(read.streams.len()),
        read.limit,
    );
    let values = [read.consumer.clone(), row::instant(at)].into_iter();
    let values = values.chain(read.streams.iter().cloned()).chain(since.map(row::instant));
    let mut statement = tx.prepare_cached(&sql)?;
    let rows = statement.query_map(rusqlite::params_from_iter(values), entry)?;
    let mut entries = rows.collect::<Result<Vec<_>, _>>()?;
    // `RETURNING` promises no order.
    entries.sort_by_key(|entry| entry.id);
    Ok(entries)
}

fn check_room(tx: &Connection, stream: &str, key: Option<&str>) -> Result<(), Fault> {
    let limit = MAX_WAITING_ENTRIES;
    let full: bool = tx
        .prepare_cached(
            // The span of ids mostly answers it at no cost; ids are not used twice.
            "SELECT CASE WHEN (SELECT max(id) FROM bus_entries WHERE stream = ?1)
                     - (SELECT min(id) FROM bus_entries WHERE stream = ?1) < ?2 THEN 0
                 ELSE EXISTS (SELECT 1 FROM bus_entries WHERE stream = ?1 LIMIT 1 OFFSET ?2)
                     AND NOT EXISTS (SELECT 1 FROM bus_entries WHERE stream = ?1 AND key = ?3)
                 END",
        )?
        .query_row((stream, i64::try_from(limit - 1).unwrap_or(i64::MAX), key), |row| row.get(0))?;
    match full {
        true => Err(Error::StreamFull { stream: stream.to_owned(), limit }.into()),
        false => Ok(()),
    }
}

fn add(
    tx: &Connection,
    stream: &str,
    key: Option<&str>,
    body: &str,
    at: Timestamp,
) -> Result<(), Fault> {
    tx.prepare_cached(
        "INSERT INTO bus_entries (stream, key, body, at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (stream, key) DO NOTHING",
    )?
    .execute((stream, key, body, row::instant(at)))?;
    Ok(())
}

fn entry(row: &Row<'_>) -> rusqlite::Result<BusEntry> {
    Ok(BusEntry { id: row.get(0)?, stream: row.get(1)?, key: row.get(2)?, body: row.get(3)? })
}

fn trim(tx: &Connection, stream: &str, keep: usize) -> Result<(), Fault> {
    let keep = i64::try_from(keep).unwrap_or(i64::MAX);
    tx.prepare_cached(
        "DELETE FROM bus_entries WHERE stream = ?1 AND id <= (
             SELECT id FROM bus_entries WHERE stream = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
    )?
    .execute((stream, keep))?;
    Ok(())
}

fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}
