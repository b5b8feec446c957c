//! Conflicts that somebody has left: nothing with their markers is committed or merged.

use std::path::Path;

use windlass_core::event::WorktreeChanged;
use windlass_workflow::git::GitError;
use windlass_workflow::merge;
use windlass_workflow::worktree;

use crate::repository::{Repository, by_hand, write};

/// A worktree in the middle of a merge of `main`, with conflicts in one text, one file that is not text, and one that
/// `main` has deleted.
fn in_conflict(repository: &Repository) -> WorktreeChanged {
    repository.write("data.bin", "\0one");
    repository.write("gone.txt", "one\n");
    repository.by_hand("git add -A && git commit -qm more");
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    for name in ["a.txt", "data.bin", "gone.txt"] {
        write(path, name, &format!("\0mine {name}").replace("\0mine a", "mine a"));
    }
    by_hand(path, "git commit -qam mine");
    repository.write("a.txt", "theirs\n");
    repository.write("data.bin", "\0theirs");
    repository.by_hand("git rm -q gone.txt && git commit -qam theirs");
    by_hand(path, "! git merge -q main > /dev/null 2>&1");
    tree
}

fn refused(repository: &Repository, tree: &Path) -> String {
    match worktree::commit_all(&repository.git(), tree, "all") {
        Err(GitError::Unresolved { files, .. }) => files,
        other => panic!("{other:?}"),
    }
}

#[test]
fn unresolved_conflicts_are_not_committed() {
    let repository = Repository::new();
    let tree = in_conflict(&repository);
    let path = Path::new(&tree.path);
    let before = repository.head(&tree.branch);
    assert_eq!(refused(&repository, path), "a.txt, data.bin, gone.txt");
    write(path, "a.txt", "both\n");
    write(path, "data.bin", "\0both");
    assert_eq!(refused(&repository, path), "gone.txt");
    assert_eq!(repository.head(&tree.branch), before);
    assert!(!worktree::can_be_saved(&repository.git(), &tree).unwrap());
    by_hand(path, "git rm -q gone.txt 2> /dev/null");
    assert!(worktree::commit_all(&repository.git(), path, "all").unwrap());
    let parents = repository.by_hand(&format!("git rev-list --parents -1 {}", tree.branch));
    assert_eq!(parents.split_whitespace().count(), 3, "it is the merge: {parents}");
}

/// A merge is clean to git where markers were committed. A file that is about markers has them on one side already.
#[test]
fn markers_that_were_committed_are_found() {
    let repository = Repository::new();
    repository.write("about.md", "<<<<<<< ours\n>>>>>>> theirs\n");
    repository.by_hand("git add -A && git commit -qm about");
    let tree = in_conflict(&repository);
    let path = Path::new(&tree.path);
    by_hand(path, "git add -A && git commit -qm 'with markers'");
    let (new, old) = (repository.head(&tree.branch), repository.head("main"));
    let files = ["a.txt", "about.md", "data.bin"].map(str::to_owned);
    let git = repository.git();
    let found = worktree::left_markers(&git, &files, &new, [&old, &tree.base]).unwrap();
    assert_eq!(found, ["a.txt"]);
    let found = worktree::left_markers(&git, &files, &old, [&old, &tree.base]).unwrap();
    assert_eq!(found, Vec::<String>::new());
}

/// A rebase that was interrupted in a conflict is taken back before what is left is committed.
#[test]
fn a_rebase_in_conflict_is_taken_back_before_the_rest_is_committed() {
    let repository = Repository::new();
    let tree = in_conflict(&repository);
    let path = Path::new(&tree.path);
    by_hand(path, "git merge --abort && ! git rebase -q main > /dev/null 2>&1");
    merge::commit_rest(&repository.git(), path, "rest").unwrap();
    assert_eq!(by_hand(path, "git status --porcelain && cat a.txt"), "mine a.txt");
}
