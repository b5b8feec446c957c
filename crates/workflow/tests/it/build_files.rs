//! What builds leave in a worktree is neither committed nor in the way of its removal.

use std::path::Path;

use windlass_workflow::worktree::{self, Removal};

use crate::repository::{Repository, by_hand, write};

const LEFT: [&str; 6] = [
    ".venv/",
    "node_modules/",
    "old.pyc",
    "pkg/__pycache__/",
    "rust/.pytest_cache/",
    "rust/target/",
];

/// A worktree with work and with what builds have left in it.
fn fill(path: &Path) {
    for name in [
        "rust/Cargo.toml",
        "rust/src/lib.rs",
        "rust/target/debug/lib",
        "rust/target/node_modules/x",
        "rust/.pytest_cache/v",
        "node_modules/left-pad/index.js",
        "pkg/a.py",
        "pkg/__pycache__/a.cpython-313.pyc",
        ".venv/bin/python",
        "old.pyc",
        "docs/target/aim.md",
    ] {
        write(path, name, "x");
    }
    by_hand(path, "git init -q node_modules/own");
}

#[test]
fn what_builds_leave_is_named_and_not_committed() {
    let repository = Repository::new();
    let (git, tree) = (repository.git(), repository.worktree("one"));
    let path = Path::new(&tree.path);
    fill(path);
    let work = ["docs/target/aim.md", "pkg/a.py", "rust/Cargo.toml", "rust/src/lib.rs"];
    assert_eq!(worktree::left_out(&git, path).unwrap(), LEFT);
    assert_eq!(worktree::changes(&git, path).unwrap(), work);
    assert!(worktree::commit_all(&git, path, "work").unwrap());
    let committed = by_hand(path, "git diff --name-only HEAD~ HEAD");
    assert_eq!(committed.lines().collect::<Vec<_>>(), work);
    assert_eq!(worktree::changed_files(&git, path, &tree.base).unwrap(), work);
    assert_eq!(worktree::left_out(&git, path).unwrap(), LEFT);
    assert!(!worktree::commit_all(&git, path, "again").unwrap());
}

#[test]
fn a_build_directory_that_is_tracked_is_work() {
    let repository = Repository::new();
    repository.write("node_modules/a/index.js", "1");
    repository.by_hand("git add -A && git commit -qm vendored");
    let (git, tree) = (repository.git(), repository.worktree("one"));
    let path = Path::new(&tree.path);
    write(path, "node_modules/a/index.js", "2");
    write(path, "node_modules/b/index.js", "3");
    assert!(worktree::left_out(&git, path).unwrap().is_empty());
    assert!(worktree::commit_all(&git, path, "work").unwrap());
    let committed = by_hand(path, "git diff --name-only HEAD~ HEAD");
    assert_eq!(committed, "node_modules/a/index.js\nnode_modules/b/index.js\n");
}

#[test]
fn what_builds_leave_goes_with_its_worktree_and_work_does_not() {
    let repository = Repository::new();
    let (git, tree) = (repository.git(), repository.worktree("one"));
    let path = Path::new(&tree.path);
    write(path, "node_modules/a/index.js", "x");
    write(path, "pkg/__pycache__/a.pyc", "x");
    let outside = repository.top().join("a.txt");
    std::os::unix::fs::symlink(&outside, path.join("node_modules/link")).unwrap();
    write(path, "notes.txt", "mine");
    let kept = worktree::remove(&git, &tree, &[]).unwrap();
    assert_eq!(kept, Removal::Kept("not committed: notes.txt".to_owned()));
    assert!(path.join("node_modules/a/index.js").exists(), "a worktree that stays is left whole");
    std::fs::remove_file(path.join("notes.txt")).unwrap();
    assert_eq!(worktree::remove(&git, &tree, &[]).unwrap(), Removal::Removed);
    assert!(!path.exists() && outside.exists());
}

/// Their names never become arguments: together they would be longer than a command line may be.
#[test]
fn thousands_of_build_files_are_left_out_and_removed() {
    let repository = Repository::new();
    let (git, tree) = (repository.git(), repository.worktree("vast"));
    let path = Path::new(&tree.path);
    for number in 0..3_000 {
        std::fs::write(path.join(format!("{}{number}.pyc", "n".repeat(200))), "x").unwrap();
    }
    write(path, "work.txt", "x");
    assert!(worktree::commit_all(&git, path, "work").unwrap());
    assert_eq!(by_hand(path, "git diff --name-only HEAD~ HEAD"), "work.txt\n");
    let merged = [by_hand(path, "git rev-parse HEAD").trim().to_owned()];
    assert_eq!(worktree::remove(&git, &tree, &merged).unwrap(), Removal::Removed);
}
