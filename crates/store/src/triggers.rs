//! Decisions about triggers, kept so that a trigger delivered twice has its effect once (O-32).

use jiff::{SignedDuration, Timestamp};
use rusqlite::OptionalExtension;

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

    /// What was decided about every trigger of a kind that is remembered.
    pub fn decisions(self, kind: &str) -> Result<Vec<String>, Error> {
        self.store.read(|tx| {
            let mut found = tx.prepare_cached("SELECT decision FROM triggers WHERE kind = ?1")?;
            let rows = found.query_map([kind], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
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
        self.store
            .write(Level::Synced, move |tx| {
                let oldest = at.checked_sub(RETENTION).unwrap_or(Timestamp::MIN);
                tx.prepare_cached("DELETE FROM triggers WHERE at < ?1")?
                    .execute([row::instant(oldest)])?;
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
