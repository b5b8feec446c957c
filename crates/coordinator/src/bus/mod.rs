//! The bus: how commands, triggers and injections come in and how results go out.
//!
//! Two implementations: [`EmbeddedBus`] keeps everything as rows of the store, [`Redis`] uses streams, consumer
//! groups, lists and keys with the names other programs know (ES-386…392). The store stays the truth either
//! way: an entry is acknowledged, and an injection removed from its list, only when the store has it, so
//! everything may arrive twice and nothing is lost.

mod embedded;
mod redis;
mod wire;

use std::time::Duration;

use windlass_core::id::{SessionId, TaskId};
use windlass_core::injection::Injection;
use windlass_core::string_enum;
use windlass_store::Outgoing;

use crate::trigger::TriggerStream;
use crate::{BoxFuture, Lease};

pub use embedded::EmbeddedBus;
pub use redis::Redis;

/// Injections taken from one task's list at a time.
pub const INJECTIONS_AT_ONCE: usize = 100;

/// The consumer group of every stream that we read.
pub const GROUP: &str = "windlass";

string_enum! {
    /// A stream that we read (ES-095…102, ES-386).
    InStream ("stream") {
        /// Goals, each a whole `TaskCommand`.
        TaskCommand = "task-command",
        /// A person said something in a session.
        UserMessage = "user-message-received",
        /// A task's segment ended.
        TaskResult = "task-result-received",
        /// A person answered a question.
        HitlResponse = "hitl-response-received",
        /// A schedule says that it is time.
        Scheduled = "scheduled-trigger",
        /// Something happened elsewhere.
        ExternalEvent = "external-event-received",
        /// A person steers a task.
        TaskControl = "task-control-received",
    }
}

impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(error) => Self::Store(error),
            error => Self::Bus(Box::new(error)),
        }
    }
}

impl InStream {
    /// The trigger that arrives there; `None` for whole commands.
    pub const fn trigger(self) -> Option<TriggerStream> {
        match self {
            Self::TaskCommand => None,
            Self::UserMessage => Some(TriggerStream::UserMessageReceived),
            Self::TaskResult => Some(TriggerStream::TaskResultReceived),
            Self::HitlResponse => Some(TriggerStream::HitlResponseReceived),
            Self::Scheduled => Some(TriggerStream::ScheduledTrigger),
            Self::ExternalEvent => Some(TriggerStream::ExternalEventReceived),
            Self::TaskControl => Some(TriggerStream::TaskControlReceived),
        }
    }
}

string_enum! {
    /// What a task's control key says (ES-391).
    Flag ("control flag") {
        /// It is not to run for now.
        Paused = "paused",
        /// It is to stop for good.
        Cancelled = "cancelled",
        /// It is to run.
        Running = "running",
    }
}

/// Who reads which streams, and how much at a time.
#[derive(Clone, Debug)]
pub struct Subscription {
    pub streams: Vec<InStream>,
    /// The consumer; another name for every process.
    pub consumer: String,
    /// The most entries that one read returns.
    pub limit: usize,
}

/// One entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEntry {
    pub stream: InStream,
    /// Its place in the stream, as the bus writes it.
    pub id: String,
    /// What it says; JSON, if its sender keeps to the contract.
    pub body: String,
}

/// One injection in a task's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingInjection {
    pub task: TaskId,
    /// The very text of it.
    pub text: String,
}

/// Why the bus did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be reached, or not now; the same may work later.
    #[error("the bus at `{place}` does not answer")]
    Unreachable {
        /// Where it should be.
        place: String,
        /// What was seen.
        #[source]
        source: ::redis::RedisError,
    },
    /// It does not let us in.
    #[error("the bus at `{place}` does not accept the user name or password")]
    WrongPassword {
        /// Where it is.
        place: String,
        /// What it said.
        #[source]
        source: ::redis::RedisError,
    },
    /// It answered that this cannot be done.
    #[error("the bus at `{place}` refused a command")]
    Refused {
        /// Where it is.
        place: String,
        /// What it said.
        #[source]
        source: ::redis::RedisError,
    },
    /// The rows of the embedded bus could not be read or written.
    #[error(transparent)]
    Store(#[from] windlass_store::Error),
}

/// What workers and the coordinator need of a bus; it keeps the leases of sessions too.
pub trait Bus: Lease {
    /// What it is and where, for people.
    fn place(&self) -> String;

    /// Publishes messages to the streams they are meant for, in order and after what was published before:
    /// all of them, or, with an error, perhaps all.
    fn publish<'a>(&'a self, messages: &'a [Outgoing]) -> BoxFuture<'a, Result<(), Error>>;

    /// Adds an entry to a stream that we read. A key makes a repetition harmless where the bus can tell.
    fn submit<'a>(
        &'a self,
        stream: InStream,
        key: Option<&'a str>,
        body: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Takes new entries; waits up to `wait` for the first. Each goes to one consumer.
    fn take<'a>(
        &'a self,
        subscription: &'a Subscription,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Vec<StreamEntry>, Error>>;

    /// Takes over entries that were taken and not acknowledged for `idle`: those of dead consumers.
    fn claim<'a>(
        &'a self,
        subscription: &'a Subscription,
        idle: Duration,
    ) -> BoxFuture<'a, Result<Vec<StreamEntry>, Error>>;

    /// Says that an entry was dealt with, and what it asked for is in the store.
    fn acknowledge<'a>(&'a self, entry: &'a StreamEntry) -> BoxFuture<'a, Result<(), Error>>;

    /// Puts an injection after those that wait for a task (ES-136).
    fn push<'a>(
        &'a self,
        task: TaskId,
        injection: &'a Injection,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// What waits in the lists of these tasks and is not in the store, in order for each.
    fn list<'a>(
        &'a self,
        tasks: &'a [TaskId],
    ) -> BoxFuture<'a, Result<Vec<PendingInjection>, Error>>;

    /// Removes an injection from its list, which the store has by now.
    fn remove<'a>(&'a self, listed: &'a PendingInjection) -> BoxFuture<'a, Result<(), Error>>;

    /// The control flags of these tasks, where they have one.
    fn flags<'a>(
        &'a self,
        tasks: &'a [TaskId],
    ) -> BoxFuture<'a, Result<Vec<(TaskId, Flag)>, Error>>;

    /// Sets a task's control flag, or takes it away.
    fn set_flag<'a>(&'a self, task: TaskId, flag: Option<Flag>)
    -> BoxFuture<'a, Result<(), Error>>;
}

/// The list of a task's injections (ES-390).
pub fn injections_key(task: TaskId) -> String {
    format!("injection:{task}")
}

/// The key of a task's control flag (ES-391).
pub fn flag_key(task: TaskId) -> String {
    format!("task:status:{task}")
}

/// The key of a session's lease (ES-392).
pub fn lease_key(session: SessionId) -> String {
    format!("session:lease:{session}")
}
