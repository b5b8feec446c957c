//! Merging: what moves, what does not, and what is left after a crash.

use std::path::Path;

use windlass_core::event::WorktreeChanged;
use windlass_workflow::definition::Strategy;
use windlass_workflow::merge::{
    self, Attempt, MergeCommit, MergePreview, MergeRequest, MoveOutcome,
};

use crate::repository::{Repository, by_hand, write};

fn wanted(tree: &WorktreeChanged, strategy: Strategy) -> MergeRequest<'_> {
    MergeRequest {
        branch: &tree.branch,
        tree: Path::new(&tree.path),
        target: "main",
        strategy,
        message: "Merge it",
    }
}

/// A worktree with a commit that changes a file.
fn worked(repository: &Repository, name: &str, file: &str, text: &str) -> WorktreeChanged {
    let tree = repository.worktree(name);
    write(Path::new(&tree.path), file, text);
    by_hand(Path::new(&tree.path), "git add -A && git commit -qm work");
    tree
}

fn clean(repository: &Repository, tree: &WorktreeChanged, strategy: Strategy) -> MergeCommit {
    match merge::compute(&repository.git(), &wanted(tree, strategy)).unwrap() {
        MergePreview::Clean(computed) => computed,
        other => panic!("{other:?}"),
    }
}

fn advance(repository: &Repository, computed: &MergeCommit) -> MoveOutcome {
    merge::advance(&repository.git(), "main", computed, Attempt::First).unwrap()
}

#[test]
fn a_branch_that_is_checked_out_nowhere_moves_alone() {
    let repository = Repository::new();
    repository.by_hand("git checkout -qb elsewhere");
    let tree = worked(&repository, "one", "b.txt", "x");
    let before = repository.head("elsewhere");
    let computed = clean(&repository, &tree, Strategy::Squash);
    assert_eq!(repository.head("main"), computed.old, "computing moves nothing");
    assert_eq!(advance(&repository, &computed), MoveOutcome::Done);
    assert_eq!(repository.head("main"), computed.new);
    assert_eq!(repository.head("HEAD"), before);
    assert_eq!(repository.by_hand("git status --porcelain"), "");
}

#[test]
fn a_clean_checkout_moves_with_its_branch() {
    let repository = Repository::new();
    let tree = worked(&repository, "one", "b.txt", "x");
    repository.write("untracked.txt", "mine");
    let computed = clean(&repository, &tree, Strategy::Squash);
    assert_eq!(advance(&repository, &computed), MoveOutcome::Done);
    assert_eq!(repository.by_hand("cat b.txt && git status --porcelain"), "x?? untracked.txt\n");
}

#[test]
fn a_dirty_checkout_keeps_its_changes_and_nothing_moves() {
    let repository = Repository::new();
    let tree = worked(&repository, "one", "b.txt", "x");
    repository.write("a.txt", "my own change\n");
    let computed = clean(&repository, &tree, Strategy::Squash);
    let MoveOutcome::Dirty { checkout, why, .. } = advance(&repository, &computed) else {
        panic!("it moved")
    };
    assert_eq!(
        (checkout, why.as_str()),
        (repository.top(), "it has changes that are not committed: a.txt")
    );
    assert_eq!(repository.head("main"), computed.old);
    assert_eq!(repository.by_hand("cat a.txt"), "my own change\n");
}

/// An untracked file in the way, and an operation that a person is in the middle of.
/// Keys and settings of a person are often in files that git ignores, and an agent may add one of that name.
#[test]
fn files_of_a_person_in_the_way_stay_as_they_are() {
    for is_ignored in [true, false] {
        let repository = Repository::new();
        if is_ignored {
            repository.write(".gitignore", "local.conf\n");
            repository.by_hand("git add -A && git commit -qm ignore");
        }
        let tree = repository.worktree("one");
        write(Path::new(&tree.path), "local.conf", "an agent's");
        by_hand(Path::new(&tree.path), "git add -f local.conf && git commit -qm work");
        repository.write("local.conf", "mine");
        let computed = clean(&repository, &tree, Strategy::Squash);
        match advance(&repository, &computed) {
            MoveOutcome::Dirty { why, .. } => assert!(why.contains("local.conf"), "{why}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(repository.by_hand("cat local.conf"), "mine");
        assert_eq!(repository.head("main"), computed.old);
    }
}

/// A person's yes to a rebase is one to what they saw, also of files without lines.
#[test]
fn a_patch_is_named_by_the_content_of_all_files() {
    let repository = Repository::new();
    let name = |worker: &str, text: &str| {
        let tree = worked(&repository, worker, "data.bin", text);
        merge::patch(&repository.git(), &clean(&repository, &tree, Strategy::Rebase)).unwrap()
    };
    let large = "0123456789abcde\n".repeat((1 << 20) / 16 + 1);
    let names = [
        name("one", "\0one"),
        name("two", "\0two"),
        name("three", &large),
        name("four", &large.replacen('0', "1", 1)),
    ];
    assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len());
    repository.by_hand("git commit -q --allow-empty -m elsewhere");
    assert_eq!(name("five", "\0one"), names[0], "on another target it is the same");
}

#[test]
fn a_checkout_in_use_is_left_alone() {
    let repository = Repository::new();
    let tree = worked(&repository, "one", "b.txt", "x");
    let computed = clean(&repository, &tree, Strategy::Squash);
    repository.write("b.txt", "mine");
    assert!(matches!(advance(&repository, &computed), MoveOutcome::Dirty { .. }));
    assert_eq!(repository.by_hand("cat b.txt && rm b.txt"), "mine");
    repository.by_hand("git rev-parse HEAD > .git/MERGE_HEAD");
    let MoveOutcome::Dirty { why, .. } = advance(&repository, &computed) else {
        panic!("it moved")
    };
    assert_eq!(why, "a merge is under way in it");
    assert_eq!(repository.head("main"), computed.old);
}

/// The checkout was on the target when it was looked at, and is not any more.
/// Git itself moves a branch at the end of its rebase, from where it was: that must not fail because of us.
#[test]
fn a_branch_that_a_person_rebases_does_not_move() {
    let repository = Repository::new();
    let tree = worked(&repository, "one", "b.txt", "x");
    repository.by_hand(
        "git checkout -qb other && echo theirs > a.txt && git commit -qam theirs && git checkout -q main
         echo mine > a.txt && git commit -qam mine && ! git rebase -q other 2> /dev/null",
    );
    let computed = clean(&repository, &tree, Strategy::Squash);
    let MoveOutcome::Dirty { checkout, why, .. } = advance(&repository, &computed) else {
        panic!("it moved")
    };
    assert_eq!((checkout, why.as_str()), (repository.top(), "a rebase of it is under way there"));
    assert_eq!(repository.head("main"), computed.old);
    repository.by_hand(
        "echo both > a.txt && git add -A && GIT_EDITOR=true git rebase --continue > /dev/null 2>&1",
    );
    assert_eq!(advance(&repository, &computed), MoveOutcome::Stale);
    let again = clean(&repository, &tree, Strategy::Squash);
    assert_eq!(advance(&repository, &again), MoveOutcome::Done);
    assert_eq!(repository.by_hand("cat a.txt b.txt"), "both\nx");
}

#[test]
fn a_target_with_another_history_is_named() {
    let repository = Repository::new();
    let tree = worked(&repository, "one", "b.txt", "x");
    repository
        .by_hand("git checkout -q --orphan new && git commit -qm new && git branch -f main new");
    for strategy in [Strategy::Squash, Strategy::Rebase, Strategy::Merge] {
        let error = merge::compute(&repository.git(), &wanted(&tree, strategy)).unwrap_err();
        let said = "`windlass/one` and `main` have no commit in common";
        assert!(error.to_string().starts_with(said), "{error}");
    }
    assert_eq!(repository.head("main"), repository.head("new"));
}

#[test]
fn whatever_else_a_checkout_is_on_does_not_move() {
    let repository = Repository::new();
    let tree = worked(&repository, "one", "b.txt", "x");
    let computed = clean(&repository, &tree, Strategy::Squash);
    repository.by_hand("git checkout -qb mine");
    let mine = repository.head("mine");
    assert_eq!(advance(&repository, &computed), MoveOutcome::Done);
    assert_eq!((repository.head("mine"), repository.head("main")), (mine, computed.new));
    assert_eq!(repository.by_hand("ls"), "a.txt\n");
}

#[test]
fn a_target_that_moved_is_computed_again() {
    let repository = Repository::new();
    let tree = worked(&repository, "one", "b.txt", "x");
    let computed = clean(&repository, &tree, Strategy::Squash);
    repository.write("c.txt", "other");
    repository.by_hand("git add -A && git commit -qm other");
    assert_eq!(advance(&repository, &computed), MoveOutcome::Stale);
    let again = clean(&repository, &tree, Strategy::Squash);
    assert_eq!(advance(&repository, &again), MoveOutcome::Done);
    assert_eq!(repository.by_hand("ls"), "a.txt\nb.txt\nc.txt\n");
}

#[test]
fn each_strategy_leaves_its_history() {
    let cases = [
        (Strategy::Squash, "Merge it\nother\nstart\n"),
        (Strategy::Rebase, "work\nother\nstart\n"),
        (Strategy::Merge, "Merge it\nwork\nother\nstart\n"),
    ];
    for (strategy, expected) in cases {
        let repository = Repository::new();
        let tree = worked(&repository, "one", "b.txt", "x");
        repository.write("c.txt", "other");
        repository.by_hand("git add -A && git commit -qm other");
        let computed = clean(&repository, &tree, strategy);
        assert_eq!(advance(&repository, &computed), MoveOutcome::Done);
        assert_eq!(repository.by_hand("git log --topo-order --format=%s"), expected, "{strategy}");
        assert_eq!(repository.by_hand("ls"), "a.txt\nb.txt\nc.txt\n", "{strategy}");
    }
}

#[test]
fn conflicts_name_their_files_and_leave_nothing_behind() {
    for strategy in [Strategy::Squash, Strategy::Rebase, Strategy::Merge] {
        let repository = Repository::new();
        let tree = worked(&repository, "one", "a.txt", "one\nMINE\nthree\n");
        repository.write("a.txt", "one\nTHEIRS\nthree\n");
        repository.by_hand("git commit -qam other");
        let outlook = merge::compute(&repository.git(), &wanted(&tree, strategy)).unwrap();
        let MergePreview::Conflict { files, .. } = outlook else { panic!("{outlook:?}") };
        assert_eq!(files, ["a.txt"], "{strategy}");
        let left = by_hand(Path::new(&tree.path), "git status --porcelain && cat a.txt");
        assert_eq!(left, "one\nMINE\nthree\n", "{strategy}");
    }
}

#[test]
fn a_branch_that_is_in_its_target_needs_no_merge() {
    let repository = Repository::new();
    let tree = repository.worktree("one");
    let outlook = merge::compute(&repository.git(), &wanted(&tree, Strategy::Squash)).unwrap();
    assert!(matches!(outlook, MergePreview::Nothing { .. }), "{outlook:?}");
}

/// Merge more than once from one branch: save, and continue.
#[test]
fn a_branch_is_merged_as_often_as_it_has_more() {
    let repository = Repository::new();
    let tree = worked(&repository, "one", "b.txt", "x");
    let first = clean(&repository, &tree, Strategy::Merge);
    assert_eq!(advance(&repository, &first), MoveOutcome::Done);
    write(Path::new(&tree.path), "c.txt", "y");
    by_hand(Path::new(&tree.path), "git add -A && git commit -qm more");
    let second = clean(&repository, &tree, Strategy::Merge);
    assert_eq!(advance(&repository, &second), MoveOutcome::Done);
    assert_eq!(repository.by_hand("ls"), "a.txt\nb.txt\nc.txt\n");
}

/// A move that was made is found made; one that git was killed in is finished.
#[test]
fn an_interrupted_move_is_finished() {
    let repository = Repository::new();
    let tree = repository.worktree("one");
    write(Path::new(&tree.path), "a.txt", "one\nNEW\nthree\n");
    write(Path::new(&tree.path), "b.txt", "x");
    by_hand(Path::new(&tree.path), "git add -A && git commit -qm work");
    let computed = clean(&repository, &tree, Strategy::Squash);
    // Git writes files, then the index, then the branch.
    repository.write("a.txt", "one\nNEW\nthree\n");
    repository.write("b.txt", "x");
    repository.write(".git/index.lock", "");
    let again = || merge::advance(&repository.git(), "main", &computed, Attempt::Repeated).unwrap();
    assert_eq!(again(), MoveOutcome::Done);
    assert_eq!(
        repository.by_hand("git status --porcelain && git rev-parse main"),
        format!("{}\n", computed.new)
    );
    assert_eq!(again(), MoveOutcome::Done);
}

/// A person's change that was there when git was killed is not taken for ours.
#[test]
fn an_interrupted_move_does_not_take_a_persons_change() {
    let repository = Repository::new();
    let tree = worked(&repository, "one", "b.txt", "x");
    let computed = clean(&repository, &tree, Strategy::Squash);
    repository.write("a.txt", "mine\n");
    let moved = merge::advance(&repository.git(), "main", &computed, Attempt::Repeated).unwrap();
    assert!(matches!(moved, MoveOutcome::Dirty { .. }), "{moved:?}");
    assert_eq!(repository.by_hand("cat a.txt"), "mine\n");
}

/// A rebase that a crash has left half done is taken back before the next.
#[test]
fn a_half_done_rebase_is_taken_back() {
    let repository = Repository::new();
    let tree = worked(&repository, "one", "a.txt", "one\nMINE\nthree\n");
    repository.write("a.txt", "one\nTHEIRS\nthree\n");
    repository.by_hand("git commit -qam other");
    by_hand(
        Path::new(&tree.path),
        "git rebase -q main 2>/dev/null || true; test -n \"$(git status --porcelain)\"",
    );
    let outlook = merge::compute(&repository.git(), &wanted(&tree, Strategy::Rebase)).unwrap();
    assert!(matches!(outlook, MergePreview::Conflict { .. }), "{outlook:?}");
    assert_eq!(by_hand(Path::new(&tree.path), "git status --porcelain"), "");
}
