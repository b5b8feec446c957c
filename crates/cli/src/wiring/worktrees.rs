//! Worktrees that workflows have made: what a person has approved for a checkout also holds in them.
//!
//! Invariant: which repository a worktree belongs to is what that repository itself says. An agent can write into its
//! worktree, and not into the entry that the repository has of it.

use std::path::{Path, PathBuf};

use windlass_coordinator::workflows::worktrees_beside;
use windlass_tools::workspace::repository::{repository_of, repository_of_worktree};

/// A worktree that a workflow has made.
pub(super) struct OwnWorktree {
    top: PathBuf,
    repository: PathBuf,
}

impl OwnWorktree {
    /// The one that a path is in. `path` has no links in it.
    pub fn containing(data: &Path, path: &Path) -> Option<Self> {
        let places = worktrees_beside(data).canonicalize().ok()?;
        // A directory for each repository, and in it one for each worktree.
        let name: PathBuf = path.strip_prefix(&places).ok()?.components().take(2).collect();
        let top = places.join(name);
        let repository = repository_of_worktree(&top)?;
        Some(Self { top, repository })
    }

    /// Whether `other` is in a checkout of the same repository what `path` is in this worktree.
    pub fn is_same_file(&self, path: &Path, other: &Path) -> bool {
        let Ok(name) = path.strip_prefix(&self.top) else { return false };
        let checkout = other.ancestors().nth(name.components().count());
        checkout.is_some_and(|checkout| {
            checkout.join(name) == other
                && repository_of(checkout).as_ref() == Some(&self.repository)
        })
    }
}
