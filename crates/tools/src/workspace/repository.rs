//! Keeping our files out of the user's `git status`.
//!
//! Invariants:
//! - Only `info/exclude` of the repository that the workspace is in is ever touched, and only added to.
//! - Inside the workspace it is reached by the walk, like every file. Outside (a repository above the
//!   workspace, or the one a worktree belongs to) it is believed only where git itself would: same owner,
//!   no links, and the repository points back at the worktree.
//! - Best effort: an exclude file that cannot be written costs tidiness, not the task.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use windlass_core::id::CallId;

use super::protect::Purpose;
use super::{Error, Replacement, Workspace, content_hash};

/// What git should ignore. `output/` is the user's to keep.
pub(super) const EXCLUDED: [&str; 4] = [".plan.md", ".memo/", ".scratch/", ".trace/"];
/// An exclude file is a page of patterns, and a pointer file is a line.
const MAX_BYTES: u64 = 1 << 20;

impl Workspace {
    /// Adds our names to the exclude file where there is a repository.
    pub(super) fn exclude_from_git(&self) {
        // Nobody could act on a failure here, and none does harm.
        if self.is_directory(".git") {
            let _ = self.exclude_inside();
        } else if let Some(git) = repository_of(&self.real) {
            let _ = exclude_outside(&git);
        }
    }

    fn exclude_inside(&self) -> Result<(), Error> {
        let path = ".git/info/exclude";
        let old = match self.read_all(path, MAX_BYTES) {
            Err(Error::NotFound { .. }) => None,
            other => Some(other?),
        };
        let Some(new) = extended(old.as_deref().unwrap_or_default()) else { return Ok(()) };
        self.replace(Replacement {
            call: CallId::derived("workspace", path),
            path,
            before: old.as_deref().map(content_hash).as_deref(),
            content: &new,
            purpose: Purpose::Harness,
        })
    }
}

/// An exclude file with our names in it; `None` when they are there.
fn extended(old: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(old);
    let missing: Vec<_> =
        EXCLUDED.iter().filter(|name| !text.lines().any(|line| line == **name)).collect();
    let mut new = old.to_vec();
    if !new.is_empty() && !new.ends_with(b"\n") {
        new.push(b'\n');
    }
    for name in &missing {
        new.extend_from_slice(name.as_bytes());
        new.push(b'\n');
    }
    (!missing.is_empty()).then_some(new)
}

/// The git directory of the repository that a directory is in, where it can be believed.
fn repository_of(workspace: &Path) -> Option<PathBuf> {
    let owner = fs::metadata(workspace).ok()?.uid();
    let found = workspace.ancestors().map(|directory| directory.join(".git"));
    let git = found.into_iter().find(|git| fs::symlink_metadata(git).is_ok())?;
    let common = if fs::symlink_metadata(&git).ok()?.is_dir() { git } else { worktree_of(&git)? };
    let trusted =
        |path: &Path| fs::symlink_metadata(path).is_ok_and(|it| it.is_dir() && it.uid() == owner);
    (trusted(&common) && common.join("HEAD").is_file()).then_some(common)
}

/// The repository that a worktree's `.git` file names, if that repository knows the worktree.
fn worktree_of(pointer: &Path) -> Option<PathBuf> {
    // Absolute, or since git 2.48 relative to where they stand.
    let own = pointer.parent()?.join(line_of(pointer)?.strip_prefix("gitdir: ")?);
    let own = fs::canonicalize(own).ok()?;
    let back = fs::canonicalize(own.join(line_of(&own.join("gitdir"))?)).ok()?;
    let common = fs::canonicalize(own.join(line_of(&own.join("commondir"))?)).ok()?;
    let is_its_worktree = own.parent() == Some(&common.join("worktrees"));
    (is_its_worktree && back == fs::canonicalize(pointer).ok()?).then_some(common)
}

/// The one line of a small regular file.
fn line_of(path: &Path) -> Option<String> {
    let text = read_small(path).ok()?;
    Some(String::from_utf8(text).ok()?.trim_end().to_owned())
}

fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut content = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut content)?;
    Ok(content)
}

fn exclude_outside(git: &Path) -> io::Result<()> {
    let info = git.join("info");
    if !fs::symlink_metadata(&info)?.is_dir() {
        return Err(io::Error::other("not a directory"));
    }
    let exclude = info.join("exclude");
    let old = match read_small(&exclude) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    let Some(new) = extended(&old) else { return Ok(()) };
    // Only what is new, at the end: others may be writing, too.
    let mut file = File::options().append(true).create(true).open(&exclude)?;
    file.write_all(&new[old.len()..])
}
