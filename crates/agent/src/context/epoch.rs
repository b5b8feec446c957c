//! Where an epoch ends: what stays of a conversation when its older turns are dropped, when only a part of it
//! can be sent, and when the prelude changes.

use windlass_core::compaction::Source;
use windlass_core::event::{CompactionEnd, Excerpt};
use windlass_core::message::Prelude;
use windlass_core::state::TaskState;
use windlass_model::Transcript;

use super::{Context, Turns};
use crate::prompt::LEFT_OUT;

impl Context {
    /// The transcript that a compaction would leave.
    pub fn transcript_after(&self, end: &CompactionEnd, state: &TaskState) -> Option<Transcript> {
        Some(self.transcript_of(self.prelude.as_ref()?, &self.turns.after_compaction(end), state))
    }

    /// A conversation as it is sent to the model, after a prelude.
    pub(super) fn transcript_of(
        &self,
        prelude: &Prelude,
        turns: &Turns,
        state: &TaskState,
    ) -> Transcript {
        let transcript = self.model.transcript(prelude).with_pictures(self.pictures.clone());
        let mut transcript = transcript.with_prior_replies(turns.prior_replies());
        for message in turns.messages(state) {
            transcript.push(&message);
        }
        transcript
    }

    /// The same conversation without what the model thought. What it thinks from now on stays out of it too, until
    /// this epoch ends: a server that refuses it would do so with every request.
    pub(super) fn drop_reasoning(&mut self, state: &TaskState) {
        let Some(prelude) = self.prelude.clone() else { return };
        self.turns.forget_reasoning();
        self.reasoning_refused = true;
        let transcript = self.transcript_of(&prelude, &self.turns, state);
        self.opened_bytes = transcript.bytes();
        self.transcript = Some(transcript);
        self.estimate.forget_count();
    }

    /// Until the compaction that follows, the model sees a part of the context. All turns are still there.
    pub(super) fn show_only(&mut self, excerpt: &Excerpt, state: &TaskState) {
        let earlier = self.turns.header().summary.as_deref().unwrap_or_default();
        let summary = format!("{earlier}\n\n{}", LEFT_OUT.trim_end());
        let end = hypothetical(excerpt.kept_turns, excerpt.shrink_bytes, summary);
        self.transcript = self.transcript_after(&CompactionEnd { file: None, ..end }, state);
        self.estimate.forget_count();
    }

    pub(super) fn begin_epoch(&mut self, end: &CompactionEnd, state: &TaskState) {
        let Some(prelude) = &self.prelude else { return };
        let turns = self.turns.after_compaction(end);
        let transcript = self.transcript_of(prelude, &turns, state);
        self.turns = turns;
        self.opened_bytes = transcript.text_bytes();
        self.reasoning_refused = false;
        self.transcript = Some(transcript);
        self.estimate.forget_count();
    }
}

/// A compaction that did not happen, for measuring what it would leave.
pub fn hypothetical(
    kept_turns: u32,
    shrink_bytes: Option<usize>,
    summary: String,
) -> CompactionEnd {
    CompactionEnd {
        number: 0,
        summary,
        source: Source::Model,
        tokens_before: 0,
        tokens_after: 0,
        summarized_turns: 0,
        kept_turns,
        shrink_bytes,
        file: Some("/workspace/.scratch/compaction-000.md".to_owned()),
    }
}
