//! The bodies of what happens to long tasks: compactions, sub-agents, budgets.

use serde::{Deserialize, Serialize};

use crate::axes::Axes;
use crate::command::UsageMetrics;
use crate::compaction::{Source, Trigger};
use crate::id::{CallId, TaskId};
use crate::message::Usage;
use crate::words;

/// The agent is asked to save its notes (ES-158, ES-316).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryFlush {
    /// The compaction it precedes, from 1.
    pub number: u32,
    /// How large the context is.
    pub estimated_tokens: u64,
    /// What the agent is told.
    pub message: String,
    /// What of the context it is shown, where the provider refused the whole as too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<Excerpt>,
}

/// A part of a context that can still be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// Its newest turns.
    pub kept_turns: u32,
    /// Results over this size in them shrink to pointers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrink_bytes: Option<usize>,
}

/// Older turns are about to be summarized (ES-314).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionStart {
    /// Which one, from 1.
    pub number: u32,
    /// Why.
    pub trigger: Trigger,
    /// How large the context is.
    pub tokens_before: u64,
    /// The model's window.
    pub window_tokens: u64,
    /// Turns that are summarized.
    pub summarized_turns: u32,
    /// Turns that stay.
    pub kept_turns: u32,
    /// Results over this size in them shrink to pointers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrink_bytes: Option<usize>,
    /// Pieces that the summarizer is given.
    pub chunks: u32,
    /// How long the summary may be.
    pub summary_tokens: u64,
    /// Who summarizes.
    pub model: String,
    /// Whether the agent could save its notes before.
    pub flushed: bool,
}

/// The summarizer answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionProgress {
    /// Which compaction.
    pub number: u32,
    /// What it answered.
    pub text: String,
    /// Tokens and cost.
    pub usage: Usage,
    /// How long it took.
    pub latency_ms: u64,
}

/// The context was made anew: what it consists of follows from this and what stands before it (ES-315).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionEnd {
    /// Which one, from 1.
    pub number: u32,
    /// What stands for the older turns.
    pub summary: String,
    /// Where that comes from.
    pub source: Source,
    /// How large the context was.
    pub tokens_before: u64,
    /// How large it is now, by estimate.
    pub tokens_after: u64,
    /// Turns that were summarized.
    pub summarized_turns: u32,
    /// Turns that stayed.
    pub kept_turns: u32,
    /// Results over this size in them were shrunk to pointers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrink_bytes: Option<usize>,
    /// Where what was dropped can be read, as the agent names it; `None` when it could not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// A sub-agent is about to start (ES-235, ES-317).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubAgentSpawn {
    /// The call that asks for it.
    pub call: CallId,
    /// Its task.
    pub task_id: TaskId,
    /// What it is called.
    pub label: String,
    /// What it is to do.
    pub task: String,
    /// Limit of active time.
    pub timeout_ms: u64,
    /// The model it talks to: its parent's.
    pub model: String,
    /// The axes it starts with: its parent's, never more (MS-217).
    pub axes: Axes,
    /// How many agents stand above it.
    pub depth: u32,
    /// Where its output goes, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_output_to: Option<String>,
}

words! {
    /// What became of a sub-agent (ES-237).
    SubAgentStatus ("sub-agent status") {
        /// It finished.
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
    /// Its task.
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
}

words! {
    /// What is bounded for a task and all below it.
    BudgetKind ("budget") {
        /// US dollars.
        Cost = "cost",
        /// Prompt and reply tokens.
        Tokens = "tokens",
        /// Model replies.
        Turns = "turns",
        /// Active seconds.
        Time = "time",
    }
}

words! {
    /// How far a budget is used up.
    BudgetLevel ("budget level") {
        /// Four fifths are gone.
        Warning = "warning",
        /// Nothing is left.
        Exceeded = "exceeded",
    }
}

/// A budget is nearly or wholly used up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetHit {
    /// Which.
    pub budget: BudgetKind,
    /// How far.
    pub level: BudgetLevel,
    /// What the tree has used.
    pub spent: f64,
    /// What it may use.
    pub limit: f64,
}
