//! Warm worktrees: runs of a workflow take turns in a few that stay, with what git ignores in them: dependencies, build
//! outputs.
//!
//! Invariants:
//! - A warm worktree without a branch belongs to nobody. A run takes it by putting its own branch there, and gives it
//!   back by taking the branch away.
//! - One that somebody has left work in is not taken.

use std::path::{Path, PathBuf};

use windlass_core::event::WorktreeChanged;

use super::adding::{has_branch, is_unfinished};
use super::{WorktreeRecord, changes, is_same, links, list, remove_left_locks};
use crate::git::{Git, GitError, Lock};

/// The first of `count` places for warm worktrees that nobody works in; `None` where all are in use.
pub fn free_slot(
    git: &Git,
    directory: &Path,
    workflow: &str,
    count: u32,
) -> Result<Option<PathBuf>, GitError> {
    let listed = list(git)?;
    for number in 1..=count {
        let path = directory.join(format!("{workflow}-warm-{number}"));
        let is_free = match listed.iter().find(|one| is_same(&one.path, &path)) {
            Some(one) => is_free(git, one)?,
            None => !path.exists(),
        };
        if is_free {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Whether nobody works in a warm worktree, and nobody has left anything in it.
pub(super) fn is_free(git: &Git, listed: &WorktreeRecord) -> Result<bool, GitError> {
    if listed.branch.is_some() || listed.locked.is_some() || !listed.path.join(".git").is_file() {
        return Ok(false);
    }
    let own = ["rev-list", "--count", "HEAD", "--not", "--branches", "--tags", "--remotes"];
    let commits = git.run_in(&listed.path, None, own)?;
    Ok(commits.trim() == "0"
        && changes(git, &listed.path)?.is_empty()
        && links::work_in(git, &listed.path)?.is_none())
}

/// Takes a warm worktree that nobody works in; `false` where there is none at that place.
pub(super) fn claim(git: &Git, lock: &Lock, wanted: &WorktreeChanged) -> Result<bool, GitError> {
    let path = Path::new(&wanted.path);
    let Some(listed) = list(git)?.into_iter().find(|one| is_same(&one.path, path)) else {
        return Ok(false);
    };
    // One that another run works in is its own, also where somebody has removed the directory.
    let is_used = listed.branch.as_ref().is_some_and(|branch| *branch != wanted.branch);
    if is_used {
        return Err(GitError::Occupied(wanted.path.clone()));
    }
    if !path.exists() || listed.locked.as_deref().is_some_and(is_unfinished) {
        return Ok(false);
    }
    if !is_free(git, &listed)? {
        return Err(GitError::Occupied(wanted.path.clone()));
    }
    remove_left_locks(git, path)?;
    let reference = format!("refs/heads/{}", wanted.branch);
    if !has_branch(git, wanted)? {
        git.run_locked(lock, ["update-ref", &reference, &wanted.base, ""])?;
    }
    git.run_in(path, Some(lock), ["symbolic-ref", "HEAD", &reference])?;
    Ok(true)
}

/// Whether a warm worktree is registered, and not by the run that wanted it.
pub(super) fn is_of_others(git: &Git, wanted: &WorktreeChanged) -> Result<bool, GitError> {
    let path = Path::new(&wanted.path);
    Ok(list(git)?.into_iter().find(|one| is_same(&one.path, path)).is_some_and(|one| {
        one.branch.as_ref() != Some(&wanted.branch)
            && !one.locked.as_deref().is_some_and(is_unfinished)
    }))
}
