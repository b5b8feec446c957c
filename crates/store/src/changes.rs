//! Change notices: counters that tick when something was committed, by this process or another.
//!
//! Own commits tick at once. Other processes' are found by one `PRAGMA data_version` poll of the writer
//! thread, every 100 ms and only while somebody listens (§15.4). A tick says that something changed, not
//! what: listeners read from their own cursor. Mail ticks apart, because every task that waits listens
//! for it: a process with many tasks must not wake them all at each other's commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use tokio::sync::watch;

use crate::bell::Bell;
use crate::{Error, Mailbox, Store};

/// One listener. It hears of everything committed from now on, and may hear once of something earlier.
#[derive(Clone)]
pub struct Changes {
    ticks: watch::Receiver<u64>,
}

impl Store {
    /// Listens for commits.
    pub fn changes(&self) -> Changes {
        listen(self, &self.inner.ticks.commits)
    }
}

impl Mailbox<'_> {
    /// Listens for mail: messages that this process accepted, and whatever other processes committed.
    pub fn changes(self) -> MailChanges {
        let bell = Arc::clone(&self.store.inner.bell);
        MailChanges { changes: listen(self.store, &self.store.inner.ticks.mail), bell, rung: None }
    }
}

fn listen(store: &Store, to: &watch::Sender<u64>) -> Changes {
    let ticks = to.subscribe();
    if store.inner.ticks.must_wake() {
        store.inner.writer.listen();
    }
    Changes { ticks }
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

/// One listener for mail.
#[derive(Clone)]
pub struct MailChanges {
    changes: Changes,
    bell: Arc<Bell>,
    /// What the bell said when it was last looked at.
    rung: Option<u64>,
}

impl MailChanges {
    /// Whether anything may have come since this was last asked. Costs next to nothing, and hears of what
    /// any process has sent by now.
    pub fn look(&mut self) -> bool {
        let told = self.changes.ticks.has_changed().unwrap_or(true);
        self.changes.tick();
        let rung = Some(self.bell.word());
        std::mem::replace(&mut self.rung, rung) != rung || told
    }

    /// Has the next look say yes: something waits, whatever was or was not heard.
    pub fn suspect(&mut self) {
        self.rung = None;
    }

    /// Waits for the next notice after the last one heard of.
    pub async fn changed(&mut self) -> Result<(), Error> {
        self.changes.changed().await
    }
}

/// The counters, as those who raise them hold them.
#[derive(Clone)]
pub(crate) struct Ticks {
    commits: watch::Sender<u64>,
    mail: watch::Sender<u64>,
    /// Whether the writer thread looks for other processes' commits by itself.
    polling: Arc<AtomicBool>,
}

impl Ticks {
    pub(crate) fn new() -> Self {
        let polling = Arc::default();
        Self { commits: watch::Sender::new(0), mail: watch::Sender::new(0), polling }
    }

    /// Says that this process has committed.
    pub(crate) fn committed(&self) {
        self.commits.send_modify(|tick| *tick += 1);
    }

    /// Says that this process has accepted a message.
    pub(crate) fn mailed(&self) {
        self.mail.send_modify(|tick| *tick += 1);
    }

    /// Says that another process has committed, which may have been anything.
    pub(crate) fn changed_elsewhere(&self) {
        self.committed();
        self.mailed();
    }

    /// Whether the writer has to look by itself from now on; what it says is kept for `must_wake`.
    pub(crate) fn must_poll(&self) -> bool {
        // Either the writer sees the new listener, or the listener sees that the writer does not poll.
        self.polling.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let anyone = self.commits.receiver_count() + self.mail.receiver_count() > 0;
        self.polling.store(anyone, Ordering::SeqCst);
        anyone
    }

    /// Whether a new listener has to wake the writer.
    fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        !self.polling.load(Ordering::SeqCst)
    }
}
