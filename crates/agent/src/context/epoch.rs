//! Where an epoch ends: what stays of a conversation when its older turns are dropped, when only a part of it
//! can be sent, and when the prelude changes.

use windlass_core::compaction::Source;
use windlass_core::event::{CompactionEnd, Excerpt};
use windlass_core::message::{Message, Prelude};
use windlass_core::state::TaskState;
use windlass_model::Transcript;

use super::{Context, Turn, pictures};
use crate::prompt::LEFT_OUT;

impl Context {
    /// The transcript that a compaction would leave.
    pub fn after(&self, end: &CompactionEnd, state: &TaskState) -> Option<Transcript> {
        let prelude = self.prelude.as_ref()?;
        let (dropped, kept) = self.partition_turns(end.kept_turns as usize);
        let header = self.header.after(end, &dropped);
        let mut transcript = self.transcript_after(prelude, self.replies - kept.len());
        for message in &self.opening {
            transcript.push(message);
        }
        transcript.push(&Message::user(header.text(state)));
        for entry in next_turns(&kept, end).iter().flat_map(|turn| &turn.entries) {
            transcript.push(&entry.message);
        }
        Some(transcript)
    }

    /// An empty transcript that comes after so many replies.
    fn transcript_after(&self, prelude: &Prelude, replies: usize) -> Transcript {
        let transcript = self.model.transcript(prelude).with_pictures(self.pictures.clone());
        transcript.with_prior_replies(replies)
    }

    /// The conversation so far, after another prelude.
    pub(super) fn rebuild_with(&self, prelude: &Prelude, state: &TaskState) -> Transcript {
        let mut transcript = self.transcript_after(prelude, self.replies - self.turns.len());
        for message in &self.opening {
            transcript.push(message);
        }
        if self.header.summary.is_some() {
            transcript.push(&Message::user(self.header.text(state)));
        }
        for entry in self.turns.iter().flat_map(|turn| &turn.entries) {
            transcript.push(&entry.message);
        }
        transcript
    }

    /// The same conversation without what the model thought. What it thinks from now on stays out of it too, until
    /// this epoch ends: a server that refuses it would do so with every request.
    pub(super) fn drop_reasoning(&mut self, state: &TaskState) {
        let Some(prelude) = self.prelude.clone() else { return };
        self.forget_reasoning();
        self.reasoning_refused = true;
        let transcript = self.rebuild_with(&prelude, state);
        self.opened_bytes = transcript.bytes();
        self.transcript = Some(transcript);
        self.estimate.forget_count();
    }

    /// Reasoning does not outlive its epoch.
    pub(super) fn forget_reasoning(&mut self) {
        let entries = self.turns.iter_mut().flat_map(|turn| &mut turn.entries);
        for message in entries.map(|entry| &mut entry.message).chain(&mut self.opening) {
            if let Message::Assistant { reasoning, .. } = message {
                *reasoning = None;
            }
        }
    }

    /// Until the compaction that follows, the model sees a part of the context. All turns are still there.
    pub(super) fn show_only(&mut self, excerpt: &Excerpt, state: &TaskState) {
        let earlier = self.header.summary.as_deref().unwrap_or_default();
        let summary = format!("{earlier}\n\n{}", LEFT_OUT.trim_end());
        let end = hypothetical(excerpt.kept_turns, excerpt.shrink_bytes, summary);
        self.transcript = self.after(&CompactionEnd { file: None, ..end }, state);
        self.estimate.forget_count();
    }

    /// The turns that would go and those that would stay. Turns in which notes were saved never stay:
    /// what they said is in the notes.
    pub fn partition_turns(&self, keep: usize) -> (Vec<&Turn>, Vec<&Turn>) {
        let work = self.turns.iter().filter(|turn| !turn.flush).count();
        let mut skip = work.saturating_sub(keep);
        self.turns.iter().partition(|turn| {
            let goes = turn.flush || skip > 0;
            skip = skip.saturating_sub(usize::from(!turn.flush && goes));
            goes
        })
    }

    pub(super) fn begin_epoch(&mut self, end: &CompactionEnd, state: &TaskState) {
        let Some(transcript) = self.after(end, state) else { return };
        let (dropped, kept) = self.partition_turns(end.kept_turns as usize);
        let header = self.header.after(end, &dropped);
        self.turns = next_turns(&kept, end);
        self.header = header;
        self.opened_bytes = transcript.text_bytes();
        self.reasoning_refused = false;
        self.transcript = Some(transcript);
        self.estimate.forget_count();
    }
}

/// The turns that stay, as the next epoch knows them.
fn next_turns(kept: &[&Turn], end: &CompactionEnd) -> Vec<Turn> {
    let next = |turn: &&Turn| turn.for_next_epoch(end.shrink_bytes, end.file.as_deref());
    let mut turns: Vec<Turn> = kept.iter().map(next).collect();
    pictures::fade(&mut turns, end.shrink_bytes);
    turns
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
