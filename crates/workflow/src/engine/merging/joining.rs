//! The branches of a parallel step come together in the worktree around them.

use std::path::PathBuf;

use serde_json::json;
use windlass_core::event::{StepEnded, StepResult};
use windlass_core::status::StatusReason;

use super::Merge;
use crate::definition::{Checkout, OnConflict, ParallelWork, Step, Strategy};
use crate::engine::steps::Attempt;
use crate::engine::{StepEnd, Trouble};
use crate::worktree;

impl Attempt<'_> {
    /// Ends a parallel step.
    pub(in crate::engine) async fn join(self, work: &ParallelWork) -> Result<StepEnd, Trouble> {
        if work.join && matches!(self.engine.workflow.place, Checkout::Worktree(_)) {
            // A run that begins with a parallel step has no worktree of its own yet.
            self.worktrees().place(&self.leaf.worktree).await?;
        }
        let outer = self
            .engine
            .journal
            .read(|_, run| run.worktrees.get(&self.leaf.worktree).cloned())
            .await;
        let (mut merged, mut left_out) = (Vec::new(), Vec::new());
        for step in &work.steps {
            let name = match self.leaf.worktree.as_str() {
                "" => step.name.clone(),
                outer => format!("{outer}-{}", step.name),
            };
            let path = format!("{}.{}", self.leaf.path, step.name);
            let (from, ended) = self
                .engine
                .journal
                .read(|_, run| (run.worktrees.get(&name).cloned(), run.end_of(&path).cloned()))
                .await;
            if !work.join {
                // Each stays on its own branch, whole: a person will look at them.
                if let Some(from) = from {
                    left_out.extend(self.left_out(&from.path).await?);
                    let (tree, message) =
                        (PathBuf::from(&from.path), format!("windlass: {}", step.name));
                    self.engine
                        .repository
                        .with(move |git| worktree::commit_all(git, &tree, &message))
                        .await?;
                }
                continue;
            }
            let has_succeeded = ended.is_some_and(|ended| ended.result == StepResult::Succeeded);
            let (Some(from), Some(outer), true) = (from, &outer, has_succeeded) else { continue };
            left_out.extend(self.left_out(&from.path).await?);
            let job = Merge {
                attempt: self,
                step: format!("{path} (joined)"),
                from,
                target: outer.branch.clone(),
                strategy: Strategy::Merge,
                gates: &[],
                message: format!("windlass: join {}", step.name),
                conflicts: OnConflict::Agent,
            };
            let tree = PathBuf::from(&outer.path);
            self.engine
                .repository
                .with(move |git| worktree::commit_all(git, &tree, "windlass: before a join"))
                .await?;
            merged.push(job.run().await?);
        }
        let path_of = |step: &Step| format!("{}.{}", self.leaf.path, step.name);
        let is_success = self
            .engine
            .journal
            .read(|_, run| {
                let has_failed = |path: String| {
                    run.end_of(&path).is_some_and(|ended| ended.result == StepResult::Failed)
                };
                !work.steps.iter().map(path_of).any(has_failed)
            })
            .await;
        let output = json!({ "commits": merged, "left_out": left_out });
        let result = if is_success { StepResult::Succeeded } else { StepResult::Failed };
        let error = (!is_success).then(|| "a step in it failed".to_owned());
        let reason = error.as_ref().map(|_| StatusReason::Error);
        Ok(StepEnd::Ended(StepEnded { output, error, reason, ..self.leaf.ended(result) }))
    }
}
