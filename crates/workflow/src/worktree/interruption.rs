//! Removals that a crash has interrupted. Git deletes files one by one, and a worktree that is half deleted looks as if
//! somebody had deleted them.
//!
//! Invariants:
//! - The mark is set when everything in a worktree was found to be elsewhere, before git changes the first file.
//! - A worktree with the mark is made whole again before anybody looks at it. What somebody has written since stays.

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use windlass_core::event::{WorktreeChanged, WorktreeKind};

use super::every_change;
use crate::git::{Git, GitError, Lock};
use crate::merge::is_as_in;

/// The mark, in the git directory of the worktree.
const MARK: &str = "windlass-removing";

/// Marks a worktree whose files git is about to delete or to change.
pub(super) fn mark(git: &Git, path: &Path) -> Result<(), GitError> {
    let file = git.own_directory(path)?.join(MARK);
    write_new(&file, "").map_err(|error| GitError::file(&file, error))
}

/// Lifts the mark of a worktree that stays.
pub(super) fn unmark(git: &Git, path: &Path) -> Result<(), GitError> {
    let file = git.own_directory(path)?.join(MARK);
    match std::fs::remove_file(&file) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(GitError::file(&file, error)),
    }
}

/// Brings back what an interrupted removal has taken from a worktree.
pub(super) fn undo(git: &Git, lock: &Lock, tree: &WorktreeChanged) -> Result<(), GitError> {
    let path = Path::new(&tree.path);
    if !path.exists() || !git.is_registered(path)? {
        return Ok(());
    }
    let own = git.own_directory(path)?;
    if std::fs::symlink_metadata(own.join(MARK)).is_err() {
        return Ok(());
    }
    super::remove_left_locks(git, path)?;
    let pointer = path.join(".git");
    if std::fs::symlink_metadata(&pointer).is_err() {
        let text = format!("gitdir: {}\n", own.display());
        write_new(&pointer, &text).map_err(|error| GitError::file(&pointer, error))?;
    }
    // Only missing files are written. Git complains about others, which somebody has changed since.
    let _ = git.run_in(path, Some(lock), ["checkout-index", "--quiet", "--all"]);
    if tree.kind == WorktreeKind::Warm {
        undo_checkout(git, lock, tree)?;
    }
    unmark(git, path)
}

/// Takes back a checkout of the base that was interrupted: files came before the index and the head.
fn undo_checkout(git: &Git, lock: &Lock, tree: &WorktreeChanged) -> Result<(), GitError> {
    let path = Path::new(&tree.path);
    let is_of_base = |name: &String| is_as_in(git, path, name, &tree.base).unwrap_or(false);
    if !every_change(git, path)?.iter().all(is_of_base) {
        return Ok(());
    }
    git.run_in(path, Some(lock), ["reset", "--quiet", "--hard"])?;
    for name in every_change(git, path)?.iter().filter(|name| is_of_base(name)) {
        let file = path.join(name);
        std::fs::remove_file(&file).map_err(|error| GitError::file(&file, error))?;
    }
    Ok(())
}

/// Writes a file where an agent could have put a link: it is not followed.
pub(super) fn write_new(file: &Path, text: &str) -> std::io::Result<()> {
    let flags =
        OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(file, flags, Mode::from_raw_mode(0o644))?;
    std::io::Write::write_all(&mut std::fs::File::from(opened), text.as_bytes())
}
