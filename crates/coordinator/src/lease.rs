//! Session leases: triggers of one session are handled one after the other, whoever handles them.
//!
//! Invariants:
//! - A lease is taken before routing and given back after the injection (ES-093); each taking has its own
//!   token, and only its holder gives it back (compare and delete).
//! - A lease expires: a holder that died delays a session by one lease, and no longer (ES-092).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use windlass_agent::Clock;
use windlass_core::id::SessionId;
use windlass_store::Store;

use crate::Error;
use crate::drive::BoxFuture;

/// How long to wait before asking again for a lease that somebody else has.
const RETRY: Duration = Duration::from_millis(25);

/// Leases' worth of waiting before a trigger is handed back: more than one holder died meanwhile, or
/// the session is flooded.
const PATIENCE: u32 = 2;

/// Where leases are kept: rows of the store, or keys `session:lease:{session_id}` in Redis.
pub trait Lease: Send + Sync {
    /// Takes a session for `owner` until `ttl` has passed; `false` while another owner has it.
    fn take<'a>(
        &'a self,
        session: SessionId,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, Error>>;

    /// Gives a session back; nothing happens if `owner` does not have it any more.
    fn give_back<'a>(
        &'a self,
        session: SessionId,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>>;
}

/// Leases as rows, for processes that share a data directory.
pub(crate) struct Rows {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Lease for Rows {
    fn take<'a>(
        &'a self,
        session: SessionId,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let now = self.clock.now();
            let ttl = SignedDuration::try_from(ttl).unwrap_or(SignedDuration::MAX);
            let until = now.checked_add(ttl).unwrap_or(jiff::Timestamp::MAX);
            Ok(self.store.sessions().leases().take(session, owner, now, until).await?)
        })
    }

    fn give_back<'a>(
        &'a self,
        session: SessionId,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.store.sessions().leases().release(session, owner).await?;
            Ok(())
        })
    }
}

/// The leases that a coordinator takes.
#[derive(Clone)]
pub(crate) struct Leases(Arc<dyn Lease>);

impl Leases {
    pub(crate) fn new(kept: Arc<dyn Lease>) -> Self {
        Self(kept)
    }

    /// Does something for a session while nobody else does. A lease counts for `ttl`.
    pub(crate) async fn hold<T>(
        &self,
        session: SessionId,
        ttl: Duration,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let owner = token();
        self.take(session, &owner, ttl).await?;
        let done = work.await;
        // What was done counts; a lease that cannot be given back expires.
        if let Err(error) = self.0.give_back(session, &owner).await {
            tracing::warn!(%session, %error, "lease not given back");
        }
        done
    }

    async fn take(&self, session: SessionId, owner: &str, ttl: Duration) -> Result<(), Error> {
        let attempts = (ttl * PATIENCE).as_millis() / RETRY.as_millis() + 1;
        for _ in 0..attempts {
            if self.0.take(session, owner, ttl).await? {
                return Ok(());
            }
            tokio::time::sleep(RETRY).await;
        }
        Err(Error::SessionBusy { session })
    }
}

/// Names one taking of one process.
fn token() -> String {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    let count = TAKEN.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let random = windlass_core::id::CommandId::new(jiff::Timestamp::UNIX_EPOCH);
    format!("{process}-{count}-{random}")
}
