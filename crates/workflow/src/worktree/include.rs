//! `.worktreeinclude`: ignored files that a worktree needs all the same, by patterns as in `.gitignore`.
//!
//! Invariants:
//! - Only files that git ignores are copied, so that no agent commits them.
//! - What is copied is the file itself: no links, and none through a link that leads out of the worktree.

use std::collections::BTreeSet;
use std::path::Path;

use crate::git::{Git, GitError};

/// The file with the patterns, at the top of the checkout.
pub const INCLUDE_FILE: &str = ".worktreeinclude";

/// How many files are copied; a pattern that names more is a mistake.
const MAX_FILES: usize = 10_000;

/// Copies the files that the checkout's patterns name, unless they are there.
pub(super) fn copy(git: &Git, tree: &Path) -> Result<(), GitError> {
    let patterns = git.top().join(INCLUDE_FILE);
    if !patterns.is_file() {
        return Ok(());
    }
    let by_pattern = format!("--exclude-from={}", patterns.display());
    let named = ignored(git, &by_pattern)?;
    let ignored = ignored(git, "--exclude-standard")?;
    let wanted: Vec<_> = named.intersection(&ignored).collect();
    if wanted.len() > MAX_FILES {
        let reason =
            format!("`{INCLUDE_FILE}` names {} files; {MAX_FILES} is the limit", wanted.len());
        return Err(GitError::Unusable(reason));
    }
    for name in wanted {
        let (from, to) = (git.top().join(name), tree.join(name));
        copy_file(&from, &to, tree).map_err(|error| GitError::file(&to, error))?;
    }
    Ok(())
}

fn ignored(git: &Git, by: &str) -> Result<BTreeSet<String>, GitError> {
    let text = git.run_in(git.top(), None, ["ls-files", "--others", "--ignored", "-z", by])?;
    Ok(text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn copy_file(from: &Path, to: &Path, tree: &Path) -> std::io::Result<()> {
    let is_file = std::fs::symlink_metadata(from)?.is_file();
    // A link counts as there, also one that leads nowhere: the copy would go through it.
    if !is_file || std::fs::symlink_metadata(to).is_ok() {
        return Ok(());
    }
    let Some(parent) = to.parent() else { return Ok(()) };
    let existing = parent.ancestors().find(|at| at.exists()).unwrap_or(tree);
    if !existing.canonicalize()?.starts_with(tree.canonicalize()?) {
        return Err(std::io::Error::other("a link in its path leads out of the worktree"));
    }
    std::fs::create_dir_all(parent)?;
    // The kernel shares the blocks where the file system can.
    std::fs::copy(from, to).map(drop)
}
