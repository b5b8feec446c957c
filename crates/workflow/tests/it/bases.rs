//! The commit that a worktree begins at.

use windlass_workflow::definition::Base;
use windlass_workflow::git::Git;
use windlass_workflow::worktree;

use crate::repository::{Repository, by_hand};

/// Unpushed commits are the default base; `fresh` takes what the remote has.
#[test]
fn the_base_is_the_head_or_the_remote() {
    let repository = Repository::new();
    let remote = tempfile::tempdir().unwrap();
    let place = remote.path().display();
    repository.by_hand(&format!(
        "git init -q --bare {place} && git remote add origin {place} && git push -qu origin main"
    ));
    let pushed = repository.head("main");
    repository.write("b.txt", "x");
    repository.by_hand("git add -A && git commit -qm unpushed");
    let git = repository.git();
    assert_eq!(worktree::base(&git, &Base::Head, None, None).unwrap(), repository.head("main"));
    assert_eq!(worktree::base(&git, &Base::Fresh, None, None).unwrap(), pushed);
}

/// What a person checks out after the start of a run is not where its work belongs.
#[test]
fn the_base_stays_on_the_branch_of_the_start() {
    let repository = Repository::new();
    let begun = repository.head("main");
    repository.by_hand("git checkout -qb elsewhere && git commit -q --allow-empty -m theirs");
    let base = |branch: &str| worktree::base(&repository.git(), &Base::Head, None, Some(branch));
    assert_eq!(base("main").unwrap(), begun);
    assert_eq!(base("elsewhere").unwrap(), repository.head("elsewhere"));
    let error = base("old").unwrap_err().to_string();
    assert_eq!(error, "branch `old`, on which the run was started, is gone");
    repository.by_hand("git checkout -q main && git branch -m trunk");
    assert_eq!(base("main").unwrap(), begun, "it is called `trunk` now");
}

/// `HEAD` is that of the checkout in which a person works, also where it is a linked worktree.
#[test]
fn a_head_is_that_of_the_checkout_of_the_start() {
    let repository = Repository::new();
    let linked = tempfile::tempdir().unwrap();
    let place = linked.path().join("tree");
    repository.by_hand(&format!("git worktree add -q -b linked {}", place.display()));
    by_hand(&place, "git commit -q --allow-empty -m linked");
    let named = Base::Named("HEAD".to_owned());
    let found = worktree::base(&Git::open(&place).unwrap(), &named, None, None).unwrap();
    assert_eq!(found, repository.head("linked"));
}

/// A path as the address of a remote is one from where the person works.
#[test]
fn a_remote_beside_the_checkout_is_fetched() {
    let repository = Repository::new();
    repository.by_hand(
        "git clone -q --bare . ../remote-$(basename $PWD) && git remote add origin ../remote-$(basename $PWD)",
    );
    let head = worktree::base(&repository.git(), &Base::Fresh, None, None).unwrap();
    assert_eq!(head, repository.head("main"));
    repository.by_hand("rm -rf ../remote-$(basename $PWD)");
}

/// Any branch, tag or commit is a base; one that is not there is named.
#[test]
fn a_worktree_begins_at_any_commit() {
    let repository = Repository::new();
    let first = repository.head("main");
    repository.by_hand("git tag v1 && git commit -q --allow-empty -m second");
    let base =
        |name: &str| worktree::base(&repository.git(), &Base::Named(name.to_owned()), None, None);
    assert_eq!(base("v1").unwrap(), first);
    let error = base("v2").unwrap_err().to_string();
    assert_eq!(error, "there is no commit `v2` to begin at");
}
