//! Decisions about triggers, kept so that a trigger delivered twice has its effect once (O-32).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension};

use crate::error::Fault;
use crate::{Error, Level, Store, row};

/// How long a decision is kept; a repeated delivery comes much sooner.
const RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);

/// What was decided about earlier triggers.
#[derive(Clone, Copy)]
pub struct Triggers<'a> {
    pub(crate) store: &'a Store,
}

impl Triggers<'_> {
    /// What was decided when a trigger came the first time.
    pub fn decision(self, kind: &str, id: &str) -> Result<Option<String>, Error> {
        self.store.read(|tx| {
            Ok(tx
                .prepare_cached("SELECT decision FROM triggers WHERE kind = ?1 AND id = ?2")?
                .query_row((kind, id), |row| row.get(0))
                .optional()?)
        })
    }

    /// How often each decision was made about triggers of a kind, ever.
    pub fn counts(self, kind: &str) -> Result<BTreeMap<String, u64>, Error> {
        self.store.read(|tx| {
            let mut counts = expired_counts(tx)?.remove(kind).unwrap_or_default();
            let mut found = tx.prepare_cached("SELECT decision FROM triggers WHERE kind = ?1")?;
            let mut rows = found.query([kind])?;
            while let Some(row) = rows.next()? {
                *counts.entry(word(&row.get::<_, String>(0)?)).or_default() += 1;
            }
            Ok(counts)
        })
    }

    /// Writes what is decided about a trigger, synced, before it is carried out. Returns the decision that
    /// counts, which is the first.
    pub async fn decide(
        self,
        kind: &str,
        id: &str,
        decision: String,
        at: Timestamp,
    ) -> Result<String, Error> {
        let (kind, id) = (kind.to_owned(), id.to_owned());
        // It may quote the message that it is about.
        let decision = self.store.secrets().clean(&decision);
        self.store
            .write(Level::Synced, move |tx| {
                let oldest = at.checked_sub(RETENTION).unwrap_or(Timestamp::MIN);
                forget(tx, oldest)?;
                tx.prepare_cached(
                    "INSERT INTO triggers (kind, id, decision, at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO NOTHING",
                )?
                .execute((&kind, &id, decision, row::instant(at)))?;
                Ok(tx
                    .prepare_cached("SELECT decision FROM triggers WHERE kind = ?1 AND id = ?2")?
                    .query_row((kind, id), |row| row.get(0))?)
            })
            .await
    }
}

/// How often decisions were made that are not remembered any more, by the kind of trigger.
type Counts = BTreeMap<String, BTreeMap<String, u64>>;

/// The name of their sum.
const FORGOTTEN: &str = "forgotten decisions";

/// Removes what is older; how often each decision was made stays, so that a counter never goes down (ES-337).
fn forget(tx: &Connection, oldest: Timestamp) -> Result<(), Fault> {
    let mut removed =
        tx.prepare_cached("DELETE FROM triggers WHERE at < ?1 RETURNING kind, decision")?;
    let rows = removed.query_map([row::instant(oldest)], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let removed = rows.collect::<Result<Vec<_>, _>>()?;
    if removed.is_empty() {
        return Ok(());
    }
    let mut counts = expired_counts(tx)?;
    for (kind, decision) in removed {
        *counts.entry(kind).or_default().entry(word(&decision)).or_default() += 1;
    }
    tx.prepare_cached(
        "INSERT INTO sums (name, pos, body) VALUES (?1, 0, ?2)
         ON CONFLICT (name) DO UPDATE SET body = ?2",
    )?
    .execute((FORGOTTEN, row::json(&counts)))?;
    Ok(())
}

fn expired_counts(tx: &Connection) -> Result<Counts, Fault> {
    let found: Option<String> = tx
        .prepare_cached("SELECT body FROM sums WHERE name = ?1")?
        .query_row([FORGOTTEN], |row| row.get(0))
        .optional()?;
    Ok(found.and_then(|body| serde_json::from_str(&body).ok()).unwrap_or_default())
}

/// The word of a decision, which is JSON with more in it.
fn word(decision: &str) -> String {
    let decision: serde_json::Value = serde_json::from_str(decision).unwrap_or_default();
    decision["decision"].as_str().unwrap_or("unknown").to_owned()
}
