//! The bodies of the events about tool calls: the decision, the start, the result, and repetition.

use serde::{Deserialize, Serialize};

use crate::axes::Axes;
use crate::id::CallId;
use crate::outcome::{Outcome, Recovery};
use crate::policy::{Class, Decision, Risk};

/// The gate decided (ES-012); every call has exactly one before it starts or is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RiskCheck {
    pub call: CallId,
    pub tool: String,
    /// What it would do.
    pub class: Class,
    /// How bad that could be.
    pub risk: Risk,
    pub decision: Decision,
    pub reason: String,
    /// The axes it was decided under.
    pub axes: Axes,
}

/// A call is about to start; committed first, so that it starts at most once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub call: CallId,
    pub tool: String,
    pub arguments: serde_json::Value,
    /// How it is brought to a result after a crash.
    pub recovery: Recovery,
}

/// A call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub call: CallId,
    pub tool: String,
    /// What it came to.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// How long it took.
    pub duration_ms: u64,
    /// How long the segment has been worked on, by the monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_ms: Option<u64>,
}

/// The agent repeats itself (ES-264…269).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoomLoopDetected {
    pub pattern: String,
    /// Which intervention this is, from 1.
    pub intervention: u32,
    /// What the agent reads.
    pub message: String,
}
