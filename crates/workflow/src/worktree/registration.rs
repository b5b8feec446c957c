//! What git itself notes of a worktree, below `worktrees` in its common directory, and what a killed git leaves of it.
//!
//! Invariants:
//! - Only notes about one of our own places are removed, and only by the owner of the repository's lock: no git of ours
//!   is making or removing a worktree then.
//! - Other people's worktrees stay as they are, also those whose disk is not there now.

use std::path::{Path, PathBuf};

use windlass_skills::regular;

use super::{adding, is_same, list};
use crate::git::{Git, GitError, Lock, Remains};

/// What every note has that is whole. A command of git that finds one of them empty fails, whatever it is asked.
const PARTS: [&str; 3] = ["gitdir", "commondir", "HEAD"];
/// Each of them is a line.
const MAX_PART_BYTES: u64 = 64 << 10;

/// Has git forget a worktree whose directory is gone.
pub(super) fn forget(git: &Git, lock: &Lock, path: &Path) -> Result<(), GitError> {
    let is_known = list(git)?.iter().any(|one| is_same(&one.path, path));
    if is_known {
        let place = path.display().to_string();
        git.run_locked(lock, ["worktree", "remove", "--force", &place])?;
    }
    Ok(())
}

/// Removes what a git has left that was killed while it made or removed the notes about this place.
pub(super) fn discard_half_made(git: &Git, path: &Path) -> Result<(), GitError> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
    let notes = git.common().join("worktrees");
    for entry in std::fs::read_dir(&notes).into_iter().flatten().flatten() {
        // Git adds a number where the name is in use.
        let is_ours = entry
            .file_name()
            .to_str()
            .and_then(|found| found.strip_prefix(name))
            .is_some_and(|number| number.chars().all(|digit| digit.is_ascii_digit()));
        let own = entry.path();
        if is_ours && is_half_made(&own) && !leads_elsewhere(&own, path) {
            std::fs::remove_dir_all(&own).map_err(|error| GitError::file(&own, error))?;
        }
    }
    Ok(())
}

/// Removes the notes about a worktree for which git fails, whatever it is asked: it was killed while it wrote them. A
/// person's own git can have left them, so no git may be at work.
pub(crate) fn discard_broken(git: &Git, said: &str) -> bool {
    let Some((_, rest)) = said.split_once("failed to read ") else { return false };
    let Some((own, _)) = rest.split_once("/commondir:") else { return false };
    let own = PathBuf::from(own);
    let is_note = own.parent() == Some(&git.common().join("worktrees"));
    let is_unfinished = text(&own, "locked").is_some_and(|reason| adding::is_unfinished(&reason));
    if !is_note || !is_unfinished {
        return false;
    }
    match git.watch(|| is_half_made(&own)) {
        Remains::Gone => true,
        Remains::Left => std::fs::remove_dir_all(&own).is_ok(),
        Remains::Held => false,
    }
}

fn is_half_made(own: &Path) -> bool {
    PARTS.iter().any(|part| text(own, part).is_none())
}

/// Whether the notes say that the worktree is in another place.
fn leads_elsewhere(own: &Path, path: &Path) -> bool {
    text(own, "gitdir").is_some_and(|pointer| {
        !PathBuf::from(pointer).parent().is_some_and(|tree| is_same(tree, path))
    })
}

/// The line of a part that is there.
fn text(own: &Path, part: &str) -> Option<String> {
    let text = regular::read_text(&own.join(part), MAX_PART_BYTES).ok()?;
    let line = text.trim_end().to_owned();
    (!line.is_empty()).then_some(line)
}
