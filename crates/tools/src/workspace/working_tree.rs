//! What a work tree holds that its last commit does not, and a commit of single files on top of it.
//!
//! Invariant: git runs no program that the repository names, as for its status.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use windlass_skills::regular;

use super::git_status::{PrivateGit, head_commit};
use super::repository::{self, GitDirectories, line_of};

/// How long git may take to compare the files.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much of a comparison is read; a person reads no more.
const MAX_DIFF_BYTES: u64 = 8 << 20;
/// How many names of new files are read, in bytes.
const MAX_NAMES_BYTES: u64 = 1 << 20;
/// New files that are shown with their text, and how long one of them may be.
const MAX_NEW: usize = 100;
const MAX_NEW_BYTES: u64 = 256 << 10;
/// The tree of a repository without a commit: without files. Git knows it in every repository.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// A file that differs from the last commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: String,
    /// Whether git does not know it yet.
    pub is_new: bool,
    /// The hunks; `None` where it is not text, or too long.
    pub diff: Option<String>,
}

/// The files below the top of a repository that differ from its last commit. `Ok(None)` where there is no repository.
/// Git itself is found by `search_path`.
pub async fn changes(top: &Path, search_path: &str) -> Result<Option<Vec<ChangedFile>>, String> {
    let Some(repository) = Repository::open(top) else { return Ok(None) };
    let read = repository.changes(top, search_path);
    match tokio::time::timeout(PATIENCE, read).await {
        Ok(files) => files.map(Some),
        Err(_) => Err(format!("git needs more than {} s", PATIENCE.as_secs())),
    }
}

/// Who makes a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub email: String,
}

/// Commits what is below `path` and nothing else; returns the commit. No hook and no filter of the repository runs,
/// and nothing is signed.
pub async fn commit(
    (top, path): (&Path, &Path),
    message: &str,
    who: &Identity,
    search_path: &str,
) -> Result<String, String> {
    let repository = Repository::open(top).ok_or("there is no git repository")?;
    let own_index = repository.private.directory().join("index");
    let path = path.to_string_lossy();
    let run = async |index: &Path, arguments: &[&str]| {
        let mut command = repository.private.command(top, index, search_path);
        command
            .args(arguments)
            .envs([("GIT_AUTHOR_NAME", &who.name), ("GIT_COMMITTER_NAME", &who.name)])
            .envs([("GIT_AUTHOR_EMAIL", &who.email), ("GIT_COMMITTER_EMAIL", &who.email)]);
        output_line(command).await
    };
    let parent = repository.commit.as_deref();
    if let Some(parent) = parent {
        run(&own_index, &["read-tree", parent]).await?;
    }
    run(&own_index, &["add", "--force", "--", &path]).await?;
    let tree = run(&own_index, &["write-tree"]).await?;
    let mut arguments = vec!["commit-tree", "-m", message, &tree];
    arguments.extend(parent.iter().flat_map(|parent| ["-p", *parent]));
    let commit = run(&own_index, &arguments).await?;
    repository.move_head(&commit, search_path).await?;
    // What was staged before stays staged; the new files are as in the commit.
    run(&repository.git.own.join("index"), &["add", "--force", "--", &path]).await?;
    Ok(commit)
}

/// A repository, and a git directory of ours around its objects.
struct Repository {
    git: GitDirectories,
    private: PrivateGit,
    /// The line of its `HEAD`.
    head: String,
    /// The commit that it is at; none before the first one.
    commit: Option<String>,
}

impl Repository {
    fn open(top: &Path) -> Option<Self> {
        let git = repository::directories(top)?;
        let head = line_of(&git.own.join("HEAD"))?;
        let commit = head_commit(&git, &head);
        let private = PrivateGit::new(&git, commit.as_deref().unwrap_or(&head))?;
        Some(Self { git, private, head, commit })
    }

    async fn changes(&self, top: &Path, search_path: &str) -> Result<Vec<ChangedFile>, String> {
        let index = self.git.own.join("index");
        let command = || self.private.command(top, &index, search_path);
        let mut diff = command();
        diff.args(["-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff"])
            .args(["--no-textconv", "--no-renames", "--ignore-submodules=all"])
            .arg(self.commit.as_deref().unwrap_or(EMPTY_TREE));
        let mut names = command();
        names.args(["ls-files", "--others", "--exclude-standard", "-z"]);
        let text = printed(diff, MAX_DIFF_BYTES).await?;
        let names = printed(names, MAX_NAMES_BYTES).await?;
        let mut files = files_of(&text);
        files.extend(names.split_terminator('\0').enumerate().map(|(at, path)| {
            let diff = (at < MAX_NEW).then(|| new_text(&top.join(path))).flatten();
            ChangedFile { path: path.to_owned(), is_new: true, diff }
        }));
        Ok(files)
    }

    /// Moves the branch that is checked out, or the head where none is. This needs the repository's own directory;
    /// nothing of its configuration runs for it.
    async fn move_head(&self, commit: &str, search_path: &str) -> Result<(), String> {
        let (directory, name) = match self.head.strip_prefix("ref: ") {
            Some(branch) => (&self.git.common, branch),
            None => (&self.git.own, "HEAD"),
        };
        let nothing = "0".repeat(commit.len());
        let before = self.commit.as_deref().unwrap_or(&nothing);
        let mut command = Command::new("git");
        command
            .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"])
            .args(["update-ref", "--no-deref", name, commit, before])
            .env_clear()
            .env("PATH", search_path)
            .env("GIT_DIR", directory)
            .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
            // A commit that is gone by now would be fetched by a program that the repository's configuration names.
            .envs([("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        output_line(command).await.map(drop)
    }
}

/// What git prints, cut at a line where it is longer than `most` bytes.
async fn printed(mut command: Command, most: u64) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("git cannot be run: {error}");
    let mut running = command.spawn().map_err(failed)?;
    let mut output = Vec::new();
    if let Some(stdout) = running.stdout.take() {
        stdout.take(most).read_to_end(&mut output).await.map_err(failed)?;
    }
    let is_whole = (output.len() as u64) < most;
    if is_whole && !running.wait().await.map_err(failed)?.success() {
        return Err("git cannot compare the files".to_owned());
    }
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// The one line that git prints, or why it refuses.
async fn output_line(mut command: Command) -> Result<String, String> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().await.map_err(|error| format!("git cannot be run: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// The files of a comparison, each with its hunks.
fn files_of(text: &str) -> Vec<ChangedFile> {
    const HEADING: &str = "diff --git ";
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let files = lines.chunk_by(|_, next| !next.starts_with(HEADING));
    let file = |lines: &[&str]| {
        // Twice the same name, as nothing is renamed: `a/NAME b/NAME`.
        let names = lines.first()?.strip_prefix(HEADING)?.trim_end_matches('\n');
        let second = names.get(names.len() / 2 + 1..)?;
        let path = second.trim_matches('"');
        let hunks = lines.iter().skip_while(|line| !line.starts_with("@@")).copied();
        let is_binary = lines.iter().any(|line| line.starts_with("Binary files "));
        Some(ChangedFile {
            path: path.strip_prefix("b/").unwrap_or(path).to_owned(),
            is_new: false,
            diff: (!is_binary).then(|| hunks.collect()),
        })
    };
    files.filter_map(file).collect()
}

/// A whole file as added lines.
fn new_text(path: &Path) -> Option<String> {
    let found = path.symlink_metadata().ok()?;
    let text = found.is_file().then(|| regular::read_text(path, MAX_NEW_BYTES).ok()).flatten()?;
    let is_text = !text.contains('\0');
    is_text.then(|| text.lines().map(|line| format!("+{line}\n")).collect())
}
