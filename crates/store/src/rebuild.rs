//! Rebuilding projections from the journal.
//!
//! Only tables that are a fold of the journal are touched ([`projections::TABLES`]). The mailbox, the outbox,
//! runtime rows, outputs, memories and who owns what are not, and stay (§15.2).

use std::collections::HashMap;

use rusqlite::Connection;
use windlass_core::id::{CommitmentId, EvidenceId, SessionId};

use crate::error::Fault;
use crate::journal::chain::{At, COLUMNS, Chain, Stored};
use crate::{Error, Level, Store, projections, ready_index};

/// The tables that are folds of the journal.
#[derive(Clone, Copy)]
pub struct Projections<'a> {
    pub(crate) store: &'a Store,
}

impl Projections<'_> {
    /// Empties the projections and replays the whole journal into them, in one transaction. Returns
    /// how many events that were. A damaged event stops it, and nothing is changed.
    pub async fn rebuild(self) -> Result<u64, Error> {
        self.store
            .write(Level::Synced, |tx| {
                // Rows that stay refer to rows that come back.
                tx.pragma_update(None, "defer_foreign_keys", true)?;
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

/// One stream of a replay.
#[derive(Default)]
struct Replayed {
    chain: Chain,
    at: At,
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
    let mut streams: HashMap<Vec<u8>, Replayed> = HashMap::new();
    let mut events = 0;
    let mut statement = from.prepare(&format!("SELECT {COLUMNS} FROM events ORDER BY pos"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let stored = Stored::read(row)?;
        events += 1;
        if !streams.contains_key(&stored.stream) {
            streams.insert(stored.stream.clone(), Replayed::default());
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

impl Replayed {
    fn apply(&mut self, from: &Connection, into: &Connection, stored: Stored) -> Result<(), Fault> {
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
        let record = Stored { content: None, ..stored }.record(from, task)?;
        projections::apply(into, &record)
    }
}
