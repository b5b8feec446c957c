//! Change notices: a counter that ticks when anything was committed, by this process or another.
//!
//! Own commits tick at once. Other processes' are found by one `PRAGMA data_version` poll of the writer
//! thread, every 100 ms and only while somebody listens (§15.4). A tick says that something changed, not
//! what: listeners read from their own cursor.

use tokio::sync::watch;

use crate::{Error, Store};

/// One listener. It hears of everything committed from now on, and may hear once of something earlier.
#[derive(Clone)]
pub struct Changes {
    ticks: watch::Receiver<u64>,
}

impl Store {
    /// Listens for commits.
    pub fn changes(&self) -> Changes {
        let ticks = self.inner.changes.subscribe();
        self.inner.writer.listen();
        Changes { ticks }
    }
}

impl Changes {
    /// Waits for the next commit after the last one heard of; several may be told as one.
    pub async fn changed(&mut self) -> Result<(), Error> {
        self.ticks.changed().await.map_err(|_| Error::Stopped)
    }

    /// How many notices there were so far.
    pub fn tick(&mut self) -> u64 {
        *self.ticks.borrow_and_update()
    }
}
