//! Worktrees of other kinds: with a part of the files, and warm ones that runs take turns in.

use std::path::{Path, PathBuf};

use crate::repository::{Repository, by_hand, write};
use windlass_core::event::{WorktreeChanged, WorktreeKind};
use windlass_workflow::git::GitError;
use windlass_workflow::worktree::{self, Removal};

/// A repository with two directories and an ignored one.
fn with_directories() -> Repository {
    let repository = Repository::new();
    repository.write("src/app/main.txt", "app");
    repository.write("docs/guide.txt", "guide");
    repository.write(".gitignore", "build/\n");
    repository.by_hand("git add -A && git commit -qm directories");
    repository
}

fn sparse(repository: &Repository, name: &str) -> WorktreeChanged {
    WorktreeChanged { sparse: vec!["src/app".to_owned()], ..repository.planned(name) }
}

fn names(directory: &Path) -> String {
    by_hand(directory, "find . -name .git -prune -o -type f -print | sort | tr '\\n' ' '")
}

#[test]
fn a_sparse_worktree_has_only_its_directories() {
    let repository = with_directories();
    let tree = sparse(&repository, "one");
    worktree::add(&repository.git(), &tree).unwrap();
    let path = Path::new(&tree.path);
    assert_eq!(names(path), "./.gitignore ./a.txt ./src/app/main.txt ");
    assert_eq!(by_hand(path, "git status --porcelain"), "");
    assert!(repository.top().join("docs/guide.txt").exists(), "the checkout is whole");
    assert_eq!(repository.by_hand("git status --porcelain"), "");
    let other = repository.worktree("other");
    assert!(Path::new(&other.path).join("docs/guide.txt").exists(), "others are whole");
}

/// What is not checked out is not deleted by a commit, and what is written beside it is work too.
#[test]
fn work_outside_a_sparse_worktree_is_committed() {
    let repository = with_directories();
    let tree = sparse(&repository, "one");
    let git = repository.git();
    worktree::add(&git, &tree).unwrap();
    let path = Path::new(&tree.path);
    write(path, "src/app/new.txt", "x");
    write(path, "docs/new.txt", "x");
    assert!(worktree::commit_all(&git, path, "work").unwrap());
    let changed = repository.by_hand("git diff --name-status main windlass/one");
    assert_eq!(changed, "A\tdocs/new.txt\nA\tsrc/app/new.txt\n");
    assert_eq!(worktree::changes(&git, path).unwrap(), [""; 0]);
}

#[test]
fn a_sparse_worktree_comes_back_sparse() {
    let repository = with_directories();
    let tree = sparse(&repository, "one");
    let git = repository.git();
    worktree::add(&git, &tree).unwrap();
    std::fs::remove_dir_all(&tree.path).unwrap();
    worktree::restore(&git, &tree, &tree.base).unwrap();
    assert_eq!(names(Path::new(&tree.path)), "./.gitignore ./a.txt ./src/app/main.txt ");
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let repository = with_directories();
    let tree = WorktreeChanged { sparse: vec!["srv".to_owned()], ..repository.planned("one") };
    let error = worktree::add(&repository.git(), &tree).unwrap_err().to_string();
    assert_eq!(error, "there is no directory `srv` to check out (`sparse`)");
}

fn slot(repository: &Repository, count: u32) -> Option<PathBuf> {
    let places = repository.top().with_file_name("warm");
    worktree::free_slot(&repository.git(), &places, "w", count).unwrap()
}

fn warm(repository: &Repository, name: &str) -> WorktreeChanged {
    let path = slot(repository, 1).unwrap().display().to_string();
    WorktreeChanged { path, kind: WorktreeKind::Warm, ..repository.planned(name) }
}

/// The next run finds what git ignores, the files of its own base, and nothing of the run before it.
#[test]
fn a_warm_worktree_keeps_what_git_ignores() {
    let repository = with_directories();
    let git = repository.git();
    let first = warm(&repository, "first");
    worktree::add(&git, &first).unwrap();
    let path = Path::new(&first.path);
    write(path, "build/cache", "slow to make");
    write(path, "work.txt", "x");
    worktree::commit_all(&git, path, "work").unwrap();
    assert_eq!(slot(&repository, 1), None, "a run works in it");
    let merged = repository.head("windlass/first");
    assert_eq!(worktree::release(&git, &first, &[merged]).unwrap(), Removal::Removed);
    assert_eq!(repository.by_hand("git branch --list 'windlass/*'"), "");

    repository.write("later.txt", "x");
    repository.by_hand("git add -A && git commit -qm later");
    let second = warm(&repository, "second");
    assert_eq!(second.path, first.path);
    worktree::add(&git, &second).unwrap();
    let found =
        "./.gitignore ./a.txt ./build/cache ./docs/guide.txt ./later.txt ./src/app/main.txt ";
    assert_eq!(names(path), found);
    assert_eq!(by_hand(path, "git branch --show-current"), "windlass/second\n");
}

/// Work that would be lost keeps the worktree with its run.
#[test]
fn a_warm_worktree_with_unmerged_work_is_not_released() {
    let repository = with_directories();
    let git = repository.git();
    let tree = warm(&repository, "one");
    worktree::add(&git, &tree).unwrap();
    write(Path::new(&tree.path), "work.txt", "x");
    let kept = worktree::release(&git, &tree, &[]).unwrap();
    assert_eq!(kept, Removal::Kept("not committed: work.txt".to_owned()));
    assert_eq!(slot(&repository, 1), None);
}

/// A person has looked into one that belongs to nobody, and left something.
#[test]
fn a_warm_worktree_that_somebody_uses_is_not_taken() {
    let repository = with_directories();
    let git = repository.git();
    let tree = warm(&repository, "one");
    worktree::add(&git, &tree).unwrap();
    worktree::release(&git, &tree, &[]).unwrap();
    let next = warm(&repository, "next");
    write(Path::new(&tree.path), "notes.txt", "mine");
    assert_eq!(slot(&repository, 1), None);
    assert!(slot(&repository, 2).unwrap().ends_with("w-warm-2"));
    assert!(matches!(worktree::add(&git, &next), Err(GitError::Occupied(_))));
    by_hand(Path::new(&tree.path), "git add -A && git commit -qm mine");
    assert_eq!(slot(&repository, 1), None, "a commit that no branch has is work too");
}

/// After a crash the release is repeated, and the next run may be at work by then.
#[test]
fn releasing_again_leaves_the_next_run_alone() {
    let repository = with_directories();
    let git = repository.git();
    let first = warm(&repository, "first");
    worktree::add(&git, &first).unwrap();
    worktree::release(&git, &first, &[]).unwrap();
    let second = warm(&repository, "second");
    worktree::add(&git, &second).unwrap();
    let path = Path::new(&second.path);
    write(path, "work.txt", "x");
    assert_eq!(worktree::release(&git, &first, &[]).unwrap(), Removal::Removed);
    assert_eq!(by_hand(path, "git branch --show-current && cat work.txt"), "windlass/second\nx");
}

/// Files come outside the repository's lock: while one worktree is filled, others are made.
#[test]
fn a_worktree_is_made_while_another_is_filled() {
    let repository = with_directories();
    let git = repository.git();
    let (one, two) = (repository.planned("one"), repository.planned("two"));
    let filling = worktree::register(&git, &one).unwrap();
    worktree::add(&git, &two).unwrap();
    assert!(!Path::new(&one.path).join("a.txt").exists());
    worktree::fill(&git, &one, &one.base, &filling).unwrap();
    for tree in [&one, &two] {
        assert_eq!(
            by_hand(Path::new(&tree.path), "git status --porcelain && cat docs/guide.txt"),
            "guide"
        );
    }
}
