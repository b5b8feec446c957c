//! What becomes of worktrees when their run has ended.

use std::io;

use windlass_core::ending::Ending;
use windlass_core::event::{WorktreeChanged, WorktreeKind, WorktreeState};

use super::Worktrees;
use crate::definition::{Checkout, Maker};
use crate::engine::children::ScriptEnd;
use crate::engine::steps::failure;
use crate::engine::{Concluded, Error, Trouble, plain};
use crate::worktree::{self, Removal};

impl Worktrees<'_> {
    /// Everything has ended: worktrees go, unless something in them would be lost.
    pub(in crate::engine) async fn finish(self) -> Result<Concluded, Error> {
        let mut kept = Vec::new();
        let trees: Vec<_> =
            self.engine.journal.read(|_, run| run.worktrees.values().cloned().collect()).await;
        // The inner ones first.
        for tree in trees.into_iter().rev() {
            if matches!(
                tree.state,
                WorktreeState::Removed | WorktreeState::Kept | WorktreeState::Released
            ) {
                kept.extend((tree.state == WorktreeState::Kept).then(|| tree.path.clone()));
                continue;
            }
            match self.remove(tree.clone()).await {
                Ok(Removal::Removed) => {}
                Ok(Removal::Kept(_)) => kept.push(tree.path.clone()),
                Err(Trouble::Journal(error)) => return Err(error),
                Err(Trouble::Wait(_)) => return Ok(plain(Ending::Blocked)),
                Err(Trouble::Failed(why) | Trouble::Conflict(why)) => {
                    self.change(tree.clone(), WorktreeState::Kept, Some(why)).await?;
                    kept.push(tree.path.clone());
                }
            }
        }
        let done = format!("Workflow `{}` is done.", self.engine.workflow.name);
        let message = match kept.is_empty() {
            true => done,
            false => {
                format!("{done} Kept, because something in it would be lost: {}", kept.join(", "))
            }
        };
        Ok(Concluded { ending: Ending::Done, message: Some(message) })
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
