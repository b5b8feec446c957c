//! Worktrees: made, filled and removed so that a crash in between is put right by doing the same again.
//!
//! Invariants:
//! - Every function here may be repeated after a crash at any point.
//! - A directory is deleted only by git, or before anybody has worked in it.
//! - A worktree goes only when nothing uncommitted, untracked or unmerged is left in it, and its branch goes after it.
//!   What builds have left in it goes with it.

mod adding;
pub(crate) mod registration;
mod include;
mod removal;
mod interruption;
mod warm;
mod build_files;
mod conflicts;
mod links;
mod submodules;

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use windlass_skills::regular;

use crate::definition::Base;
use crate::git::{Git, GitError};

pub use adding::{
    Restored, add, add_scratch, fill, register, remove_scratch, restore, scratch_of, undo_add,
};
pub use conflicts::left_markers;
pub use include::INCLUDE_FILE;
pub use removal::{Removal, can_be_saved, release, remove, save, what_would_be_lost};
pub use warm::free_slot;

/// What the names of our own branches begin with.
pub const BRANCHES: &str = "windlass/";
/// The same of their refs.
pub(crate) const OWN_HEADS: &str = "refs/heads/windlass/";

/// A head is the name of a ref.
const MAX_HEAD_BYTES: u64 = 64 << 10;

/// How many names a reason lists.
const NAMES: usize = 5;

/// A worktree as git lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorktreeRecord {
    pub path: PathBuf,
    pub branch: Option<String>,
    /// Why it is locked; empty where nobody says.
    pub locked: Option<String>,
}

/// Where the worktrees of a repository are: one directory for each, below `places`, the same for every run of a name.
pub fn directory(places: &Path, git: &Git) -> PathBuf {
    places.join(repository_name(git))
}

/// A name of a repository that no other one has.
pub fn repository_name(git: &Git) -> String {
    unique_name(git.top(), git.common())
}

/// The same for a directory that is in no repository of git.
pub fn name_after(directory: &Path) -> String {
    unique_name(directory, directory)
}

fn unique_name(top: &Path, identity: &Path) -> String {
    let name = top.file_name().map(|name| name.to_string_lossy().into_owned());
    let hash = Sha256::digest(identity.as_os_str().as_encoded_bytes());
    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{hash}", name.unwrap_or_else(|| "repository".to_owned()))
}

/// The commit that a new worktree begins at. `begun_on` is the branch on which its run was started: what a person has
/// checked out since then is not where its work belongs.
pub fn base(
    git: &Git,
    base: &Base,
    target: Option<&str>,
    begun_on: Option<&str>,
) -> Result<String, GitError> {
    let here = git.branch_in(git.top())?;
    let id = |found: String| found.trim().to_owned();
    match base {
        Base::Head => {
            let has_left = |branch: &&str| here.as_deref() != Some(branch);
            if let Some(branch) = begun_on.filter(has_left) {
                let branch = branch_of_start(git, branch)?;
                let head = ["rev-parse", "--verify", &format!("refs/heads/{branch}^{{commit}}")];
                return git.run(head).map(id);
            }
            let head = git.run_in(git.top(), None, ["rev-parse", "--verify", "HEAD^{commit}"]);
            head.map(id).map_err(|_| {
                GitError::Unusable(
                    "the repository has no commit yet; make the first one with `git commit`"
                        .to_owned(),
                )
            })
        }
        Base::Fresh => {
            let Some(branch) = target.or(begun_on).or(here.as_deref()) else {
                let reason = "the head is detached: name the branch with `target`".to_owned();
                return Err(GitError::Unusable(reason));
            };
            let remote = git.run(["config", "--get", &format!("branch.{branch}.remote")]);
            let remote = remote.map_or_else(|_| "origin".to_owned(), id);
            // Where the person works: a remote may be a path from there.
            let fetch = ["fetch", "--quiet", "--end-of-options", &remote, branch];
            git.run_in(git.top(), None, fetch)?;
            let head = ["rev-parse", "--verify", "FETCH_HEAD^{commit}"];
            git.run_in(git.top(), None, head).map(id)
        }
        Base::Named(name) => {
            // As the person sees it: the head of another checkout is another one.
            let wanted = format!("{name}^{{commit}}");
            let find = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
            match git.run_in(git.top(), None, find) {
                Err(error) if error.code() == Some(1) => {
                    Err(GitError::Unusable(format!("there is no commit `{name}` to begin at")))
                }
                found => found.map(id),
            }
        }
    }
}

/// What the branch on which a run was started is called by now: a person may have renamed it since.
pub fn branch_of_start(git: &Git, branch: &str) -> Result<String, GitError> {
    if git.commit(&format!("refs/heads/{branch}"))?.is_some() {
        return Ok(branch.to_owned());
    }
    if let Some(here) = git.branch_in(git.top())? {
        let reflog = ["reflog", "show", "--format=%gs", &format!("refs/heads/{here}")];
        let renamed = format!("Branch: renamed refs/heads/{branch} to refs/heads/{here}");
        if git.run(reflog)?.lines().any(|line| line == renamed) {
            return Ok(here);
        }
    }
    let reason = format!("branch `{branch}`, on which the run was started, is gone");
    Err(GitError::Unusable(reason))
}

/// Removes the lock files that a killed git left in a worktree of ours: of its index, its head and its branch. Whoever
/// holds the repository's lock knows that no git of ours runs.
pub fn remove_left_locks(git: &Git, tree: &Path) -> Result<(), GitError> {
    let own = git.own_directory(tree)?;
    if own == git.common() {
        return Ok(());
    }
    let branch = own_branch(&own).map(|name| git.common().join(format!("{name}.lock")));
    for file in [own.join("index.lock"), own.join("HEAD.lock")].into_iter().chain(branch) {
        // There is none, as a rule.
        let _ = std::fs::remove_file(file);
    }
    Ok(())
}

/// The ref of the branch that a worktree is on, by its own git directory, where it is one of ours.
pub(crate) fn own_branch(own: &Path) -> Option<String> {
    let head = regular::read_text(&own.join("HEAD"), MAX_HEAD_BYTES).ok()?;
    let name = head.trim_end().strip_prefix("ref: ")?;
    name.starts_with(OWN_HEADS).then(|| name.to_owned())
}

/// Every worktree of the repository.
pub fn list(git: &Git) -> Result<Vec<WorktreeRecord>, GitError> {
    let text = git.run(["worktree", "list", "--porcelain", "-z"])?;
    let mut found: Vec<WorktreeRecord> = Vec::new();
    for line in text.split('\0') {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, found.last_mut()) {
            ("worktree", _) => found
                .push(WorktreeRecord { path: PathBuf::from(rest), ..WorktreeRecord::default() }),
            ("branch", Some(last)) => {
                last.branch = rest.strip_prefix("refs/heads/").map(str::to_owned)
            }
            ("locked", Some(last)) => last.locked = Some(rest.to_owned()),
            _ => {}
        }
    }
    Ok(found)
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    one == other || real(one) == real(other)
}

/// Whether anything is staged, by content: what shows files to people would compare what it makes of them.
const PLAIN_COMPARISON: [&str; 5] =
    ["diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv"];

/// Commits everything that is not committed, except what [`left_out`] names; `false` where there is nothing. Refused
/// while git has conflicts there that nobody has resolved.
pub fn commit_all(git: &Git, tree: &Path, message: &str) -> Result<bool, GitError> {
    let lock = git.lock()?;
    remove_left_locks(git, tree)?;
    let conflicts = conflicts::unresolved(git, tree)?;
    if !conflicts.is_empty() {
        return Err(GitError::Unresolved {
            tree: tree.display().to_string(),
            files: some_of(&conflicts),
        });
    }
    build_files::stage(git, &lock, tree)?;
    let staged = git.run_in(tree, Some(&lock), PLAIN_COMPARISON);
    // A merge whose conflicts were all resolved as they were is one all the same.
    let is_merging = git.own_directory(tree)?.join("MERGE_HEAD").exists();
    match staged {
        Ok(_) if is_merging => {
            git.run_in(tree, Some(&lock), ["commit", "--quiet", "--no-verify", "-m", message])?;
            Ok(true)
        }
        Ok(_) => Ok(false),
        Err(error) if error.code() == Some(1) => {
            git.run_in(tree, Some(&lock), ["commit", "--quiet", "--no-verify", "-m", message])?;
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

/// What [`commit_all`] does not commit: what builds have left in a tree, and repositories in it that are not as git
/// has them there.
pub fn left_out(git: &Git, tree: &Path) -> Result<Vec<String>, GitError> {
    let untracked = build_files::untracked(git, tree)?;
    let mut names = untracked.build;
    names.extend(untracked.work.into_iter().filter(|name| links::is_repository(name)));
    names.extend(links::moved(git, tree)?);
    names.sort();
    Ok(names)
}

/// What is not committed in a tree: changed and untracked files, without what builds have left.
pub fn changes(git: &Git, tree: &Path) -> Result<Vec<String>, GitError> {
    let mut names = status(git, tree, "--untracked-files=no")?;
    names.extend(build_files::untracked(git, tree)?.work);
    Ok(names)
}

/// The files that git does not track in a tree, without what builds have left.
pub(crate) fn untracked(git: &Git, tree: &Path) -> Result<Vec<String>, GitError> {
    Ok(build_files::untracked(git, tree)?.work)
}

/// The same as [`changes`], with what builds have left.
fn every_change(git: &Git, tree: &Path) -> Result<Vec<String>, GitError> {
    status(git, tree, "--untracked-files=all")
}

fn status(git: &Git, tree: &Path, untracked: &str) -> Result<Vec<String>, GitError> {
    let text = git.run_in(tree, None, ["status", "--porcelain", "-z", NO_LINKS, untracked])?;
    // A rename has its old name in an entry of its own, without a mark.
    let is_entry = |entry: &&str| entry.as_bytes().get(2) == Some(&b' ');
    Ok(text.split('\0').filter(is_entry).map(|entry| entry[3..].to_owned()).collect())
}

/// Files that a worktree's branch and its uncommitted changes differ in from where it began (WF-026).
pub fn changed_files(git: &Git, tree: &Path, base: &str) -> Result<Vec<String>, GitError> {
    let text = git.run_in(tree, None, ["diff", "--name-only", "-z", NO_LINKS, base, "--"])?;
    let mut files: Vec<_> =
        text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    files.extend(links::committed_since(git, tree, base)?);
    files.extend(changes(git, tree)?);
    files.sort();
    files.dedup();
    Ok(files)
}

/// Has git look at no repository inside a checkout: it would run commands that are named in its settings.
pub(crate) const NO_LINKS: &str = "--ignore-submodules=all";

pub(crate) fn some_of(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMES);
    let listed = names.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match more {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}
