//! Where an epoch ends: what stays of a conversation when its older turns go, when only a part of it can be
//! sent, and when it is sent behind another prelude.

use windlass_core::compaction::Source;
use windlass_core::event::{CompactionEnd, Excerpt};
use windlass_core::message::{Message, Prelude};
use windlass_model::Transcript;

use super::{Context, Turn};
use crate::prompt::LEFT_OUT;

impl Context {
    /// The transcript that a compaction would leave.
    pub fn after(&self, end: &CompactionEnd) -> Option<Transcript> {
        let prelude = self.prelude.as_ref()?;
        let (dropped, kept) = self.parted(end.kept_turns as usize);
        let header = self.header.after(end, &dropped);
        let replies = self.replies - kept.len();
        let mut transcript = self.model.transcript(prelude).with_prior_replies(replies);
        for message in &self.opening {
            transcript.push(message);
        }
        transcript.push(&Message::user(header.text()));
        for entry in kept.iter().flat_map(|turn| turn.lasting()) {
            transcript.push(&entry.within(end.shrink_bytes, end.file.as_deref()));
        }
        Some(transcript)
    }

    /// The conversation so far behind another prelude.
    pub(super) fn behind(&self, prelude: &Prelude) -> Transcript {
        let earlier = self.replies - self.turns.len();
        let mut transcript = self.model.transcript(prelude).with_prior_replies(earlier);
        for message in &self.opening {
            transcript.push(message);
        }
        if self.header.summary.is_some() {
            transcript.push(&Message::user(self.header.text()));
        }
        for entry in self.turns.iter().flat_map(|turn| &turn.entries) {
            transcript.push(&entry.message);
        }
        transcript
    }

    /// Until the compaction that follows, the model sees a part of the context. All turns are still there.
    pub(super) fn show_only(&mut self, excerpt: &Excerpt) {
        let earlier = self.header.summary.as_deref().unwrap_or_default();
        let summary = format!("{earlier}\n\n{}", LEFT_OUT.trim_end());
        let thought_of = tried(excerpt.kept_turns, excerpt.shrink_bytes, summary);
        self.transcript = self.after(&CompactionEnd { file: None, ..thought_of });
        self.measured = None;
    }

    /// The turns that would go and those that would stay. Turns in which notes were saved never stay:
    /// what they said is in the notes.
    pub fn parted(&self, keep: usize) -> (Vec<&Turn>, Vec<&Turn>) {
        let work = self.turns.iter().filter(|turn| !turn.flush).count();
        let mut skip = work.saturating_sub(keep);
        self.turns.iter().partition(|turn| {
            let goes = turn.flush || skip > 0;
            skip = skip.saturating_sub(usize::from(!turn.flush && goes));
            goes
        })
    }

    pub(super) fn begin_epoch(&mut self, end: &CompactionEnd) {
        let Some(transcript) = self.after(end) else { return };
        let (dropped, kept) = self.parted(end.kept_turns as usize);
        let header = self.header.after(end, &dropped);
        let turns = kept.iter().map(|turn| turn.carried(end.shrink_bytes, end.file.as_deref()));
        self.turns = turns.collect();
        self.header = header;
        self.opened_bytes = transcript.bytes();
        self.transcript = Some(transcript);
        self.measured = None;
    }
}

/// A compaction that is only thought of.
pub fn tried(kept_turns: u32, shrink_bytes: Option<usize>, summary: String) -> CompactionEnd {
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
