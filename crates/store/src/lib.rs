//! The journal and its projections, in SQLite: one writer thread per process, readers beside it, and
//! any number of processes on one data directory.
//!
//! The store speaks in domain terms; no SQL leaves the crate. Writing is async and resolves after the
//! commit. Reading is synchronous and takes microseconds; for a long journal use [`Store::blocking`].
//!
//! A [`Store`] hands out one small handle for each noun, in the file of that name: `store.tasks().get(id)`.

mod error;
mod dir;
mod schema;
mod writer;
mod reader;
mod row;
mod words;
mod journal;
mod contents;
mod projections;
mod create;
mod commitments;
mod files;
mod owner;
mod lock;
mod mailbox;
mod changes;
mod claims;
mod tasks;
mod questions;
mod ids;
mod runtime;
mod ready;
mod ready_index;
mod outbox;
mod bus;
mod sessions;
mod session_stream;
mod leases;
mod presence;
mod triggers;
mod schedules;
mod scheduler;
mod deadlines;
mod rebuild;
mod verify;
mod health;
mod sums;
mod retention;
mod reserve;
mod memories;
mod skill_proposals;
mod standing_rules;
mod planning;
pub mod outputs;
mod pictures;
pub mod search;
mod secrets;
mod workflow_runs;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use rusqlite::Connection;

pub use bus::{Bus, BusEntry, BusRead, MAX_WAITING_ENTRIES};
pub use changes::Changes;
pub use claims::{CLAIM_HOLDS, Claims, HeldClaim};
pub use commitments::{CommitmentFilter, CommitmentPlace, CommitmentRow, Commitments, NewProof};
pub use create::Creation;
pub use deadlines::{DEADLINE_TRIGGER, Deadlines};
pub use dir::DataDir;
pub use error::Error;
pub use health::{DriftKind, Health, SchemaDrift};
pub use ids::Ids;
pub use journal::{Bookmark, Damage, Journal, JournalEntry, MAX_EVENT_BYTES, Scope, StreamCursors};
pub use leases::Leases;
pub use mailbox::{Acceptance, MAX_WAITING, Mailbox, RESERVED_WAITING};
pub use memories::{Memories, Memory, NewMemory};
pub use outbox::{OutStream, Outbox, Outgoing, UserMessageCommand};
pub use owner::{Owner, Owners, Singleton, Stream};
pub use pictures::{MAX_PICTURES, MAX_TOTAL_BYTES, Pictures};
pub use planning::{
    Decision, Issue, NewDecision, NewIssue, PlanRow, PlanTaskRow, Planning, PlanningFilter,
};
pub use presence::ServicePresence;
pub use questions::{QuestionRow, QuestionState, Questions};
pub use rebuild::Projections;
pub use retention::{FinishedTree, KeepReason, PruneReport, Retention, RetentionPlan};
pub use runtime::{Pulse, Runtime, RuntimeRow};
pub use scheduler::{Scheduler, SchedulerRow};
pub use schedules::{Advance, MAX_SCHEDULES, ScheduleRow, Schedules};
pub use schema::{BUSY_WAIT, SCHEMA_VERSION};
pub use secrets::SecretList;
pub use session_stream::{SessionAppend, announcement};
pub use sessions::{ModeTransition, SessionFilter, SessionPlace, SessionRow, Sessions};
pub use skill_proposals::{
    EvidenceKind, NewEvidence, NewProposal, ProposalRow, ProposalStatus, Recurrence, SkillProposals,
};
pub use standing_rules::{MAX_STANDING_RULES, NewStandingRule, StandingRule, StandingRules};
pub use sums::{Sum, Sums};
pub use tasks::{Filter, ListPlace, TaskOrigin, TaskRow, Tasks, Transition};
pub use triggers::Triggers;
pub use verify::Difference;
pub use windlass_core::schedule::DeadlineAction;
pub use workflow_runs::WorkflowRunRow;
pub use writer::{CommitHook, CommitPhase, CommitPoint, Level};

use changes::ChangeCounters;
use error::Fault;
use outputs::FinishedOutputs;
use reader::Readers;
use reserve::Reserve;
use writer::Writer;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Called by the writer thread around every commit; for tests that end the process there.
    pub on_commit: Option<CommitHook>,
    /// How many pages of 4 KiB the database may take; a write beyond it fails with [`Error::Full`].
    pub max_pages: Option<u32>,
    /// How long to wait for another process's transaction before [`Error::Busy`].
    pub busy_wait: Duration,
    /// How long the files of outputs are kept.
    pub keep_outputs: SignedDuration,
    /// How long finished tasks are kept; forever if not set.
    pub keep_tasks: Option<SignedDuration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            on_commit: None,
            max_pages: None,
            busy_wait: schema::BUSY_WAIT,
            keep_outputs: outputs::RETENTION,
            keep_tasks: None,
        }
    }
}

/// The store of one data directory. Cheap to clone; dropping the last clone commits what is queued and closes.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    dir: DataDir,
    readers: Readers,
    /// `None` where the data can only be looked at.
    writer: Option<Writer>,
    counters: ChangeCounters,
    finished_outputs: FinishedOutputs,
    keep_outputs: SignedDuration,
    keep_tasks: Option<SignedDuration>,
    reserve: Reserve,
    secrets: SecretList,
}

impl Inner {
    fn with_writer(dir: DataDir, connection: Connection, options: Options) -> Result<Self, Error> {
        let (path, counters) = (dir.database(), ChangeCounters::new());
        let reserve = Reserve::new(&dir);
        reserve.make();
        let hook = options.on_commit.clone();
        let writer = Writer::start(connection, path.clone(), counters.clone(), hook)?;
        Ok(Self::new(dir, Readers::new(path), Some(writer), counters, reserve, options))
    }

    fn without_writer(directory: &Path, database: &Path, options: Options) -> Result<Self, Error> {
        let dir = DataDir::open_existing(directory)?;
        let readers = Readers::of_read_only(database.to_owned())?;
        let reserve = Reserve::new(&dir);
        Ok(Self::new(dir, readers, None, ChangeCounters::new(), reserve, options))
    }

    fn new(
        dir: DataDir,
        readers: Readers,
        writer: Option<Writer>,
        counters: ChangeCounters,
        reserve: Reserve,
        options: Options,
    ) -> Self {
        Self {
            dir,
            readers,
            writer,
            counters,
            finished_outputs: FinishedOutputs::default(),
            keep_outputs: options.keep_outputs,
            keep_tasks: options.keep_tasks,
            reserve,
            secrets: SecretList::default(),
        }
    }
}

impl Store {
    /// Opens the store in a data directory, making or migrating what is needed. Where nothing can be written, what is
    /// there can still be looked at; a write is refused with [`Error::ReadOnly`].
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let directory = directory.as_ref();
        let opened = DataDir::prepare(directory)
            .and_then(|dir| Ok((schema::open_writer(&dir, &options)?, dir)));
        let inner = match opened {
            Ok((connection, dir)) => Inner::with_writer(dir, connection, options),
            Err(Error::ReadOnly { path, .. }) => Inner::without_writer(directory, &path, options),
            Err(error) => Err(error),
        };
        Ok(Self { inner: Arc::new(inner?) })
    }

    /// The layout of the data directory.
    pub fn dir(&self) -> &DataDir {
        &self.inner.dir
    }

    /// Makes everything that this process has written survive a power loss.
    pub async fn sync(&self) -> Result<(), Error> {
        self.write(Level::Synced, |_| Ok(())).await
    }

    /// Runs a query that may take long (a whole journal, a search) away from the async threads.
    pub async fn blocking<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.clone();
        let job = tokio::task::spawn_blocking(move || query(&store));
        job.await.map_err(|_| Error::Stopped)?
    }

    /// Who drives which task.
    pub fn owners(&self) -> Owners<'_> {
        Owners { store: self }
    }

    /// The events of all tasks.
    pub fn journal(&self) -> Journal<'_> {
        Journal { store: self }
    }

    /// Conversations and their tasks.
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions { store: self }
    }

    /// What is worth knowing beyond one task.
    pub fn memories(&self) -> Memories<'_> {
        Memories { store: self }
    }

    /// Promised work, who has claimed it, and what proves it.
    pub fn commitments(&self) -> Commitments<'_> {
        Commitments { store: self }
    }

    /// Skills that agents proposed.
    pub fn skill_proposals(&self) -> SkillProposals<'_> {
        SkillProposals { store: self }
    }

    /// What people allow in advance.
    pub fn standing_rules(&self) -> StandingRules<'_> {
        StandingRules { store: self }
    }

    /// Plans, issues, decisions and snapshots.
    pub fn planning(&self) -> Planning<'_> {
        Planning { store: self }
    }

    /// The streams and control flags of the embedded bus.
    pub fn bus(&self) -> Bus<'_> {
        Bus { store: self }
    }

    /// Messages that wait for tasks.
    pub fn mailbox(&self) -> Mailbox<'_> {
        Mailbox { store: self }
    }

    /// Questions for people.
    pub fn questions(&self) -> Questions<'_> {
        Questions { store: self }
    }

    /// What happens automatically, and when.
    pub fn schedules(&self) -> Schedules<'_> {
        Schedules { store: self }
    }

    /// Which service tasks may start, and which worker has them.
    pub fn scheduler(&self) -> Scheduler<'_> {
        Scheduler { store: self }
    }

    /// What was decided about earlier triggers.
    pub fn triggers(&self) -> Triggers<'_> {
        Triggers { store: self }
    }

    /// Finds things by a shortened id.
    pub fn ids(&self) -> Ids<'_> {
        Ids { store: self }
    }

    /// Tasks as lists and pages show them.
    pub fn tasks(&self) -> Tasks<'_> {
        Tasks { store: self }
    }

    /// The tables that are folds of the journal.
    pub fn projections(&self) -> Projections<'_> {
        Projections { store: self }
    }

    fn read<T>(&self, query: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Error> {
        self.inner.readers.read(query)
    }

    async fn write<T, F>(&self, level: Level, work: F) -> Result<T, Error>
    where
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
        T: Send + 'static,
    {
        let Some(writer) = &self.inner.writer else {
            return Err(Error::read_only(&self.inner.dir.database()));
        };
        writer.run(level, work).await
    }

    /// The same for what ends or stops a task. On a full disk the reserve is given up for it.
    async fn write_urgently<T, F>(&self, level: Level, work: F) -> Result<T, Error>
    where
        F: FnOnce(&Connection) -> Result<T, Fault> + Clone + Send + 'static,
        T: Send + 'static,
    {
        match self.write(level, work.clone()).await {
            Err(Error::Full { .. }) if self.inner.reserve.release() => {
                self.write(level, work).await
            }
            written => written,
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.dir.root()).finish()
    }
}
