//! The one thread of this process that writes: everything queued is committed in one transaction.
//!
//! Invariants:
//! - A caller gets `Ok` only after the transaction that holds its work is committed, and, for
//!   [`Level::Synced`], is on the disk (§15.8).
//! - Work that fails for a reason of its own is undone alone; a failure of the database undoes
//!   the whole batch and fails every caller in it.
//! - The queue is bounded by permits: a caller waits for a free one, which is the backpressure.

mod thread;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::Error;
use crate::changes::ChangeCounters;
use crate::error::Fault;
use thread::Thread;

/// Work waiting for the writer; beyond it callers wait.
const QUEUE: usize = 4096;

/// How safe a commit is when its caller gets the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Survives the end of the process; enough before the model is asked.
    Written,
    /// Survives a power loss; needed before an effect starts or anything is acknowledged outside.
    Synced,
}

/// Whether a commit is about to happen or has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitPhase {
    /// Everything is prepared, nothing is committed.
    Before,
    /// It is committed; no caller has its answer yet.
    After,
}

/// One moment around a commit, for tests that end the process there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitPoint {
    /// Which commit of this process, from 1.
    pub number: u64,
    /// Whether this is before or after the commit.
    pub phase: CommitPhase,
    /// How safe the commit is made.
    pub level: Level,
    /// Length of the WAL that holds commits, up to this moment.
    pub wal_bytes: u64,
    /// How much of that survives a power loss.
    pub synced_bytes: u64,
}

/// Called by the writer thread right before and right after each commit.
pub type CommitHook = Arc<dyn Fn(CommitPoint) + Send + Sync>;

/// The handle of the writer thread.
pub(crate) struct Writer {
    queue: Mutex<Option<Sender<WriterMessage>>>,
    room: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum WriterMessage {
    /// Work for the next transaction.
    Work(Box<dyn WriterJob>),
    /// Somebody began to listen for changes.
    Listen,
    /// Free pages are to be given back, which is not a transaction.
    Compact(oneshot::Sender<Result<(), Error>>),
}

trait WriterJob: Send {
    fn level(&self) -> Level;
    /// Does the work, inside a transaction; an error of the database undoes the batch.
    fn run(&mut self, connection: &Connection, path: &Path) -> Result<(), Error>;
    /// Gives the caller its answer.
    fn report(self: Box<Self>, committed: Result<(), Error>);
}

struct Pending<F, T> {
    level: Level,
    work: Option<F>,
    result: Option<Result<T, Error>>,
    reply: oneshot::Sender<Result<T, Error>>,
    /// Held while it waits: the bound of the queue.
    _room: OwnedSemaphorePermit,
}

impl<F, T> WriterJob for Pending<F, T>
where
    F: FnOnce(&Connection) -> Result<T, Fault> + Send,
    T: Send,
{
    fn level(&self) -> Level {
        self.level
    }

    fn run(&mut self, connection: &Connection, path: &Path) -> Result<(), Error> {
        let Some(work) = self.work.take() else { return Ok(()) };
        match work(connection).map_err(|fault| fault.at(path)) {
            Ok(value) => self.result = Some(Ok(value)),
            Err(error) => {
                self.result = Some(Err(error.clone()));
                return Err(error);
            }
        }
        Ok(())
    }

    fn report(self: Box<Self>, committed: Result<(), Error>) {
        let result = match (committed, self.result) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(Error::Stopped),
        };
        // The work is done, even if its caller is gone.
        let _ = self.reply.send(result);
    }
}

impl Writer {
    pub(crate) fn start(
        connection: Connection,
        path: PathBuf,
        counters: ChangeCounters,
        hook: Option<CommitHook>,
    ) -> Result<Self, Error> {
        let (queue, messages) = channel();
        let failed = |error| Error::sqlite(&path, error);
        let thread =
            Thread::prepare(connection, path.clone(), messages, counters, hook).map_err(failed)?;
        let thread = std::thread::Builder::new()
            .name("windlass-store".to_owned())
            .spawn(move || thread.serve())
            .map_err(|source| Error::file(&path, source))?;
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            room: Arc::new(Semaphore::new(QUEUE)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Runs `work` in a transaction and waits until that is committed. Dropping the future does not
    /// take the work back once it is queued.
    pub(crate) async fn run<T, F>(&self, level: Level, work: F) -> Result<T, Error>
    where
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
        T: Send + 'static,
    {
        let room = self.room.clone().acquire_owned().await.map_err(|_| Error::Stopped)?;
        let (reply, outcome) = oneshot::channel();
        let pending = Pending { level, work: Some(work), result: None, reply, _room: room };
        self.send(WriterMessage::Work(Box::new(pending)))?;
        outcome.await.map_err(|_| Error::Stopped)?
    }

    /// Gives free pages back to the disk.
    pub(crate) async fn compact(&self) -> Result<(), Error> {
        let (reply, outcome) = oneshot::channel();
        self.send(WriterMessage::Compact(reply))?;
        outcome.await.map_err(|_| Error::Stopped)?
    }

    /// Makes the thread look for other processes' commits, now and for as long as somebody listens.
    pub(crate) fn poll_from_now(&self) {
        // A stopped writer has no more changes to report.
        let _ = self.send(WriterMessage::Listen);
    }

    fn send(&self, message: WriterMessage) -> Result<(), Error> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.as_ref().ok_or(Error::Stopped)?.send(message).map_err(|_| Error::Stopped)
    }
}

impl Drop for Writer {
    /// Commits what is queued, then closes the database.
    fn drop(&mut self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
