//! What one agent is made from: chosen by the factory, fixed for the segment.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use windlass_core::axes::ModelMode;
use windlass_core::command::{CompactionOverrides, Outage};
use windlass_core::compaction;
use windlass_core::contract::Contract;
use windlass_core::error::ErrorDetails;
use windlass_core::event::SubAgentSpawn;
use windlass_core::guard::Thresholds;
use windlass_core::id::{CallId, TaskId};
use windlass_core::policy::RuleSet;
use windlass_core::state::TaskState;
use windlass_model::{Model, Price, StreamEvent};
use windlass_tools::{Registry, ToolContext};

use crate::billing::budget;
use crate::compaction::Summarizer;
use crate::delegation::tree;
use crate::environment::TaskEnvironment;
use crate::gate::HookTrust;
use crate::memory::MemorySource;

/// What one agent is made from.
#[derive(Clone)]
pub struct Parts {
    /// The model that it talks to.
    pub model: Arc<dyn Model>,
    /// The model that summarizes older turns.
    pub summarizer: Summarizer,
    pub registry: Arc<Registry>,
    /// What its tools work with.
    pub world: ToolContext,
    /// Its limits and environment.
    pub settings: Settings,
    /// Where memories of earlier work come from.
    pub memory: Option<MemorySource>,
    /// Which skills' hooks may run.
    pub trusted: HookTrust,
    /// Where previews go; they are not journaled.
    pub previews: broadcast::Sender<Preview>,
    /// Where another model comes from, when the task wants one while it is worked on.
    pub models: Option<ModelSource>,
}

/// Which model a task wants: the one that a person has named, else the one of its mode (MS-073).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelWish {
    pub mode: ModelMode,
    pub named: Option<String>,
}

impl ModelWish {
    pub fn of(task: &TaskState) -> Self {
        Self { mode: task.axes.model_mode, named: task.execution_config().model }
    }
}

/// Where models come from, and for which wish the present one was opened.
#[derive(Clone)]
pub struct ModelSource {
    pub made_for: ModelWish,
    pub source: Arc<dyn OpenModel>,
}

/// Opens the model that a task wants.
pub trait OpenModel: Send + Sync {
    fn open(&self, task: &TaskState) -> Result<ModelParts, ErrorDetails>;

    /// The model of a mode, whatever the task itself wants.
    fn open_mode(&self, task: &TaskState, mode: ModelMode) -> Result<ModelParts, ErrorDetails>;
}

/// A model and what depends on which it is.
pub struct ModelParts {
    pub model: Arc<dyn Model>,
    pub summarizer: Summarizer,
    pub compaction: CompactionOverrides,
    pub tool_output_max_tokens: u64,
    pub price: Option<Price>,
}

impl Parts {
    /// The same with another model.
    pub(crate) fn with_model(self, other: ModelParts, wish: ModelWish) -> Self {
        Self {
            model: other.model,
            summarizer: other.summarizer,
            settings: Settings {
                compaction: other.compaction,
                tool_output_max_tokens: other.tool_output_max_tokens,
                price: other.price,
                ..self.settings
            },
            models: self.models.map(|models| ModelSource { made_for: wish, ..models }),
            ..self
        }
    }
}

impl Parts {
    /// What a reply may take, in tokens.
    pub(crate) fn reply_tokens(&self) -> u64 {
        compaction::WindowLimits::from(&self.settings.compaction).reserve
    }

    /// The parts of a sub-agent: the same tools, workspace and sandbox, with limits of its own.
    pub(crate) fn for_child(&self, spawn: &SubAgentSpawn, bound_by: Vec<String>) -> Self {
        let shell = Arc::new(self.world.shell.for_task(spawn.task_id));
        Self {
            world: ToolContext { shell, ..self.world.clone() },
            settings: Settings {
                timeout: Some(Duration::from_millis(spawn.timeout_ms)),
                instructions: None,
                bound_by,
                contract: None,
                ..self.settings.clone()
            },
            memory: None,
            // A sub-agent keeps the model that it was started with: no wish of its own differs from this.
            models: self.models.clone().map(|models| ModelSource {
                made_for: ModelWish { mode: spawn.axes.model_mode, named: None },
                ..models
            }),
            ..self.clone()
        }
    }
}

/// The limits and environment of one agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Limit of tool rounds.
    pub max_iterations: u32,
    /// Limit of active time.
    pub timeout: Option<Duration>,
    /// What happens when the model server does not answer.
    pub outage: Outage,
    /// Largest tool result in the context, in tokens.
    pub tool_output_max_tokens: u64,
    /// What people decided in advance about calls.
    pub rules: RuleSet,
    /// Skills that the agents above it follow: it may do no more than they (C-12).
    pub bound_by: Vec<String>,
    /// Whether an agent without a role is shown the tools for commitments.
    pub shows_ledger: bool,
    /// What must hold before the task is done.
    pub contract: Option<Arc<ContractInForce>>,
    /// Compaction settings in force.
    pub compaction: CompactionOverrides,
    /// When an agent that repeats itself is warned.
    pub guard: Thresholds,
    /// Whether a finished plan step is a reason to compact a context that is filling up.
    pub compact_at_plan_step: bool,
    /// Where effects happen.
    pub container: String,
    /// What the sandbox lacks that one would expect, in words.
    pub sandbox_gaps: String,
    /// The project's own instructions for agents.
    pub instructions: Option<String>,
    /// What its first message tells of the place; nothing without it.
    pub environment: Option<TaskEnvironment>,
    /// Limit of active time of a sub-agent whose call does not say (ES-366).
    pub sub_agent_timeout: Duration,
    /// How many agents there may be.
    pub sub_agents: tree::AgentLimits,
    /// What the task and all agents below it may spend.
    pub budget: budget::SpendingLimits,
    /// What its model costs, where that is known.
    pub price: Option<Price>,
}

impl Settings {
    /// The limit of tool rounds; that of the contract wins (AX-012).
    pub(crate) fn round_limit(&self) -> u32 {
        let own = self.contract.as_ref().and_then(|active| active.contract.max_iterations);
        own.unwrap_or(self.max_iterations)
    }
}

/// A completion contract, and whether its commands may run.
#[derive(Clone, Debug)]
pub struct ContractInForce {
    pub contract: Contract,
    /// Where it comes from, for the person who is asked.
    pub source: String,
    /// Whether a person has approved its commands.
    pub approved: bool,
}

/// Something that is shown before it is journaled.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The task it belongs to.
    pub task: TaskId,
    pub live: PreviewContent,
}

/// What is shown before it is journaled.
#[derive(Clone, Debug)]
pub enum PreviewContent {
    /// The model is asked. What follows is the reply to this request, which is this event of the journal.
    Asked { seq: u64 },
    /// Part of a reply; a retry makes it void.
    Reply(StreamEvent),
    /// What a running call has printed since the last piece. Where much is printed, only its end.
    Output { call: CallId, text: String },
    /// The segment is over; nothing follows.
    Ended,
}
