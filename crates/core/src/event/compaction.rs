//! The bodies of the events around a compaction.

use serde::{Deserialize, Serialize};

use crate::compaction::{Source, Trigger};
use crate::message::Usage;
use crate::text::{count, plural, tokens};

use super::{Note, Words};

/// The agent is asked to save its notes (ES-158, ES-316).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryFlush {
    /// The compaction it precedes, from 1.
    pub number: u32,
    /// How large the context is.
    pub estimated_tokens: u64,
    /// What the agent reads.
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
    pub model: String,
    /// Whether the agent could save its notes before.
    pub flushed: bool,
}

/// The summarizer answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionProgress {
    pub number: u32,
    /// What it answered.
    pub text: String,
    /// Tokens and cost.
    pub usage: Usage,
    /// How long it took.
    pub latency_ms: u64,
}

/// The context was rebuilt: its content follows from this event and those before it (ES-315).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionEnd {
    /// Which one, from 1.
    pub number: u32,
    /// The summary that replaces the older turns.
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

impl Words for MemoryFlush {
    fn words(&self) -> String {
        format!("notes are saved at about {} tokens", count(self.estimated_tokens))
    }
}

impl Words for CompactionStart {
    fn words(&self) -> String {
        let (before, window) = (count(self.tokens_before), count(self.window_tokens));
        let turns = plural(self.summarized_turns, "turn");
        format!("{turns} to summarize, at {before} of {window} tokens ({})", self.trigger)
    }
}

impl Words for CompactionProgress {
    fn words(&self) -> String {
        let used = tokens(self.usage.input_tokens + self.usage.output_tokens);
        format!("{used}: {}", self.text)
    }
}

impl Words for CompactionEnd {
    fn words(&self) -> String {
        format!(
            "{} summarized, {} kept, {} → {} tokens",
            plural(self.summarized_turns, "turn"),
            self.kept_turns,
            self.tokens_before,
            self.tokens_after
        )
    }

    fn note(&self) -> Option<Note> {
        let (before, after) = (count(self.tokens_before), count(self.tokens_after));
        let text = format!("Context summarized: {before} → {after} tokens");
        Note::with_detail(text, &self.summary)
    }
}
