//! Lock files that a killed git has left.
//!
//! Git makes a file `NAME.lock` before it changes NAME. A git that is killed leaves the file, and then nobody can change
//! NAME any more.
//!
//! Invariants:
//! - Only the owner of the repository's [`Lock`] removes such a file: no git of ours runs then.
//! - A file that others may hold (that of a person's checkout or branch, or of what all branches share) is removed only
//!   when it has not changed for a while and no git is seen at work in the repository.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Git, LOCK_POLL, Lock};
use crate::worktree::{OWN_HEADS, own_branch};

/// How long a lock file of others must stay as it is. Git holds one for less than a second, unless it waits for an editor,
/// and then it is seen at work.
const STALE_AFTER: Duration = Duration::from_secs(5);

/// How long to wait for somebody who holds one.
const HELD_AFTER: Duration = Duration::from_secs(30);

/// How the names of refs begin that nobody changes but we.
const OWN_REFS: [&str; 3] = [OWN_HEADS, "refs/windlass/", "refs/notes/windlass."];

/// The lock file that git found in its way, by its own words.
pub(super) fn named_in(said: &str) -> Option<PathBuf> {
    const FILE_EXISTS: &str = ": File exists";
    said.lines().find_map(|line| {
        let line = line.split(FILE_EXISTS).next().filter(|before| before.len() < line.len())?;
        if let Some((_, path)) = line.split_once("Unable to create '") {
            return Some(PathBuf::from(path.trim_end_matches('\'')));
        }
        let (_, path) = line.split_once("could not lock config file ")?;
        Some(PathBuf::from(format!("{path}.lock")))
    })
}

/// What has become of something that a git was seen to have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remains {
    Gone,
    /// It stays as it is, and no git is at work.
    Left,
    /// A git is at work that may need it.
    Held,
}

impl Git {
    /// Whether a lock file that was in the way is gone: given up, or removed here because nobody holds it.
    pub(super) fn clear_stale_lock(&self, file: &Path) -> bool {
        if !self.has_file(file) {
            return false;
        }
        if self.is_own(file) {
            return is_gone(file);
        }
        let found = identity(file);
        match self.watch(|| identity(file) == found) {
            Remains::Gone => true,
            Remains::Left => is_gone(file),
            Remains::Held => false,
        }
    }

    /// Watches something that a git at work makes and takes away again.
    pub(crate) fn watch(&self, is_there: impl Fn() -> bool) -> Remains {
        let mut waited = Duration::ZERO;
        while waited < STALE_AFTER || (self.is_at_work() && waited < HELD_AFTER) {
            if !is_there() {
                return Remains::Gone;
            }
            std::thread::sleep(LOCK_POLL);
            waited += LOCK_POLL;
        }
        match self.is_at_work() {
            true => Remains::Held,
            false => Remains::Left,
        }
    }

    /// Removes the lock files that a git has left which was killed while it changed a ref of ours.
    pub(crate) fn clear_ref_locks(&self, _lock: &Lock, reference: &str) {
        for name in [reference, "packed-refs"] {
            let file = self.common.join(format!("{name}.lock"));
            if file.exists() {
                // Where somebody holds it, git says so when it is needed.
                let _ = self.clear_stale_lock(&file);
            }
        }
    }

    /// Whether a git works in one of the repository's checkouts, as far as can be seen from here.
    pub(crate) fn is_at_work(&self) -> bool {
        let trees = self.entries().into_iter().flatten().map(|(_, tree)| tree);
        let places: Vec<_> = trees.chain([self.common.clone(), self.top.clone()]).collect();
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        processes.map(|process| process.path()).any(|process| {
            let is_git = std::fs::read_to_string(process.join("comm"))
                .is_ok_and(|name| name.trim_end() == "git" || name.starts_with("git-"));
            let is_in = |at: PathBuf| places.iter().any(|place| at.starts_with(place));
            is_git && std::fs::read_link(process.join("cwd")).is_ok_and(is_in)
        })
    }

    fn has_file(&self, file: &Path) -> bool {
        file.starts_with(&self.common) && file.extension().is_some_and(|name| name == "lock")
    }

    /// Whether a lock file guards what only we change: our branches and notes, and worktrees on our branches.
    fn is_own(&self, file: &Path) -> bool {
        let is_ref = file.strip_prefix(&self.common).is_ok_and(|name| {
            let name = name.to_string_lossy();
            OWN_REFS.iter().any(|own| name.starts_with(own))
        });
        let own = file.parent().filter(|own| own.parent() == Some(&self.common.join("worktrees")));
        is_ref || own.is_some_and(|own| own_branch(own).is_some())
    }
}

fn is_gone(file: &Path) -> bool {
    std::fs::remove_file(file).is_ok() || !file.exists()
}

/// What tells a lock file from a later one of the same name.
fn identity(file: &Path) -> Option<(u64, i64, i64, u64)> {
    let found = std::fs::symlink_metadata(file).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_names_the_lock_in_its_way() {
        let said = "fatal: update_ref failed for ref 'HEAD': cannot lock ref 'HEAD': Unable to create '/r/.git/HEAD.lock': File exists.\n\nAnother git process seems to be running";
        assert_eq!(named_in(said), Some(PathBuf::from("/r/.git/HEAD.lock")));
        let said = "error: could not lock config file /r/.git/config: File exists";
        assert_eq!(named_in(said), Some(PathBuf::from("/r/.git/config.lock")));
        assert_eq!(named_in("fatal: cannot create directory 'a': File exists"), None);
        assert_eq!(named_in("error: Unable to create '/r/x.lock': Permission denied"), None);
    }
}
