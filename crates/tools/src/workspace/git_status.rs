//! What git says of a workspace, asked without trusting it.
//!
//! Invariant: git runs no program of the workspace. An agent can write a repository's configuration, and that can
//! name programs (filters, monitors). So git gets a directory of ours, with our configuration; only the index and the
//! objects are the repository's.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use windlass_skills::regular;

use super::repository::{self, GitDirectories, line_of};

/// How long git may take; in a vast repository the status is left out.
const PATIENCE: Duration = Duration::from_secs(1);
/// How much of git's answer is read.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;
/// Lines of `packed-refs` that are searched for a branch.
const MAX_REFS: usize = 100_000;
/// How much of their file is read; it may be one line without an end.
const MAX_PACKED_BYTES: u64 = 32 << 20;

/// The state of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitStatus {
    /// The branch, or the commit where none is checked out.
    pub head: String,
    /// What differs from it, as `git status --short` writes it; `None` where that could not be found out.
    pub changes: Option<Vec<String>>,
}

/// The status of the repository whose top is this directory; `None` if there is no repository. Git itself is found by
/// `search_path`.
pub async fn status(top: &Path, search_path: &str) -> Option<GitStatus> {
    let git = repository::directories(top)?;
    let head = line_of(&git.own.join("HEAD"))?;
    let commit = head_commit(&git, &head);
    let name = match head.strip_prefix("ref: ") {
        Some(reference) => reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned(),
        None => head.chars().take(12).collect(),
    };
    // A branch without a commit yet is still on its way to its first one.
    let is_unborn = commit.is_none() && head.starts_with("ref: ");
    let head = commit.or_else(|| is_unborn.then_some(head));
    let changes = match head {
        Some(head) => {
            let changes = changes(top, &git, &head, search_path);
            tokio::time::timeout(PATIENCE, changes).await.ok().flatten()
        }
        None => None,
    };
    Some(GitStatus { head: name, changes })
}

/// A git directory of ours around a repository's index and objects.
pub(super) struct PrivateGit {
    own: tempfile::TempDir,
    objects: PathBuf,
    exclude: PathBuf,
}

impl PrivateGit {
    /// Prepares one that is at this commit, or on its way to the first one.
    pub fn new(git: &GitDirectories, head: &str) -> Option<Self> {
        let own = tempfile::tempdir().ok()?;
        fs::create_dir(own.path().join("refs")).ok()?;
        fs::write(own.path().join("HEAD"), format!("{head}\n")).ok()?;
        let format = match head.len() {
            // SHA-256 in place of SHA-1.
            64 => "repositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n",
            _ => "repositoryformatversion = 0\n",
        };
        fs::write(own.path().join("config"), format!("[core]\n\tbare = false\n\t{format}")).ok()?;
        let objects = git.common.join("objects");
        Some(Self { own, objects, exclude: git.common.join("info/exclude") })
    }

    /// Where what belongs to it alone may be kept; gone with it.
    pub fn directory(&self) -> &Path {
        self.own.path()
    }

    /// The repository's objects.
    pub fn objects(&self) -> &Path {
        &self.objects
    }

    /// Git with this index on a work tree.
    pub fn command(&self, top: &Path, index: &Path, search_path: &str) -> Command {
        let mut command = Command::new("git");
        command
            .args(["-c", &format!("core.excludesFile={}", self.exclude.display())])
            .env_clear()
            .env("PATH", search_path)
            .env("GIT_DIR", self.own.path())
            .env("GIT_WORK_TREE", top)
            .env("GIT_INDEX_FILE", index)
            .env("GIT_OBJECT_DIRECTORY", &self.objects)
            .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
            .envs([("GIT_ATTR_NOSYSTEM", "1"), ("GIT_OPTIONAL_LOCKS", "0")])
            // An object that is gone is fetched from nowhere, whatever the git is.
            .envs([("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")])
            .env("LC_ALL", "C.UTF-8")
            .current_dir(top)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

async fn changes(
    top: &Path,
    git: &GitDirectories,
    head: &str,
    search_path: &str,
) -> Option<Vec<String>> {
    let private = PrivateGit::new(git, head)?;
    let mut command = private.command(top, &git.own.join("index"), search_path);
    command
        .args(["status", "--porcelain", "-z", "--untracked-files=normal"])
        .args(["--ignore-submodules=all", "--no-renames"]);
    let mut running = command.spawn().ok()?;
    let mut output = Vec::new();
    running.stdout.take()?.take(MAX_OUTPUT_BYTES).read_to_end(&mut output).await.ok()?;
    let is_whole = (output.len() as u64) < MAX_OUTPUT_BYTES;
    if is_whole && !running.wait().await.ok()?.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output);
    let mut lines: Vec<String> =
        text.split('\0').filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if !is_whole {
        // The last one is cut.
        lines.pop();
    }
    Some(lines)
}

/// The commit that a head names: by itself, or by its branch.
pub(super) fn head_commit(git: &GitDirectories, head: &str) -> Option<String> {
    match head.strip_prefix("ref: ") {
        Some(reference) => commit_of(&git.common, reference),
        None => Some(head.to_owned()).filter(|it| is_hash(it)),
    }
}

/// The commit that a branch is at.
fn commit_of(common: &Path, reference: &str) -> Option<String> {
    if reference.split('/').any(|part| part == "..") {
        return None;
    }
    let loose = line_of(&common.join(reference)).filter(|line| is_hash(line));
    loose.or_else(|| {
        let packed = common.join("packed-refs");
        fs::symlink_metadata(&packed).ok().filter(fs::Metadata::is_file)?;
        let packed = BufReader::new(regular::open(&packed).ok()?.take(MAX_PACKED_BYTES));
        let mut lines = packed.lines().take(MAX_REFS).map_while(Result::ok);
        lines.find_map(|line| {
            let (hash, name) = line.split_once(' ')?;
            (name == reference && is_hash(hash)).then(|| hash.to_owned())
        })
    })
}

pub(super) fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
