//! What can go wrong, one variant per thing a caller would do differently.
//!
//! Invariant: an error can be cloned, because a transaction that fails fails every caller in its batch.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::ffi::ErrorCode;
use rustix::fs::{Access, access};
use windlass_core::commitment::Refusal;
use windlass_core::event::UnreadableEvent;
use windlass_core::id::{QuestionId, SessionId, TaskId};
use windlass_core::status::{IllegalMove, TaskStatus};

use crate::schema;

/// Why the store could not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields hold")]
pub enum Error {
    /// The data directory cannot be made or entered.
    #[error("data directory `{path}` cannot be used")]
    Directory { path: PathBuf, source: Arc<io::Error> },
    /// No new file can be made in the data directory.
    #[error("data directory `{path}` is not writable")]
    DirectoryNotWritable { path: PathBuf },
    /// The database can be read but not written. `cause` is what has to be made writable: the file itself, one that
    /// SQLite keeps beside it, or the directory of both.
    #[error("database `{path}` is read-only{}", describe_cause(.path, .cause))]
    ReadOnly { path: PathBuf, cause: PathBuf },
    /// The file belongs to another program.
    #[error("`{path}` is not a windlass database")]
    NotADatabase { path: PathBuf },
    /// The file is a database of ours, and parts of it are wrong or missing.
    #[error("database `{path}` is damaged")]
    Corrupt { path: PathBuf, source: Arc<rusqlite::Error> },
    /// The file was a database of ours, and nothing is left in it.
    #[error("database `{path}` is empty, and was not before")]
    Emptied { path: PathBuf },
    /// An event is not what was written. `pos` is 0 where it is not known.
    #[error("event {seq} of `{stream}` is damaged: {problem}")]
    DamagedEvent { stream: String, seq: u64, pos: i64, problem: &'static str },
    /// A later version of this program wrote the database.
    #[error("database `{path}` has version {found}, and this program knows versions up to {known}")]
    Newer { path: PathBuf, found: u32, known: u32 },
    /// The disk, or the size that the store may have, is full. Nothing was written.
    #[error("no space left for database `{path}`")]
    Full { path: PathBuf },
    /// Another process has locked the database for longer than the store waits.
    #[error("database `{path}` is locked by another process")]
    Busy { path: PathBuf },
    /// SQLite failed in a way that has no variant of its own.
    #[error("database `{path}` reported an error")]
    Database { path: PathBuf, source: Arc<rusqlite::Error> },
    /// A file of the data directory failed.
    #[error("file `{path}` cannot be read or written")]
    File { path: PathBuf, source: Arc<io::Error> },
    /// This program cannot read a stored event.
    #[error("event {pos} of the journal cannot be read")]
    Unreadable { pos: i64, source: Arc<UnreadableEvent> },
    /// This program cannot read a stored value.
    #[error("table `{table}` holds `{value}`, which cannot be read")]
    Malformed { table: &'static str, value: String },
    /// The store is shutting down.
    #[error("the store has stopped")]
    Stopped,

    /// Nothing is known of a session of this id.
    #[error("there is no session `{0}`")]
    UnknownSession(String),
    /// Another process has changed the session since it was looked at.
    #[error("session `{session}` has changed meanwhile")]
    SessionMoved { session: SessionId },
    /// No task has this id, or an id that begins or ends like this.
    #[error("there is no task `{0}`")]
    UnknownTask(String),
    /// No question has this id, or an id that begins or ends like this.
    #[error("there is no question `{0}`")]
    UnknownQuestion(String),
    /// A shortened id matches several; the newest come first.
    #[error("`{text}` matches several ids: {}", .candidates.join(", "))]
    Ambiguous { text: String, candidates: Vec<String> },
    /// Another submission has created a task with this id.
    #[error("task `{0}` already exists")]
    TaskExists(TaskId),
    /// Another process drives the tree that has this root; `pid` is 0 when it did not say which it is.
    #[error("`{task}` is running in {}", describe_process(*.pid))]
    Driven { task: TaskId, pid: u32 },
    /// Another owner has taken over the tree that has this root. This one can write no more.
    #[error("task `{task}` was taken over by another process")]
    Superseded { task: TaskId },
    /// The task belongs to another tree than the owner's.
    #[error("task `{task}` does not belong to the tree of `{root}`")]
    WrongTree { task: TaskId, root: TaskId },
    /// A task has one stream at a time.
    #[error("the stream of task `{0}` is in use")]
    StreamInUse(TaskId),
    /// The lifecycle of a task does not have this change of status.
    #[error("task `{task}` cannot change its status like this")]
    IllegalMove { task: TaskId, source: IllegalMove },
    /// `task_created` is the first event of a stream, and only that.
    #[error("task `{0}` was already created")]
    DuplicateCreation(TaskId),
    /// An event is larger than the journal accepts.
    #[error("an event of {bytes} bytes is over the limit of {limit}")]
    EventTooLarge { bytes: usize, limit: usize },

    /// No commitment has this id, or an id that begins or ends like this.
    #[error("there is no commitment `{0}`")]
    UnknownCommitment(String),
    /// The ledger refuses an order.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No schedule has this id, or an id that begins or ends like this.
    #[error("there is no schedule `{0}`")]
    UnknownSchedule(String),
    /// No issue has this id, or an id that begins or ends like this.
    #[error("there is no issue `{0}`")]
    UnknownIssue(String),
    /// The data directory has as many schedules as it may have.
    #[error("there are already {limit} schedules, which is the limit")]
    TooManySchedules { limit: u32 },
    /// There are as many standing rules as are tried at a call.
    #[error("there are already {limit} rules, which is the limit")]
    TooManyRules { limit: u32 },
    /// There are as many pictures as the data directory keeps.
    #[error("{count} pictures are kept already, and there is no room for more")]
    TooManyPictures { count: usize },
    /// The task has ended and accepts no more messages.
    #[error("`{task}` is already {status}")]
    TaskEnded { task: TaskId, status: TaskStatus },
    /// Somebody has answered the question before.
    #[error("question `{question}` was already answered by `{by}`: {text}")]
    AlreadyAnswered { question: QuestionId, by: String, text: String, at: Timestamp },
    /// The question no longer needs an answer.
    #[error("question `{question}` is closed: {reason}")]
    QuestionClosed { question: QuestionId, reason: String },
    /// The segment cannot end like this: somebody wrote to the task, and it has not read that.
    #[error("task `{0}` has unread mail")]
    MailPending(TaskId),
    /// As many messages wait for the task as may.
    #[error("task `{task}` has {limit} messages waiting, which is the limit")]
    MailboxFull { task: TaskId, limit: usize },
    /// As many entries wait in the stream as may, because nobody reads it.
    #[error("stream `{stream}` has {limit} entries waiting, which is the limit")]
    StreamFull { stream: String, limit: usize },
    /// A message is larger than a mailbox accepts.
    #[error("a message of {bytes} bytes is over the limit of {limit}")]
    MessageTooLarge { bytes: usize, limit: usize },
    /// The text cannot be the id of an output.
    #[error("`{0}` is not the id of an output")]
    BadOutputId(String),
    /// There was no such output, or it was removed because of its age.
    #[error("there is no output `{0}`")]
    UnknownOutput(String),
}

/// Whether the disk is full. SQLite does not always say so: it may need a page for its own
/// bookkeeping before it writes the first of ours.
fn is_full(path: &Path) -> bool {
    let Some(dir) = path.parent() else { return false };
    rustix::fs::statvfs(dir).is_ok_and(|disk| disk.f_bavail == 0)
}

fn describe_cause(path: &Path, cause: &Path) -> String {
    match path == cause {
        true => String::new(),
        false => format!(": `{}` is not writable", cause.display()),
    }
}

fn describe_process(pid: u32) -> String {
    match pid {
        0 => "an unknown process".to_owned(),
        pid => format!("process {pid}"),
    }
}

impl Error {
    /// Whether SQLite says that the file itself is damaged.
    pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
        use ErrorCode::{DatabaseCorrupt, NotADatabase};
        matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
    }

    /// Names what SQLite's error means for `path`.
    pub(crate) fn sqlite(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, source: Arc::new(error) },
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::ReadOnly) => Self::read_only(&path),
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::CannotOpen)
                if path.exists() && access(&path, Access::READ_OK).is_err() =>
            {
                Self::file(&path, io::ErrorKind::PermissionDenied.into())
            }
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if is_full(&path) => {
                Self::Full { path }
            }
            _ => Self::Database { path, source: Arc::new(error) },
        }
    }

    /// The database at `path` cannot be written, for the first reason that is found.
    pub(crate) fn read_only(path: &Path) -> Self {
        let directory = path.parent().map(Path::to_owned);
        let companions = ["-shm", "-wal"].map(|suffix| schema::sibling_file(path, suffix));
        let parts = directory.into_iter().chain([path.to_owned()]).chain(companions);
        let is_closed = |part: &PathBuf| part.exists() && access(part, Access::WRITE_OK).is_err();
        let cause = parts.into_iter().find(is_closed).unwrap_or_else(|| path.to_owned());
        Self::ReadOnly { path: path.to_owned(), cause }
    }

    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source: Arc::new(source) }
    }

    /// Whether the database itself failed, so that the whole transaction is undone. Anything else is the
    /// failure of one piece of work, which is undone alone.
    pub(crate) fn is_storage(&self) -> bool {
        if let Self::Database { source, .. } = self {
            return matches!(
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
            );
        }
        matches!(
            self,
            Self::ReadOnly { .. }
                | Self::NotADatabase { .. }
                | Self::Corrupt { .. }
                | Self::Full { .. }
                | Self::Busy { .. }
        )
    }
}

/// An error inside a transaction. SQLite's errors get the path of the database when they leave the store.
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
