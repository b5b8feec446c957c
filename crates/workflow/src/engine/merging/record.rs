//! The record of a run travels with what it merged: a git note that says which steps and commands led to it.

use std::fmt::Write as _;

use super::Merge;
use crate::engine::Trouble;
use crate::merge;
use crate::state::RunState;

/// How much of a command or a prompt the record has; the journal has the whole.
const TEXT_CHARS: usize = 500;

impl Merge<'_> {
    /// Writes the record of the run to a commit, in the place of an earlier one.
    pub(super) async fn attach_record(&self, commit: &str) -> Result<(), Trouble> {
        let engine = self.engine();
        let (id, name) = (engine.id(), &engine.workflow.name);
        let record =
            engine.journal.read(|_, run| format!("workflow {name}, run {id}\n{}", steps(run)));
        let (commit, record) = (commit.to_owned(), record.await);
        engine.repository.with(move |git| merge::attach_note(git, &commit, &record)).await
    }
}

fn steps(run: &RunState) -> String {
    let mut text = String::new();
    for (path, step) in run.steps() {
        let Some(started) = &step.started else { continue };
        let ended = step.ended.as_ref().map_or("running".to_owned(), |end| end.result.to_string());
        let task = started.task.map(|task| format!(" ({task})")).unwrap_or_default();
        let said = windlass_core::text::one_line(&started.text, TEXT_CHARS);
        // Writing to a text does not fail.
        let _ = writeln!(text, "{path} {} {ended}{task}: {said}", started.kind);
    }
    text
}
