//! Events: what is committed to a journal. The journal is the truth; everything else is a fold of it.
//!
//! Invariants:
//! - Bodies only gain fields, each with a default, so that an old journal can always be read.
//! - `Event::parts` then `Event::from_parts` is identity.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::axes::Axes;
use crate::command::{TaskCommand, TaskResult};
use crate::compaction::Gauge;
use crate::error::ErrorDetails;
use crate::guard::Thresholds;
use crate::id::{CallId, QuestionId, TaskId};
use crate::injection::Injection;
use crate::message::{Finish, Message, Prelude, ToolRequest, Usage};
use crate::outcome::{Outcome, Recovery};
use crate::plan::WorkingPlan;
use crate::policy::{Class, Decision, Risk};
use crate::question::{Answer, Question};
use crate::schedule::DeadlineAction;
use crate::status::{StatusReason, TaskStatus};
use crate::words;

mod long;

pub use long::{
    BudgetHit, BudgetKind, BudgetLevel, CompactionEnd, CompactionProgress, CompactionStart,
    Excerpt, MemoryFlush, SubAgentComplete, SubAgentSpawn, SubAgentStatus,
};

/// The version of event bodies that this program writes.
pub const EVENT_VERSION: u32 = 1;

/// Something that happened to a task; the names on the wire are the trace's `event_type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event_type", content = "data", rename_all = "snake_case")]
pub enum Event {
    /// The task exists.
    TaskCreated(Box<TaskCreated>),
    /// Its status moved.
    StatusChanged(StatusChanged),
    /// A run segment began.
    AgentStart(Box<AgentStart>),
    /// The model was asked.
    LlmRequest(LlmRequest),
    /// The model answered.
    LlmResponse(LlmResponse),
    /// The gate decided about a call.
    RiskCheck(RiskCheck),
    /// A call is about to start.
    ToolCall(ToolCall),
    /// A call ended.
    ToolResult(ToolResult),
    /// A message from outside was taken in.
    InjectionReceived(Injection),
    /// The agent repeats itself.
    DoomLoopDetected(DoomLoopDetected),
    /// A person is asked.
    QuestionAsked(Question),
    /// A person answered.
    QuestionAnswered(QuestionAnswered),
    /// A question is no longer open.
    QuestionClosed(QuestionClosed),
    /// The working plan changed.
    PlanUpdated(WorkingPlan),
    /// A file became a deliverable.
    DeliverablePublished(crate::command::Deliverable),
    /// The axes changed.
    ModeChanged(ModeChanged),
    /// The sandbox runs.
    SandboxStarted(SandboxStarted),
    /// The sandbox is gone.
    SandboxLost(SandboxLost),
    /// The sandbox is taken down: the segment is over.
    SandboxEnded(SandboxEnded),
    /// A background command ended.
    CommandExited(CommandExited),
    /// The agent is asked to save its notes.
    MemoryFlush(MemoryFlush),
    /// Older turns are about to be summarized.
    CompactionStart(CompactionStart),
    /// The summarizer answered.
    CompactionProgress(CompactionProgress),
    /// The context was made anew.
    CompactionEnd(CompactionEnd),
    /// A sub-agent is about to start.
    SubAgentSpawn(SubAgentSpawn),
    /// A sub-agent ended.
    SubAgentComplete(Box<SubAgentComplete>),
    /// A budget is nearly or wholly used up.
    BudgetHit(BudgetHit),
    /// A run segment ended.
    AgentEnd(Box<TaskResult>),
}

words! {
    /// Who drives a task.
    Driver ("driver") {
        /// The command that a person started; nobody else resumes it by itself.
        Foreground = "foreground",
        /// A service, which resumes it after a restart.
        Service = "service",
    }
}

/// The task exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskCreated {
    /// What was handed in.
    pub command: TaskCommand,
    /// The task that started this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// The task that owns the whole tree; itself for a task without parent.
    pub root: TaskId,
    /// How many agents stand above it.
    #[serde(default)]
    pub depth: u32,
    /// The axes it starts with.
    pub axes: Axes,
    /// The directory it works in, on the host.
    pub workspace: String,
    /// Who drives it.
    pub driver: Driver,
    /// Tasks that must be done before it starts (MS-131).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependency_blockers: Vec<TaskId>,
    /// How often it may be retried after a failure (MS-132).
    pub max_retries: u32,
    /// What it may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_budget: Option<f64>,
    /// Whose it is, when somebody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// When it must be finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
}

/// When a task must be finished, and what happens if it is not (ES-078).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// When.
    pub at: Timestamp,
    /// What happens then.
    pub action: DeadlineAction,
}

/// The status moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusChanged {
    /// From this.
    pub from: TaskStatus,
    /// To this.
    pub to: TaskStatus,
    /// Why.
    pub reason: StatusReason,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What went wrong, when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorDetails>,
    /// When it goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl StatusChanged {
    /// A move of which the reason says all.
    pub fn new(from: TaskStatus, to: TaskStatus, reason: StatusReason) -> Self {
        Self { from, to, reason, detail: None, error: None, until: None }
    }
}

/// A run segment began (ES-103).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentStart {
    /// The task.
    pub task_id: TaskId,
    /// Its goal.
    pub goal: String,
    /// The model it talks to.
    pub model: String,
    /// Where its effects happen.
    pub container: String,
    /// What is missing that one would expect of such a place; empty when nothing is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub footing: String,
    /// The names of the tools it is offered.
    pub tools: Vec<String>,
    /// The profile that the gate decides by.
    pub risk_policy: String,
    /// Limit of tool rounds.
    pub max_iterations: u32,
    /// Limit of active time; `None` when there is none.
    pub timeout_ms: Option<u64>,
    /// Compaction settings in force.
    pub compaction_config: serde_json::Value,
    /// When the doom-loop guard speaks, where that is not as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Thresholds>,
    /// The system prompt and tools; present when an epoch begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prelude: Option<Prelude>,
    /// The version of each skill that the prelude names, so that later changes can be told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skills: BTreeMap<String, String>,
    /// The messages the conversation opens with; present when it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Message>,
}

/// The model was asked. The body is not stored: it is the fold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlmRequest {
    /// The model.
    pub model: String,
    /// How many messages were sent.
    pub messages: usize,
    /// How large the prompt is, by estimate.
    pub estimated_tokens: u64,
    /// Hash of what was sent.
    pub hash: String,
    /// How full the context is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Gauge>,
    /// What the call is expected to cost at most; it counts as spent if no reply is ever journaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_usd: Option<f64>,
}

/// The model answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlmResponse {
    /// What it said.
    pub text: String,
    /// What it asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolRequest>,
    /// Why it stopped.
    pub finish: Finish,
    /// Tokens and cost.
    pub usage: Usage,
    /// The model that answered.
    pub model: String,
    /// How long it took.
    pub latency_ms: u64,
}

/// The gate decided (ES-012); every call has exactly one before it starts or is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RiskCheck {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// What it would do.
    pub class: Class,
    /// How bad that could be.
    pub risk: Risk,
    /// What happens.
    pub decision: Decision,
    /// Why.
    pub reason: String,
    /// The axes it was decided under.
    pub axes: Axes,
}

/// A call is about to start; committed first, so that it starts at most once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: serde_json::Value,
    /// How it is brought to a result after a crash.
    pub recovery: Recovery,
}

/// A call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// What it came to.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// How long it took.
    pub duration_ms: u64,
}

/// The agent repeats itself (ES-264…269).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoomLoopDetected {
    /// What repeats.
    pub pattern: String,
    /// Which intervention this is, from 1.
    pub intervention: u32,
    /// What the agent is told.
    pub message: String,
}

/// A person answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    /// The question.
    pub question: QuestionId,
    /// The answer.
    pub answer: Answer,
}

/// A question is no longer open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuestionClosed {
    /// The question.
    pub question: QuestionId,
    /// Why it closed without an answer.
    pub reason: String,
}

/// The axes changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeChanged {
    /// From these.
    pub from: Axes,
    /// To these.
    pub to: Axes,
    /// Why.
    pub reason: String,
    /// When it takes effect.
    pub scope: String,
}

/// The sandbox runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxStarted {
    /// Which kind.
    pub kind: String,
    /// How strong it is, in words.
    pub footing: String,
    /// The container's id, where it is one (ES-078).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
}

/// The sandbox is taken down; what is left of it after a crash is removed at the next start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxEnded {
    /// Which kind.
    pub kind: String,
}

/// The sandbox is gone, and every command in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxLost {
    /// Why.
    pub reason: String,
    /// What the agent is told; empty when nothing of its was lost.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A background command ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandExited {
    /// The call that started it.
    pub call: CallId,
    /// The command.
    pub command: String,
    /// How it ended, in words.
    pub exit: String,
    /// What the agent is told.
    pub message: String,
}

/// An event as it stands in a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Place in the whole database; the cursor that surfaces resume from.
    pub pos: i64,
    /// The task.
    pub task: TaskId,
    /// Place in the task's stream, from 1.
    pub seq: u64,
    /// When it was committed.
    pub at: Timestamp,
    /// The tool round it belongs to.
    pub iteration: u32,
    /// What happened.
    pub event: Event,
}

/// A stored event that this program cannot read.
#[derive(Debug, thiserror::Error)]
#[error("event `{kind}` version {version} cannot be read")]
pub struct UnreadableEvent {
    kind: String,
    version: u32,
    #[source]
    source: Option<serde_json::Error>,
}

impl Event {
    /// The event's name and its body as JSON.
    pub fn parts(&self) -> (&'static str, String) {
        let whole = serde_json::to_string(self).expect("events hold only JSON-representable data");
        // Adjacent tagging writes the tag first, so the body is a slice of the whole.
        let start = r#"{"event_type":"","data":"#.len() + self.kind().len();
        (self.kind(), whole[start..whole.len() - 1].to_owned())
    }

    /// Reads a stored event.
    pub fn from_parts(kind: &str, version: u32, body: &str) -> Result<Self, UnreadableEvent> {
        let unreadable = |source| UnreadableEvent { kind: kind.to_owned(), version, source };
        if version > EVENT_VERSION {
            return Err(unreadable(None));
        }
        let name = serde_json::Value::from(kind);
        let whole = format!(r#"{{"event_type":{name},"data":{body}}}"#);
        serde_json::from_str(&whole).map_err(|source| unreadable(Some(source)))
    }

    /// The event's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::TaskCreated(_) => "task_created",
            Self::StatusChanged(_) => "status_changed",
            Self::AgentStart(_) => "agent_start",
            Self::LlmRequest(_) => "llm_request",
            Self::LlmResponse(_) => "llm_response",
            Self::RiskCheck(_) => "risk_check",
            Self::ToolCall(_) => "tool_call",
            Self::ToolResult(_) => "tool_result",
            Self::InjectionReceived(_) => "injection_received",
            Self::DoomLoopDetected(_) => "doom_loop_detected",
            Self::QuestionAsked(_) => "question_asked",
            Self::QuestionAnswered(_) => "question_answered",
            Self::QuestionClosed(_) => "question_closed",
            Self::PlanUpdated(_) => "plan_updated",
            Self::DeliverablePublished(_) => "deliverable_published",
            Self::ModeChanged(_) => "mode_changed",
            Self::SandboxStarted(_) => "sandbox_started",
            Self::SandboxLost(_) => "sandbox_lost",
            Self::SandboxEnded(_) => "sandbox_ended",
            Self::CommandExited(_) => "command_exited",
            Self::MemoryFlush(_) => "memory_flush",
            Self::CompactionStart(_) => "compaction_start",
            Self::CompactionProgress(_) => "compaction_progress",
            Self::CompactionEnd(_) => "compaction_end",
            Self::SubAgentSpawn(_) => "sub_agent_spawn",
            Self::SubAgentComplete(_) => "sub_agent_complete",
            Self::BudgetHit(_) => "budget_hit",
            Self::AgentEnd(_) => "agent_end",
        }
    }
}
