//! Checkpoints of a real repository: everything that is there is kept, and nothing else changes.

use std::fs;

use windlass_testkit::git;
use windlass_tools::workspace::checkpoint;
use windlass_tools::workspace::repository::repository_of_worktree;

/// MS-133: a ref that holds changed and new files, and not the ignored ones.
#[tokio::test]
async fn a_checkpoint_holds_what_is_there_and_touches_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    git(&top, &["init", "-q", "-b", "main"]);
    fs::write(top.join(".gitignore"), "*.log\n").unwrap();
    fs::write(top.join("a.txt"), "one\n").unwrap();
    git(&top, &["add", "."]);
    git(&top, &["commit", "-qm", "first"]);
    fs::write(top.join("a.txt"), "two\n").unwrap();
    fs::write(top.join("new.txt"), "new\n").unwrap();
    fs::write(top.join("x.log"), "noise\n").unwrap();
    let (head, status) = (git(&top, &["rev-parse", "HEAD"]), git(&top, &["status", "--porcelain"]));

    let made = checkpoint::make(&top, "task_1").await.unwrap();

    assert_eq!(made.reference, "refs/windlass/checkpoints/task_1");
    assert_eq!(git(&top, &["rev-parse", &made.reference]), made.commit);
    assert_eq!(git(&top, &["show", &format!("{}:a.txt", made.reference)]), "two");
    let names = git(&top, &["ls-tree", "--name-only", &made.reference]);
    assert_eq!(names, ".gitignore\na.txt\nnew.txt");
    assert_eq!(git(&top, &["rev-parse", &format!("{}^", made.reference)]), head);
    assert_eq!(git(&top, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&top, &["status", "--porcelain"]), status);
}

#[tokio::test]
async fn a_pipe_in_place_of_the_index_does_not_block_a_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    git(&top, &["init", "-q", "-b", "main"]);
    fs::write(top.join("a.txt"), "one\n").unwrap();
    let (index, mode) = (top.join(".git/index"), rustix::fs::Mode::from_raw_mode(0o600));
    rustix::fs::mknodat(rustix::fs::CWD, &index, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let made = checkpoint::make(&top, "task_1").await.unwrap();
    assert_eq!(git(&top, &["show", &format!("{}:a.txt", made.reference)]), "one");
}

#[tokio::test]
async fn a_checkpoint_runs_no_program_of_the_repository() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    git(&top, &["init", "-q", "-b", "main"]);
    let trap = format!("touch {}", top.join("ran").display());
    for setting in ["core.fsmonitor", "filter.x.clean", "filter.x.process"] {
        git(&top, &["config", setting, &trap]);
    }
    fs::create_dir_all(top.join(".git/hooks")).unwrap();
    let hook = top.join(".git/hooks/reference-transaction");
    fs::write(&hook, format!("#!/bin/sh\n{trap}\n")).unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(top.join(".gitattributes"), "* filter=x\n").unwrap();
    fs::write(top.join("a.txt"), "one\n").unwrap();
    assert!(checkpoint::make(&top, "task_1").await.is_some());
    assert!(!top.join("ran").exists());
}

/// Settings of a repository that an agent has made inside its directory name commands.
#[tokio::test]
async fn a_checkpoint_runs_no_program_of_an_embedded_repository() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    git(&top, &["init", "-q", "-b", "main"]);
    let inner = top.join("inner");
    git(&top, &["init", "-q", "inner"]);
    fs::write(inner.join("file"), "one\n").unwrap();
    git(&inner, &["add", "file"]);
    git(&inner, &["commit", "-qm", "inner"]);
    git(&top, &["add", "inner"]);
    let ran = top.join("ran");
    let trap = format!("touch {}; cat", ran.display());
    git(&inner, &["config", "filter.x.clean", &trap]);
    fs::write(inner.join(".gitattributes"), "* filter=x\n").unwrap();
    fs::File::open(inner.join("file")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();

    let made = checkpoint::make(&top, "task_1").await.unwrap();

    assert!(!ran.exists());
    let kept = git(&top, &["ls-tree", &made.reference, "inner"]);
    assert!(kept.contains(&git(&inner, &["rev-parse", "HEAD"])), "{kept}");
}

/// Git gets an object that is gone from where the configuration says, by a program that it names.
#[tokio::test]
async fn a_checkpoint_fetches_nothing_from_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    git(&top, &["init", "-q", "-b", "main"]);
    git(&top, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let other = top.join("other.git");
    git(&top, &["init", "-q", "--bare", "other.git"]);
    let ran = top.join("ran");
    for (setting, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", &format!("ext::touch {}", ran.display())),
        ("protocol.ext.allow", "always"),
    ] {
        git(&other, &["config", setting, value]);
    }
    fs::write(top.join(".git/commondir"), "../other.git\n").unwrap();
    assert_eq!(checkpoint::make(&top, "task_1").await, None);
    assert!(!ran.exists());
}

#[tokio::test]
async fn a_directory_without_a_repository_has_no_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(checkpoint::make(directory.path(), "task_1").await, None);
}

#[test]
fn a_linked_worktree_knows_its_repository() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap().join("main");
    fs::create_dir(&top).unwrap();
    git(&top, &["init", "-q", "-b", "main"]);
    git(&top, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&top, &["worktree", "add", "-q", "../side"]);
    assert_eq!(
        repository_of_worktree(&top.join("../side").canonicalize().unwrap()),
        Some(top.join(".git"))
    );
    assert_eq!(repository_of_worktree(&top), None, "the main checkout shares nothing");
}
