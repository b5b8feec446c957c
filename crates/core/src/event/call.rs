//! The bodies of the events about tool calls: the decision, the start, the result, and repetition.

use serde::{Deserialize, Serialize};

use crate::axes::Axes;
use crate::id::CallId;
use crate::outcome::{CallEnding, Outcome, Recovery};
use crate::policy::{Class, Decision, Risk};

use super::{Note, Words};

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

impl Words for RiskCheck {
    fn words(&self) -> String {
        // A tool may have the name of its class.
        let class = self.class.to_string();
        let class = if class == self.tool { String::new() } else { format!("{class}, ") };
        format!("{} {}: {class}{}: {}", self.decision, self.tool, self.risk, self.reason)
    }
}

impl Words for ToolCall {
    fn words(&self) -> String {
        format!("{} {}", self.tool, self.arguments)
    }
}

impl Words for ToolResult {
    /// With the first line of what the call printed, which may hold escape sequences.
    fn words(&self) -> String {
        let ending = match (self.outcome.exit_code, self.outcome.ending) {
            (Some(code), _) => format!("exit {code}"),
            (None, CallEnding::Ok) => "ok".to_owned(),
            (None, ending) => ending.to_string(),
        };
        // Its own name is shown in front.
        let text = self.outcome.display_text();
        let printed = match text.strip_prefix(self.tool.as_str()) {
            Some(rest) => rest.trim_start_matches([':', ' ']),
            None => text.trim_start(),
        };
        let ms = self.duration_ms;
        match printed {
            "" => format!("{} {ending} in {ms} ms", self.tool),
            printed => format!("{} {ending} in {ms} ms: {printed}", self.tool),
        }
    }
}

impl Words for DoomLoopDetected {
    fn words(&self) -> String {
        self.pattern.clone()
    }

    fn note(&self) -> Option<Note> {
        Note::warning("It repeats itself, and was warned", Some(&self.pattern))
    }
}
