//! What replaces earlier epochs: what people said, the plan, the changed files, and the summary.

use windlass_core::event::CompactionEnd;
use windlass_core::plan::WorkingPlan;
use windlass_core::state::TaskState;

use super::{Turn, pictures};
use crate::prompt;

/// Dropped pictures that are named, the newest.
const MAX_PICTURES: usize = 20;
/// Paths that are listed, the newest; the others are only counted.
const MAX_FILES: usize = 200;

/// What a context keeps of everything that was dropped from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// What people said, word for word, oldest first.
    pub said: Vec<String>,
    /// The summary of everything before.
    pub summary: Option<String>,
    /// Where what was dropped can be read, newest last.
    pub dropped: Vec<String>,
    /// The pictures that were dropped, one line each, newest last.
    pub pictures: Vec<String>,
}

impl Header {
    /// The header after a compaction that drops these turns.
    pub fn after_compaction(&self, end: &CompactionEnd, dropped: &[&Turn]) -> Self {
        let mut after = self.clone();
        after.said.extend(dropped.iter().flat_map(|turn| turn.said.iter().cloned()));
        after.summary = Some(end.summary.clone());
        after.dropped.extend(end.file.clone());
        for picture in pictures::of(dropped) {
            let line = format!("- {picture}");
            after.pictures.retain(|known| *known != line);
            after.pictures.push(line);
        }
        let skipped = after.pictures.len().saturating_sub(MAX_PICTURES);
        after.pictures.drain(..skipped);
        after
    }

    /// The first and the newest file; those between have names of the same form.
    fn places(&self) -> String {
        match self.dropped.as_slice() {
            [] => String::new(),
            [only] => only.clone(),
            [first, .., last] => prompt::turn_files(first, last),
        }
    }

    /// The message that the next epoch has in place of what was dropped (ES-163).
    pub fn text(&self, state: &TaskState) -> String {
        let said: Vec<_> = self.said.iter().map(|text| format!("> {text}")).collect();
        let plan = state.plan.as_ref().map(WorkingPlan::markdown).unwrap_or_default();
        let accepted = state.plan_review.accepted.as_ref().map_or("", |plan| plan.text.as_str());
        let changed = &state.files.changed;
        let skipped = changed.len().saturating_sub(MAX_FILES);
        let mut files: Vec<_> = changed[skipped..].iter().map(|path| format!("- {path}")).collect();
        if skipped > 0 {
            files.insert(0, prompt::earlier_files(skipped));
        }
        let (said, files, pictures) =
            (said.join("\n\n"), files.join("\n"), self.pictures.join("\n"));
        let (summary, places) = (self.summary.as_deref().unwrap_or_default(), self.places());
        prompt::summary_message(&prompt::compacted_sections(&[
            ("said", said.trim()),
            ("accepted", accepted.trim()),
            ("plan", plan.trim()),
            ("files", files.trim()),
            ("pictures", pictures.trim()),
            ("summary", summary.trim()),
            ("places", places.trim()),
        ]))
    }
}
