//! A real repository for tests, and git by hand.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use windlass_core::event::{WorktreeChanged, WorktreeKind, WorktreeState};
use windlass_workflow::git::Git;

pub struct Repository {
    root: TempDir,
}

impl Repository {
    /// A repository with one commit on `main`.
    pub fn new() -> Self {
        let repository = Self { root: tempfile::tempdir().unwrap() };
        std::fs::create_dir(repository.top()).unwrap();
        repository.by_hand("git init -q -b main && git config user.name Ada && git config user.email ada@example.com");
        repository.write("a.txt", "one\ntwo\nthree\n");
        repository.by_hand("git add -A && git commit -qm start");
        repository
    }

    pub fn top(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("repo")
    }

    pub fn git(&self) -> Git {
        Git::open(&self.top()).unwrap()
    }

    pub fn write(&self, name: &str, text: &str) {
        write(&self.top(), name, text);
    }

    pub fn by_hand(&self, script: &str) -> String {
        by_hand(&self.top(), script)
    }

    pub fn head(&self, name: &str) -> String {
        self.by_hand(&format!("git rev-parse {name}")).trim().to_owned()
    }

    /// A worktree that is to be made, on `main`.
    pub fn planned(&self, name: &str) -> WorktreeChanged {
        let path = self.root.path().canonicalize().unwrap().join("trees").join(name);
        WorktreeChanged {
            name: name.to_owned(),
            state: WorktreeState::Adding,
            kind: WorktreeKind::Single,
            sparse: Vec::new(),
            path: path.display().to_string(),
            branch: format!("windlass/{name}"),
            base: self.head("main"),
            port: None,
            detail: None,
        }
    }

    /// The same, made.
    pub fn worktree(&self, name: &str) -> WorktreeChanged {
        let planned = self.planned(name);
        windlass_workflow::worktree::add(&self.git(), &planned).unwrap();
        planned
    }
}

pub fn write(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Runs a command as a person would; it must succeed.
pub fn by_hand(directory: &Path, script: &str) -> String {
    let output = Command::new("sh").arg("-ec").arg(script).current_dir(directory).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
