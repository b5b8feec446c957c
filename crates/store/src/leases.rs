//! Session leases as rows: one process serves a session at a time, and none for longer than its lease.

use jiff::Timestamp;
use windlass_core::id::SessionId;

use crate::{Error, Level, Sessions, Store, row};

/// Which process serves which session.
#[derive(Clone, Copy)]
pub struct Leases<'a> {
    store: &'a Store,
}

impl<'a> Sessions<'a> {
    /// Which process serves which session.
    pub fn leases(self) -> Leases<'a> {
        Leases { store: self.store }
    }
}

impl Leases<'_> {
    /// Takes a session for `owner` until `until`, or returns `false` when another process has it. For the
    /// process that has it, the lease becomes longer.
    pub async fn take(
        self,
        session: SessionId,
        owner: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, Error> {
        let owner = owner.to_owned();
        self.store
            .write(Level::Written, move |tx| {
                let changed = tx
                .prepare_cached(
                    "INSERT INTO session_leases (session_id, owner, expires_at) VALUES (?1, ?2, ?3)
                     ON CONFLICT (session_id) DO UPDATE SET owner = ?2, expires_at = ?3
                     WHERE owner = ?2 OR expires_at <= ?4",
                )?
                .execute((session.to_string(), owner, row::instant(until), row::instant(now)))?;
                Ok(changed == 1)
            })
            .await
    }

    /// Releases a session, if `owner` still has it.
    pub async fn release(self, session: SessionId, owner: &str) -> Result<bool, Error> {
        let owner = owner.to_owned();
        self.store
            .write(Level::Written, move |tx| {
                let changed = tx
                    .prepare_cached(
                        "DELETE FROM session_leases WHERE session_id = ?1 AND owner = ?2",
                    )?
                    .execute((session.to_string(), owner))?;
                Ok(changed == 1)
            })
            .await
    }

    /// The process that has a session, and until when.
    pub fn holder(self, session: SessionId) -> Result<Option<(String, Timestamp)>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT owner, expires_at FROM session_leases WHERE session_id = ?1",
            )?;
            let mut rows = statement.query([session.to_string()])?;
            let Some(found) = rows.next()? else { return Ok(None) };
            let until = row::parse("session_leases", &found.get::<_, String>(1)?)?;
            Ok(Some((found.get(0)?, until)))
        })
    }
}
