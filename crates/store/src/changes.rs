//! Notices that something was committed, by this process or another.
//!
//! Own commits are counted at once. Other processes' commits are found by the writer thread, which reads
//! `PRAGMA data_version` at intervals of `FAST_POLL` while somebody asks for it, and of `POLL` otherwise (§15.4). A notice says that something changed, not
//! what: listeners read from their own cursor. Mail is counted separately, because every waiting task listens
//! for it: a process with many tasks must not wake them all at each other's commits.

use tokio::sync::watch;

use crate::{Error, Mailbox, Store};

/// One listener. It notices everything committed from now on, and may notice an earlier commit once.
#[derive(Clone)]
pub struct Changes {
    count: watch::Receiver<u64>,
    fast: watch::Sender<()>,
    /// Held by those who need the fast poll.
    _watching: Option<watch::Receiver<()>>,
}

impl Store {
    /// Listens for commits.
    pub fn changes(&self) -> Changes {
        listen(self, &self.inner.counters.commits)
    }
}

impl Mailbox<'_> {
    /// Listens for mail: messages that this process accepted, and whatever other processes committed.
    pub fn changes(self) -> Changes {
        listen(self.store, &self.store.inner.counters.mail)
    }
}

fn listen(store: &Store, counter: &watch::Sender<u64>) -> Changes {
    let count = counter.subscribe();
    // Subscribed first: the writer counts its listeners when this wakes it.
    if let Some(writer) = &store.inner.writer {
        writer.poll_from_now();
    }
    Changes { count, fast: store.inner.counters.fast.clone(), _watching: None }
}

impl Changes {
    /// The same, for somebody who watches: other processes' commits are noticed sooner, which costs wake-ups.
    pub fn with_fast_poll(self) -> Self {
        Self { _watching: Some(self.fast.subscribe()), ..self }
    }

    /// Waits for the next notice; several commits may be one notice.
    pub async fn changed(&mut self) -> Result<(), Error> {
        self.count.changed().await.map_err(|_| Error::Stopped)
    }

    /// Takes note of all notices so far, and returns how many there were.
    pub fn mark_seen(&mut self) -> u64 {
        *self.count.borrow_and_update()
    }
}

/// How many commits and how much mail there was.
#[derive(Clone)]
pub(crate) struct ChangeCounters {
    commits: watch::Sender<u64>,
    mail: watch::Sender<u64>,
    fast: watch::Sender<()>,
}

impl ChangeCounters {
    pub(crate) fn new() -> Self {
        Self {
            commits: watch::Sender::new(0),
            mail: watch::Sender::new(0),
            fast: watch::Sender::new(()),
        }
    }

    /// Counts a commit of this process.
    pub(crate) fn count_commit(&self) {
        self.commits.send_modify(|count| *count += 1);
    }

    /// Counts a message that this process accepted.
    pub(crate) fn count_mail(&self) {
        self.mail.send_modify(|count| *count += 1);
    }

    /// Counts a commit of another process, which may have been anything.
    pub(crate) fn count_foreign_commit(&self) {
        self.count_commit();
        self.count_mail();
    }

    /// Whether somebody watches, and wants to know soon.
    pub(crate) fn is_watched(&self) -> bool {
        self.fast.receiver_count() > 0
    }

    pub(crate) fn has_listeners(&self) -> bool {
        self.commits.receiver_count() + self.mail.receiver_count() > 0
    }
}
