//! What a git leaves that is killed in the middle of its work, and that the same call put right when it is repeated.

use std::path::Path;

use crate::repository::{Repository, by_hand, write};
use windlass_core::event::{WorktreeChanged, WorktreeKind};
use windlass_workflow::definition::Strategy;
use windlass_workflow::merge::{
    self, Attempt, MergeCommit, MergePreview, MergeRequest, MoveOutcome,
};
use windlass_workflow::worktree::{self, Removal};

/// A worktree with a commit that `main` has, too.
fn merged(repository: &Repository) -> WorktreeChanged {
    let tree = repository.worktree("one");
    write(Path::new(&tree.path), "b.txt", "x");
    by_hand(Path::new(&tree.path), "git add -A && git commit -qm work");
    repository.by_hand("git merge -q windlass/one");
    tree
}

fn remaining_locks(repository: &Repository) -> String {
    repository.by_hand("find .git -name '*.lock' ! -name 'windlass*'")
}

fn remove(repository: &Repository, tree: &WorktreeChanged) -> Removal {
    worktree::remove(&repository.git(), tree, &[]).unwrap()
}

/// Killed while it removed the branch: the branch's own lock stays, and that of all packed refs.
#[test]
fn a_branch_goes_although_its_lock_was_left() {
    let repository = Repository::new();
    let tree = merged(&repository);
    repository.write(".git/refs/heads/windlass/one.lock", "");
    repository.write(".git/packed-refs.lock", "");
    assert_eq!(remove(&repository, &tree), Removal::Removed);
    assert_eq!(repository.by_hand("git branch --list 'windlass/*'"), "");
    assert_eq!(remaining_locks(&repository), "");
}

/// The same, when the branch itself was gone already.
#[test]
fn locks_of_a_branch_that_is_gone_are_removed() {
    let repository = Repository::new();
    let tree = merged(&repository);
    assert_eq!(remove(&repository, &tree), Removal::Removed);
    repository.write(".git/refs/heads/windlass/one.lock", "");
    repository.write(".git/packed-refs.lock", "");
    assert_eq!(remove(&repository, &tree), Removal::Removed);
    assert_eq!(remaining_locks(&repository), "");
    repository.by_hand("git branch other && git branch -q -D other");
}

#[test]
fn work_is_committed_although_locks_were_left() {
    let repository = Repository::new();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    write(path, "b.txt", "x");
    for name in ["worktrees/one/index", "worktrees/one/HEAD", "refs/heads/windlass/one"] {
        repository.write(&format!(".git/{name}.lock"), "");
    }
    assert!(worktree::commit_all(&repository.git(), path, "work").unwrap());
    assert_eq!(remaining_locks(&repository), "");
    repository.write(".git/worktrees/one/HEAD.lock", "");
    worktree::restore(&repository.git(), &tree, &tree.base).unwrap();
    by_hand(path, "git commit -q --allow-empty -m 'by the agent'");
}

/// A removal deletes files one by one, the file `.git` among them.
fn half_removed(repository: &Repository) -> WorktreeChanged {
    let tree = merged(repository);
    repository.write(".git/worktrees/one/windlass-removing", "");
    for name in ["a.txt", ".git"] {
        std::fs::remove_file(Path::new(&tree.path).join(name)).unwrap();
    }
    tree
}

#[test]
fn a_half_removed_worktree_goes() {
    let repository = Repository::new();
    let tree = half_removed(&repository);
    assert_eq!(remove(&repository, &tree), Removal::Removed);
    assert!(!Path::new(&tree.path).exists());
    assert_eq!(worktree::list(&repository.git()).unwrap().len(), 1);
    assert_eq!(repository.by_hand("git branch --list 'windlass/*'"), "");
}

#[test]
fn a_half_removed_worktree_comes_back_whole() {
    let repository = Repository::new();
    let tree = half_removed(&repository);
    worktree::restore(&repository.git(), &tree, &tree.base).unwrap();
    let found = by_hand(Path::new(&tree.path), "git status --porcelain && cat a.txt b.txt");
    assert_eq!(found, "one\ntwo\nthree\nx");
}

#[test]
fn what_was_written_into_a_half_removed_worktree_is_kept() {
    let repository = Repository::new();
    let tree = half_removed(&repository);
    write(Path::new(&tree.path), "notes.txt", "mine");
    let kept = Removal::Kept("not committed: notes.txt".to_owned());
    assert_eq!(remove(&repository, &tree), kept);
    assert!(Path::new(&tree.path).join("a.txt").exists(), "the rest is back");
    assert_eq!(worktree::save(&repository.git(), &tree).unwrap(), Removal::Removed);
    let files = repository.by_hand("git ls-tree -r --name-only windlass/one");
    assert_eq!(files, "a.txt\nb.txt\nnotes.txt\n");
}

/// Nobody has begun to remove it: what is missing was deleted by somebody, and that is work.
#[test]
fn deleted_files_are_work_without_the_mark() {
    let repository = Repository::new();
    let tree = merged(&repository);
    std::fs::remove_file(Path::new(&tree.path).join("a.txt")).unwrap();
    assert_eq!(remove(&repository, &tree), Removal::Kept("not committed: a.txt".to_owned()));
}

/// Git's notes about a worktree, cut off before each of them was written. One that is empty makes every git fail.
#[test]
fn a_half_registered_worktree_is_made_whole() {
    for kind in [WorktreeKind::Single, WorktreeKind::Warm] {
        for part in ["gitdir", "commondir", "HEAD"] {
            for content in [None, Some("")] {
                let repository = Repository::new();
                let planned = WorktreeChanged { kind, ..repository.planned("one") };
                let path = &planned.path;
                repository.by_hand(&format!(
                    "git worktree add -q --no-checkout -b windlass/one {path} && git worktree lock --reason initializing {path}"
                ));
                let file = repository.top().join(".git/worktrees/one").join(part);
                match content {
                    None => std::fs::remove_file(file).unwrap(),
                    Some(text) => std::fs::write(file, text).unwrap(),
                }
                worktree::add(&repository.git(), &planned).unwrap();
                let found = by_hand(Path::new(path), "git status --porcelain && cat a.txt");
                assert_eq!(found, "one\ntwo\nthree\n", "{kind:?} {part} {content:?}");
                assert_eq!(repository.by_hand("ls .git/worktrees"), "one\n", "{part} {content:?}");
            }
        }
    }
}

/// The run that was killed may never be resumed; others find git usable all the same.
#[test]
fn a_half_registered_worktree_does_not_hold_up_others() {
    let repository = Repository::new();
    let path = repository.planned("dead").path;
    repository.by_hand(&format!(
        "git worktree add -q --no-checkout -b windlass/dead {path} && git worktree lock --reason initializing {path}"
    ));
    repository.write(".git/worktrees/dead/commondir", "");
    let tree = repository.worktree("one");
    assert_eq!(remove(&repository, &tree), Removal::Removed);
    repository.by_hand("git worktree list");
}

/// Only our own entry goes: the disk of another worktree may be away for a while.
#[test]
fn other_peoples_missing_worktrees_stay_registered() {
    let repository = Repository::new();
    repository.by_hand("git worktree add -q -b stick ../stick && mv ../stick ../away");
    let tree = merged(&repository);
    std::fs::remove_dir_all(&tree.path).unwrap();
    worktree::restore(&repository.git(), &tree, &tree.base).unwrap();
    std::fs::remove_dir_all(&tree.path).unwrap();
    assert_eq!(remove(&repository, &tree), Removal::Removed);
    repository.by_hand("mv ../away ../stick && git -C ../stick status");
}

fn warm(repository: &Repository, name: &str) -> WorktreeChanged {
    let path = repository.planned("w-warm-1").path;
    WorktreeChanged { path, kind: WorktreeKind::Warm, ..repository.planned(name) }
}

/// A run that never came to take its warm worktree is undone while another one works there.
#[test]
fn undoing_a_run_leaves_the_one_in_its_place_alone() {
    let repository = Repository::new();
    let git = repository.git();
    let (never, other) = (warm(&repository, "never"), warm(&repository, "other"));
    worktree::add(&git, &other).unwrap();
    let path = Path::new(&other.path);
    write(path, "work.txt", "x");
    worktree::undo_add(&git, &never).unwrap();
    assert_eq!(by_hand(path, "git branch --show-current && cat work.txt"), "windlass/other\nx");
    std::fs::remove_dir_all(path).unwrap();
    let error = worktree::add(&git, &never).unwrap_err().to_string();
    assert!(error.starts_with("another run works in"), "its branch has the place: {error}");
}

/// Giving it back checks the base out: some files are there already, others are not written yet.
#[test]
fn a_half_released_warm_worktree_is_released() {
    let repository = Repository::new();
    repository.write("old.txt", "old");
    repository.by_hand("git add -A && git commit -qm old");
    let git = repository.git();
    let tree = warm(&repository, "one");
    worktree::add(&git, &tree).unwrap();
    let path = Path::new(&tree.path);
    write(path, "a.txt", "changed");
    write(path, "new.txt", "new");
    std::fs::remove_file(path.join("old.txt")).unwrap();
    worktree::commit_all(&git, path, "work").unwrap();
    let heads = [repository.head("windlass/one")];
    repository.write(".git/worktrees/w-warm-1/windlass-removing", "");
    write(path, "a.txt", "one\ntwo\nthree\n");
    write(path, "old.txt", "old");
    assert_eq!(worktree::release(&git, &tree, &heads).unwrap(), Removal::Removed);
    let found = by_hand(path, "git status --porcelain --branch && ls");
    assert_eq!(found, "## HEAD (no branch)\na.txt\nold.txt\n");
}

fn computed(repository: &Repository) -> MergeCommit {
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    write(path, "a.txt", "one\nNEW\nthree\nfour\n");
    write(path, "b.txt", "something new\n");
    by_hand(path, "git add -A && git commit -qm work");
    let wanted = MergeRequest {
        branch: &tree.branch,
        tree: path,
        target: "main",
        strategy: Strategy::Squash,
        message: "land",
    };
    match merge::compute(&repository.git(), &wanted).unwrap() {
        MergePreview::Clean(computed) => computed,
        other => panic!("{other:?}"),
    }
}

/// A fast-forward that is killed has unlinked a file, written the first part of one, or the index but not the branch.
#[test]
fn a_half_made_fast_forward_is_finished() {
    for left in [
        "rm a.txt",
        ": > a.txt",
        "printf 'one\\nNE' > a.txt",
        "printf 'one\\nNEW\\nthree\\nfour\\n' > a.txt; printf some > b.txt",
        "git read-tree -m -u HEAD COMMIT",
        "git read-tree -m -u HEAD COMMIT; touch .git/index.lock",
    ] {
        let repository = Repository::new();
        let computed = computed(&repository);
        repository.by_hand(&left.replace("COMMIT", &computed.new));
        let moved = merge::advance(&repository.git(), "main", &computed, Attempt::Repeated);
        assert_eq!(moved.unwrap(), MoveOutcome::Done, "{left}");
        let found = repository.by_hand("git status --porcelain && cat a.txt b.txt");
        assert_eq!(found, "one\nNEW\nthree\nfour\nsomething new\n", "{left}");
    }
}

/// A worktree whose directory was gone is brought back by git; a killed one leaves its own lock and some of the files.
#[test]
fn a_half_restored_worktree_is_restored() {
    let repository = Repository::new();
    let git = repository.git();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    write(path, "b.txt", "x");
    by_hand(path, "git add -A && git commit -qm work && rm a.txt");
    repository.write(".git/worktrees/one/locked", "initializing");
    worktree::restore(&git, &tree, &tree.base).unwrap();
    assert_eq!(by_hand(path, "git status --porcelain && ls"), "a.txt\nb.txt\n");
    assert!(!repository.top().join(".git/worktrees/one/locked").exists());
}
