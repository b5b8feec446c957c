//! The control plane: accepts goals, decides who drives them, passes messages, answers and signals on, and
//! computes what surfaces show.
//!
//! It is a router, not an agent: it decides nothing about the work (ES-050, ES-051). Every surface
//! holds a `Coordinator` and nothing below it, so what one can do, all can. Each noun has a handle of its
//! own: `coordinator.tasks().submit(..)`, `coordinator.inbox().answer(..)`.

mod tasks;
mod journals;
mod submit;
mod workplaces;
mod follow_up;
mod drive;
mod conclude;
mod inbox;
mod messages;
mod control;
mod sessions;
mod session;
mod schedules;
mod timer;
mod schedule_runs;
mod deadlines;
mod stall_monitor;
mod queue;
mod feed;
mod live;
mod activity;
pub mod trigger;
mod triggers;
mod router;
mod decision;
pub mod slash;
mod lease;
mod task_leases;
pub mod open_files;
mod limits;
mod memories;
pub mod skill_proposals;
pub mod plans;
mod commitments;
mod assist;
pub mod standing_rules;
mod artifacts;
pub mod outputs;
pub mod parallel;
pub mod pictures;
pub mod files;
mod costs;
mod changes;
mod deliverables;
mod storage;
pub mod health;
mod retention;
pub mod explain;
pub mod metrics;
pub mod views;
pub mod bus;
mod service;
mod worker;
mod outbox;
pub mod workflows;
mod error;
mod error_code;

use std::sync::Arc;

use tokio::sync::{Notify, broadcast};
use windlass_store::Store;

// What surfaces show of an agent's work, so that they need not know the agent.
pub use windlass_agent::{Clock, Preview, PreviewContent, SystemClock, trace};
pub use windlass_model::StreamEvent;
pub use windlass_store::{CommitmentFilter, CommitmentPlace, CommitmentRow, RetentionPlan};

pub use activity::{Activity, ActivityFeed};
pub use artifacts::Artifacts;
pub use assist::{Assist, Assistance};
pub use changes::{Changes, is_own_file};
pub use commitments::{Commitments, GivenEvidence, NewCommitment};
pub use control::{ControlOutcome, Controls};
pub use costs::Costs;
pub use decision::Decision;
pub use deliverables::Deliverables;
pub use drive::{AgentFactory, BoxFuture, ExpandedSkill, SkillCommand};
pub use error::Error;
pub use error_code::ErrorClass;
pub use feed::{
    Damage, FastPollGuard, Feed, JournalEntry, Notice, Notices, Scope, Tail, TaskFeed, Update,
};
pub use follow_up::{FollowUp, InDirectory};
pub use health::Health;
pub use inbox::{Inbox, QuestionOutcome};
pub use journals::Journals;
pub use lease::Lease;
pub use limits::CoordinatorLimits;
pub use memories::Memories;
pub use messages::{MessageReader, Messages};
pub use outputs::Outputs;
pub use pictures::Pictures;
pub use plans::Plans;
pub use queue::Queue;
pub use retention::{RemovalReport, Retention};
pub use schedules::Schedules;
pub use service::Service;
pub use session::{
    AxesChangeOutcome, AxesOrder, Conversation, Delivery, NewSession, Session, Talk,
};
pub use sessions::{SessionRule, Sessions};
pub use skill_proposals::SkillProposals;
pub use standing_rules::StandingRules;
pub use storage::Storage;
pub use submit::{Share, Submission, SubmitOptions, TaskDraft};
pub use tasks::{ParkedTask, ParkedWait, Tasks};
pub use timer::{TickReport, Timer};
pub use triggers::{TriggerOutcome, Triggers};

pub use parallel::Parallel;
pub use workflows::Workflows;

use lease::Leases;
use stall_monitor::StallMonitor;

/// Previews a slow surface may fall behind by before it misses some; they are only previews.
const PREVIEW_BACKLOG: usize = 1024;

/// The way in. Cheap to clone; every surface holds one.
#[derive(Clone)]
pub struct Coordinator {
    store: Store,
    agents: Arc<dyn AgentFactory>,
    clock: Arc<dyn Clock>,
    previews: broadcast::Sender<Preview>,
    activity: broadcast::Sender<Activity>,
    leases: Leases,
    limits: CoordinatorLimits,
    work: Arc<Notify>,
    stalls: StallMonitor,
    sums: costs::KnownSums,
}

impl Coordinator {
    /// A coordinator on a store; `agents` makes an agent for each task that is driven.
    pub fn new(store: Store, agents: Arc<dyn AgentFactory>, clock: Arc<dyn Clock>) -> Self {
        let leases = lease::Rows { store: store.clone(), clock: clock.clone() };
        Self {
            store,
            agents,
            clock,
            previews: broadcast::channel(PREVIEW_BACKLOG).0,
            activity: broadcast::channel(PREVIEW_BACKLOG).0,
            leases: Leases::new(Arc::new(leases)),
            limits: CoordinatorLimits::default(),
            work: Arc::default(),
            stalls: StallMonitor::default(),
            sums: costs::KnownSums::default(),
        }
    }

    /// The same, with other limits.
    pub fn with_limits(mut self, limits: CoordinatorLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The same, with leases kept elsewhere.
    pub fn with_leases(mut self, leases: Arc<dyn Lease>) -> Self {
        self.leases = Leases::new(leases);
        self
    }

    /// The limits in force.
    pub fn limits(&self) -> CoordinatorLimits {
        self.limits
    }

    pub fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }

    /// Goals and what became of them.
    pub fn tasks(&self) -> Tasks<'_> {
        Tasks { coordinator: self }
    }

    /// What tasks have done, event by event.
    pub fn journals(&self) -> Journals<'_> {
        Journals { coordinator: self }
    }

    /// What people are asked.
    pub fn inbox(&self) -> Inbox<'_> {
        Inbox { coordinator: self }
    }

    /// Messages to tasks.
    pub fn messages(&self) -> Messages<'_> {
        Messages { coordinator: self }
    }

    /// Pausing, resuming and cancelling.
    pub fn control(&self) -> Controls<'_> {
        Controls { coordinator: self }
    }

    pub fn sessions(&self) -> Sessions<'_> {
        Sessions { coordinator: self }
    }

    /// What happens automatically, and when.
    pub fn schedules(&self) -> Schedules<'_> {
        Schedules { coordinator: self }
    }

    /// Which tasks of the service wait for a process.
    pub fn queue(&self) -> Queue<'_> {
        Queue { coordinator: self }
    }

    /// Events as they are committed.
    pub fn feed(&self) -> Feed<'_> {
        Feed { coordinator: self }
    }

    /// What this process does with tasks, from now on.
    pub fn activity(&self) -> ActivityFeed {
        ActivityFeed(self.activity.subscribe())
    }

    /// What comes from outside.
    pub fn triggers(&self) -> Triggers<'_> {
        Triggers { coordinator: self }
    }

    /// What is worth knowing beyond one task.
    pub fn memories(&self) -> Memories<'_> {
        Memories { coordinator: self }
    }

    /// What tasks have in common, and the skills that are proposed for it.
    pub fn skill_proposals(&self) -> SkillProposals<'_> {
        SkillProposals { coordinator: self }
    }

    /// Plans, their issues, decisions and snapshots.
    pub fn plans(&self) -> Plans<'_> {
        Plans { coordinator: self }
    }

    /// Prompts for hard decisions.
    pub fn assist(&self) -> Assist<'_> {
        Assist { coordinator: self }
    }

    /// Promised work, and what proves it.
    pub fn commitments(&self) -> Commitments<'_> {
        Commitments { coordinator: self }
    }

    /// What people allow in advance.
    pub fn standing_rules(&self) -> StandingRules<'_> {
        StandingRules { coordinator: self }
    }

    /// What commands printed, and the pictures and files of tasks.
    pub fn artifacts(&self) -> Artifacts<'_> {
        Artifacts { coordinator: self }
    }

    /// Tokens and money.
    pub fn costs(&self) -> Costs<'_> {
        Costs { coordinator: self }
    }

    /// Where the data is, and whether it is sound.
    pub fn storage(&self) -> Storage<'_> {
        Storage { coordinator: self }
    }

    /// Whether the installation is sound, and what to do where it is not.
    pub fn health(&self) -> Health<'_> {
        Health { coordinator: self }
    }

    /// The skills that a person may call by `/name` in a directory.
    pub fn skills(&self, directory: Option<&str>) -> Result<Vec<SkillCommand>, Error> {
        let found = self.agents.skill_commands(directory);
        found.map_err(|details| Error::Unusable { details: Box::new(details) })
    }

    /// Workers side by side.
    pub fn parallel(&self) -> Parallel<'_> {
        Parallel { coordinator: self }
    }

    /// Workflows and their runs.
    pub fn workflows(&self) -> Workflows<'_> {
        Workflows { coordinator: self }
    }
}
