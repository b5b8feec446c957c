//! The bodies of the events about sub-agents, and about the budget that a tree of agents shares.

use serde::{Deserialize, Serialize};

use crate::axes::{Axes, ModelMode};
use crate::command::UsageMetrics;
use crate::contract::Review;
use crate::id::{CallId, TaskId};
use crate::role::Role;
use crate::string_enum;

use super::{Note, Words};

/// A sub-agent is about to start (ES-235, ES-317).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubAgentSpawn {
    /// The call that asks for it.
    pub call: CallId,
    pub task_id: TaskId,
    /// What it is called.
    pub label: String,
    /// What it is to do.
    pub task: String,
    /// Limit of active time.
    pub timeout_ms: u64,
    /// The model it talks to: its parent's, or the one of the mode that the call names.
    pub model: String,
    /// The model mode that the call names; `None` for its parent's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_mode: Option<ModelMode>,
    /// The axes it starts with: its parent's, never more (MS-217).
    pub axes: Axes,
    /// The role it works in: its parent's, unless it is started to review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// How many agents are above it.
    pub depth: u32,
    /// Where its output goes, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_output_to: Option<String>,
}

string_enum! {
    /// What became of a sub-agent (ES-237).
    SubAgentStatus ("sub-agent status") {
        Completed = "completed",
        /// It did not.
        Failed = "failed",
        /// It ran out of time.
        Timeout = "timeout",
    }
}

/// A sub-agent ended (ES-236, ES-318).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubAgentComplete {
    /// The call that asked for it.
    pub call: CallId,
    pub task_id: TaskId,
    /// What it is called.
    pub label: String,
    /// What became of it.
    pub status: SubAgentStatus,
    /// Its final message.
    pub output: String,
    /// What it and those below it took.
    pub usage: UsageMetrics,
    /// What that cost, where anything is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Its active time.
    pub duration_ms: u64,
    /// The files it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_changed: Vec<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it said, as an auditor, of the work that it was started to review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Review>,
}

string_enum! {
    /// What is bounded for a task and all below it.
    BudgetKind ("budget") {
        Cost = "cost",
        /// Prompt and reply tokens.
        Tokens = "tokens",
        Turns = "turns",
        Time = "time",
    }
}

string_enum! {
    /// How far a budget is used up.
    BudgetLevel ("budget level") {
        /// Four fifths are used.
        Warning = "warning",
        /// Nothing is left.
        Exceeded = "exceeded",
    }
}

/// A budget is nearly or wholly used up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetHit {
    pub budget: BudgetKind,
    pub level: BudgetLevel,
    /// What the tree has used.
    pub spent: f64,
    /// What it may use.
    pub limit: f64,
}

impl Words for SubAgentSpawn {
    fn words(&self) -> String {
        format!("{} ({})", self.label, self.task_id)
    }
}

impl Words for SubAgentComplete {
    fn words(&self) -> String {
        let error = self.error.as_deref().filter(|_| self.output.is_empty());
        format!("{} {}: {}", self.label, self.status, error.unwrap_or(&self.output))
    }
}

impl Words for BudgetHit {
    fn words(&self) -> String {
        format!("{} {}: {} of {}", self.budget, self.level, self.spent, self.limit)
    }

    fn note(&self) -> Option<Note> {
        let Self { budget, level, spent, limit } = self;
        Note::warning(format!("Budget of {budget}: {level}, {spent} of {limit}"), None)
    }
}
