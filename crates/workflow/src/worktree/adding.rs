//! Making worktrees: git learns of one under the repository's lock, and its files come outside it.
//!
//! Invariants:
//! - Whoever fills a worktree holds the lock of that worktree, and so does the git that fills it: after a crash the
//!   next owner waits for it.
//! - Only a path that nobody has worked in is cleared.

use std::path::{Path, PathBuf};

use windlass_core::event::{WorktreeChanged, WorktreeKind};

use super::{
    WorktreeRecord, include, interruption, is_same, list, registration, remove_left_locks,
    submodules, warm,
};
use crate::git::{Git, GitError, Lock};

/// Why git locks a worktree while it makes one.
const INITIALIZING: &str = "initializing";

/// Makes a worktree that the journal has as `adding`. Nobody has worked in it.
pub fn add(git: &Git, wanted: &WorktreeChanged) -> Result<(), GitError> {
    let filling = register(git, wanted)?;
    fill(git, wanted, &wanted.base, &filling)
}

/// Has git know a worktree and its branch. Who holds what is returned may fill it.
pub fn register(git: &Git, wanted: &WorktreeChanged) -> Result<Lock, GitError> {
    let lock = git.lock()?;
    let path = Path::new(&wanted.path);
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent).map_err(|error| GitError::file(parent, error))?;
    registration::discard_half_made(git, path)?;
    // Git is asked only where there is something to ask about.
    let is_new = !path.exists() && !git.is_registered(path)?;
    if is_new || !is_whole(git, wanted)? {
        match wanted.kind {
            WorktreeKind::Warm if !is_new && warm::claim(git, &lock, wanted)? => {}
            WorktreeKind::Single | WorktreeKind::Warm | WorktreeKind::Command => {
                if !is_new {
                    clear(git, &lock, wanted)?;
                }
                register_new(git, &lock, wanted)?;
            }
        }
    }
    let filling = git.lock_tree(path)?;
    remove_left_locks(git, path)?;
    set_sparse(git, &lock, wanted)?;
    Ok(filling)
}

/// Says which directories are checked out. Under the repository's lock: git also changes its configuration for it.
fn set_sparse(git: &Git, lock: &Lock, wanted: &WorktreeChanged) -> Result<(), GitError> {
    let path = Path::new(&wanted.path);
    match (wanted.sparse.is_empty(), wanted.kind) {
        (true, WorktreeKind::Warm) => {
            // Another run may have wanted only a part of it.
            git.run_in(path, Some(lock), ["sparse-checkout", "disable"]).map(drop)
        }
        (true, WorktreeKind::Single | WorktreeKind::Command) => Ok(()),
        (false, _) => {
            for name in &wanted.sparse {
                if git.run(["ls-tree", "-d", &wanted.base, "--", name])?.is_empty() {
                    let reason = format!("there is no directory `{name}` to check out (`sparse`)");
                    return Err(GitError::Unusable(reason));
                }
            }
            let set = ["sparse-checkout", "set", "--cone"].into_iter();
            let names = wanted.sparse.iter().map(String::as_str);
            git.run_in(path, Some(lock), set.chain(names)).map(drop)
        }
    }
}

fn register_new(git: &Git, lock: &Lock, wanted: &WorktreeChanged) -> Result<(), GitError> {
    let add = ["worktree", "add", "--quiet", "--no-checkout"].into_iter();
    if !has_branch(git, wanted)? {
        let new = ["-b", &wanted.branch, &wanted.path, &wanted.base];
        match git.run_locked(lock, add.clone().chain(new)) {
            // What was in its way is not any more, but its first attempt has made the branch.
            Err(_) if has_branch(git, wanted)? => {}
            done => return done.map(drop),
        }
    }
    git.run_locked(lock, add.chain([wanted.path.as_str(), &wanted.branch])).map(drop)
}

/// Whether the branch of a worktree is there already, where it is to begin.
pub(super) fn has_branch(git: &Git, wanted: &WorktreeChanged) -> Result<bool, GitError> {
    match git.commit(&format!("refs/heads/{}", wanted.branch))? {
        None => Ok(false),
        Some(at) if at == wanted.base => Ok(true),
        Some(_) => Err(GitError::Unusable(format!("branch `{}` already exists", wanted.branch))),
    }
}

/// Brings the files into a worktree that git knows. `trusted` is the person's commit that says which submodules belong
/// to the project.
pub fn fill(
    git: &Git,
    wanted: &WorktreeChanged,
    trusted: &str,
    filling: &Lock,
) -> Result<(), GitError> {
    let path = Path::new(&wanted.path);
    if wanted.kind == WorktreeKind::Warm {
        submodules::discard(git, path)?;
    }
    git.run_in(path, Some(filling), ["reset", "--quiet", "--hard", &wanted.base])?;
    if wanted.kind == WorktreeKind::Warm {
        // What the base before it ignored, and this one does not, is nobody's work. Git keeps what is ignored.
        git.run_in(path, Some(filling), ["clean", "--quiet", "--force", "-d"])?;
    }
    bring_rest(git, path, trusted, filling)
}

/// What a checkout alone does not bring: submodules, and ignored files that the project wants.
fn bring_rest(git: &Git, path: &Path, trusted: &str, filling: &Lock) -> Result<(), GitError> {
    submodules::bring(git, path, filling, trusted)?;
    include::copy(git, path)
}

/// Whether git and the directory agree that there is this worktree, and nobody protects it.
fn is_whole(git: &Git, wanted: &WorktreeChanged) -> Result<bool, GitError> {
    let listed = listed(git, wanted)?;
    Ok(listed.is_some_and(|one| one.locked.is_none() && is_there(&one, wanted)))
}

fn listed(git: &Git, wanted: &WorktreeChanged) -> Result<Option<WorktreeRecord>, GitError> {
    let path = Path::new(&wanted.path);
    Ok(list(git)?.into_iter().find(|one| is_same(&one.path, path)))
}

fn is_there(listed: &WorktreeRecord, wanted: &WorktreeChanged) -> bool {
    listed.branch.as_deref() == Some(&wanted.branch)
        && Path::new(&wanted.path).join(".git").is_file()
}

/// Removes a worktree that the journal has as `adding`, for a run that does not continue. Nobody has worked in it.
pub fn undo_add(git: &Git, wanted: &WorktreeChanged) -> Result<(), GitError> {
    let lock = git.lock()?;
    let path = Path::new(&wanted.path);
    registration::discard_half_made(git, path)?;
    // A warm one that another run works in, or that nobody does, is not what this run has made.
    let is_own = wanted.kind != WorktreeKind::Warm || !warm::is_of_others(git, wanted)?;
    if is_own {
        clear(git, &lock, wanted)?;
    }
    let reference = format!("refs/heads/{}", wanted.branch);
    if git.commit(&reference)?.is_some_and(|at| at == wanted.base) {
        git.run_locked(&lock, ["update-ref", "-d", &reference, &wanted.base])?;
    }
    Ok(())
}

/// Removes what an interrupted `worktree add` left. Only for a path that nobody has worked in.
fn clear(git: &Git, lock: &Lock, wanted: &WorktreeChanged) -> Result<(), GitError> {
    let path = Path::new(&wanted.path);
    wait_until_filled(git, path)?;
    if let Some(listed) = list(git)?.into_iter().find(|one| is_same(&one.path, path)) {
        match listed.locked.as_deref() {
            None => {}
            Some(reason) if is_unfinished(reason) => {
                git.run_locked(lock, ["worktree", "unlock", &wanted.path])?;
            }
            Some(why) => {
                let reason = format!("worktree `{}` is locked: {why}", wanted.path);
                return Err(GitError::Unusable(reason));
            }
        }
    }
    clear_directory(git, lock, path)
}

/// Removes a directory that holds nobody's work. Git refuses one that it has only half made.
fn clear_directory(git: &Git, lock: &Lock, path: &Path) -> Result<(), GitError> {
    if path.exists() {
        let place = path.display().to_string();
        let _ = git.run_locked(lock, ["worktree", "remove", "--force", &place]);
    }
    let is_directory = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    if is_directory {
        std::fs::remove_dir_all(path).map_err(|error| GitError::file(path, error))?;
    }
    registration::forget(git, lock, path)
}

/// Whether git's own lock is on a worktree, which it has while git makes it: it stays after a crash, and nothing prunes it.
pub(super) fn is_unfinished(reason: &str) -> bool {
    matches!(reason, INITIALIZING | "added with --lock" | "")
}

/// A git that a killed process has left may still be filling it.
fn wait_until_filled(git: &Git, path: &Path) -> Result<(), GitError> {
    if path.exists() && git.is_registered(path)? {
        drop(git.lock_tree(path)?);
    }
    Ok(())
}

/// Whether a worktree was where it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    WasThere,
    /// Its directory was gone, with what was not committed in it.
    MadeAgain,
}

/// Brings a worktree back that the journal has and whose directory is gone: everything committed is in its branch.
/// `trusted` is as for [`fill`].
pub fn restore(git: &Git, tree: &WorktreeChanged, trusted: &str) -> Result<Restored, GitError> {
    let path = Path::new(&tree.path);
    let lock = git.lock()?;
    interruption::undo(git, &lock, tree)?;
    let listed = listed(git, tree)?;
    let is_half_made =
        listed.as_ref().is_some_and(|one| one.locked.as_deref() == Some(INITIALIZING));
    if is_half_made {
        // A git was killed that brought it back. Nobody has worked in it since.
        clear(git, &lock, tree)?;
    } else if listed.as_ref().is_some_and(|one| is_there(one, tree)) {
        // A person may have locked it, so that it is not removed.
        return remove_left_locks(git, path).map(|()| Restored::WasThere);
    }
    if path.exists() && std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(GitError::Unusable(what_it_is_now(tree, listed.as_ref())));
    }
    if git.commit(&format!("refs/heads/{}", tree.branch))?.is_none() {
        let reason = format!("worktree `{}` and its branch `{}` are gone", tree.path, tree.branch);
        return Err(GitError::Unusable(reason));
    }
    if path.exists() {
        std::fs::remove_dir(path).map_err(|error| GitError::file(path, error))?;
    }
    registration::discard_half_made(git, path)?;
    registration::forget(git, &lock, path)?;
    // All at once: git's own mark tells a checkout that was interrupted from one that somebody has changed.
    git.run_locked(&lock, ["worktree", "add", "--quiet", &tree.path, &tree.branch])?;
    set_sparse(git, &lock, tree)?;
    let filling = git.lock_tree(path)?;
    drop(lock);
    bring_rest(git, path, trusted, &filling).map(|()| Restored::MadeAgain)
}

/// Why a directory with files in it is not the worktree that it was, and what makes it that again.
fn what_it_is_now(tree: &WorktreeChanged, listed: Option<&WorktreeRecord>) -> String {
    let WorktreeChanged { path, branch, .. } = tree;
    let now = match listed.map(|listed| listed.branch.as_deref()) {
        Some(Some(other)) if other != branch => format!("is on branch `{other}`"),
        Some(None) => "has a detached head".to_owned(),
        Some(Some(_)) | None => {
            return format!("`{path}` is not the worktree of branch `{branch}` any more");
        }
    };
    format!(
        "`{path}` {now}, but the run expects its work on `{branch}`: run `git checkout {branch}` there, and merge what \
         is missing"
    )
}

/// Where the merged work of a worktree is checked.
pub fn scratch_of(tree: &str) -> PathBuf {
    PathBuf::from(format!("{tree}-gates"))
}

/// A checkout of a commit for checks, in place of what was there before. `trusted` is as for [`fill`].
pub fn add_scratch(git: &Git, path: &Path, commit: &str, trusted: &str) -> Result<(), GitError> {
    remove_scratch(git, path)?;
    let lock = git.lock()?;
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent).map_err(|error| GitError::file(parent, error))?;
    let place = path.display().to_string();
    let add = ["worktree", "add", "--quiet", "--no-checkout", "--detach"];
    git.run_locked(&lock, add.into_iter().chain([place.as_str(), commit]))?;
    let filling = git.lock_tree(path)?;
    drop(lock);
    git.run_in(path, Some(&filling), ["reset", "--quiet", "--hard", commit])?;
    bring_rest(git, path, trusted, &filling)
}

/// Removes a checkout that was made for checks. Nothing in it is anybody's work.
pub fn remove_scratch(git: &Git, path: &Path) -> Result<(), GitError> {
    let lock = git.lock()?;
    let place = path.display().to_string();
    registration::discard_half_made(git, path)?;
    wait_until_filled(git, path)?;
    let listed = list(git)?.into_iter().find(|one| is_same(&one.path, path));
    if listed.is_some_and(|listed| listed.locked.is_some()) {
        git.run_locked(&lock, ["worktree", "unlock", &place])?;
    }
    clear_directory(git, &lock, path)
}
