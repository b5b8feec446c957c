//! Where steps work: the run's worktrees, made before the first step that needs them and reconciled with git.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;
use windlass_core::event::{Event, WorktreeChanged, WorktreeState};
use windlass_core::status::StatusReason;

use super::children::{Script, ScriptEnd};
use super::{Concluded, Engine, Error, Trouble, plain};
use crate::definition::{Checkout, WorktreeSpec};
use crate::state::RunState;
use crate::worktree::{self, Removal};
use windlass_core::ending::Ending;

/// How many characters of a run's id name its worktree; enough to tell the runs of a person apart.
const ID_CHARS: usize = 10;

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
        let _one_at_a_time = self.engine.making.lock().await;
        let known = self.engine.journal.read(|_, run| run.worktrees.get(name).cloned()).await;
        let mut tree = match known {
            Some(tree) => tree,
            None => {
                let tree = self.plan(name, spec).await?;
                self.note(&tree).await?;
                tree
            }
        };
        if tree.state == WorktreeState::Adding {
            let wanted = tree.clone();
            self.engine.repository.with(move |git| worktree::add(git, &wanted)).await?;
            tree = self.change(tree, WorktreeState::Preparing, None).await?;
        } else {
            let known = tree.clone();
            self.engine.repository.with(move |git| worktree::restore(git, &known)).await?;
        }
        if tree.state == WorktreeState::Preparing {
            self.set_up(&tree, spec).await?;
            tree = self.change(tree, WorktreeState::Ready, None).await?;
        }
        if matches!(
            tree.state,
            WorktreeState::Removing | WorktreeState::Removed | WorktreeState::Kept
        ) {
            // A run that continues after its end needs it again.
            tree = self.change(tree, WorktreeState::Ready, None).await?;
        }
        Ok(PathBuf::from(tree.path))
    }

    async fn plan(self, name: &str, spec: &WorktreeSpec) -> Result<WorktreeChanged, Trouble> {
        let id = self.engine.id().to_string();
        let id = &id[id.len().saturating_sub(ID_CHARS)..];
        let part = if name.is_empty() { String::new() } else { format!("-{name}") };
        let directory = format!("{}-{id}{part}", self.engine.workflow.name);
        let places = self.engine.host.worktrees();
        let base = match self.engine.journal.read(|_, run| outer(run, name)).await {
            // What a parallel step does begins with what was done before it.
            Some(outer) => {
                let tree = PathBuf::from(&outer.path);
                let message = format!("windlass: before {name}");
                self.engine
                    .repository
                    .with(move |git| {
                        worktree::commit_all(git, &tree, &message)?;
                        git.run_in(&tree, None, ["rev-parse", "HEAD"])
                    })
                    .await?
                    .trim()
                    .to_owned()
            }
            None => {
                let (base, target) = (spec.base.clone(), self.engine.workflow.target.clone());
                self.engine
                    .repository
                    .with(move |git| worktree::base(git, &base, target.as_deref()))
                    .await?
                    .0
            }
        };
        let path =
            self.engine.repository.with(move |git| Ok(worktree::directory(&places, git))).await?;
        let taken = self.engine.journal.read(|_, run| ports(run)).await;
        Ok(WorktreeChanged {
            name: name.to_owned(),
            state: WorktreeState::Adding,
            path: path.join(&directory).display().to_string(),
            branch: format!("windlass/{directory}"),
            base,
            port: free_port(&taken),
            detail: None,
        })
    }

    async fn set_up(self, tree: &WorktreeChanged, spec: &WorktreeSpec) -> Result<(), Trouble> {
        let Some(setup) = &spec.setup else { return Ok(()) };
        let ended = self.tree_script(tree, "setup", setup).await?;
        match ended {
            ScriptEnd::Exited { code: 0, .. } => Ok(()),
            ScriptEnd::Exited { code, output } => Err(Trouble::Failed(format!(
                "the set-up of its worktree: exit code {code}\n{output}"
            ))),
            ScriptEnd::Failed { error, output, .. } => {
                Err(Trouble::Failed(format!("the set-up of its worktree: {error}\n{output}")))
            }
            ScriptEnd::Unknown => {
                Err(Trouble::Failed("the set-up of its worktree was interrupted".to_owned()))
            }
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
        // Set-up may be repeated: nothing has been done in the worktree before it.
        for run in 1..=2 {
            let key = format!("{step} #{} {run}", self.attempt);
            let command = with_port(command, tree.port);
            let script = Script {
                key: &key,
                step: &step,
                command: &command,
                directory: Path::new(&tree.path),
                timeout_seconds: None,
            };
            match self.engine.children().run_script(script, self.halt).await? {
                ScriptEnd::Unknown if run == 1 => {}
                ended => return Ok(ended),
            }
        }
        Ok(ScriptEnd::Unknown)
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

    /// Everything has ended: worktrees go, unless something in them would be lost.
    pub(super) async fn finish(self) -> Result<Concluded, Error> {
        let mut kept = Vec::new();
        let trees: Vec<_> =
            self.engine.journal.read(|_, run| run.worktrees.values().cloned().collect()).await;
        // The inner ones first.
        for tree in trees.into_iter().rev() {
            if matches!(tree.state, WorktreeState::Removed | WorktreeState::Kept) {
                kept.extend((tree.state == WorktreeState::Kept).then(|| tree.path.clone()));
                continue;
            }
            match self.remove(tree.clone()).await {
                Ok(Removal::Removed) => {}
                Ok(Removal::Kept(_)) => kept.push(tree.path.clone()),
                Err(Trouble::Journal(error)) => return Err(error),
                Err(Trouble::Wait(_)) => return Ok(plain(Ending::Blocked)),
                Err(Trouble::Failed(why) | Trouble::Conflict(why)) => {
                    self.change(tree.clone(), WorktreeState::Kept, Some(why)).await?;
                    kept.push(tree.path.clone());
                }
            }
        }
        let done = format!("Workflow `{}` is done.", self.engine.workflow.name);
        let message = match kept.is_empty() {
            true => done,
            false => {
                format!("{done} Kept, because something in it would be lost: {}", kept.join(", "))
            }
        };
        Ok(Concluded { ending: Ending::Done, message: Some(message) })
    }

    async fn remove(self, tree: WorktreeChanged) -> Result<Removal, Trouble> {
        let Checkout::Worktree(spec) = &self.engine.workflow.place else {
            return Ok(Removal::Removed);
        };
        if spec.keep {
            let why = "the workflow says so".to_owned();
            self.change(tree, WorktreeState::Kept, Some(why.clone())).await?;
            return Ok(Removal::Kept(why));
        }
        if tree.state != WorktreeState::Removing
            && let Some(cleanup) = &spec.cleanup
        {
            // A failing clean-up is in its log, and holds up nothing.
            self.tree_script(&tree, "cleanup", cleanup).await?;
        }
        let tree = self.change(tree, WorktreeState::Removing, None).await?;
        let merged = self.engine.journal.read(|_, run| run.merged_heads(&tree.branch)).await;
        let wanted = tree.clone();
        let removal =
            self.engine.repository.with(move |git| worktree::remove(git, &wanted, &merged)).await?;
        match &removal {
            Removal::Removed => self.change(tree, WorktreeState::Removed, None).await?,
            Removal::Kept(why) => self.change(tree, WorktreeState::Kept, Some(why.clone())).await?,
        };
        Ok(removal)
    }
}

/// The worktree around one of a parallel step.
pub(super) fn outer(run: &RunState, name: &str) -> Option<WorktreeChanged> {
    if name.is_empty() {
        return None;
    }
    let outer = name.rsplit_once('-').map_or("", |(outer, _)| outer);
    run.worktrees.get(outer).cloned()
}

fn ports(run: &RunState) -> Vec<u16> {
    run.worktrees.values().filter_map(|tree| tree.port).collect()
}

/// A port that nothing uses now.
fn free_port(taken: &[u16]) -> Option<u16> {
    let port = || TcpListener::bind(("127.0.0.1", 0)).ok()?.local_addr().ok().map(|at| at.port());
    (0..20).filter_map(|_| port()).find(|port| !taken.contains(port))
}

/// A command that asks for its worktree's port finds it.
pub(super) fn with_port(command: &str, port: Option<u16>) -> String {
    match port {
        Some(port) if command.contains("PORT") => {
            format!("export PORT={port} WINDLASS_PORT={port}\n{command}")
        }
        _ => command.to_owned(),
    }
}

/// Why a step of this kind of end stops a run.
pub(super) fn reason_for(reason: StatusReason) -> StatusReason {
    match reason {
        StatusReason::Timeout => StatusReason::Timeout,
        _ => StatusReason::Error,
    }
}
