//! What a git command would change among the files with rules, found out before it runs.
//!
//! Invariant: git runs no program of the workspace and writes nothing into its repository. It gets a directory of ours
//! that has the repository's refs and objects, and our configuration.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use windlass_core::layout::WORKSPACE;
use windlass_core::policy::{GitSource, files};

use super::Workspace;
use super::git_status::{PrivateGit, head_commit, is_hash};
use super::repository::{self, GitDirectories, line_of};
use super::walk::{Parents, Root};

/// How long git may take in all; in a vast repository nobody can say.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where git is found.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Files of a repository that name commits beside its refs.
const HEADS: &[&str] =
    &["FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "logs/HEAD", "index"];

/// Reads the commits of the repository that a directory of the workspace is in.
pub(crate) struct CommitReader {
    git: PrivateGit,
    index: PathBuf,
    real_top: PathBuf,
    top: String,
    /// The top below that of the workspace, with a slash behind it.
    below: String,
    /// What is compared beside the files with names of rules.
    also: Vec<String>,
}

impl CommitReader {
    /// `None` where there is no repository, or none that is the workspace's own.
    pub fn open(workspace: &Workspace, directory: &str) -> Option<Self> {
        let spot = workspace.walk(directory, Parents::Imagine).ok()?;
        if spot.place != Root::Workspace {
            return None;
        }
        let parts = spot.parts();
        let depths = (0..=parts.len()).rev();
        let mut tops = depths.map(|depth| (workspace.real.join(parts[..depth].join("/")), depth));
        let (real_top, depth) =
            tops.find(|(top, _)| std::fs::symlink_metadata(top.join(".git")).is_ok())?;
        let found = repository::directories(&real_top)?;
        let head = line_of(&found.own.join("HEAD"))?;
        let commit = head_commit(&found, &head);
        let git = PrivateGit::new(&found, commit.as_deref().unwrap_or(&head))?;
        link_names(&git, &found, &head)?;
        let index = git.directory().join("index");
        let top = std::iter::once(WORKSPACE).chain(parts[..depth].iter().copied());
        let top = top.collect::<Vec<_>>().join("/");
        let below = parts[..depth].iter().map(|part| format!("{part}/")).collect();
        Some(Self { git, index, real_top, top, below, also: Vec::new() })
    }

    /// The top of the repository, as an agent writes it.
    pub fn top(&self) -> &str {
        &self.top
    }

    /// The files with rules for agents that a source would change, by their paths below the top; `None` where git
    /// cannot say. `linked` are other files of the workspace that are rules.
    pub async fn changed_rules(
        &mut self,
        source: &GitSource,
        linked: &[String],
    ) -> Option<Vec<String>> {
        let own = |path: &String| path.strip_prefix(&self.below).map(str::to_owned);
        self.also = linked.iter().filter_map(own).collect();
        tokio::time::timeout(PATIENCE, self.changed_paths(source)).await.ok().flatten()
    }

    async fn changed_paths(&self, source: &GitSource) -> Option<Vec<String>> {
        match source {
            GitSource::Commit(name) => {
                let commit = self.checked_out(name).await?;
                self.names(&["diff-tree", "-r", "HEAD", &commit]).await
            }
            GitSource::Merge(name) => {
                let commit = self.commit(name).await?;
                let merged = self.run(&["merge-tree", "--write-tree", "HEAD", &commit]).await?;
                let merged = String::from_utf8_lossy(&merged.stdout).into_owned();
                // With conflicts the tree comes first. A git that cannot merge so says nothing.
                let tree = merged.lines().next().filter(|line| is_hash(line));
                self.names(&["diff-tree", "-r", "HEAD", tree.unwrap_or(&commit)]).await
            }
            GitSource::Base(name) => {
                let commit = self.commit(name).await?;
                self.names(&["diff-tree", "-r", "--merge-base", "HEAD", &commit]).await
            }
            GitSource::Changes(names) => {
                let mut args = vec!["log", "--no-walk", "-m", "--format="];
                args.extend(names.iter().map(String::as_str));
                self.names(&args).await
            }
            GitSource::Stash(name) => {
                let (before, untracked) = (format!("{name}^1"), format!("{name}^3"));
                let mut names = self.names(&["diff-tree", "-r", &before, name]).await?;
                if let Some(commit) = self.commit(&untracked).await {
                    names.extend(self.names(&["log", "--no-walk", "--format=", &commit]).await?);
                }
                Some(names)
            }
            GitSource::Files { commit: Some(commit), .. } => {
                let commit = self.checked_out(commit).await?;
                let names = self.names(&["diff-index", &commit]).await?;
                Some(self.with_other_content(names, &commit).await)
            }
            GitSource::Files { commit: None, .. } => {
                let names = self.names(&["diff-files"]).await?;
                Some(self.with_other_content(names, "").await)
            }
            GitSource::Submodules => self.submodules().await,
            GitSource::History => {
                self.names(&["log", "--all", "--max-count=1", "-m", "--format="]).await
            }
            GitSource::Unseen => None,
        }
    }

    /// Those of the files that hold something else than in a commit, or in the index. Git compares by times and owners,
    /// and a sandbox may show it other owners.
    async fn with_other_content(&self, names: Vec<String>, commit: &str) -> Vec<String> {
        let mut other = Vec::new();
        for name in names {
            let kept = format!("{commit}:{name}");
            let kept = self.run(&["rev-parse", "--verify", "--quiet", &kept]).await;
            let kept = kept.map(|output| output.stdout);
            let found = self.run(&["hash-object", "--no-filters", "--", &name]).await;
            let found = found.filter(|output| output.status.success()).map(|output| output.stdout);
            if found.is_none() || found != kept {
                other.push(name);
            }
        }
        other
    }

    /// The commit of a name; `None` where none has it.
    async fn commit(&self, name: &str) -> Option<String> {
        let commit = format!("{name}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
        let found = self.run(&args).await?;
        let found = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        is_hash(&found).then_some(found)
    }

    /// The same for a name that git looks for among branches of remotes as well.
    async fn checked_out(&self, name: &str) -> Option<String> {
        if let Some(commit) = self.commit(name).await {
            return Some(commit);
        }
        // A tree has no commit, and can be taken from.
        let of_remotes = format!("refs/remotes/*/{name}");
        let found = self.run(&["for-each-ref", "--format=%(objectname)", &of_remotes]).await?;
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        match found.lines().collect::<Vec<_>>()[..] {
            [commit] if is_hash(commit) => Some(commit.to_owned()),
            _ => None,
        }
    }

    /// Rule files and directories that are submodules, whatever they hold.
    async fn submodules(&self) -> Option<Vec<String>> {
        let args = ["ls-files", "--stage", "-z"];
        let listed = self.run_for_rules(&args).await?;
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let submodules = text.split('\0').filter(|line| line.starts_with("160000 "));
        Some(submodules.filter_map(|line| Some(line.split_once('\t')?.1.to_owned())).collect())
    }

    /// The names that a comparison gives, among those of rule files.
    async fn names(&self, args: &[&str]) -> Option<Vec<String>> {
        let (first, rest) = args.split_first()?;
        let mut all = vec![*first, "--name-only", "--no-renames", "-z"];
        all.extend(rest);
        let output = self.run_for_rules(&all).await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = text.split(['\0', '\n']).filter(|name| !name.is_empty() && !is_hash(name));
        Some(names.map(str::to_owned).collect())
    }

    async fn run_for_rules(&self, args: &[&str]) -> Option<Output> {
        let patterns: Vec<String> = files::rule_names()
            .flat_map(|name| [format!("**/{name}"), format!("**/{name}/**")])
            .map(|pattern| format!(":(top,icase,glob){pattern}"))
            .chain(self.also.iter().map(|path| format!(":(top,literal){path}")))
            .collect();
        let mut all = args.to_vec();
        all.push("--");
        all.extend(patterns.iter().map(String::as_str));
        self.run(&all).await.filter(|output| output.status.success())
    }

    async fn run(&self, args: &[&str]) -> Option<Output> {
        let objects = self.git.directory().join("objects");
        let mut command = self.git.command(&self.real_top, &self.index, SEARCH_PATH);
        command
            // What git makes to answer stays with us.
            .env("GIT_OBJECT_DIRECTORY", objects)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.git.objects())
            .args(args);
        command.output().await.ok()
    }
}

/// Gives a directory of ours the names that a repository has for commits.
fn link_names(git: &PrivateGit, found: &GitDirectories, head: &str) -> Option<()> {
    let own = git.directory();
    std::fs::remove_dir(own.join("refs")).ok()?;
    symlink(found.common.join("refs"), own.join("refs")).ok()?;
    symlink(found.common.join("packed-refs"), own.join("packed-refs")).ok()?;
    std::fs::write(own.join("HEAD"), format!("{head}\n")).ok()?;
    std::fs::create_dir(own.join("logs")).ok()?;
    symlink(found.common.join("logs/refs"), own.join("logs/refs")).ok()?;
    for name in HEADS {
        repository::copy_file(&found.own.join(name), &own.join(name));
    }
    std::fs::create_dir(own.join("objects")).ok()
}
