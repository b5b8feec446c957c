//! The progress of a task between two compactions, as a fold of its events.
//!
//! Invariants:
//! - Notes are saved at most once per cycle, whatever crashes in between.
//! - A compaction that began is the next thing that happens, until it has ended.

use crate::compaction::{MAX_FLUSH_TURNS, Trigger};
use crate::event::{CompactionEnd, CompactionProgress, CompactionStart, MemoryFlush};

/// How far the saving of notes has come in this cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// Not asked for yet.
    #[default]
    NotYet,
    /// The agent is saving; the number of its replies so far.
    Running(u32),
    /// It has saved what it wanted to.
    Done,
}

/// A compaction that began and has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCompaction {
    /// How it began.
    pub start: CompactionStart,
    /// What the summarizer has answered so far.
    pub progress: Vec<CompactionProgress>,
}

/// The progress of a task between two compactions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompactionState {
    /// Compactions that have ended.
    pub compactions: u32,
    /// Whether notes are saved.
    pub flush: Flush,
    /// The one under way.
    pub compacting: Option<OpenCompaction>,
    /// Whether nothing was answered since the last compaction.
    pub fresh: bool,
    /// Whether a compaction was forced by the provider and nothing was answered since.
    pub forced: bool,
    /// How large the context is that the provider refused, while notes are saved from a part of it.
    pub refused_tokens: Option<u64>,
    /// Whether the last reply was one in which notes were saved.
    pub reply_saved_notes: bool,
    /// Whether the last reply finished a step of the plan.
    pub step_finished: bool,
    /// Whether the task was handed back to a person before its context is compacted.
    pub yielded: bool,
}

impl CompactionState {
    /// Whether the agent is asked to save notes and do nothing else.
    pub const fn is_flushing(&self) -> bool {
        matches!(self.flush, Flush::Running(_))
    }

    /// The agent is asked to save notes.
    pub fn on_flush(&mut self, flush: &MemoryFlush) {
        self.flush = Flush::Running(0);
        self.refused_tokens = flush.excerpt.map(|_| flush.estimated_tokens);
    }

    /// The model replied. Returns whether the reply was part of saving notes.
    pub fn on_reply(&mut self, has_calls: bool) -> bool {
        self.fresh = false;
        self.forced = false;
        self.reply_saved_notes = self.is_flushing();
        let Flush::Running(turns) = self.flush else {
            self.step_finished = false;
            return false;
        };
        self.flush = if has_calls { Flush::Running(turns + 1) } else { Flush::Done };
        true
    }

    /// All calls of a reply have their results.
    pub fn on_round_end(&mut self) {
        if matches!(self.flush, Flush::Running(turns) if turns >= MAX_FLUSH_TURNS) {
            self.flush = Flush::Done;
        }
    }

    /// A compaction began.
    pub fn on_start(&mut self, start: &CompactionStart) {
        self.flush = Flush::Done;
        self.forced |= start.trigger == Trigger::ContextLength;
        self.compacting = Some(OpenCompaction { start: start.clone(), progress: Vec::new() });
    }

    /// The summarizer answered.
    pub fn on_progress(&mut self, progress: &CompactionProgress) {
        if let Some(current) = &mut self.compacting {
            current.progress.push(progress.clone());
        }
    }

    /// The context was rebuilt from the summary.
    pub fn on_end(&mut self, end: &CompactionEnd) {
        let forced = self.forced;
        let compactions = end.number;
        *self = Self { compactions, fresh: true, forced, ..Self::default() };
    }
}
