//! Merging a branch without touching anyone's checkout.
//!
//! The merged tree is computed and committed first; then the target moves, once, from the commit that the merge was
//! computed for. Where the target is checked out, that tree is moved with it, if it is clean.
//!
//! Invariants:
//! - The target moves only from `old` to `new`: a stale `old` is refused by git, and the merge is computed again.
//! - A checkout is moved only while it is on the target and has no changes of its own.
//! - Nothing ends half done: a rebase that conflicts is taken back, and a move that was interrupted is finished.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use windlass_skills::regular;

use crate::changes::LARGE_FILES;
use crate::definition::Strategy;
use crate::git::{Git, GitError, Lock};
use crate::worktree;

/// What is merged, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeRequest<'a> {
    pub branch: &'a str,
    /// The branch's own worktree.
    pub tree: &'a Path,
    pub target: &'a str,
    pub strategy: Strategy,
    pub message: &'a str,
}

/// A merge that is computed and not yet visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeCommit {
    /// The branch's commit.
    pub head: String,
    /// The target's commit, before and after.
    pub old: String,
    pub new: String,
}

/// What a merge would come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergePreview {
    Clean(MergeCommit),
    /// The target has everything.
    Nothing {
        head: String,
        old: String,
    },
    /// Both sides changed the same places of these files.
    Conflict {
        head: String,
        old: String,
        files: Vec<String>,
    },
}

/// What became of moving the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveOutcome {
    Done,
    /// Somebody moved the target meanwhile: compute again.
    Stale,
    /// It is checked out here, in a state that keeps it from moving.
    Dirty {
        checkout: PathBuf,
        why: String,
        /// What a person does about it.
        remedy: &'static str,
    },
}

/// How many files one command names: all of them could be longer than a command line may be.
const NAMES_AT_ONCE: usize = 200;

/// What a person does about a checkout that keeps its branch from moving.
const PUT_AWAY: &str = "Commit or put away what is there";
const FINISH: &str = "Finish or abort that";
const RESTORE: &str = "Bring it back, or run `git worktree prune`";

/// The largest file in which git says what is under way in a checkout.
const MAX_STATE_BYTES: u64 = 1 << 20;

/// The queue of merges into a repository: whoever holds this lock is first in it.
pub const TURN_LOCK: &str = "windlass-merge.lock";

/// Takes the turn. `None` while somebody else has it.
pub fn try_turn(git: &Git) -> Result<Option<Lock>, GitError> {
    git.try_lock(TURN_LOCK)
}

/// Computes a merge. Nothing that anyone sees changes, except that a rebase moves the branch itself.
pub fn compute(git: &Git, wanted: &MergeRequest<'_>) -> Result<MergePreview, GitError> {
    let lock = git.lock()?;
    end_rebase(git, &lock, wanted.tree)?;
    let missing = |what: &str| GitError::Unusable(format!("there is no branch `{what}`"));
    let target = format!("refs/heads/{}", wanted.target);
    let branch = format!("refs/heads/{}", wanted.branch);
    let old = git.commit(&target)?.ok_or_else(|| missing(wanted.target))?;
    let head = git.commit(&branch)?.ok_or_else(|| missing(wanted.branch))?;
    if git.asks(["merge-base", "--is-ancestor", &head, &old])? {
        return Ok(MergePreview::Nothing { head, old });
    }
    if !git.asks(["merge-base", &head, &old])? {
        return Err(GitError::Unusable(format!(
            "`{}` and `{}` have no commit in common: somebody has replaced one of them",
            wanted.branch, wanted.target
        )));
    }
    if wanted.strategy == Strategy::Rebase {
        return rebase(git, &lock, wanted, head, old);
    }
    let tree = match merged_tree(git, &old, &head)? {
        Ok(tree) => tree,
        Err(files) => return Ok(MergePreview::Conflict { head, old, files }),
    };
    if git.run(["rev-parse", &format!("{old}^{{tree}}")])?.trim() == tree {
        return Ok(MergePreview::Nothing { head, old });
    }
    let mut args = vec!["commit-tree", &tree, "-p", &old, "-m", wanted.message];
    if wanted.strategy == Strategy::Merge {
        args.extend(["-p", &head]);
    }
    let new = git.run_locked(&lock, args)?.trim().to_owned();
    Ok(MergePreview::Clean(MergeCommit { head, old, new }))
}

/// A name of the changes that a merge brings, wherever in the files they stand.
pub fn patch(git: &Git, merge: &MergeCommit) -> Result<String, GitError> {
    let plain = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"];
    let settings = ["-c", LARGE_FILES];
    let whole = ["--unified=0", "--full-index", merge.old.as_str(), merge.new.as_str()];
    let diff = git.run(settings.into_iter().chain(plain).chain(whole))?;
    let (mut hash, mut objects) = (Sha256::new(), "");
    for line in diff.lines() {
        if line.starts_with("index ") {
            objects = line;
            continue;
        }
        // Of a file that git shows no lines of, its objects stand for the content.
        let content = if line.starts_with("Binary files ") { objects } else { "" };
        if !line.starts_with("@@") {
            for part in [content, line, "\n"] {
                hash.update(part);
            }
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The tree of two commits merged, or the files in conflict.
fn merged_tree(
    git: &Git,
    ours: &str,
    theirs: &str,
) -> Result<Result<String, Vec<String>>, GitError> {
    let merged =
        git.run(["merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", ours, theirs]);
    let names = |printed: &str| -> Vec<String> {
        printed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    match merged {
        Ok(printed) => Ok(Ok(names(&printed).swap_remove(0))),
        Err(GitError::Failed { code: Some(1), printed, .. }) => {
            let mut files = names(&printed).split_off(1);
            files.dedup();
            Ok(Err(files))
        }
        Err(error) => Err(error),
    }
}

/// Puts the branch's own commits on top of the target, in the branch's own worktree.
fn rebase(
    git: &Git,
    lock: &Lock,
    wanted: &MergeRequest<'_>,
    head: String,
    old: String,
) -> Result<MergePreview, GitError> {
    worktree::remove_left_locks(git, wanted.tree)?;
    let rebased = git.run_in(wanted.tree, Some(lock), ["rebase", "--quiet", &old]);
    if let Err(error) = rebased {
        let files = git.run_in(
            wanted.tree,
            Some(lock),
            ["diff", "--name-only", "-z", worktree::NO_LINKS, "--diff-filter=U"],
        )?;
        let files: Vec<_> =
            files.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        end_rebase(git, lock, wanted.tree)?;
        return match files.is_empty() {
            true => Err(error),
            false => Ok(MergePreview::Conflict { head, old, files }),
        };
    }
    let new = git.commit(&format!("refs/heads/{}", wanted.branch))?;
    let new = new.ok_or_else(|| GitError::Unusable(format!("`{}` is gone", wanted.branch)))?;
    Ok(MergePreview::Clean(MergeCommit { head: new.clone(), old, new }))
}

/// Commits what an agent has left in the worktree of its branch.
pub fn commit_rest(git: &Git, tree: &Path, message: &str) -> Result<bool, GitError> {
    let lock = git.lock()?;
    end_rebase(git, &lock, tree)?;
    drop(lock);
    worktree::commit_all(git, tree, message)
}

/// Takes a rebase back that a crash or a conflict has left half done.
fn end_rebase(git: &Git, lock: &Lock, tree: &Path) -> Result<(), GitError> {
    let own = git.own_directory(tree)?;
    if own.join("rebase-merge").exists() || own.join("rebase-apply").exists() {
        worktree::remove_left_locks(git, tree)?;
        git.run_in(tree, Some(lock), ["rebase", "--abort"])?;
    }
    Ok(())
}

/// Where the records of runs are, as git notes: `git log --notes=windlass` shows them.
const NOTES: &str = "--ref=windlass";

/// Attaches a text to a commit, in the place of an earlier one.
pub fn attach_note(git: &Git, commit: &str, text: &str) -> Result<(), GitError> {
    let lock = git.lock()?;
    git.run_locked(&lock, ["notes", NOTES, "add", "--force", "-m", text, commit]).map(drop)
}

/// Whether a move is made for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    First,
    /// A process that was making it has ended in between.
    Repeated,
}

/// Moves the target to a computed merge. May be repeated after a crash.
pub fn advance(
    git: &Git,
    target: &str,
    merge: &MergeCommit,
    attempt: Attempt,
) -> Result<MoveOutcome, GitError> {
    let lock = git.lock()?;
    let reference = format!("refs/heads/{target}");
    let now = git.commit(&reference)?;
    let checkout =
        worktree::list(git)?.into_iter().find(|one| one.branch.as_deref() == Some(target));
    // It has moved to the merge, and somebody has committed on top of it.
    let is_past = match &now {
        Some(now) if *now != merge.old => {
            git.asks(["merge-base", "--is-ancestor", &merge.new, now])?
        }
        _ => false,
    };
    if is_past {
        return Ok(MoveOutcome::Done);
    }
    let Some(checkout) = checkout.map(|one| one.path) else {
        return match now {
            Some(now) if now == merge.new => Ok(MoveOutcome::Done),
            Some(now) if now == merge.old => match rebased_in(git, &reference)? {
                Some(checkout) => {
                    let why = "a rebase of it is under way there".to_owned();
                    Ok(MoveOutcome::Dirty { checkout, why, remedy: FINISH })
                }
                None => move_ref(git, &lock, &reference, merge),
            },
            _ => Ok(MoveOutcome::Stale),
        };
    };
    match now {
        Some(now) if now == merge.new => Ok(MoveOutcome::Done),
        Some(now) if now == merge.old => {
            if attempt == Attempt::Repeated {
                undo_interrupted(git, &lock, &checkout, merge)?;
            }
            move_checkout(git, &lock, &checkout, target, merge)
        }
        _ => Ok(MoveOutcome::Stale),
    }
}

/// The checkout in which a person rebases a branch. Its head is detached meanwhile, and git moves the branch at the end,
/// from the commit that it was at.
fn rebased_in(git: &Git, reference: &str) -> Result<Option<PathBuf>, GitError> {
    let names = ["rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs"];
    let is_in = |own: &Path| {
        let texts = names.iter().map(|name| regular::read_text(&own.join(name), MAX_STATE_BYTES));
        texts.flatten().any(|text| text.lines().any(|line| line == reference))
    };
    Ok(git.checkouts()?.into_iter().find(|(own, _)| is_in(own)).map(|(_, tree)| tree))
}

fn move_ref(
    git: &Git,
    lock: &Lock,
    reference: &str,
    merge: &MergeCommit,
) -> Result<MoveOutcome, GitError> {
    let log = ["-m", "windlass: merge"];
    let moved =
        git.run_locked(lock, ["update-ref", log[0], log[1], reference, &merge.new, &merge.old]);
    match moved {
        Ok(_) => Ok(MoveOutcome::Done),
        // Somebody was faster.
        Err(_) if git.commit(reference)?.as_deref() != Some(&merge.old) => Ok(MoveOutcome::Stale),
        Err(error) => Err(error),
    }
}

/// Moves a checkout with its branch, by fast-forward alone.
fn move_checkout(
    git: &Git,
    lock: &Lock,
    checkout: &Path,
    target: &str,
    merge: &MergeCommit,
) -> Result<MoveOutcome, GitError> {
    let dirty =
        |why: String, remedy| Ok(MoveOutcome::Dirty { checkout: checkout.to_owned(), why, remedy });
    if !checkout.exists() {
        return dirty("its directory is gone".to_owned(), RESTORE);
    }
    if let Some(operation) = operation(git, checkout)? {
        return dirty(format!("{operation} is under way in it"), FINISH);
    }
    let changed = tracked_changes(git, checkout)?;
    if !changed.is_empty() {
        let changed = worktree::some_of(&changed);
        return dirty(format!("it has changes that are not committed: {changed}"), PUT_AWAY);
    }
    if git.branch_in(checkout)?.as_deref() != Some(target) {
        return Ok(MoveOutcome::Stale);
    }
    // Git takes what it ignores for nobody's work, unless asked not to.
    let forward = ["merge", "--quiet", "--ff-only", "--no-overwrite-ignore", &merge.new];
    match git.run_in(checkout, Some(lock), forward) {
        Ok(_) => Ok(MoveOutcome::Done),
        // An untracked file in the way, say: git has changed nothing.
        Err(GitError::Failed { said, .. }) => dirty(said, PUT_AWAY),
        Err(error) => Err(error),
    }
}

/// Takes back what a killed fast-forward left: git writes files before the index and the branch. Only files that hold
/// nothing but what the new commit has in them are touched, and the fast-forward writes them again.
fn undo_interrupted(
    git: &Git,
    lock: &Lock,
    checkout: &Path,
    merge: &MergeCommit,
) -> Result<(), GitError> {
    let names = |filter: &str| -> Result<Vec<String>, GitError> {
        let moved =
            git.run(["diff", "--name-only", "-z", "--no-renames", filter, &merge.old, &merge.new])?;
        Ok(moved.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    };
    let (kept, added) = (names("--diff-filter=a")?, names("--diff-filter=A")?);
    let changed = tracked_changes(git, checkout)?;
    let is_ours = |name: &String| {
        let is_moved = kept.contains(name) || added.contains(name);
        is_moved && is_begun(git, checkout, name, &merge.new)
    };
    // A git that is still at work is not ours: whoever started ours held the lock that we hold now.
    if !changed.iter().all(is_ours) || git.is_at_work() {
        return Ok(());
    }
    let _ = std::fs::remove_file(git.own_directory(checkout)?.join("index.lock"));
    if !changed.is_empty() {
        // The index was as the old commit, or nothing would have moved.
        git.run_in(checkout, Some(lock), ["read-tree", "--reset", &merge.old])?;
    }
    for name in added {
        if is_begun(git, checkout, &name, &merge.new) {
            let _ = std::fs::remove_file(checkout.join(&name));
        }
    }
    for names in tracked_changes(git, checkout)?.chunks(NAMES_AT_ONCE) {
        let checkout_old = ["checkout", "--quiet", &merge.old, "--"].into_iter();
        let names = names.iter().map(String::as_str);
        git.run_in(checkout, Some(lock), checkout_old.chain(names))?;
    }
    Ok(())
}

/// Whether a file of a checkout has the content that a commit has.
pub(crate) fn is_as_in(
    git: &Git,
    checkout: &Path,
    name: &str,
    commit: &str,
) -> Result<bool, GitError> {
    let wanted = git.run(["rev-parse", "--verify", "--quiet", &format!("{commit}:{name}")]);
    let path = checkout.join(name);
    match wanted {
        Ok(wanted) => {
            let found = git.run_in(checkout, None, ["hash-object", "--", name]);
            Ok(path.is_file() && found.is_ok_and(|found| found.trim() == wanted.trim()))
        }
        Err(error) if error.code() == Some(1) => Ok(!path.exists()),
        Err(error) => Err(error),
    }
}

/// Whether a file is as a git leaves it that is writing this commit's version: missing, whole, or its first part.
fn is_begun(git: &Git, checkout: &Path, name: &str, commit: &str) -> bool {
    let path = checkout.join(name);
    let Ok(found) = std::fs::symlink_metadata(&path) else { return true };
    if is_as_in(git, checkout, name, commit).unwrap_or(false) {
        return true;
    }
    let whole = git.run(["cat-file", "blob", &format!("{commit}:{name}")]);
    let part = regular::read(&path, found.len());
    match (whole, part) {
        (Ok(whole), Ok(part)) => {
            // The end may be in the middle of a character.
            let part = String::from_utf8_lossy(&part);
            whole.starts_with(part.trim_end_matches(char::REPLACEMENT_CHARACTER))
        }
        _ => false,
    }
}

/// Changes of tracked files. What is untracked stays where it is, or git refuses to move.
fn tracked_changes(git: &Git, tree: &Path) -> Result<Vec<String>, GitError> {
    let text = git.run_in(
        tree,
        None,
        ["status", "--porcelain", "-z", worktree::NO_LINKS, "--untracked-files=no"],
    )?;
    let is_entry = |entry: &&str| entry.as_bytes().get(2) == Some(&b' ');
    Ok(text.split('\0').filter(is_entry).map(|entry| entry[3..].to_owned()).collect())
}

/// What a person is in the middle of in a checkout.
fn operation(git: &Git, checkout: &Path) -> Result<Option<&'static str>, GitError> {
    let own = git.own_directory(checkout)?;
    let marks = [
        ("MERGE_HEAD", "a merge"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase"),
        ("BISECT_LOG", "a bisection"),
    ];
    Ok(marks.into_iter().find(|(name, _)| own.join(name).exists()).map(|(_, what)| what))
}
