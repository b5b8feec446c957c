//! Rebuilding projections from the journal.
//!
//! Only tables that are a fold of the journal are touched ([`projections::TABLES`]). The mailbox, the outbox,
//! runtime rows, outputs, memories and who owns what are not, and stay (§15.2).

use std::collections::HashMap;

use rusqlite::Connection;
use windlass_core::id::{CommitmentId, EvidenceId, SessionId};

use crate::error::Fault;
use crate::journal::chain::{COLUMNS, Chain, StoredRow, StoredTime, damaged, short};
use crate::{Error, Level, Store, projections, ready_index};

/// The tables that are folds of the journal.
#[derive(Clone, Copy)]
pub struct Projections<'a> {
    pub(crate) store: &'a Store,
}

impl Projections<'_> {
    /// Empties the projections and replays the whole journal into them, in one transaction. Returns
    /// how many events that were. An event that is damaged or gone stops it, and nothing is changed: a table made from
    /// what is left would hide that, and what was done already would be done again.
    pub async fn rebuild(self) -> Result<u64, Error> {
        self.store
            .write(Level::Synced, |tx| {
                // Rows that stay refer to rows that come back.
                tx.pragma_update(None, "defer_foreign_keys", true)?;
                if let Some(fault) = cut_streams(tx)?.into_iter().next() {
                    return Err(fault);
                }
                let epochs = epochs(tx)?;
                for table in projections::TABLES.iter().rev() {
                    tx.execute(&format!("DELETE FROM {table}"), [])?;
                }
                let events = replay(tx, tx, |_, fault| Err(fault))?;
                let mut restore = tx.prepare("UPDATE tasks SET epoch = ?2 WHERE id = ?1")?;
                for (task, epoch) in epochs {
                    restore.execute((task, epoch))?;
                }
                ready_index::refresh_all(tx)?;
                Ok(events)
            })
            .await
    }
}

fn epochs(tx: &Connection) -> rusqlite::Result<Vec<(String, i64)>> {
    tx.prepare("SELECT id, epoch FROM tasks")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// Streams of which the last events are gone, or all checksums, by what the tables say of their ends.
pub(crate) fn cut_streams(tx: &Connection) -> Result<Vec<Fault>, Fault> {
    let mut statement = tx.prepare(
        "SELECT kept.id, kept.last_seq, kept.last_hash, journal.seq, journal.hash, journal.pos
         FROM (SELECT id, last_seq, last_hash FROM tasks
               UNION ALL SELECT id, last_seq, last_hash FROM sessions
               UNION ALL SELECT id, last_seq, last_hash FROM commitments) AS kept
         LEFT JOIN streams ON streams.name = kept.id
         LEFT JOIN journal ON journal.stream = streams.id AND journal.seq =
             (SELECT max(seq) FROM journal AS last WHERE last.stream = streams.id)
         WHERE kept.last_seq > 0",
    )?;
    let mut rows = statement.query([])?;
    let mut cut = Vec::new();
    while let Some(row) = rows.next()? {
        let stream: String = row.get(0)?;
        let kept =
            Chain { seq: row.get::<_, i64>(1)?.unsigned_abs(), hash: short(row.get_ref(2)?) };
        let seq = row.get::<_, Option<i64>>(3)?.unwrap_or_default().unsigned_abs();
        let (hash, pos) =
            (short(row.get_ref(4)?), row.get::<_, Option<i64>>(5)?.unwrap_or_default());
        // A row with the last checksum is about this very end, whatever else is wrong with it.
        if kept.hash == hash && (hash.is_some() || kept.seq == seq) {
            continue;
        }
        if kept.seq > seq {
            cut.push(damaged(stream.as_bytes(), seq + 1, 0, "it is missing"));
        } else if kept.seq == seq && hash.is_none() {
            cut.push(damaged(stream.as_bytes(), seq, pos, "it has no checksum"));
        }
    }
    Ok(cut)
}

/// One stream of a replay.
#[derive(Default)]
struct ReplayStream {
    chain: Chain,
    at: StoredTime,
    /// Nothing of it is replayed after its first damaged event.
    is_damaged: bool,
}

/// Applies every event of `from` to the projections in `into`, in one pass over the journal; returns how many there
/// were. `broken` decides what a damaged event means.
pub(crate) fn replay(
    from: &Connection,
    into: &Connection,
    mut broken: impl FnMut(&[u8], Fault) -> Result<(), Fault>,
) -> Result<u64, Fault> {
    let mut streams: HashMap<Vec<u8>, ReplayStream> = HashMap::new();
    let mut events = 0;
    let mut statement = from.prepare(&format!("SELECT {COLUMNS} FROM events ORDER BY pos"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let stored = StoredRow::read(row)?;
        events += 1;
        if !streams.contains_key(&stored.stream) {
            streams.insert(stored.stream.clone(), ReplayStream::default());
        }
        let Some(stream) = streams.get_mut(&stored.stream) else { continue };
        if stream.is_damaged {
            continue;
        }
        let name = stored.stream.clone();
        if let Err(fault) = stream.apply(from, into, stored) {
            if !is_damage(&fault) {
                return Err(fault);
            }
            stream.is_damaged = true;
            broken(&name, fault)?;
        }
    }
    for (name, stream) in streams.iter().filter(|(_, stream)| !stream.is_damaged) {
        let (name, at) = (String::from_utf8_lossy(name), stream.at.text());
        let at = String::from_utf8_lossy(&at);
        if name.parse::<SessionId>().is_ok() {
            projections::set_session_tail(into, &name, stream.chain)?;
        } else if name.parse::<CommitmentId>().is_ok() {
            projections::set_commitment_tail(into, &name, stream.chain)?;
        } else if name.parse::<EvidenceId>().is_err() {
            projections::set_tail(into, &name, stream.chain, &at)?;
        }
    }
    Ok(events)
}

/// Whether one event is to blame, and not the database.
fn is_damage(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Store(
            Error::DamagedEvent { .. } | Error::Unreadable { .. } | Error::Malformed { .. }
        )
    )
}

impl ReplayStream {
    fn apply(
        &mut self,
        from: &Connection,
        into: &Connection,
        stored: StoredRow,
    ) -> Result<(), Fault> {
        self.chain.follow(&stored)?;
        self.at.clone_from(&stored.at);
        // What no table is derived from is not parsed, if its checksum says that it is as we wrote it.
        if stored.hash.is_some() && !projections::is_projected(&stored.kind) {
            return Ok(());
        }
        if let Some(session) = stored.session() {
            return projections::apply_session(into, &stored.session_record(session)?);
        }
        let commitment = stored.commitment();
        if commitment.is_some() || stored.evidence().is_some() {
            return projections::apply_commitment(into, &stored.ledger_record(commitment)?);
        }
        // Other streams have no projections.
        let Some(task) = stored.task() else { return Ok(()) };
        // No table is derived from a prompt.
        let record = StoredRow { content: None, ..stored }.record(from, task)?;
        projections::apply(into, &record)
    }
}
