//! What can go wrong, one variant per thing a caller would do differently.
//!
//! Invariant: an error can be cloned, because a transaction that fails fails every caller in its batch.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::ffi::ErrorCode;
use windlass_core::event::UnreadableEvent;
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::status::{IllegalMove, TaskStatus};

/// Why the store could not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The data directory cannot be made or entered.
    #[error("data directory `{path}` cannot be used")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The data directory does not take new files.
    #[error("data directory `{path}` is not writable")]
    DirectoryNotWritable {
        /// The directory.
        path: PathBuf,
    },
    /// The database can be read but not written.
    #[error("database `{path}` is read-only")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("`{path}` is not a windlass database")]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file was a database and is damaged.
    #[error("database `{path}` is damaged")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: Arc<rusqlite::Error>,
    },
    /// A later program wrote the database.
    #[error("database `{path}` has version {found}, and this program knows versions up to {known}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest that this program reads.
        known: u32,
    },
    /// The disk, or the size that the store may take, is full. Nothing was written.
    #[error("no space left for database `{path}`")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Another process kept the database locked for longer than the store waits.
    #[error("database `{path}` is kept locked by another process")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// SQLite failed in a way that has no variant of its own.
    #[error("database `{path}` failed")]
    Database {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: Arc<rusqlite::Error>,
    },
    /// A file of the data directory cannot be read or written.
    #[error("file `{path}` cannot be used")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// A stored event or row that this program cannot read.
    #[error("event {pos} of the journal cannot be read")]
    Unreadable {
        /// Its place.
        pos: i64,
        /// Why.
        source: Arc<UnreadableEvent>,
    },
    /// A stored value that makes no sense.
    #[error("`{table}` holds `{value}`, which cannot be read")]
    Malformed {
        /// Where.
        table: &'static str,
        /// What.
        value: String,
    },
    /// The store is shutting down.
    #[error("the store has stopped")]
    Stopped,

    /// There is no such task.
    #[error("there is no task `{0}`")]
    UnknownTask(String),
    /// There is no such question.
    #[error("there is no question `{0}`")]
    UnknownQuestion(String),
    /// A shortened id fits more than one.
    #[error("`{text}` fits several: {}", .candidates.join(", "))]
    Ambiguous {
        /// What was given.
        text: String,
        /// What it fits, the newest first.
        candidates: Vec<String>,
    },
    /// A task with this id was created by another submission.
    #[error("task `{0}` exists already")]
    TaskExists(TaskId),
    /// Somebody drives the task.
    #[error("task `{task}` is driven by {}", name_of(*.pid))]
    Driven {
        /// The root of its tree.
        task: TaskId,
        /// The process; 0 when it did not say.
        pid: u32,
    },
    /// Another owner has taken over; this one may write no more.
    #[error("task `{task}` was taken over by another process")]
    Superseded {
        /// The root of its tree.
        task: TaskId,
    },
    /// The task belongs to another tree than the owner's.
    #[error("task `{task}` does not belong to `{root}`")]
    WrongTree {
        /// The task.
        task: TaskId,
        /// The owner's root.
        root: TaskId,
    },
    /// A second stream of a task was wanted while the first is in use.
    #[error("the stream of task `{0}` is in use")]
    StreamInUse(TaskId),
    /// The lifecycle does not have this move.
    #[error("task `{task}` cannot take this event")]
    IllegalMove {
        /// The task.
        task: TaskId,
        /// Which move.
        source: IllegalMove,
    },
    /// `task_created` was appended to a task that exists.
    #[error("task `{0}` begins only once")]
    DuplicateCreation(TaskId),
    /// An event is larger than the journal takes.
    #[error("an event of {bytes} bytes is over the limit of {limit}")]
    EventTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },

    /// No schedule is or ends with that.
    #[error("there is no schedule `{0}`")]
    UnknownSchedule(String),
    /// There are as many schedules as there may be.
    #[error("there are {limit} schedules already")]
    TooManySchedules {
        /// How many there may be.
        limit: u32,
    },
    /// The task has ended and takes no more messages.
    #[error("task `{task}` is `{status}`")]
    TaskEnded {
        /// The task.
        task: TaskId,
        /// How it ended.
        status: TaskStatus,
    },
    /// Somebody has answered the question.
    #[error("question `{question}` was answered by `{by}` at {at}: {text}")]
    AlreadyAnswered {
        /// The question.
        question: QuestionId,
        /// Who.
        by: String,
        /// What.
        text: String,
        /// When.
        at: Timestamp,
    },
    /// The question is not asked any more.
    #[error("question `{question}` is closed: {reason}")]
    QuestionClosed {
        /// The question.
        question: QuestionId,
        /// Why.
        reason: String,
    },
    /// The segment cannot end so: somebody has said something that the task has not heard.
    #[error("`{0}` has mail that it has not read")]
    MailPending(TaskId),
    /// Too much waits for the task already.
    #[error("task `{task}` has {limit} messages waiting, which is the limit")]
    MailboxFull {
        /// The task.
        task: TaskId,
        /// The limit.
        limit: usize,
    },
    /// Nobody reads a stream, and as much waits in it as may.
    #[error("stream `{stream}` has {limit} entries waiting, which is the limit")]
    StreamFull {
        /// The stream.
        stream: String,
        /// The limit.
        limit: usize,
    },
    /// A message is larger than a mailbox takes.
    #[error("a message of {bytes} bytes is over the limit of {limit}")]
    MessageTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Text that cannot be the id of an output.
    #[error("`{0}` is not the id of an output")]
    BadOutputId(String),
    /// There is no such output, or it was cleaned away.
    #[error("there is no output `{0}`")]
    UnknownOutput(String),
}

/// Whether the disk has nothing left. SQLite does not always say so: it may need a page for its own
/// bookkeeping before it writes the first of ours.
fn is_full(path: &Path) -> bool {
    let Some(dir) = path.parent() else { return false };
    rustix::fs::statvfs(dir).is_ok_and(|disk| disk.f_bavail == 0)
}

fn name_of(pid: u32) -> String {
    match pid {
        0 => "a process that did not say which".to_owned(),
        pid => format!("process {pid}"),
    }
}

impl Error {
    /// Names what SQLite's error means for `path`.
    pub(crate) fn sqlite(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, source: Arc::new(error) },
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if is_full(&path) => {
                Self::Full { path }
            }
            _ => Self::Database { path, source: Arc::new(error) },
        }
    }

    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source: Arc::new(source) }
    }

    /// Whether the database itself failed, so that a whole transaction is void. Anything else is the
    /// fault of one piece of work, and undone alone.
    pub(crate) fn is_storage(&self) -> bool {
        match self {
            Self::ReadOnly { .. }
            | Self::NotADatabase { .. }
            | Self::Corrupt { .. }
            | Self::Full { .. }
            | Self::Busy { .. } => true,
            Self::Database { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(
                    ErrorCode::SystemIoFailure
                        | ErrorCode::OutOfMemory
                        | ErrorCode::CannotOpen
                        | ErrorCode::FileLockingProtocolFailed
                        | ErrorCode::OperationAborted
                        | ErrorCode::OperationInterrupted
                        | ErrorCode::InternalMalfunction
                )
            ),
            _ => false,
        }
    }
}

/// What happens inside a transaction: SQLite's errors get their path where they leave the store.
#[derive(Debug)]
pub(crate) enum Fault {
    Sql(rusqlite::Error),
    Store(Error),
}

impl Fault {
    pub(crate) fn at(self, path: &Path) -> Error {
        match self {
            Self::Sql(error) => Error::sqlite(path, error),
            Self::Store(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}
