//! Removing worktrees that ended runs have left: which are removed and which stay, with a reason for each.
//!
//! Invariants:
//! - What would be lost stays: a person merges it, or has it saved on its branch.
//! - Only worktrees of runs that have ended are removed, by whoever owns the run then, and it is journaled first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use windlass_core::event::{Event, Record, WorktreeChanged, WorktreeKind, WorktreeState};
use windlass_core::id::TaskId;
use windlass_core::string_enum;
use windlass_store::{Level, Owner};
use windlass_workflow::RunState;
use windlass_workflow::git::{Git, GitError};
use windlass_workflow::worktree::{self, Removal};

use super::standing::is_there;
use super::{Workflows, worktrees_beside};
use crate::{Coordinator, Error};

/// Why a worktree of no run stays.
const WARM: &str = "it stays warm for the next run; `git worktree remove` removes it";

string_enum! {
    /// What becomes of a worktree.
    Fate ("fate") {
        /// It goes with its branch: everything in it is elsewhere.
        Remove = "remove",
        /// It goes; what is in it is committed to its branch, which stays.
        Save = "save",
        Keep = "keep",
    }
}

/// What becomes of worktrees with work that is nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnWork {
    /// The worktrees stay, with their work in them.
    Stays,
    /// It is committed to their branches, and they go.
    IsSaved,
}

/// A worktree that is still there, and what pruning does with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prunable {
    /// The run that has made it; none knows a directory of an earlier installation.
    pub run: Option<TaskId>,
    pub workflow: Option<String>,
    /// Its name in the run.
    pub name: String,
    pub path: PathBuf,
    pub branch: Option<String>,
    pub fate: Fate,
    pub why: String,
}

/// A run with what is known of its worktrees.
struct LeftWorktree {
    run: TaskId,
    /// Where it was started: a checkout of the repository.
    directory: PathBuf,
    state: RunState,
}

impl Workflows<'_> {
    /// What pruning would do with each worktree that is still there: of one run, or of all.
    pub fn prunable(self, only: Option<TaskId>, work: OwnWork) -> Result<Vec<Prunable>, Error> {
        let (mut found, mut known) = (Vec::new(), BTreeSet::new());
        let mut warm = BTreeMap::new();
        for row in self.coordinator.store.tasks().workflow_runs(u32::MAX)? {
            let left = LeftWorktree::of(self.coordinator, row.task)?;
            for tree in left.state.worktrees.values() {
                known.insert(PathBuf::from(&tree.path));
                known.insert(worktree::scratch_of(&tree.path));
                let is_wanted = only.is_none_or(|only| only == row.task);
                if is_wanted && tree.state == WorktreeState::Released {
                    warm.entry(PathBuf::from(&tree.path)).or_insert_with(|| {
                        left.entry(&row.workflow, tree, Fate::Keep, WARM.to_owned())
                    });
                } else if is_wanted && tree.state != WorktreeState::Removed {
                    let (fate, why) = match row.status.is_terminal() {
                        true => left.judge(tree, work),
                        false => (Fate::Keep, format!("its run is {}", row.status)),
                    };
                    found.push(left.entry(&row.workflow, tree, fate, why));
                }
            }
        }
        // One that another run works in is that run's.
        let is_idle = |one: &Prunable| found.iter().all(|other| other.path != one.path);
        let idle: Vec<_> =
            warm.into_values().filter(|one| one.path.exists() && is_idle(one)).collect();
        found.extend(idle.into_iter().map(|one| Prunable { branch: None, ..one }));
        if only.is_none() {
            found.extend(self.unknown(&known));
        }
        Ok(found)
    }

    /// Does what the plan says; returns what became of each.
    pub async fn prune(self, plan: Vec<Prunable>) -> Result<Vec<Prunable>, Error> {
        let mut done = Vec::with_capacity(plan.len());
        for mut entry in plan {
            if let (Some(run), Fate::Remove | Fate::Save) = (entry.run, entry.fate) {
                match self.remove_one(run, &entry).await {
                    Ok(Removal::Removed) => {}
                    Ok(Removal::Kept(why)) => (entry.fate, entry.why) = (Fate::Keep, why),
                    Err(Error::Store(windlass_store::Error::Driven { .. })) => {
                        let why = "a process works with its run".to_owned();
                        (entry.fate, entry.why) = (Fate::Keep, why);
                    }
                    Err(error) => return Err(error),
                }
            }
            done.push(entry);
        }
        Ok(done)
    }

    /// Whether a run has a worktree that is still there.
    pub(crate) fn has_worktree(self, run: TaskId) -> Result<bool, Error> {
        let left = LeftWorktree::of(self.coordinator, run)?;
        Ok(left.state.worktrees.values().any(is_there))
    }

    async fn remove_one(self, run: TaskId, entry: &Prunable) -> Result<Removal, Error> {
        let owner = self.coordinator.store.owners().own(run).await?;
        // Read again: it may have been resumed since the plan was made.
        if !self.coordinator.tasks().has_ended(run)? {
            return Ok(Removal::Kept("its run has been resumed".to_owned()));
        }
        let left = LeftWorktree::of(self.coordinator, run)?;
        let Some(tree) = left.state.worktrees.get(&entry.name).cloned() else {
            return Ok(Removal::Removed);
        };
        let change_to =
            |state, detail: Option<String>| WorktreeChanged { state, detail, ..tree.clone() };
        // One that nobody has worked in is undone as what it is.
        if tree.state != WorktreeState::Adding {
            self.record_change(&owner, change_to(WorktreeState::Removing, None)).await?;
        }
        let (fate, wanted) = (entry.fate, tree.clone());
        let work = move || left.remove(&wanted, fate);
        let removal = match tokio::task::spawn_blocking(work).await {
            Ok(Ok(removal)) => removal,
            Ok(Err(error)) => Removal::Kept(error.to_string()),
            Err(error) => return Err(Error::Job(error.to_string())),
        };
        let end = match (&removal, fate) {
            (Removal::Kept(why), _) => change_to(WorktreeState::Kept, Some(why.clone())),
            (Removal::Removed, Fate::Save) => {
                let detail = format!("its work is on branch `{}`", tree.branch);
                change_to(WorktreeState::Removed, Some(detail))
            }
            (Removal::Removed, Fate::Remove | Fate::Keep) => {
                change_to(WorktreeState::Removed, None)
            }
        };
        self.record_change(&owner, end).await?;
        Ok(removal)
    }

    async fn record_change(self, owner: &Owner, tree: WorktreeChanged) -> Result<(), Error> {
        let event = Event::WorktreeChanged(Box::new(tree));
        owner.append(self.coordinator.now(), vec![event], Level::Synced).await?;
        Ok(())
    }

    /// Directories where worktrees are, that no run knows.
    fn unknown(self, known: &BTreeSet<PathBuf>) -> Vec<Prunable> {
        let places = worktrees_beside(self.coordinator.store.dir().root());
        let mut found: Vec<PathBuf> = entries(&places)
            .flat_map(|repository| entries(&repository).collect::<Vec<_>>())
            .filter(|path| !known.contains(path))
            .collect();
        found.sort();
        let entry = |path: PathBuf| Prunable {
            run: None,
            workflow: None,
            name: String::new(),
            branch: None,
            fate: Fate::Keep,
            why: "no run knows it; `git worktree remove` removes it".to_owned(),
            path,
        };
        found.into_iter().map(entry).collect()
    }
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let found = std::fs::read_dir(directory).into_iter().flatten().flatten();
    found.map(|entry| entry.path()).filter(|path| path.is_dir())
}

impl LeftWorktree {
    fn of(coordinator: &Coordinator, run: TaskId) -> Result<Self, Error> {
        let records = coordinator.journals().of(run)?;
        let directory = directory_of(&records).ok_or(Error::NotARun { task: run })?;
        let state = RunState::fold(records.iter().map(|record| &record.event));
        Ok(Self { run, directory, state })
    }

    fn entry(&self, workflow: &str, tree: &WorktreeChanged, fate: Fate, why: String) -> Prunable {
        Prunable {
            run: Some(self.run),
            workflow: Some(workflow.to_owned()),
            name: tree.name.clone(),
            path: PathBuf::from(&tree.path),
            branch: Some(tree.branch.clone()),
            fate,
            why,
        }
    }

    /// What would become of a worktree of a run that has ended.
    fn judge(&self, tree: &WorktreeChanged, work: OwnWork) -> (Fate, String) {
        if tree.kind == WorktreeKind::Command {
            let why = "a command of its workflow made it, and only a person can say what it holds";
            return (Fate::Keep, why.to_owned());
        }
        let judged = Git::open(&self.directory).and_then(|git| {
            if tree.state == WorktreeState::Adding {
                return Ok((Fate::Remove, "nobody has worked in it".to_owned()));
            }
            let merged = self.state.merged_heads(&tree.branch);
            if let Some(why) = worktree::what_would_be_lost(&git, tree, &merged)? {
                let can_be_saved = work == OwnWork::IsSaved && worktree::can_be_saved(&git, tree)?;
                return Ok((if can_be_saved { Fate::Save } else { Fate::Keep }, why));
            }
            let head = git.commit(&format!("refs/heads/{}", tree.branch))?;
            Ok(match head.is_none_or(|head| head == tree.base) {
                true => (Fate::Remove, "nothing was committed in it".to_owned()),
                false => (Fate::Remove, "its work is merged".to_owned()),
            })
        });
        judged.unwrap_or_else(|error: GitError| (Fate::Keep, error.to_string()))
    }

    fn remove(&self, tree: &WorktreeChanged, fate: Fate) -> Result<Removal, GitError> {
        let git = Git::open(&self.directory)?;
        worktree::remove_scratch(&git, &worktree::scratch_of(&tree.path))?;
        match (tree.state, fate) {
            (WorktreeState::Adding, _) => {
                worktree::undo_add(&git, tree)?;
                Ok(Removal::Removed)
            }
            (_, Fate::Save) => worktree::save(&git, tree),
            (_, Fate::Remove | Fate::Keep) => {
                worktree::remove(&git, tree, &self.state.merged_heads(&tree.branch))
            }
        }
    }
}

fn directory_of(records: &[Record]) -> Option<PathBuf> {
    Some(PathBuf::from(&records.first()?.event.created()?.workspace))
}
