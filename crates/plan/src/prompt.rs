//! What an agent reads of its task, and of what the tasks before it left.
//!
//! Invariant: the files of a plan are texts of others. No agent reads a character in them that a person does not see.

use std::fmt::Write as _;

use windlass_core::model_text::neutralize;
use windlass_core::planning::{PlanTask, STEP_0, STEP_99};

use crate::{ResolvedTask, Snapshot};

/// The section on task boundaries for a project's guidance file (PL-055).
pub const GUIDANCE: &str = include_str!("prompts/guidance.md");

/// The goal of a task: step 0, its own work, step 99 (PL-058…062).
pub fn goal(task: &ResolvedTask, place: &PlanTask) -> String {
    let mut work = format!("{}\n", task.prompt.trim());
    for (number, text) in task.steps.iter().filter(|(number, _)| !matches!(number, 0 | 99)) {
        let _ = write!(work, "\n{number}. {}", text.trim());
    }
    let values = [
        ("{{plan}}", place.name.as_str()),
        ("{{phase}}", &place.phase),
        ("{{key}}", &place.key),
        ("{{title}}", &task.title),
        ("{{step_0}}", &place.fill(STEP_0)),
        ("{{step_99}}", &place.fill(STEP_99)),
        // Last, so that nothing of it is taken for a placeholder.
        ("{{work}}", work.trim_end()),
    ];
    let text = include_str!("prompts/task.md").trim_end().to_owned();
    neutralize(&values.iter().fold(text, |text, (name, value)| text.replacen(name, value, 1)))
}

/// What the tasks before one left for it, or that they left nothing.
pub fn snapshots_notice(snapshots: &[Snapshot]) -> String {
    if snapshots.is_empty() {
        return include_str!("prompts/no_snapshot.md").trim_end().to_owned();
    }
    let all: Vec<_> = snapshots.iter().map(Snapshot::markdown).collect();
    let all = neutralize(&all.join("\n"));
    format!("{}\n\n{all}", include_str!("prompts/snapshots.md").trim_end())
}
