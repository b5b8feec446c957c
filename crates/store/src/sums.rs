//! Sums over the journal up to an event, kept so that the same events are not added up twice, and are still counted
//! when `prune` has removed them. What a sum holds is its owner's business; here it is a text.

use rusqlite::OptionalExtension;

use crate::{Error, Journal, Level, Store};

/// A sum, and the position of the last event in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    pub pos: i64,
    pub body: String,
}

/// Sums over the journal.
#[derive(Clone, Copy)]
pub struct Sums<'a> {
    store: &'a Store,
}

impl<'a> Journal<'a> {
    /// Sums over all events.
    pub fn sums(self) -> Sums<'a> {
        Sums { store: self.store }
    }
}

impl Sums<'_> {
    /// The sum of this name, as far as it was kept.
    pub fn get(self, name: &str) -> Result<Option<Sum>, Error> {
        self.store.read(|tx| {
            Ok(tx
                .prepare_cached("SELECT pos, body FROM sums WHERE name = ?1")?
                .query_row([name], |row| Ok(Sum { pos: row.get(0)?, body: row.get(1)? }))
                .optional()?)
        })
    }

    /// Keeps a sum, unless one that is further on is kept.
    pub async fn keep(self, name: &'static str, sum: Sum) -> Result<(), Error> {
        self.store
            .write(Level::Written, move |tx| {
                tx.prepare_cached(
                    "INSERT INTO sums (name, pos, body) VALUES (?1, ?2, ?3)
                     ON CONFLICT (name) DO UPDATE SET pos = ?2, body = ?3 WHERE pos < ?2",
                )?
                .execute((name, sum.pos, sum.body))?;
                Ok(())
            })
            .await
    }
}
