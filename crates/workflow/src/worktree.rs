//! Worktrees: made, filled and removed so that a crash in between is put right by doing the same again.
//!
//! Invariants:
//! - Every function here may be repeated after a crash at any point.
//! - A directory is deleted only by git, or before anybody has worked in it.
//! - A worktree goes only when nothing uncommitted, untracked or unmerged is left in it, and its branch goes after it.

mod include;
mod removal;

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use windlass_core::event::WorktreeChanged;

use crate::definition::Base;
use crate::git::{Git, GitError, Lock};

pub use include::INCLUDE_FILE;
pub use removal::{Removal, can_be_saved, remove, save, what_would_be_lost};

/// How many names a reason lists.
const NAMES: usize = 5;

/// A worktree as git lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    pub path: PathBuf,
    pub branch: Option<String>,
    /// Why it is locked; empty where nobody says.
    pub locked: Option<String>,
}

/// Where the worktrees of a repository are: one directory for each, below `places`, the same for every run of a name.
pub fn directory(places: &Path, git: &Git) -> PathBuf {
    let top = git.top().file_name().map(|name| name.to_string_lossy().into_owned());
    let hash = Sha256::digest(git.common().as_os_str().as_encoded_bytes());
    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    places.join(format!("{}-{hash}", top.unwrap_or_else(|| "repository".to_owned())))
}

/// The commit that a new worktree begins at, and the branch that its work goes to.
pub fn base(
    git: &Git,
    base: &Base,
    target: Option<&str>,
) -> Result<(String, Option<String>), GitError> {
    let here = git.branch_in(git.top())?;
    let target = target.map(str::to_owned).or(here);
    match base {
        Base::Head => {
            let head = git.run_in(git.top(), None, ["rev-parse", "--verify", "HEAD^{commit}"]);
            let head = head
                .map_err(|_| GitError::Unusable("the repository has no commit yet".to_owned()))?;
            Ok((head.trim().to_owned(), target))
        }
        Base::Fresh => {
            let Some(branch) = target else {
                let reason = "the head is detached: name the branch with `target`".to_owned();
                return Err(GitError::Unusable(reason));
            };
            let remote = git.run(["config", "--get", &format!("branch.{branch}.remote")]);
            let remote = remote.map_or_else(|_| "origin".to_owned(), |name| name.trim().to_owned());
            git.run(["fetch", "--quiet", "--end-of-options", &remote, &branch])?;
            let fetched = git.commit("FETCH_HEAD")?;
            let missing = || GitError::Unusable(format!("`{remote}` has no branch `{branch}`"));
            Ok((fetched.ok_or_else(missing)?, Some(branch)))
        }
        Base::Named(name) => {
            let missing = || GitError::Unusable(format!("there is no commit `{name}` to begin at"));
            Ok((git.commit(name)?.ok_or_else(missing)?, target))
        }
    }
}

/// Makes a worktree that the journal has as `adding`. Nobody has worked in it.
pub fn add(git: &Git, wanted: &WorktreeChanged) -> Result<(), GitError> {
    let lock = git.lock()?;
    let path = Path::new(&wanted.path);
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent).map_err(|error| GitError::file(parent, error))?;
    if !is_whole(git, wanted)? {
        clear(git, &lock, wanted)?;
        match git.commit(&format!("refs/heads/{}", wanted.branch))? {
            None => git.run_locked(
                &lock,
                [
                    "worktree",
                    "add",
                    "--quiet",
                    "--no-checkout",
                    "-b",
                    &wanted.branch,
                    &wanted.path,
                    &wanted.base,
                ],
            )?,
            Some(at) if at == wanted.base => git.run_locked(
                &lock,
                ["worktree", "add", "--quiet", "--no-checkout", &wanted.path, &wanted.branch],
            )?,
            Some(_) => {
                let reason = format!("branch `{}` already exists", wanted.branch);
                return Err(GitError::Unusable(reason));
            }
        };
    }
    remove_index_lock(git, path)?;
    git.run_in(path, Some(&lock), ["reset", "--quiet", "--hard", &wanted.base])?;
    drop(lock);
    fill(git, path)
}

/// What a checkout alone does not bring: submodules, and ignored files that the project wants.
fn fill(git: &Git, path: &Path) -> Result<(), GitError> {
    if path.join(".gitmodules").is_file() {
        git.run_in(
            path,
            None,
            [
                "-c",
                "protocol.file.allow=always",
                "submodule",
                "update",
                "--quiet",
                "--init",
                "--recursive",
            ],
        )?;
    }
    include::copy(git, path)
}

/// Whether git and the directory agree that there is this worktree.
fn is_whole(git: &Git, wanted: &WorktreeChanged) -> Result<bool, GitError> {
    let path = Path::new(&wanted.path);
    let listed = list(git)?.into_iter().find(|one| is_same(&one.path, path));
    Ok(listed.is_some_and(|one| {
        one.branch.as_deref() == Some(&wanted.branch)
            && one.locked.is_none()
            && path.join(".git").is_file()
    }))
}

/// Removes a worktree that the journal has as `adding`, for a run that does not continue. Nobody has worked in it.
pub fn undo_add(git: &Git, wanted: &WorktreeChanged) -> Result<(), GitError> {
    let lock = git.lock()?;
    clear(git, &lock, wanted)?;
    let reference = format!("refs/heads/{}", wanted.branch);
    if git.commit(&reference)?.is_some_and(|at| at == wanted.base) {
        git.run_locked(&lock, ["update-ref", "-d", &reference, &wanted.base])?;
    }
    Ok(())
}

/// Removes what an interrupted `worktree add` left. Only for a path that nobody has worked in.
fn clear(git: &Git, lock: &Lock, wanted: &WorktreeChanged) -> Result<(), GitError> {
    let path = Path::new(&wanted.path);
    if let Some(listed) = list(git)?.into_iter().find(|one| is_same(&one.path, path)) {
        match listed.locked.as_deref() {
            None => {}
            // Git's own lock while it makes a worktree; it stays after a crash, and nothing prunes it.
            Some("initializing" | "added with --lock" | "") => {
                git.run_locked(lock, ["worktree", "unlock", &wanted.path])?;
            }
            Some(why) => {
                let reason = format!("worktree `{}` is locked: {why}", wanted.path);
                return Err(GitError::Unusable(reason));
            }
        }
        // A missing directory is pruned; a half-made one is removed by force.
        match path.exists() {
            true => drop(git.run_locked(lock, ["worktree", "remove", "--force", &wanted.path])),
            false => drop(git.run_locked(lock, ["worktree", "prune"])?),
        }
    }
    let is_directory = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    if is_directory {
        std::fs::remove_dir_all(path).map_err(|error| GitError::file(path, error))?;
        git.run_locked(lock, ["worktree", "prune"])?;
    }
    Ok(())
}

/// A lock file that a killed git left in a worktree of ours. Whoever holds the repository's lock knows that no git of
/// ours runs.
pub fn remove_index_lock(git: &Git, tree: &Path) -> Result<(), GitError> {
    let own = git.own_directory(tree)?;
    if own != git.common() {
        // There is none, as a rule.
        let _ = std::fs::remove_file(own.join("index.lock"));
    }
    Ok(())
}

/// Every worktree of the repository.
pub fn list(git: &Git) -> Result<Vec<Listed>, GitError> {
    let text = git.run(["worktree", "list", "--porcelain", "-z"])?;
    let mut found: Vec<Listed> = Vec::new();
    for line in text.split('\0') {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, found.last_mut()) {
            ("worktree", _) => {
                found.push(Listed { path: PathBuf::from(rest), ..Listed::default() })
            }
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

/// Commits everything that is not committed; `false` where there is nothing.
pub fn commit_all(git: &Git, tree: &Path, message: &str) -> Result<bool, GitError> {
    let lock = git.lock()?;
    remove_index_lock(git, tree)?;
    git.run_in(tree, Some(&lock), ["add", "--all"])?;
    let staged = git.run_in(tree, Some(&lock), ["diff", "--cached", "--quiet"]);
    match staged {
        Ok(_) => Ok(false),
        Err(error) if error.code() == Some(1) => {
            git.run_in(tree, Some(&lock), ["commit", "--quiet", "--no-verify", "-m", message])?;
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

/// What is not committed in a tree: changed and untracked files.
pub fn changes(git: &Git, tree: &Path) -> Result<Vec<String>, GitError> {
    let text = git.run_in(tree, None, ["status", "--porcelain", "-z", "--untracked-files=all"])?;
    // A rename has its old name in an entry of its own, without a mark.
    let is_entry = |entry: &&str| entry.as_bytes().get(2) == Some(&b' ');
    Ok(text.split('\0').filter(is_entry).map(|entry| entry[3..].to_owned()).collect())
}

/// Files that a worktree's branch and its uncommitted changes differ in from where it began (WF-026).
pub fn changed_files(git: &Git, tree: &Path, base: &str) -> Result<Vec<String>, GitError> {
    let text = git.run_in(tree, None, ["diff", "--name-only", "-z", base, "--"])?;
    let mut files: Vec<_> =
        text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    files.extend(changes(git, tree)?);
    files.sort();
    files.dedup();
    Ok(files)
}

pub(crate) fn some_of(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMES);
    let listed = names.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match more {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

/// Brings a worktree back that the journal has and whose directory is gone: everything committed is in its branch.
pub fn restore(git: &Git, tree: &WorktreeChanged) -> Result<(), GitError> {
    let path = Path::new(&tree.path);
    let lock = git.lock()?;
    if is_whole(git, tree)? {
        return remove_index_lock(git, path);
    }
    if path.exists() && std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
        let reason =
            format!("`{}` is not the worktree of branch `{}` any more", tree.path, tree.branch);
        return Err(GitError::Unusable(reason));
    }
    if git.commit(&format!("refs/heads/{}", tree.branch))?.is_none() {
        let reason = format!("worktree `{}` and its branch `{}` are gone", tree.path, tree.branch);
        return Err(GitError::Unusable(reason));
    }
    git.run_locked(&lock, ["worktree", "prune"])?;
    git.run_locked(&lock, ["worktree", "add", "--quiet", &tree.path, &tree.branch])?;
    drop(lock);
    fill(git, path)
}

/// Where the merged work of a worktree is checked.
pub fn scratch_of(tree: &str) -> PathBuf {
    PathBuf::from(format!("{tree}-gates"))
}

/// A checkout of a commit for checks, in place of what was there before.
pub fn add_scratch(git: &Git, path: &Path, commit: &str) -> Result<(), GitError> {
    remove_scratch(git, path)?;
    let lock = git.lock()?;
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent).map_err(|error| GitError::file(parent, error))?;
    let place = path.display().to_string();
    git.run_locked(&lock, ["worktree", "add", "--quiet", "--detach", &place, commit])?;
    drop(lock);
    fill(git, path)
}

/// Removes a checkout that was made for checks. Nothing in it is anybody's work.
pub fn remove_scratch(git: &Git, path: &Path) -> Result<(), GitError> {
    let lock = git.lock()?;
    let place = path.display().to_string();
    if let Some(listed) = list(git)?.into_iter().find(|one| is_same(&one.path, path)) {
        if listed.locked.is_some() {
            git.run_locked(&lock, ["worktree", "unlock", &place])?;
        }
        match path.exists() {
            true => drop(git.run_locked(&lock, ["worktree", "remove", "--force", &place])),
            false => drop(git.run_locked(&lock, ["worktree", "prune"])?),
        }
    }
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        std::fs::remove_dir_all(path).map_err(|error| GitError::file(path, error))?;
        git.run_locked(&lock, ["worktree", "prune"])?;
    }
    Ok(())
}
