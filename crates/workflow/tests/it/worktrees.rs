//! Worktrees: made, reconciled after a crash, and removed without loss.

use std::path::Path;

use crate::repository::{Repository, by_hand, write};
use windlass_core::event::WorktreeChanged;
use windlass_workflow::definition::Base;
use windlass_workflow::git::Git;
use windlass_workflow::worktree::{self, Removal};

#[test]
fn a_worktree_has_its_branch_and_its_files() {
    let repository = Repository::new();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    assert_eq!(std::fs::read_to_string(path.join("a.txt")).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(by_hand(path, "git branch --show-current"), "windlass/one\n");
    assert_eq!(repository.by_hand("git status --porcelain"), "", "the checkout is as it was");
}

/// An empty directory, a directory without registration, a registration without directory, and git's own lock of a
/// killed `worktree add`.
#[test]
fn half_made_worktrees_are_made_whole() {
    let repository = Repository::new();
    let path = |name: &str| repository.planned(name).path;
    std::fs::create_dir_all(path("empty")).unwrap();
    write(Path::new(&path("unregistered")), "a.txt", "half");
    let gone = path("gone");
    repository.by_hand(&format!("git worktree add -q -b windlass/gone {gone} && rm -r {gone}"));
    let locked = path("locked");
    repository.by_hand(&format!(
        "git worktree add -q --no-checkout -b windlass/locked {locked} && git worktree lock --reason initializing {locked}"
    ));
    let missing = path("missing");
    repository.by_hand(&format!(
        "git worktree add -q -b windlass/missing {missing} && git worktree lock --reason initializing {missing} && rm -r {missing}"
    ));
    for name in ["empty", "unregistered", "gone", "locked", "missing"] {
        let tree = repository.worktree(name);
        let files = by_hand(Path::new(&tree.path), "git status --porcelain && cat a.txt");
        assert_eq!(files, "one\ntwo\nthree\n", "{name}");
    }
    let listed = worktree::list(&repository.git()).unwrap();
    assert_eq!(listed.len(), 6);
    assert!(listed.iter().all(|one| one.locked.is_none()), "{listed:?}");
}

#[test]
fn making_a_worktree_twice_makes_one() {
    let repository = Repository::new();
    let tree = repository.worktree("one");
    worktree::add(&repository.git(), &tree).unwrap();
    assert_eq!(worktree::list(&repository.git()).unwrap().len(), 2);
}

#[test]
fn a_lock_by_a_person_is_not_lifted() {
    let repository = Repository::new();
    let planned = repository.planned("one");
    let path = &planned.path;
    repository.by_hand(&format!(
        "git worktree add -q -b other {path} && git worktree lock --reason 'on a stick' {path}"
    ));
    let error = worktree::add(&repository.git(), &planned).unwrap_err().to_string();
    assert!(error.contains("is locked: on a stick"), "{error}");
    assert!(Path::new(path).join("a.txt").exists());
}

fn kept(removal: Removal) -> String {
    match removal {
        Removal::Kept(why) => why,
        Removal::Removed => panic!("it was removed"),
    }
}

/// Untracked files, changes and commits that are nowhere else keep a worktree.
#[test]
fn nothing_that_would_be_lost_is_removed() {
    let repository = Repository::new();
    let git = repository.git();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    write(path, "new/file.txt", "x");
    assert_eq!(kept(worktree::remove(&git, &tree, &[]).unwrap()), "not committed: new/file.txt");
    by_hand(path, "git add -A && git commit -qm work");
    let why = kept(worktree::remove(&git, &tree, &[]).unwrap());
    assert_eq!(why, "1 commit of `windlass/one` is not merged");
    write(path, "a.txt", "changed");
    assert_eq!(kept(worktree::remove(&git, &tree, &[]).unwrap()), "not committed: a.txt");
    assert!(path.join("new/file.txt").exists());
}

#[test]
fn a_merged_worktree_goes_with_its_branch() {
    let repository = Repository::new();
    let git = repository.git();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    write(path, "b.txt", "x");
    by_hand(path, "git add -A && git commit -qm work");
    repository.by_hand("git merge -q windlass/one");
    assert_eq!(worktree::remove(&git, &tree, &[]).unwrap(), Removal::Removed);
    assert_eq!(
        worktree::remove(&git, &tree, &[]).unwrap(),
        Removal::Removed,
        "again after a crash"
    );
    assert!(!path.exists());
    assert_eq!(repository.by_hand("git branch --list 'windlass/*'"), "");
}

/// An agent may leave its branch: what it commits then is on none.
#[test]
fn commits_of_a_detached_head_keep_their_worktree() {
    let repository = Repository::new();
    let git = repository.git();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    write(path, "b.txt", "x");
    by_hand(path, "git checkout -q --detach && git add -A && git commit -qm work");
    let why = kept(worktree::remove(&git, &tree, &[]).unwrap());
    assert_eq!(why, "1 commit of its detached head is not on any branch");
    assert!(!worktree::can_be_saved(&git, &tree).unwrap());
    by_hand(path, "git branch elsewhere");
    assert_eq!(worktree::remove(&git, &tree, &[]).unwrap(), Removal::Removed);
    assert_eq!(repository.by_hand("git show elsewhere:b.txt"), "x");
}

/// A lock keeps a worktree from being removed, not from being worked in. One that an agent has left its branch in is
/// named.
#[test]
fn a_worktree_is_worked_in_on_its_own_branch_alone() {
    let repository = Repository::new();
    let git = repository.git();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    repository.by_hand(&format!("git worktree lock {}", tree.path));
    write(path, "b.txt", "x");
    worktree::restore(&git, &tree, &tree.base).unwrap();
    assert!(path.join("b.txt").exists());
    by_hand(path, "git checkout -q -b other");
    let error = worktree::restore(&git, &tree, &tree.base).unwrap_err().to_string();
    assert!(error.contains("is on branch `other`"), "{error}");
    assert!(error.contains("`git checkout windlass/one` there"), "{error}");
    by_hand(path, "git checkout -q --detach");
    let error = worktree::restore(&git, &tree, &tree.base).unwrap_err().to_string();
    assert!(error.contains("has a detached head"), "{error}");
}

/// A squashed branch is in its target as another commit; the journal knows its head.
#[test]
fn a_squashed_worktree_goes_only_at_the_merged_head() {
    let repository = Repository::new();
    let git = repository.git();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    write(path, "b.txt", "x");
    by_hand(path, "git add -A && git commit -qm work");
    let merged = repository.head("windlass/one");
    write(path, "c.txt", "x");
    by_hand(path, "git add -A && git commit -qm more");
    kept(worktree::remove(&git, &tree, std::slice::from_ref(&merged)).unwrap());
    let merged = repository.head("windlass/one");
    assert_eq!(
        worktree::remove(&git, &tree, std::slice::from_ref(&merged)).unwrap(),
        Removal::Removed
    );
}

/// A checkpoint of our own is not where a person looks for work.
#[test]
fn a_checkpoint_does_not_count_as_merged() {
    let repository = Repository::new();
    let git = repository.git();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    write(path, "b.txt", "x");
    by_hand(
        path,
        "git add -A && git commit -qm work && git update-ref refs/windlass/checkpoints/x HEAD",
    );
    let why = kept(worktree::remove(&git, &tree, &[]).unwrap());
    assert_eq!(why, "1 commit of `windlass/one` is not merged");
}

/// Merged twice, each time as another commit: the last head counts, whichever merge took it.
#[test]
fn a_worktree_that_was_merged_twice_goes() {
    let repository = Repository::new();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    let mut merged = Vec::new();
    for name in ["b.txt", "c.txt"] {
        write(path, name, "x");
        by_hand(path, "git add -A && git commit -qm work");
        merged.push(repository.head("windlass/one"));
    }
    assert_eq!(worktree::remove(&repository.git(), &tree, &merged).unwrap(), Removal::Removed);
}

/// Somebody has locked it, perhaps because its disk is not always there: it stays, its branch too.
#[test]
fn a_locked_worktree_stays_whether_it_is_there_or_not() {
    let repository = Repository::new();
    let git = repository.git();
    let tree = repository.worktree("one");
    repository.by_hand(&format!("git worktree lock --reason 'on a stick' {}", tree.path));
    for _ in 0..2 {
        let why = "it is locked (on a stick); `git worktree unlock` unlocks it";
        assert_eq!(kept(worktree::remove(&git, &tree, &[]).unwrap()), why);
        kept(worktree::save(&git, &tree).unwrap());
        assert_eq!(repository.by_hand("git branch --list 'windlass/*' | wc -l").trim(), "1");
        let _ = std::fs::rename(&tree.path, format!("{}-away", tree.path));
    }
}

/// The directory goes, and everything that was in it is on the branch.
#[test]
fn saved_work_is_on_its_branch() {
    let repository = Repository::new();
    let git = repository.git();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    write(path, "committed.txt", "x");
    by_hand(path, "git add -A && git commit -qm work");
    write(path, "new/not-committed.txt", "y");
    assert!(worktree::can_be_saved(&git, &tree).unwrap());
    assert_eq!(worktree::save(&git, &tree).unwrap(), Removal::Removed);
    assert_eq!(worktree::save(&git, &tree).unwrap(), Removal::Removed, "again after a crash");
    assert!(!path.exists());
    let files = repository.by_hand("git ls-tree -r --name-only windlass/one");
    assert_eq!(files, "a.txt\ncommitted.txt\nnew/not-committed.txt\n");
    assert_eq!(worktree::list(&git).unwrap().len(), 1);
}

/// What a run that never began its work has left of a worktree.
#[test]
fn a_half_made_worktree_is_undone() {
    let repository = Repository::new();
    let git = repository.git();
    let planned = repository.planned("one");
    worktree::undo_add(&git, &planned).unwrap();
    let path = &planned.path;
    repository.by_hand(&format!(
        "git worktree add -q --no-checkout -b windlass/one {path} && git worktree lock --reason initializing {path}"
    ));
    worktree::undo_add(&git, &planned).unwrap();
    assert_eq!(worktree::list(&git).unwrap().len(), 1);
    assert_eq!(repository.by_hand("git branch --list 'windlass/*'"), "");
}

/// A committed link that leads out of the tree is not followed when a worktree goes.
#[test]
fn links_out_of_a_worktree_are_not_followed() {
    let repository = Repository::new();
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "precious.txt", "x");
    repository.by_hand(&format!(
        "ln -s {} out && git add -A && git commit -qm link",
        outside.path().display()
    ));
    let tree = repository.worktree("one");
    assert_eq!(worktree::remove(&repository.git(), &tree, &[]).unwrap(), Removal::Removed);
    assert!(outside.path().join("precious.txt").exists());
}

/// Ignored files that the project wants arrive; nothing else does, and nobody commits them.
#[test]
fn included_files_are_copied_and_stay_ignored() {
    let repository = Repository::new();
    repository.write(".gitignore", ".env*\nbuild/\n");
    repository.write(".worktreeinclude", ".env\nuntracked.txt\nlinked\n");
    repository.by_hand("git add -A && git commit -qm ignore");
    repository.write(".env", "KEY=1");
    repository.write(".env.other", "KEY=2");
    repository.write("untracked.txt", "mine");
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    assert_eq!(std::fs::read_to_string(path.join(".env")).unwrap(), "KEY=1");
    assert!(!path.join(".env.other").exists());
    assert!(!path.join("untracked.txt").exists(), "what git does not ignore would be committed");
    assert!(!worktree::commit_all(&repository.git(), path, "all").unwrap());
}

/// Another branch may have a link under the name of a file that is included.
#[test]
fn an_included_file_is_not_copied_through_a_link_that_leads_nowhere() {
    let repository = Repository::new();
    let outside = tempfile::tempdir().unwrap();
    let new = outside.path().join("new");
    repository.by_hand(&format!(
        "git checkout -qb other && ln -s {} .env && git add -A && git commit -qm link && git checkout -q main",
        new.display()
    ));
    repository.write(".gitignore", ".env\n");
    repository.write(".worktreeinclude", ".env\n");
    repository.write(".env", "KEY=1");
    let planned = WorktreeChanged { base: repository.head("other"), ..repository.planned("one") };
    worktree::add(&repository.git(), &planned).unwrap();
    assert!(Path::new(&planned.path).join(".env").is_symlink());
    assert!(!new.exists());
}

#[test]
fn unusable_repositories_are_named() {
    let none = tempfile::tempdir().unwrap();
    let error = Git::open(none.path()).unwrap_err().to_string();
    assert!(error.ends_with("is not in a git repository"), "{error}");
    by_hand(none.path(), "git init -q --bare bare && git init -q -b main fresh");
    let error = Git::open(&none.path().join("bare")).unwrap_err().to_string();
    assert!(error.ends_with("is a bare repository; start in a checkout of it"), "{error}");
    let fresh = Git::open(&none.path().join("fresh")).unwrap();
    let error = worktree::base(&fresh, &Base::Head, None, None).unwrap_err().to_string();
    assert_eq!(error, "the repository has no commit yet; make the first one with `git commit`");
    let repository = Repository::new();
    repository.by_hand("git checkout -q --detach");
    let error =
        worktree::base(&repository.git(), &Base::Fresh, None, None).unwrap_err().to_string();
    assert_eq!(error, "the head is detached: name the branch with `target`");
}

/// Submodules arrive; commits in them that no remote has keep the worktree.
#[test]
fn submodules_arrive_and_their_commits_are_kept() {
    let repository = Repository::new();
    let module = Repository::new();
    let place = module.top();
    repository.by_hand(&format!(
        "git -c protocol.file.allow=always submodule --quiet add {} lib && git commit -qm module",
        place.display()
    ));
    let tree = repository.worktree("one");
    let lib = Path::new(&tree.path).join("lib");
    assert!(lib.join("a.txt").exists());
    by_hand(&lib, "git -c user.name=A -c user.email=a@b commit -q --allow-empty -m inner");
    let removal = worktree::remove(&repository.git(), &tree, &[]).unwrap();
    assert!(matches!(removal, Removal::Kept(_)), "{removal:?}");
    assert!(lib.exists());
}

/// What an agent writes into the `.git` of its worktree is not believed: git would run its commands.
#[test]
fn a_forged_git_file_runs_nothing() {
    let repository = Repository::new();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    let marker = path.join("ran");
    by_hand(path, "git init -q evil && git -C evil config core.fsmonitor \"touch $PWD/ran; true\"");
    std::fs::write(path.join(".git"), format!("gitdir: {}/evil/.git\n", tree.path)).unwrap();
    let _ = worktree::commit_all(&repository.git(), path, "all");
    let _ = worktree::remove(&repository.git(), &tree, &[]);
    assert!(!marker.exists());
    assert!(path.exists());
}

/// Settings of a repository that an agent has made inside its worktree name commands: git runs them when it looks there.
#[test]
fn an_embedded_repository_runs_nothing() {
    let repository = Repository::new();
    let git = repository.git();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    let marker = tempfile::tempdir().unwrap();
    let ran = marker.path().join("ran");
    let touch = format!("touch {}; cat", ran.display());
    for name in ["linked", "loose"] {
        let setup = format!(
            "git init -q {name} && cd {name} && git config user.name A && git config user.email a@b.c
             echo one > f && git add f && git commit -qm inner
             git config filter.x.clean '{touch}' && git config filter.x.smudge '{touch}'
             git config core.fsmonitor '{touch}' && echo '* filter=x' > .gitattributes
             printf '#!/bin/sh\n{touch} < /dev/null\n' > .git/hooks/post-checkout
             cp .git/hooks/post-checkout .git/hooks/pre-commit && chmod +x .git/hooks/*
             touch -d 2001-01-01 f"
        );
        by_hand(path, &setup);
    }
    by_hand(
        path,
        "git add linked 2> /dev/null && git commit -qm 'a link'
         printf '[submodule \"linked\"]\n\tpath = linked\n\turl = ./x\n\tignore = none\n' > .gitmodules",
    );
    std::fs::remove_file(&ran).unwrap_or_default();
    write(path, "new.txt", "mine");
    assert_eq!(worktree::left_out(&git, path).unwrap(), ["linked", "loose/"]);
    assert!(worktree::commit_all(&git, path, "all").unwrap());
    assert_eq!(worktree::changes(&git, path).unwrap(), ["loose/"]);
    let changed = worktree::changed_files(&git, path, &tree.base).unwrap();
    assert_eq!(changed, [".gitmodules", "linked", "loose/", "new.txt"]);
    repository.by_hand("git commit -q --allow-empty -m ahead");
    let request = windlass_workflow::merge::MergeRequest {
        branch: &tree.branch,
        tree: path,
        target: "main",
        strategy: windlass_workflow::definition::Strategy::Rebase,
        message: "m",
    };
    windlass_workflow::merge::compute(&git, &request).unwrap();
    worktree::restore(&git, &tree, &tree.base).unwrap();
    let merged = repository.head(&tree.branch);
    assert_eq!(
        kept(worktree::remove(&git, &tree, std::slice::from_ref(&merged)).unwrap()),
        "not committed: loose/"
    );
    by_hand(path, "rm -r loose");
    assert!(!worktree::can_be_saved(&git, &tree).unwrap());
    assert_eq!(
        kept(worktree::remove(&git, &tree, &[merged]).unwrap()),
        "submodule `linked`: it is a repository of its own"
    );
    assert!(!ran.exists(), "a command of an embedded repository has run");
}

/// What an agent writes into the settings of a submodule does not run either, and changes there are seen.
#[test]
fn a_submodule_is_looked_at_without_its_settings() {
    let repository = Repository::new();
    let module = Repository::new();
    let place = module.top();
    repository.by_hand(&format!(
        "git -c protocol.file.allow=always submodule --quiet add {} lib && git commit -qm module",
        place.display()
    ));
    let git = repository.git();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    let marker = tempfile::tempdir().unwrap();
    let touch = format!("touch {}; cat", marker.path().join("ran").display());
    by_hand(
        &path.join("lib"),
        &format!(
            "git config filter.x.clean '{touch}' && git config core.fsmonitor '{touch}'
             git config alias.rev-list '!{touch}' && echo '* filter=x' > .gitattributes
             touch -d 2001-01-01 a.txt"
        ),
    );
    assert!(!worktree::commit_all(&git, path, "all").unwrap());
    assert_eq!(
        kept(worktree::remove(&git, &tree, &[]).unwrap()),
        "submodule `lib`: it has changes that are not committed"
    );
    by_hand(path, "rm lib/.gitattributes");
    assert_eq!(worktree::remove(&git, &tree, &[]).unwrap(), Removal::Removed);
    assert!(!marker.path().join("ran").exists(), "a command of the submodule has run");
}

/// An agent's `.gitmodules` would have git fetch any repository of this machine.
#[test]
fn only_submodules_of_the_person_are_fetched() {
    let repository = Repository::new();
    let (module, secret) = (Repository::new(), Repository::new());
    secret.write("secret.txt", "secret");
    secret.by_hand("git add -A && git commit -qm secret");
    let add = "git -c protocol.file.allow=always submodule --quiet add";
    repository.by_hand(&format!("{add} {} lib && git commit -qm module", module.top().display()));
    let git = repository.git();
    let tree = repository.worktree("one");
    let path = Path::new(&tree.path);
    by_hand(path, &format!("{add} {} taken && git commit -qm more", secret.top().display()));
    let commit = by_hand(path, "git rev-parse HEAD").trim().to_owned();
    let scratch = worktree::scratch_of(&tree.path);
    worktree::add_scratch(&git, &scratch, &commit, &tree.base).unwrap();
    assert!(scratch.join("lib/a.txt").exists());
    assert!(!scratch.join("taken/secret.txt").exists());
    let url = format!("git config -f .gitmodules submodule.lib.url {}", secret.top().display());
    by_hand(path, &format!("{url} && git commit -qam moved"));
    let commit = by_hand(path, "git rev-parse HEAD").trim().to_owned();
    worktree::add_scratch(&git, &scratch, &commit, &tree.base).unwrap();
    assert!(!scratch.join("lib").join("a.txt").exists());
}

/// Hooks of the repository do not run for our own git calls.
#[test]
fn hooks_do_not_run() {
    let repository = Repository::new();
    let marker = repository.top().join("hooked");
    for hook in
        ["post-checkout", "pre-commit", "post-commit", "reference-transaction", "post-merge"]
    {
        let text = format!("#!/bin/sh\ntouch {}\n", marker.display());
        repository.write(&format!(".git/hooks/{hook}"), &text);
        repository.by_hand(&format!("chmod +x .git/hooks/{hook}"));
    }
    let tree = repository.worktree("one");
    write(Path::new(&tree.path), "b.txt", "x");
    assert!(worktree::commit_all(&repository.git(), Path::new(&tree.path), "all").unwrap());
    assert!(!marker.exists());
}

/// Names of files never become arguments: together they would be longer than a command line may be.
#[test]
fn twelve_thousand_changed_files_are_committed_and_known() {
    let repository = Repository::new();
    let tree = repository.worktree("vast");
    let path = Path::new(&tree.path);
    let name = "n".repeat(200);
    for number in 0..12_000 {
        std::fs::write(path.join(format!("{name}{number}")), "x").unwrap();
    }
    let git = repository.git();
    assert!(worktree::commit_all(&git, path, "vast").unwrap());
    assert_eq!(worktree::changed_files(&git, path, &tree.base).unwrap().len(), 12_000);
    assert_eq!(worktree::changes(&git, path).unwrap(), [""; 0]);
}

/// A resume looks at every worktree; with many of them that must stay quick.
#[test]
fn many_worktrees_do_not_hold_up_a_resume() {
    let repository = Repository::new();
    let base = repository.head("main");
    // As git registers them, without the minutes that two hundred checkouts would take.
    for number in 0..200 {
        let own = repository.top().join(format!(".git/worktrees/w{number}"));
        let tree = repository.top().with_file_name(format!("many/{number}"));
        std::fs::create_dir_all(&tree).unwrap();
        write(&own, "HEAD", &format!("{base}\n"));
        write(&own, "commondir", "../..\n");
        write(&own, "gitdir", &format!("{}/.git\n", tree.display()));
        write(&tree, ".git", &format!("gitdir: {}\n", own.display()));
    }
    let tree = repository.worktree("one");
    let begun = std::time::Instant::now();
    worktree::restore(&repository.git(), &tree, &tree.base).unwrap();
    assert_eq!(worktree::list(&repository.git()).unwrap().len(), 202);
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// A submodule that cannot be had stops the worktree with git's words, and nothing is half made.
#[test]
fn a_missing_submodule_is_named() {
    let repository = Repository::new();
    let other = tempfile::tempdir().unwrap();
    by_hand(
        other.path(),
        "git init -q -b main . && git -c user.name=A -c user.email=a@b.c commit -q --allow-empty -m x",
    );
    let place = other.path().display();
    repository.by_hand(&format!(
        "git -c protocol.file.allow=always submodule add -q {place} lib && git commit -qm lib && rm -rf .git/modules/lib"
    ));
    drop(other);
    let planned = repository.planned("one");
    let error = worktree::add(&repository.git(), &planned).unwrap_err().to_string();
    assert!(error.contains("submodule") && error.contains("lib"), "{error}");
}
