//! What git says of a work tree, and a commit of single files, in a repository that an agent has configured.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use windlass_testkit::git;
use windlass_tools::workspace::working_tree::{self, ChangedFile, Identity};

const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A repository with one commit, and a trap that tells when it ran.
struct Repository {
    _directory: tempfile::TempDir,
    top: PathBuf,
    evidence: PathBuf,
}

impl Repository {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let (top, evidence) = (root.join("top"), root.join("ran"));
        fs::create_dir(&top).unwrap();
        git(&top, &["init", "-q", "-b", "main"]);
        fs::write(top.join("a.txt"), "one\n").unwrap();
        git(&top, &["add", "."]);
        git(&top, &["commit", "-qm", "first"]);
        Self { _directory: directory, top, evidence }
    }

    /// Everything that makes git run a program, in place of what it would run.
    fn set_traps(&self) {
        let trap = self.top.with_file_name("trap");
        fs::write(&trap, format!("#!/bin/sh\ntouch {}\ncat\n", self.evidence.display())).unwrap();
        fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
        let hooks = self.top.join(".git/hooks");
        fs::create_dir_all(&hooks).unwrap();
        for hook in ["pre-commit", "commit-msg", "post-commit", "reference-transaction"] {
            fs::copy(&trap, hooks.join(hook)).unwrap();
        }
        let trap = trap.display().to_string();
        for setting in [
            "core.fsmonitor",
            "diff.external",
            "diff.trap.textconv",
            "diff.trap.command",
            "filter.trap.clean",
            "filter.trap.process",
            "gpg.program",
        ] {
            git(&self.top, &["config", setting, &trap]);
        }
        git(&self.top, &["config", "commit.gpgSign", "true"]);
        fs::write(self.top.join(".gitattributes"), "* filter=trap diff=trap\n").unwrap();
    }
}

fn file(path: &str, is_new: bool, diff: Option<&str>) -> ChangedFile {
    ChangedFile { path: path.to_owned(), is_new, diff: diff.map(str::to_owned) }
}

#[tokio::test]
async fn changes_are_read_and_nothing_of_the_repository_runs() {
    let repository = Repository::new();
    repository.set_traps();
    fs::write(repository.top.join("a.txt"), "two\n").unwrap();
    fs::write(repository.top.join("a new.txt"), "new\n").unwrap();
    fs::write(repository.top.join("picture"), b"\0\x01").unwrap();
    let files = working_tree::changes(&repository.top, SEARCH_PATH).await.unwrap().unwrap();
    let wanted = [
        file("a.txt", false, Some("@@ -1 +1 @@\n-one\n+two\n")),
        file(".gitattributes", true, Some("+* filter=trap diff=trap\n")),
        file("a new.txt", true, Some("+new\n")),
        file("picture", true, None),
    ];
    assert_eq!(files, wanted);
    assert!(!repository.evidence.exists(), "a program of the repository ran");
}

#[tokio::test]
async fn a_commit_of_single_files_runs_nothing_of_the_repository() {
    let repository = Repository::new();
    let top = &repository.top;
    fs::write(top.join("staged.txt"), "staged\n").unwrap();
    git(top, &["add", "staged.txt"]);
    repository.set_traps();
    fs::create_dir(top.join("skill")).unwrap();
    fs::write(top.join("skill/SKILL.md"), "words\n").unwrap();
    let who = Identity { name: "Bo".to_owned(), email: "bo@example.org".to_owned() };
    let skill = top.join("skill");
    let made = working_tree::commit((top, &skill), "Add it", &who, SEARCH_PATH).await.unwrap();
    assert!(!repository.evidence.exists(), "a program of the repository ran");
    fs::remove_file(top.join(".gitattributes")).unwrap();
    let plain = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
    let git = |arguments: &[&str]| git(top, &[&plain[..], arguments].concat());
    assert_eq!(git(&["log", "-1", "--format=%H %an %s"]), format!("{made} Bo Add it"));
    assert_eq!(git(&["show", "--name-only", "--format=", "HEAD"]), "skill/SKILL.md");
    assert_eq!(git(&["status", "--short"]), "A  staged.txt", "what was staged stays so");
}

#[tokio::test]
async fn a_directory_without_a_repository_has_no_changes() {
    let directory = tempfile::tempdir().unwrap();
    let found = working_tree::changes(directory.path(), SEARCH_PATH).await;
    assert_eq!(found, Ok(None));
}
