//! What becomes of worktrees when their run has ended.

use std::collections::BTreeMap;
use std::io;

use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{WorktreeChanged, WorktreeKind, WorktreeState};
use windlass_core::text::one_line;

use super::Worktrees;
use crate::definition::{Checkout, Maker};
use crate::engine::children::ScriptEnd;
use crate::engine::steps::failure;
use crate::engine::{Error, SegmentResult, Trouble, plain};
use crate::worktree::{self, Removal};

/// How much of the reason for keeping a worktree is in the last words of a run.
const WHY_CHARS: usize = 120;

impl Worktrees<'_> {
    /// Everything has ended: worktrees go, unless something in them would be lost.
    pub(in crate::engine) async fn finish(self) -> Result<SegmentResult, Error> {
        // Why worktrees are kept, and which.
        let mut kept: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let trees: Vec<_> =
            self.engine.journal.read(|_, run| run.worktrees.values().cloned().collect()).await;
        // The inner ones first.
        for tree in trees.into_iter().rev() {
            if matches!(
                tree.state,
                WorktreeState::Removed | WorktreeState::Kept | WorktreeState::Released
            ) {
                if tree.state == WorktreeState::Kept {
                    kept.entry(tree.detail.unwrap_or_default()).or_default().push(tree.path);
                }
                continue;
            }
            let why = match self.remove(tree.clone()).await {
                Ok(Removal::Removed) => continue,
                Ok(Removal::Kept(why)) => why,
                Err(Trouble::Journal(error)) => return Err(error),
                Err(Trouble::Wait(_)) => return Ok(plain(Ending::Blocked)),
                Err(Trouble::Failed(why) | Trouble::TimedOut(why) | Trouble::Conflict(why)) => {
                    self.change(tree.clone(), WorktreeState::Kept, Some(why.clone())).await?;
                    why
                }
            };
            kept.entry(why).or_default().push(tree.path);
        }
        let (name, failures) = (&self.engine.workflow.name, self.engine.failures().await);
        let (ending, ended) = match failures.is_empty() {
            true => (Ending::Done, format!("Workflow `{name}` is done.")),
            false => {
                let error = ErrorDetails {
                    // A retry tries the steps again that failed.
                    retryable: true,
                    ..ErrorDetails::new(ErrorType::Workflow, failures.join("\n"))
                };
                (Ending::Failed(error), format!("Workflow `{name}` has failed."))
            }
        };
        let kept = kept.into_iter().map(|(why, paths)| match why.is_empty() {
            true => format!("\nKept: {}", paths.join(", ")),
            false => format!("\nKept ({}): {}", one_line(&why, WHY_CHARS), paths.join(", ")),
        });
        let message = std::iter::once(ended).chain(kept).collect();
        Ok(SegmentResult { ending, message: Some(message) })
    }

    async fn remove(self, tree: WorktreeChanged) -> Result<Removal, Trouble> {
        let Checkout::Worktree(spec) = &self.engine.workflow.place else {
            return Ok(Removal::Removed);
        };
        if spec.keep {
            let why = "the workflow says so".to_owned();
            self.change(tree, WorktreeState::Kept, Some(why.clone())).await?;
            return Ok(Removal::Kept(why));
        }
        if tree.state != WorktreeState::Removing
            && let Some(cleanup) = &spec.cleanup
        {
            // A failing clean-up is in its log, and holds up nothing.
            self.tree_script(&tree, "cleanup", cleanup).await?;
        }
        let tree = self.change(tree, WorktreeState::Removing, None).await?;
        let removal = match &spec.maker {
            Maker::Command { remove, .. } => {
                self.remove_workspace(&tree, remove.as_deref()).await?
            }
            Maker::Git(_) => {
                let merged =
                    self.engine.journal.read(|_, run| run.merged_heads(&tree.branch)).await;
                let wanted = tree.clone();
                let give_up = match tree.kind {
                    WorktreeKind::Warm => worktree::release,
                    WorktreeKind::Single | WorktreeKind::Command => worktree::remove,
                };
                self.engine.repository.with(move |git| give_up(git, &wanted, &merged)).await?
            }
        };
        match (&removal, tree.kind) {
            (Removal::Kept(why), _) => {
                self.change(tree, WorktreeState::Kept, Some(why.clone())).await?
            }
            (Removal::Removed, WorktreeKind::Warm) => {
                let why = "it stays warm for the next run".to_owned();
                self.change(tree, WorktreeState::Released, Some(why)).await?
            }
            (Removal::Removed, WorktreeKind::Single | WorktreeKind::Command) => {
                self.change(tree, WorktreeState::Removed, None).await?
            }
        };
        Ok(removal)
    }

    /// Has a command of the workflow empty the workspace. What would be lost only that command knows: where it fails or
    /// leaves something, the workspace stays.
    async fn remove_workspace(
        self,
        tree: &WorktreeChanged,
        command: Option<&str>,
    ) -> Result<Removal, Trouble> {
        let Some(command) = command else {
            return Ok(Removal::Kept("the workflow has no `remove` command".to_owned()));
        };
        let why = match self.tree_script(tree, "remove", command).await? {
            ScriptEnd::Exited { code: 0, .. } => match std::fs::remove_dir(&tree.path) {
                Ok(()) => return Ok(Removal::Removed),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Removal::Removed);
                }
                Err(_) => "the `remove` command has left files in it".to_owned(),
            },
            ScriptEnd::Exited { code, output } => {
                format!("the `remove` command: {}", failure(code, &output))
            }
            ScriptEnd::Failed { error, .. } => format!("the `remove` command: {error}"),
            ScriptEnd::Unknown => "the `remove` command was interrupted".to_owned(),
        };
        Ok(Removal::Kept(why))
    }
}
