//! The branches of a parallel step come together in the worktree around them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;
use windlass_core::event::{StepEnded, StepResult, WorktreeState};
use windlass_core::status::StatusReason;

use super::Merge;
use super::conflict::ConflictQuestion;
use crate::definition::{Checkout, OnConflict, OnFail, ParallelWork, Strategy};
use crate::engine::steps::Attempt;
use crate::engine::{StepEnd, Trouble};
use crate::next::Run;
use crate::worktree;

impl Attempt<'_> {
    /// Ends a parallel step.
    pub(in crate::engine) async fn join(self, work: &ParallelWork) -> Result<StepEnd, Trouble> {
        if work.join && matches!(self.engine.workflow.place, Checkout::Worktree(_)) {
            // A run that begins with a parallel step has no worktree of its own yet.
            self.worktrees().place(&self.leaf.worktree).await?;
        }
        ConflictQuestion(self).settle().await?;
        let outer = self
            .engine
            .journal
            .read(|_, run| run.worktrees.get(&self.leaf.worktree).cloned())
            .await;
        let (mut merged, mut left_out) = (Vec::new(), Vec::new());
        let (mut conflicts, mut not_joined) = (Vec::new(), Vec::new());
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
            // What was in one that is removed was merged by an earlier attempt.
            let from = from.filter(|tree| tree.state != WorktreeState::Removed);
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
            let joined = format!("{path} (joined)");
            let known = self.engine.journal.read(|_, run| run.merges.get(&joined).cloned()).await;
            if let Some(known) = known
                && ConflictQuestion(self).is_left_out(&known).await
            {
                not_joined.push(step.name.as_str());
                continue;
            }
            let job = Merge {
                attempt: self,
                step: joined,
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
            match job.run().await {
                // Those after it may come together all the same; then a person is asked about all that did not.
                Err(Trouble::Conflict(conflict)) => conflicts.push(conflict),
                commit => merged.push(commit?),
            }
        }
        if let (Some(outer), false) = (&outer, conflicts.is_empty()) {
            let all = conflicts.join("\n");
            ConflictQuestion(self).ask(&all, &outer.branch).await?;
            return Err(Trouble::Conflict(all));
        }
        let is_success = self.is_success(work).await;
        let output = json!({ "commits": merged, "left_out": left_out, "not_joined": not_joined });
        let result = if is_success { StepResult::Succeeded } else { StepResult::Failed };
        let error = (!is_success).then(|| "a step in it failed".to_owned());
        let reason = error.as_ref().map(|_| StatusReason::Error);
        Ok(StepEnd::Ended(StepEnded { output, error, reason, ..self.leaf.ended(result) }))
    }

    /// Whether no failure in a parallel step makes it fail. One that the file or a person lets pass does not: whoever
    /// resumes the run could do nothing about it. With `fail_at_end` it counts, where the run continues after it.
    async fn is_success(self, work: &ParallelWork) -> bool {
        let continues = matches!(self.leaf.step.on_fail, OnFail::Continue | OnFail::FailAtEnd);
        let look = |run: &Run<'_>| {
            work.steps.iter().all(|step| {
                let ended = run.state.end_of(&format!("{}.{}", self.leaf.path, step.name));
                let failed = ended.filter(|ended| ended.result == StepResult::Failed);
                let counts = continues && step.on_fail == OnFail::FailAtEnd;
                failed.is_none_or(|ended| !counts && run.is_let_pass(step, ended))
            })
        };
        self.engine.look(&BTreeSet::new(), look).await
    }
}
