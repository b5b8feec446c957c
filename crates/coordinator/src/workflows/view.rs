//! What a surface shows of a run.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;
use windlass_core::event::{
    Event, MergeChanged, MergeState, Record, StepResult, WorkflowPart, WorkflowSource,
    WorktreeChanged, WorktreeKind,
};
use windlass_core::id::TaskId;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_core::string_enum;
use windlass_store::ListPlace;
use windlass_workflow::RunState;
use windlass_workflow::definition::{WorkKind, Workflow};
use windlass_workflow::git::Git;
use windlass_workflow::runner::Activity;
use windlass_workflow::state::name_of;

use super::{Standing, Workflows};
use crate::Error;
use crate::parallel::WorkerView;

string_enum! {
    /// Where an attempt at a step stands.
    AttemptStatus ("status of a step") {
        Running = "running",
        Succeeded = "succeeded",
        Failed = "failed",
        Skipped = "skipped",
        /// Its process died or its run was parked, and a later attempt has begun.
        Interrupted = "interrupted",
        /// It never will end, because its run has.
        Stopped = "stopped",
    }
}

impl From<StepResult> for AttemptStatus {
    fn from(result: StepResult) -> Self {
        match result {
            StepResult::Succeeded => Self::Succeeded,
            StepResult::Failed => Self::Failed,
            StepResult::Skipped => Self::Skipped,
        }
    }
}

/// A run in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunRow {
    pub run: TaskId,
    pub workflow: String,
    pub status: TaskStatus,
    pub standing: Standing,
    /// The step that began last.
    pub step: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Everything about one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunView {
    pub run: TaskId,
    pub workflow: String,
    pub title: String,
    pub status: TaskStatus,
    pub reason: StatusReason,
    pub detail: Option<String>,
    pub standing: Standing,
    /// What is done for it now: that it merges, or what a worker of it does.
    pub activity: Option<String>,
    /// In the order in which they began.
    pub steps: Vec<StepView>,
    pub worktrees: Vec<WorktreeView>,
    pub merges: Vec<MergeView>,
    /// The pull requests that it has opened, or found open, for its branches.
    pub pull_requests: Vec<String>,
    /// Who works for it now, with heartbeats and claims.
    pub workers: Vec<WorkerView>,
}

impl RunView {
    /// Where an attempt stands, in a word for people: one that has begun and not ended stands as its run does.
    pub fn attempt_word(&self, step: &StepView) -> &'static str {
        match (step.status, self.word_at_rest()) {
            (AttemptStatus::Running, Some(word)) => word,
            (status, _) => status.as_str(),
        }
    }

    /// The same of a merge.
    pub fn merge_word<'m>(&self, merge: &'m MergeView) -> &'m str {
        match self.word_at_rest().filter(|_| merge.state == MergeState::Moving.as_str()) {
            Some(word) => word,
            None => &merge.state,
        }
    }

    /// What stands still with the run; `None` where it works.
    const fn word_at_rest(&self) -> Option<&'static str> {
        match self.standing {
            Standing::Waiting | Standing::Paused | Standing::Stalled | Standing::Queued => {
                Some(self.standing.words())
            }
            Standing::Working | Standing::LeftOver | Standing::Ended => None,
        }
    }
}

/// One attempt at a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepView {
    pub step: String,
    /// None where nothing says it; an empty word on the wire.
    #[serde(rename = "type", serialize_with = "write_kind")]
    pub kind: Option<WorkKind>,
    pub attempt: u32,
    /// The task that works on it.
    pub task: Option<TaskId>,
    pub status: AttemptStatus,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// What later steps find under its name.
    pub output: Value,
    pub error: Option<String>,
    /// The git ref of its task's last checkpoint.
    pub checkpoint_ref: Option<String>,
}

impl StepView {
    /// The word for its type; empty where nothing says it.
    pub fn kind_word(&self) -> &'static str {
        self.kind.map_or("", WorkKind::as_str)
    }
}

fn write_kind<S: Serializer>(kind: &Option<WorkKind>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.map_or("", WorkKind::as_str))
}

/// A worktree of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorktreeView {
    pub name: String,
    pub state: String,
    /// `single`, `warm` for one that runs take turns in, `command` where a command of the workflow has made it.
    pub kind: WorktreeKind,
    pub standing: Standing,
    pub path: String,
    pub branch: String,
    pub base: String,
    /// The directories that are in it; all where none is named.
    pub sparse: Vec<String>,
    pub port: Option<u16>,
    pub detail: Option<String>,
}

/// A merge of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MergeView {
    pub step: String,
    pub state: String,
    pub branch: String,
    pub target: String,
    pub commit: Option<String>,
    /// The files in conflict.
    pub files: Vec<String>,
}

impl Workflows<'_> {
    /// Runs, the newest first.
    pub fn runs(self, limit: u32) -> Result<Vec<RunRow>, Error> {
        self.runs_after(None, limit)
    }

    /// The same, beginning after a place in that order.
    pub fn runs_after(self, place: Option<ListPlace>, limit: u32) -> Result<Vec<RunRow>, Error> {
        self.runs_of(None, place, limit)
    }

    /// The same: those of a user, or everybody's.
    pub fn runs_of(
        self,
        user: Option<&str>,
        place: Option<ListPlace>,
        limit: u32,
    ) -> Result<Vec<RunRow>, Error> {
        let workers = self.coordinator.parallel().workers()?;
        let mut runs = Vec::new();
        for row in self.coordinator.store.tasks().workflow_runs_after(user, place, limit)? {
            let Some(task) = self.coordinator.tasks().get(row.task)? else { continue };
            let trees = match row.status.is_terminal() {
                true => self.coordinator.journals().of(row.task)?,
                // Only of one that has ended it matters what is left of it.
                false => Vec::new(),
            };
            let state = RunState::fold(trees.iter().map(|record| &record.event));
            let trees = state.worktrees.values();
            runs.push(RunRow {
                run: row.task,
                workflow: row.workflow,
                status: row.status,
                standing: Standing::of_run(self.coordinator, &task, trees, &workers)?,
                step: row.step,
                created_at: row.created_at,
                updated_at: row.updated_at,
            });
        }
        Ok(runs)
    }

    /// A run by its id, by the end of it, or the newest one of a workflow in the project of a directory: two projects
    /// may have workflows of one name.
    pub fn find(self, text: &str, directory: &Path) -> Result<TaskId, Error> {
        let rows = self.coordinator.store.tasks().workflow_runs(u32::MAX)?;
        let mut elsewhere = None;
        let here = self.project(directory);
        for row in rows.iter().filter(|row| row.workflow == text) {
            let Some(task) = self.coordinator.tasks().get(row.task)? else { continue };
            if self.project(Path::new(&task.workspace)) == here {
                return Ok(row.task);
            }
            elsewhere.get_or_insert((row.task, task.workspace));
        }
        if let Some((run, directory)) = elsewhere {
            return Err(Error::RunElsewhere { workflow: text.to_owned(), run, directory });
        }
        let found = self.coordinator.tasks().find(text).map_err(|error| match error {
            Error::Store(windlass_store::Error::UnknownTask(_)) => {
                Error::UnknownRun(text.to_owned())
            }
            other => other,
        })?;
        let task = self.coordinator.tasks().root(found)?;
        match rows.iter().any(|row| row.task == task) {
            true => Ok(task),
            false => Err(Error::NotARun { task }),
        }
    }

    /// What the runs of a project have in common: the repository, or the directory with the workflows.
    fn project(self, directory: &Path) -> PathBuf {
        let place = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        match Git::open(&place) {
            Ok(git) => git.common().to_owned(),
            Err(_) => self.files(&place).root().to_owned(),
        }
    }

    /// Everything about one run.
    pub fn status(self, run: TaskId) -> Result<RunView, Error> {
        let records = self.coordinator.journals().of(run)?;
        let source = source_of(&records).ok_or(Error::NotARun { task: run })?;
        let state = RunState::fold(records.iter().map(|record| &record.event));
        let row = self.coordinator.tasks().get(run)?.ok_or(Error::NotARun { task: run })?;
        let mut steps = steps(&records);
        name_kinds(&mut steps, source);
        if row.status.is_terminal() {
            stop(&mut steps, &records);
        }
        for step in &mut steps {
            let task = step.task.map(|task| self.coordinator.tasks().get(task)).transpose()?;
            step.checkpoint_ref = task.flatten().and_then(|task| task.checkpoint_ref);
        }
        let workers = self.coordinator.parallel().workers()?;
        let trees = state.worktrees.values();
        let standing = Standing::of_run(self.coordinator, &row, trees.clone(), &workers)?;
        let is_merging = |step: &StepView| {
            step.kind == Some(WorkKind::Merge) && step.status == AttemptStatus::Running
        };
        let activity = match steps.iter().any(is_merging) {
            true => Some(Activity::Merging.to_string()),
            false => {
                workers.iter().filter(|one| one.run == run).find_map(|one| one.activity.clone())
            }
        };
        let links = steps.iter().filter(|step| step.kind == Some(WorkKind::PullRequest));
        let links = links.filter_map(|step| step.output["url"].as_str().map(str::to_owned));
        let pull_requests = links.collect();
        Ok(RunView {
            pull_requests,
            standing,
            activity: activity.filter(|_| standing == Standing::Working),
            worktrees: trees
                .map(|tree| worktree(tree, standing.of_worktree(tree, &workers)))
                .collect(),
            workers: workers.into_iter().filter(|worker| worker.run == run).collect(),
            run,
            workflow: source.name.clone(),
            title: source.title.clone(),
            status: row.status,
            reason: row.reason,
            detail: row.detail,
            steps,
            merges: state.merges.values().map(merge).collect(),
        })
    }
}

fn source_of(records: &[Record]) -> Option<&WorkflowSource> {
    match records.first()?.event.created()?.workflow.as_deref()? {
        WorkflowPart::Run(source) => Some(source),
        WorkflowPart::Script(_) | WorkflowPart::Agent { .. } | WorkflowPart::Program { .. } => None,
    }
}

fn steps(records: &[Record]) -> Vec<StepView> {
    let mut steps: Vec<StepView> = Vec::new();
    for record in records {
        match &record.event {
            Event::WorkflowStepStarted(started) => {
                interrupt(&mut steps, &started.step);
                steps.push(StepView {
                    step: started.step.clone(),
                    // A program of another version may know more types.
                    kind: started.kind.parse().ok(),
                    attempt: started.attempt,
                    task: started.task,
                    status: AttemptStatus::Running,
                    started_at: Some(record.at),
                    ended_at: None,
                    output: Value::Null,
                    error: None,
                    checkpoint_ref: None,
                });
            }
            Event::WorkflowStepEnded(ended) => {
                let is_it = |step: &&mut StepView| {
                    step.step == ended.step
                        && step.attempt == ended.attempt
                        && step.status == AttemptStatus::Running
                };
                let place = steps.iter_mut().rev().find(is_it);
                let view = StepView {
                    step: ended.step.clone(),
                    kind: place.as_ref().and_then(|step| step.kind),
                    attempt: ended.attempt,
                    task: place.as_ref().and_then(|step| step.task),
                    status: ended.result.into(),
                    started_at: place.as_ref().and_then(|step| step.started_at),
                    ended_at: Some(record.at),
                    output: match ended.result {
                        StepResult::Skipped => Value::Null,
                        StepResult::Succeeded | StepResult::Failed => {
                            windlass_workflow::state::view(ended)
                        }
                    },
                    error: ended.error.clone(),
                    checkpoint_ref: None,
                };
                match place {
                    Some(place) => *place = view,
                    None => steps.push(view),
                }
            }
            _ => {}
        }
    }
    steps
}

/// An attempt that has not ended when the next one begins was interrupted. Nobody knows when.
fn interrupt(steps: &mut [StepView], path: &str) {
    let is_it = |one: &&mut StepView| one.step == path && one.status == AttemptStatus::Running;
    for earlier in steps.iter_mut().filter(is_it) {
        earlier.status = AttemptStatus::Interrupted;
    }
}

/// The types of steps that ended without having begun: those that were skipped, and loops.
fn name_kinds(steps: &mut [StepView], source: &WorkflowSource) {
    let Ok(workflow) = Workflow::read(&source.text, &source.name) else { return };
    let known = workflow.all_steps();
    for step in steps.iter_mut().filter(|step| step.kind.is_none()) {
        let named = known.iter().find(|one| one.name == name_of(&step.step));
        step.kind = named.map(|one| one.work.kind());
    }
}

/// Steps that were at work when their run ended have ended with it.
fn stop(steps: &mut [StepView], records: &[Record]) {
    let moved = |record: &&Record| matches!(record.event, Event::StatusChanged(_));
    let at = records.iter().rfind(moved).map(|record| record.at);
    for step in steps.iter_mut().filter(|step| step.status == AttemptStatus::Running) {
        (step.status, step.ended_at) = (AttemptStatus::Stopped, at);
    }
}

impl WorktreeView {
    /// What is special about it, for people; empty for the usual kind.
    pub fn remarks(&self) -> Vec<String> {
        let kind = match self.kind {
            WorktreeKind::Single => None,
            WorktreeKind::Warm => Some("warm".to_owned()),
            WorktreeKind::Command => Some("made by a command".to_owned()),
        };
        let sparse = (!self.sparse.is_empty()).then(|| format!("only {}", self.sparse.join(", ")));
        kind.into_iter().chain(sparse).collect()
    }
}

fn worktree(tree: &WorktreeChanged, standing: Standing) -> WorktreeView {
    WorktreeView {
        name: tree.name.clone(),
        state: tree.state.to_string(),
        standing,
        path: tree.path.clone(),
        branch: tree.branch.clone(),
        base: tree.base.clone(),
        kind: tree.kind,
        sparse: tree.sparse.clone(),
        port: tree.port,
        detail: tree.detail.clone(),
    }
}

fn merge(merge: &MergeChanged) -> MergeView {
    MergeView {
        step: merge.step.clone(),
        state: merge.state.to_string(),
        branch: merge.branch.clone(),
        target: merge.target.clone(),
        commit: (!merge.new.is_empty()).then(|| merge.new.clone()),
        files: merge.files.clone(),
    }
}
