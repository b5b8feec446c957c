//! Removing a worktree: what in it is nowhere else, and what may happen then.

use std::path::Path;

use windlass_core::event::{WorktreeChanged, WorktreeKind};

use super::{
    BRANCHES, Listed, build_files, changes, commit_all, interruption, is_same, list, registration,
    remove_left_locks, some_of,
};
use crate::git::{Git, GitError, Lock};

/// What became of a worktree that is not needed any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    Removed,
    /// It stays, and why.
    Kept(String),
}

/// What would be lost with a worktree and its branch; `None` where everything in it is elsewhere. `merged` are the
/// heads that are known to be in a target, where a merge has taken them there as another commit.
pub fn what_would_be_lost(
    git: &Git,
    tree: &WorktreeChanged,
    merged: &[String],
) -> Result<Option<String>, GitError> {
    let path = Path::new(&tree.path);
    let listed = listed(git, path)?;
    if let Some(why) = not_ours_to_remove(path, listed.as_ref()) {
        return Ok(Some(why));
    }
    if path.exists() && listed.is_some() {
        let left = changes(git, path)?;
        if !left.is_empty() {
            return Ok(Some(format!("not committed: {}", some_of(&left))));
        }
        if let Some(why) = unsafe_submodules(git, path)? {
            return Ok(Some(why));
        }
    }
    match git.commit(&format!("refs/heads/{}", tree.branch))? {
        Some(head) => unmerged(git, tree, &head, merged),
        None => Ok(None),
    }
}

/// Removes a worktree and its branch, unless something would be lost.
pub fn remove(git: &Git, tree: &WorktreeChanged, merged: &[String]) -> Result<Removal, GitError> {
    give_up(git, tree, merged, remove_directory)
}

/// Gives a warm worktree back: its branch goes, and its directory stays for the next run, unless something would be
/// lost.
pub fn release(git: &Git, tree: &WorktreeChanged, merged: &[String]) -> Result<Removal, GitError> {
    give_up(git, tree, merged, |git, lock, path, listed| {
        if listed.is_some() && path.exists() {
            interruption::mark(git, path)?;
            // Where it began is in some branch; its last commit may be nowhere after a squash.
            git.run_in(path, Some(lock), ["checkout", "--quiet", "--detach", &tree.base])?;
            interruption::unmark(git, path)?;
        }
        Ok(())
    })
}

/// Ends what a run has of a worktree: its branch, and what `leave` does about the directory.
fn give_up(
    git: &Git,
    tree: &WorktreeChanged,
    merged: &[String],
    leave: impl Fn(&Git, &Lock, &Path, Option<&Listed>) -> Result<(), GitError>,
) -> Result<Removal, GitError> {
    let lock = git.lock()?;
    let path = Path::new(&tree.path);
    let reference = format!("refs/heads/{}", tree.branch);
    if !path.exists() {
        registration::discard_half_made(git, path)?;
    }
    git.clear_ref_locks(&lock, &reference);
    let head = git.commit(&reference)?;
    let listed = listed(git, path)?;
    let lost = match is_taken(tree, listed.as_ref()) {
        true => head.as_ref().map(|head| unmerged(git, tree, head, merged)).transpose()?.flatten(),
        false => {
            if path.exists() && listed.is_some() {
                remove_left_locks(git, path)?;
                interruption::undo(git, &lock, tree)?;
            }
            what_would_be_lost(git, tree, merged)?
        }
    };
    if let Some(why) = lost {
        return Ok(Removal::Kept(why));
    }
    if !is_taken(tree, listed.as_ref()) {
        leave(git, &lock, path, listed.as_ref())?;
    }
    if let Some(head) = head {
        git.run_locked(&lock, ["update-ref", "-d", &reference, &head])?;
    }
    Ok(Removal::Removed)
}

/// Whether another run already works in a warm worktree that was given back before a crash.
fn is_taken(tree: &WorktreeChanged, listed: Option<&Listed>) -> bool {
    let branch = listed.and_then(|one| one.branch.as_ref());
    tree.kind == WorktreeKind::Warm
        && branch.is_some_and(|other| *other != tree.branch && other.starts_with(BRANCHES))
}

/// Whether [`save`] can keep everything that is in a worktree.
pub fn can_be_saved(git: &Git, tree: &WorktreeChanged) -> Result<bool, GitError> {
    let path = Path::new(&tree.path);
    let listed = listed(git, path)?;
    if not_ours_to_remove(path, listed.as_ref()).is_some() {
        return Ok(false);
    }
    Ok(!path.exists() || listed.is_none() || unsafe_submodules(git, path)?.is_none())
}

/// Removes the directory of a worktree that has work in it: what is not committed is committed to its branch first, and
/// the branch stays.
pub fn save(git: &Git, tree: &WorktreeChanged) -> Result<Removal, GitError> {
    let path = Path::new(&tree.path);
    if !can_be_saved(git, tree)? {
        return Ok(Removal::Kept("a branch cannot keep everything that is in it".to_owned()));
    }
    let found = listed(git, path)?;
    if path.exists() && found.is_some() {
        interruption::undo(git, &git.lock()?, tree)?;
        commit_all(git, path, "windlass: not committed when its worktree was removed")?;
    }
    let lock = git.lock()?;
    remove_directory(git, &lock, path, found.as_ref())?;
    Ok(Removal::Removed)
}

fn listed(git: &Git, path: &Path) -> Result<Option<Listed>, GitError> {
    Ok(list(git)?.into_iter().find(|one| is_same(&one.path, path)))
}

/// Why a directory is left alone, whatever is in it.
fn not_ours_to_remove(path: &Path, listed: Option<&Listed>) -> Option<String> {
    match listed {
        // Somebody protects it, perhaps because its disk is not always there.
        Some(Listed { locked: Some(why), .. }) => {
            let why = if why.is_empty() { "no reason is given" } else { why };
            Some(format!("it is locked ({why}); `git worktree unlock` unlocks it"))
        }
        Some(_) => None,
        None => {
            let is_filled = std::fs::read_dir(path).is_ok_and(|mut all| all.next().is_some());
            is_filled.then(|| "git does not know it as a worktree".to_owned())
        }
    }
}

/// Has git remove a directory whose content was looked at.
fn remove_directory(
    git: &Git,
    lock: &Lock,
    path: &Path,
    listed: Option<&Listed>,
) -> Result<(), GitError> {
    if listed.is_none() {
        return Ok(());
    }
    let place = path.display().to_string();
    if path.exists() {
        interruption::mark(git, path)?;
        build_files::clean(git, lock, path)?;
    }
    match (path.exists(), path.join(".gitmodules").is_file()) {
        // Git refuses worktrees with submodules otherwise.
        (true, true) => git.run_locked(lock, ["worktree", "remove", "--force", &place])?,
        (true, false) => git.run_locked(lock, ["worktree", "remove", &place])?,
        (false, _) => return registration::forget(git, lock, path),
    };
    Ok(())
}

/// Commits of a branch that are nowhere else.
fn unmerged(
    git: &Git,
    tree: &WorktreeChanged,
    head: &str,
    merged: &[String],
) -> Result<Option<String>, GitError> {
    if head == tree.base || merged.iter().any(|known| known == head) {
        return Ok(None);
    }
    // Git counts the heads of all worktrees to `--all`, this one's too, unless asked not to. Checkpoints of our own are
    // no place where a person looks for work.
    let own = format!("--exclude=refs/heads/{}", tree.branch);
    let checkpoints = "--exclude=refs/windlass/*";
    let asked =
        ["rev-list", "--count", "--single-worktree", head, "--not", &own, checkpoints, "--all"];
    let count = git.run(asked)?;
    Ok(match count.trim() {
        "0" => None,
        "1" => Some(format!("1 commit of `{}` is not merged", tree.branch)),
        count => Some(format!("{count} commits of `{}` are not merged", tree.branch)),
    })
}

/// Commits of submodules lie in the worktree's own git directory, and would go with it.
fn unsafe_submodules(git: &Git, path: &Path) -> Result<Option<String>, GitError> {
    let own = git.own_directory(path)?;
    let modules = own.join("modules");
    if !modules.is_dir() {
        return Ok(None);
    }
    let status = git.run_in(path, None, ["submodule", "status", "--recursive"])?;
    let changed = status.lines().find(|line| line.starts_with(['+', 'U']));
    if let Some(line) = changed {
        return Ok(Some(format!("a submodule has other commits: {}", line.trim())));
    }
    let ahead = git.run_in(
        path,
        None,
        [
            "submodule",
            "--quiet",
            "foreach",
            "--recursive",
            "git rev-list --count HEAD --not --remotes; git status --porcelain | wc -l",
        ],
    )?;
    let is_safe = ahead.lines().all(|count| count.trim() == "0");
    Ok((!is_safe).then(|| "a submodule has work that its remote does not have".to_owned()))
}
