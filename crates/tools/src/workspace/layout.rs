//! The directories every workspace has, and keeping them out of the user's repository.

use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;
use windlass_core::id::CallId;

use super::protect::Purpose;
use super::{Error, OpenError, Replacement, Workspace, content_hash};

/// Durable notes (ES-037).
pub const MEMO_DIRECTORY: &str = ".memo";
/// Temporary notes and whole outputs (ES-038).
pub const SCRATCH_DIRECTORY: &str = ".scratch";
/// Deliverables for the user (ES-039).
pub const OUTPUT_DIRECTORY: &str = "output";

/// What git is told to leave alone. `output/` is the user's to keep.
pub(super) const EXCLUDED: [&str; 4] = [".plan.md", ".memo/", ".scratch/", ".trace/"];
/// An exclude file is a page of patterns.
const MAX_EXCLUDE_BYTES: u64 = 1 << 20;

impl Workspace {
    /// Makes the directories that are missing (ES-173).
    pub(super) fn lay_out(&self, given: &Path) -> Result<(), OpenError> {
        let path = || given.to_owned();
        for name in [MEMO_DIRECTORY, SCRATCH_DIRECTORY, OUTPUT_DIRECTORY] {
            match rustix::fs::mkdirat(&self.root, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => super::write::give_to_owner_of(&self.root, name),
                Err(Errno::EXIST) => {}
                Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {
                    return Err(OpenError::NotWritable { path: path(), source: errno.into() });
                }
                Err(errno) => return Err(OpenError::Io { path: path(), source: errno.into() }),
            }
            // A link to a directory is the user's choice; writes through it still cannot leave.
            let stat = rustix::fs::statat(&self.root, name, AtFlags::empty());
            if !stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
            {
                return Err(OpenError::InTheWay { path: path(), name });
            }
        }
        Ok(())
    }

    /// Keeps our files out of `git status` where the workspace is a repository; a repository that is
    /// above the workspace, or elsewhere (a worktree), is left alone. Best effort: an exclude file
    /// that cannot be written costs tidiness, not the task.
    pub(super) fn exclude_from_git(&self) -> Result<(), Error> {
        let path = ".git/info/exclude";
        let old = match self.read_all(path, MAX_EXCLUDE_BYTES) {
            Ok(content) => Some(content),
            Err(Error::NotFound { .. }) if self.is_directory(".git/info") => None,
            Err(_) => return Ok(()),
        };
        let text = old.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let missing: Vec<_> =
            EXCLUDED.iter().filter(|name| !text.lines().any(|line| line == **name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut new = old.clone().unwrap_or_default();
        if !new.is_empty() && !new.ends_with(b"\n") {
            new.push(b'\n');
        }
        for name in missing {
            new.extend_from_slice(name.as_bytes());
            new.push(b'\n');
        }
        self.replace(Replacement {
            call: CallId::derived("workspace", path),
            path,
            before: old.as_deref().map(content_hash).as_deref(),
            content: &new,
            purpose: Purpose::Harness,
        })
    }
}
