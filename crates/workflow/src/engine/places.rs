//! Where steps work: the run's worktrees, made before the first step that needs them and reconciled with git.

mod ending;
mod equipment;

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use windlass_core::event::{Event, WorktreeChanged, WorktreeKind, WorktreeState};
use windlass_core::status::StatusReason;

use super::children::{Script, ScriptEnd};
use super::{Engine, Error, Trouble};
use crate::definition::{Checkout, GitSpec, Maker, WorktreeSpec};
use crate::git::{Git, GitError, Lock};
use crate::state::RunState;
use crate::worktree::Restored;
use crate::{template, worktree};

/// How many characters of a run's id name its worktree; enough to tell the runs of a person apart.
const ID_CHARS: usize = 10;

/// What a person reads of a worktree that somebody has deleted while its run was under way.
const MADE_AGAIN: &str =
    "its directory was gone: it was made again from its branch, without what was not committed";

/// How long a command about a worktree may take: it has no `timeout` of its own, and installing what a large project
/// needs takes long.
const TREE_SCRIPT_SECONDS: u64 = 60 * 60;

/// The worktrees of a run.
#[derive(Clone, Copy)]
pub(super) struct Worktrees<'e> {
    pub engine: &'e Engine<'e>,
    pub halt: &'e CancellationToken,
    /// The attempt that needs them: with the next one a set-up that failed is run again.
    pub attempt: u32,
}

impl Worktrees<'_> {
    /// The worktree of this name, made and set up where that is still to be done.
    pub(super) async fn place(self, name: &str) -> Result<PathBuf, Trouble> {
        let Checkout::Worktree(spec) = &self.engine.workflow.place else {
            return Ok(self.engine.directory.clone());
        };
        let mut tree = self.planned(name, spec).await?;
        if tree.state == WorktreeState::Adding {
            tree = self.make(tree, spec).await?;
        } else if let Maker::Git(_) = &spec.maker {
            let (known, trusted) = (tree.clone(), self.trusted(&tree).await);
            let restore = move |git: &Git| worktree::restore(git, &known, &trusted);
            if self.engine.repository.with(restore).await? == Restored::MadeAgain {
                let state = tree.state;
                tree = self.change(tree, state, Some(MADE_AGAIN.to_owned())).await?;
            }
        }
        if tree.state == WorktreeState::Preparing {
            self.set_up(&tree, spec).await?;
            tree = self.change(tree, WorktreeState::Ready, None).await?;
        }
        if matches!(
            tree.state,
            WorktreeState::Removing
                | WorktreeState::Removed
                | WorktreeState::Kept
                | WorktreeState::Released
        ) {
            // A run that continues after its end needs it again.
            tree = self.change(tree, WorktreeState::Ready, None).await?;
        }
        Ok(PathBuf::from(tree.path))
    }

    async fn known(self, name: &str) -> Option<WorktreeChanged> {
        self.engine.journal.read(|_, run| run.worktrees.get(name).cloned()).await
    }

    /// The worktree as the journal has it, planned where it has none.
    async fn planned(self, name: &str, spec: &WorktreeSpec) -> Result<WorktreeChanged, Trouble> {
        let _one_at_a_time = self.engine.making.lock().await;
        // One that was removed had nothing that is not merged: a run that is tried again after its end makes a new one.
        if let Some(tree) =
            self.known(name).await.filter(|tree| tree.state != WorktreeState::Removed)
        {
            return Ok(tree);
        }
        let tree = self.plan(name, spec).await?;
        self.note(&tree).await?;
        Ok(tree)
    }

    /// Makes a worktree that is planned, and fills it. Others are filled at the same time.
    async fn make(
        self,
        tree: WorktreeChanged,
        spec: &WorktreeSpec,
    ) -> Result<WorktreeChanged, Trouble> {
        let tree = match &spec.maker {
            Maker::Command { create, .. } => {
                self.create(&tree, create).await?;
                tree
            }
            Maker::Git(git) => {
                let (tree, filling) = self.register(tree, git).await?;
                let (wanted, trusted) = (tree.clone(), self.trusted(&tree).await);
                let fill = move |git: &Git| worktree::fill(git, &wanted, &trusted, &filling);
                self.engine.repository.with(fill).await?;
                tree
            }
        };
        Ok(self.change(tree, WorktreeState::Preparing, None).await?)
    }

    /// Has git know the worktree. A warm one that was free when it was planned may be in use by now: then it is another.
    async fn register(
        self,
        mut tree: WorktreeChanged,
        spec: &GitSpec,
    ) -> Result<(WorktreeChanged, Lock), Trouble> {
        loop {
            let wanted = tree.clone();
            let registered = self
                .engine
                .repository
                .with(move |git| match worktree::register(git, &wanted) {
                    Ok(filling) => Ok(Some(filling)),
                    Err(GitError::Occupied(_)) => Ok(None),
                    Err(error) => Err(error),
                })
                .await?;
            match registered {
                Some(filling) => return Ok((tree, filling)),
                None => {
                    tree = self.placed(tree, spec).await?;
                    self.note(&tree).await?;
                }
            }
        }
    }

    /// The same worktree in the place of a warm one that is free; where there is none, in a place of its own.
    async fn placed(
        self,
        tree: WorktreeChanged,
        spec: &GitSpec,
    ) -> Result<WorktreeChanged, Trouble> {
        let (places, workflow) = (self.engine.host.worktrees(), self.engine.workflow.name.clone());
        let count = spec.reuse;
        let slot = self
            .engine
            .repository
            .with(move |git| {
                worktree::free_slot(git, &worktree::directory(&places, git), &workflow, count)
            })
            .await?;
        let (path, kind) = match slot {
            Some(slot) => (slot.display().to_string(), WorktreeKind::Warm),
            None => (self.own_path(&tree.name).await?, WorktreeKind::Single),
        };
        Ok(WorktreeChanged { path, kind, ..tree })
    }

    /// What the worktree of this name is called: by the workflow, the run, and the step where it is not the run's own.
    fn directory_name(self, name: &str) -> String {
        let id = self.engine.id().to_string();
        let id = &id[id.len().saturating_sub(ID_CHARS)..];
        let part = if name.is_empty() { String::new() } else { format!("-{name}") };
        format!("{}-{id}{part}", self.engine.workflow.name)
    }

    async fn own_path(self, name: &str) -> Result<String, Trouble> {
        let places = self.engine.host.worktrees();
        let directory = match &self.engine.workflow.place {
            Checkout::Worktree(WorktreeSpec { maker: Maker::Command { .. }, .. })
            | Checkout::Here => places.join(worktree::name_after(&self.engine.directory)),
            Checkout::Worktree(WorktreeSpec { maker: Maker::Git(_), .. }) => {
                self.engine
                    .repository
                    .with(move |git| Ok(worktree::directory(&places, git)))
                    .await?
            }
        };
        Ok(directory.join(self.directory_name(name)).display().to_string())
    }

    async fn plan(self, name: &str, spec: &WorktreeSpec) -> Result<WorktreeChanged, Trouble> {
        let taken = self.engine.journal.read(|_, run| ports(run)).await;
        let tree = WorktreeChanged {
            name: name.to_owned(),
            state: WorktreeState::Adding,
            kind: WorktreeKind::Command,
            path: self.own_path(name).await?,
            branch: String::new(),
            base: String::new(),
            sparse: Vec::new(),
            port: free_port(&taken),
            detail: None,
        };
        let Maker::Git(git) = &spec.maker else { return Ok(tree) };
        let tree = WorktreeChanged {
            kind: WorktreeKind::Single,
            branch: format!("{}{}", worktree::BRANCHES, self.directory_name(name)),
            base: self.base(name, git).await?,
            sparse: git.sparse.clone(),
            ..tree
        };
        match git.reuse {
            0 => Ok(tree),
            _ => self.placed(tree, git).await,
        }
    }

    /// The commit that a worktree begins at.
    async fn base(self, name: &str, spec: &GitSpec) -> Result<String, Trouble> {
        let Some(outer) = self.engine.journal.read(|_, run| outer(run, name)).await else {
            let (base, target) = (spec.base.clone(), self.engine.workflow.target.clone());
            let begun_on = self.engine.source.branch.clone();
            let find =
                move |git: &Git| worktree::base(git, &base, target.as_deref(), begun_on.as_deref());
            return self.engine.repository.with(find).await;
        };
        // What a parallel step does begins with what was done before it.
        let tree = PathBuf::from(&outer.path);
        let message = format!("windlass: before {name}");
        let head = self
            .engine
            .repository
            .with(move |git| {
                worktree::commit_all(git, &tree, &message)?;
                git.run_in(&tree, None, ["rev-parse", "HEAD"])
            })
            .await?;
        Ok(head.trim().to_owned())
    }

    /// The commit that a worktree's run began at, which no agent has made.
    pub(super) async fn trusted(self, tree: &WorktreeChanged) -> String {
        self.engine.journal.read(|_, run| outermost(run, tree).base).await
    }

    /// Has a command of the workflow make the workspace. The empty directory is ours: a sandbox shows only what exists.
    async fn create(self, tree: &WorktreeChanged, command: &str) -> Result<(), Trouble> {
        let path = Path::new(&tree.path);
        std::fs::create_dir_all(path).map_err(|error| GitError::file(path, error))?;
        self.expect(
            "the command that creates its workspace",
            self.tree_script(tree, "create", command).await?,
        )
    }

    async fn set_up(self, tree: &WorktreeChanged, spec: &WorktreeSpec) -> Result<(), Trouble> {
        let Some(setup) = &spec.setup else { return Ok(()) };
        self.expect("the set-up of its worktree", self.tree_script(tree, "setup", setup).await?)
    }

    /// A command without which no step can work.
    fn expect(self, what: &str, ended: ScriptEnd) -> Result<(), Trouble> {
        match ended {
            ScriptEnd::Exited { code: 0, .. } => Ok(()),
            ScriptEnd::Exited { code, output } => {
                Err(Trouble::Failed(format!("{what}: exit code {code}\n{output}")))
            }
            ScriptEnd::Failed { error, output, .. } => {
                let text = format!("{what}: {error}\n{output}");
                Err(Trouble::Failed(text.trim_end().to_owned()))
            }
            ScriptEnd::Unknown => Err(Trouble::Failed(format!("{what} was interrupted"))),
        }
    }

    /// A command about a worktree: its log is that of its task.
    async fn tree_script(
        self,
        tree: &WorktreeChanged,
        what: &str,
        command: &str,
    ) -> Result<ScriptEnd, Trouble> {
        let step = match tree.name.as_str() {
            "" => format!("worktree {what}"),
            name => format!("worktree {what} of {name}"),
        };
        let path = Path::new(&tree.path);
        // What makes a workspace and removes it begins beside it, and may name both.
        let (directory, workspace) = match what {
            "create" | "remove" => (self.engine.directory.as_path(), Some(path)),
            _ => (path, None),
        };
        let names = variables(tree, &self.engine.directory);
        let command = template::render_command(command, &names)
            .map_err(|error| Trouble::Failed(format!("{step}: {error}")))?;
        // Set-up may be repeated: nothing has been done in the worktree before it.
        let script = Script {
            key: &format!("{step} #{} ", self.attempt),
            step: &step,
            command: &command,
            directory,
            workspace,
            program: None,
            timeout_seconds: Some(TREE_SCRIPT_SECONDS),
        };
        self.engine.children().run_repeatable(script, &mut 0, self.halt).await
    }

    async fn note(self, tree: &WorktreeChanged) -> Result<(), Error> {
        self.engine.commit(vec![Event::WorktreeChanged(Box::new(tree.clone()))]).await
    }

    async fn change(
        self,
        tree: WorktreeChanged,
        state: WorktreeState,
        detail: Option<String>,
    ) -> Result<WorktreeChanged, Error> {
        let tree = WorktreeChanged { state, detail, ..tree };
        self.note(&tree).await?;
        Ok(tree)
    }
}

/// What the commands about a worktree find.
fn variables(tree: &WorktreeChanged, source: &Path) -> Map<String, Value> {
    let names = json!({
        "path": tree.path, "branch": tree.branch, "base": tree.base, "port": tree.port,
        "source": source.display().to_string(),
    });
    Map::from_iter([("worktree".to_owned(), names)])
}

/// The worktree around one of a parallel step, where it exists.
pub(super) fn outer(run: &RunState, name: &str) -> Option<WorktreeChanged> {
    if name.is_empty() {
        return None;
    }
    let outer = name.rsplit_once('-').map_or("", |(outer, _)| outer);
    run.worktrees.get(outer).filter(|tree| tree.state != WorktreeState::Removed).cloned()
}

/// The worktree that others of its run are in, at the very outside.
fn outermost(run: &RunState, tree: &WorktreeChanged) -> WorktreeChanged {
    let mut found = tree.clone();
    while let Some(around) = outer(run, &found.name) {
        found = around;
    }
    found
}

fn ports(run: &RunState) -> Vec<u16> {
    run.worktrees.values().filter_map(|tree| tree.port).collect()
}

/// A port that nothing uses now.
fn free_port(taken: &[u16]) -> Option<u16> {
    let port = || TcpListener::bind(("127.0.0.1", 0)).ok()?.local_addr().ok().map(|at| at.port());
    (0..20).filter_map(|_| port()).find(|port| !taken.contains(port))
}

/// Why a step of this kind of end stops a run.
pub(super) fn reason_for(reason: StatusReason) -> StatusReason {
    match reason {
        StatusReason::Timeout => StatusReason::Timeout,
        _ => StatusReason::Error,
    }
}
