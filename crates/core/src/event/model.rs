//! The bodies of the events about requests to the model.

use serde::{Deserialize, Serialize};

use crate::compaction::Gauge;
use crate::message::{Finish, ToolRequest, Usage};
use crate::reasoning::Reasoning;
use crate::text::{count, plural, tokens};

use super::{Note, Words};

/// The model was asked. The body is not stored: it is the fold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlmRequest {
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
    /// How long the segment has been worked on, by the monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_ms: Option<u64>,
}

/// What the model thought is sent back to it no longer: its server refuses it. A new epoch begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasoningDropped {
    /// What the server said.
    pub reason: String,
}

/// The model answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlmResponse {
    /// What it said.
    pub text: String,
    /// What it asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolRequest>,
    /// What it thought before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// Why it stopped.
    pub finish: Finish,
    /// Tokens and cost.
    pub usage: Usage,
    /// The model that answered.
    pub model: String,
    /// How long it took.
    pub latency_ms: u64,
    /// How long the segment has been worked on, by the monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_ms: Option<u64>,
}

impl Words for LlmRequest {
    fn words(&self) -> String {
        let tokens = count(self.estimated_tokens);
        format!("{}, about {tokens} tokens", plural(self.messages, "message"))
    }
}

impl Words for LlmResponse {
    fn words(&self) -> String {
        let calls: Vec<_> = self.calls.iter().map(|call| call.name.as_str()).collect();
        let calls =
            if calls.is_empty() { String::new() } else { format!("[{}] ", calls.join(", ")) };
        let used = tokens(self.usage.input_tokens + self.usage.output_tokens);
        let thought = self.reasoning.as_ref().map(Reasoning::text).unwrap_or_default();
        // Its reasoning is shown if the reply has no text.
        let text = match (self.text.trim(), thought.trim()) {
            ("", "") => String::new(),
            ("", thought) => format!(": (thinks) {thought}"),
            (text, _) => format!(": {text}"),
        };
        format!("{calls}{used}{text}")
    }
}

impl Words for ReasoningDropped {
    fn words(&self) -> String {
        self.reason.clone()
    }

    fn note(&self) -> Option<Note> {
        let text = "What the model thought is no longer sent back to it";
        Note::warning(text, Some(&self.reason))
    }
}
