//! The state of a work tree, kept under a ref of its repository (MS-133).
//!
//! Invariants:
//! - Nobody's index, branch or files are touched: a copy of the index takes in what is there, and only a ref of ours
//!   moves.
//! - Git runs no program of the workspace, as for its status.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::git_status::{PrivateGit, head_commit, is_hash};
use super::repository::{self, GitDirectories, line_of};

/// How long git may take in all; in a vast repository there is no checkpoint.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where git is found.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How git's listings mark a link to a commit of another repository.
const LINK_MODE: &str = "160000";
/// How many names one command gets.
const LINKS_AT_ONCE: usize = 200;

/// Refs of checkpoints are below this.
const REFS: &str = "refs/windlass/checkpoints";

/// A state that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The ref, in full.
    pub reference: String,
    pub commit: String,
}

/// Keeps the files of a work tree as they are now, ignored ones aside, under the ref of this name. `None` where there
/// is no repository, or git cannot.
pub async fn make(top: &Path, name: &str) -> Option<Checkpoint> {
    tokio::time::timeout(PATIENCE, keep(top, name)).await.ok().flatten()
}

async fn keep(top: &Path, name: &str) -> Option<Checkpoint> {
    let git = repository::directories(top)?;
    let line = line_of(&git.own.join("HEAD"))?;
    let parent = head_commit(&git, &line);
    let private = PrivateGit::new(&git, parent.as_deref().unwrap_or(&line))?;
    let index = private.directory().join("index");
    // In a repository without a commit every file is new.
    repository::copy_file(&git.own.join("index"), &index);
    let run = async |args: &[&str]| {
        let mut command = private.command(top, &index, SEARCH_PATH);
        let output = command.args(args).output().await.ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // Git would look for changes in the repositories that it tracks, and run what their settings name. It takes in one
    // that it does not track by its head alone.
    let links = run(&["ls-files", "--stage", "-z"]).await?;
    let links: Vec<&str> = links
        .split('\0')
        .filter(|entry| entry.starts_with(LINK_MODE))
        .filter_map(|entry| entry.split_once('\t'))
        .map(|(_, path)| path)
        .collect();
    for some in links.chunks(LINKS_AT_ONCE) {
        let forget = ["update-index", "--force-remove", "--"].iter();
        run(&forget.chain(some).copied().collect::<Vec<_>>()).await?;
    }
    run(&["add", "--all", "--ignore-errors", "--", "."]).await;
    let tree = run(&["write-tree"]).await.filter(|id| is_hash(id))?;
    let message = format!("windlass checkpoint of {name}");
    let who = ["-c", "user.name=windlass", "-c", "user.email=windlass@localhost"];
    let mut args: Vec<&str> = who.to_vec();
    args.extend(["commit-tree", "-m", &message, &tree]);
    if let Some(parent) = &parent {
        args.extend(["-p", parent]);
    }
    let commit = run(&args).await.filter(|id| is_hash(id))?;
    let reference = format!("{REFS}/{name}");
    set_ref(&git, &reference, &commit).await.then_some(Checkpoint { reference, commit })
}

/// Moves one ref. This needs the repository's own directory; nothing of its configuration runs for it.
async fn set_ref(git: &GitDirectories, reference: &str, commit: &str) -> bool {
    let mut command = Command::new("git");
    command
        .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"])
        .args(["update-ref", reference, commit])
        .env_clear()
        .env("PATH", SEARCH_PATH)
        .env("GIT_DIR", &git.common)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        // A commit that is gone by now would be fetched by a program that the repository's configuration names.
        .envs([("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command.status().await.is_ok_and(|status| status.success())
}
