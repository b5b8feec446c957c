//! Removing a worktree: what in it is nowhere else, and what may happen then.

use std::path::Path;

use windlass_core::event::{WorktreeChanged, WorktreeKind};

use super::{
    BRANCHES, WorktreeRecord, build_files, changes, commit_all, conflicts, interruption, is_same,
    links, list, registration, remove_left_locks, some_of,
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
        if let Some(why) = links::work_in(git, path)? {
            return Ok(Some(why));
        }
        let head = git.run_in(path, None, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        // Without a commit there is nothing to lose.
        let count = match head {
            Ok(head) => unmerged(git, tree, head.trim(), merged)?,
            Err(error) if error.code() == Some(1) => None,
            Err(error) => return Err(error),
        };
        if let Some(count) = count {
            let of = match listed.and_then(|listed| listed.branch) {
                Some(branch) => format!("of `{branch}` {}", are_not(count, "merged")),
                None => format!("of its detached head {}", are_not(count, "on any branch")),
            };
            return Ok(Some(format!("{} {of}", commits(count))));
        }
    }
    match git.commit(&format!("refs/heads/{}", tree.branch))? {
        Some(head) => unmerged_of_branch(git, tree, &head, merged),
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
    leave: impl Fn(&Git, &Lock, &Path, Option<&WorktreeRecord>) -> Result<(), GitError>,
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
        true => {
            let unmerged = |head: &String| unmerged_of_branch(git, tree, head, merged);
            head.as_ref().map(unmerged).transpose()?.flatten()
        }
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
fn is_taken(tree: &WorktreeChanged, listed: Option<&WorktreeRecord>) -> bool {
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
    let Some(listed) = listed.filter(|_| path.exists()) else { return Ok(true) };
    // Where it is on no branch, none gets what is committed. Conflicts are not committed at all.
    Ok(listed.branch.is_some()
        && links::work_in(git, path)?.is_none()
        && conflicts::unresolved(git, path)?.is_empty())
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

fn listed(git: &Git, path: &Path) -> Result<Option<WorktreeRecord>, GitError> {
    Ok(list(git)?.into_iter().find(|one| is_same(&one.path, path)))
}

/// Why a directory is left alone, whatever is in it.
fn not_ours_to_remove(path: &Path, listed: Option<&WorktreeRecord>) -> Option<String> {
    match listed {
        // Somebody protects it, perhaps because its disk is not always there.
        Some(WorktreeRecord { locked: Some(why), .. }) => {
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
    listed: Option<&WorktreeRecord>,
) -> Result<(), GitError> {
    if listed.is_none() {
        return Ok(());
    }
    let place = path.display().to_string();
    if path.exists() {
        interruption::mark(git, path)?;
        build_files::clean(git, lock, path)?;
    }
    match (path.exists(), path.exists() && links::has_any(git, path)?) {
        // Git refuses worktrees with submodules otherwise.
        (true, true) => git.run_locked(lock, ["worktree", "remove", "--force", &place])?,
        (true, false) => git.run_locked(lock, ["worktree", "remove", &place])?,
        (false, _) => return registration::forget(git, lock, path),
    };
    Ok(())
}

/// Why a branch stays whose head is this commit.
fn unmerged_of_branch(
    git: &Git,
    tree: &WorktreeChanged,
    head: &str,
    merged: &[String],
) -> Result<Option<String>, GitError> {
    let count = unmerged(git, tree, head, merged)?;
    Ok(count.map(|count| {
        format!("{} of `{}` {}", commits(count), tree.branch, are_not(count, "merged"))
    }))
}

fn commits(count: u64) -> String {
    match count {
        1 => "1 commit".to_owned(),
        count => format!("{count} commits"),
    }
}

fn are_not(count: u64, what: &str) -> String {
    format!("{} not {what}", if count == 1 { "is" } else { "are" })
}

/// How many commits of a head are nowhere but in this worktree and its branch.
fn unmerged(
    git: &Git,
    tree: &WorktreeChanged,
    head: &str,
    merged: &[String],
) -> Result<Option<u64>, GitError> {
    if head == tree.base || merged.iter().any(|known| known == head) {
        return Ok(None);
    }
    // Git counts the heads of all worktrees to `--all`, this one's too, unless asked not to. Checkpoints of our own are
    // no place where a person looks for work.
    let own = format!("--exclude=refs/heads/{}", tree.branch);
    let checkpoints = "--exclude=refs/windlass/*";
    let asked =
        ["rev-list", "--count", "--single-worktree", head, "--not", &own, checkpoints, "--all"];
    let count = git.run(asked)?.trim().parse().unwrap_or(u64::MAX);
    Ok(Some(count).filter(|count| *count > 0))
}
