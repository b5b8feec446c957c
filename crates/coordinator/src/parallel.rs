//! Workers side by side: lists of tasks in their own worktrees, what each worker does and will edit, and one prompt
//! given to several runners so that a person can choose a result.
//!
//! Invariant: such a run is a workflow that was made for it. Nothing here drives a task by itself.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use windlass_core::event::{Event, WorkflowPart};
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;
use windlass_core::text::{one_line, prefix};
use windlass_store::{CLAIM_HOLDS, TaskRow};
use windlass_workflow::changes::LARGE_FILES;
use windlass_workflow::definition::WorkKind;
use windlass_workflow::git::Git;
use windlass_workflow::parallel::SIDE_BY_SIDE;
pub use windlass_workflow::parallel::{Attempts, MAX_WORKERS, TRIES, WORKERS, WorkerList};

use crate::workflows::{AttemptStatus, NewRun, StepView};
use crate::{Coordinator, Error};

/// How often a process says that the workers it drives are alive; a claim outlives several missed ones.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How wide a worker's goal is in lists.
const GOAL_CHARS: usize = 60;

/// How much of a difference is shown; `git diff` has the whole.
const MAX_DIFF_BYTES: usize = 256 * 1024;

/// Workers and tries.
#[derive(Clone, Copy)]
pub struct Parallel<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

/// What is to be done side by side.
#[derive(Clone, Debug)]
pub enum SideBySide {
    Crew(WorkerList),
    Tries(Attempts),
}

/// A worker in its worktree (MS-143, MS-144, MS-147).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkerView {
    pub task: TaskId,
    /// The run that it belongs to.
    pub run: TaskId,
    pub step: Option<String>,
    /// Who works: our own loop, or another program.
    pub runner: String,
    pub goal: String,
    pub status: TaskStatus,
    /// What it does now, where its runner says so.
    pub activity: Option<String>,
    pub worktree_path: String,
    pub process_pid: u32,
    pub last_heartbeat_at: Timestamp,
    /// Whether a process works on it that has sent a heartbeat in the last 90 seconds.
    pub alive: bool,
    /// What it will edit, the latest last.
    pub claims: Vec<String>,
    /// `None` where its runner does not say it.
    pub cost_usd: Option<f64>,
}

impl WorkerView {
    /// When it last sent a heartbeat, and whether that is too long ago.
    pub fn heartbeat(&self) -> String {
        let at = self.last_heartbeat_at.strftime("%H:%M:%S");
        if self.alive { at.to_string() } else { format!("{at} (silent)") }
    }
}

/// What one runner made of the prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TryView {
    pub name: String,
    pub task: Option<TaskId>,
    pub status: AttemptStatus,
    pub summary: String,
    pub error: Option<String>,
    pub branch: Option<String>,
    pub changed_files: Vec<String>,
    /// What it changed, as a unified diff.
    pub diff: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// `None` where its runner does not say it.
    pub cost_usd: Option<f64>,
    pub checks: Vec<CheckView>,
}

/// How a check ended in a try's worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckView {
    pub name: String,
    pub status: AttemptStatus,
    pub output: String,
}

impl Parallel<'_> {
    /// Makes the run. It is durable when this returns; whoever drives the task works on it.
    pub async fn start(self, what: SideBySide, run: NewRun) -> Result<TaskId, Error> {
        let source = match &what {
            SideBySide::Crew(crew) => crew.source(),
            SideBySide::Tries(tries) => tries.source(),
        };
        let source = source.map_err(|unusable| Error::Workflow(unusable.to_string()))?;
        self.coordinator.workflows().start_made(source, run).await
    }

    /// Everybody who works in a worktree now, the oldest first.
    pub fn workers(self) -> Result<Vec<WorkerView>, Error> {
        let store = &self.coordinator.store;
        let now = self.coordinator.now();
        let mut workers = Vec::new();
        for (task, runtime) in store.owners().runtime().workers()? {
            let Some(row) = store.tasks().get(task)? else { continue };
            let Some(worktree_path) = runtime.worktree_path else { continue };
            let (mut step, mut runner, mut activity) = (None, "windlass".to_owned(), None);
            for record in store.journal().of(task)? {
                match record.event {
                    Event::TaskCreated(created) => match created.workflow.map(|part| *part) {
                        Some(WorkflowPart::Program { step: at, runner: by, .. }) => {
                            (step, runner) = (Some(at), by);
                        }
                        Some(WorkflowPart::Agent { step: at, .. }) => step = Some(at),
                        Some(WorkflowPart::Script(script)) => step = Some(script.step),
                        Some(WorkflowPart::Run(_)) | None => {}
                    },
                    Event::RunnerReported(reported) => activity = reported.activity.or(activity),
                    _ => {}
                }
            }
            let beat = runtime.last_heartbeat_at;
            workers.push(WorkerView {
                task,
                run: row.root_id,
                step,
                runner,
                goal: one_line(&row.goal, GOAL_CHARS),
                status: row.status,
                activity,
                claims: store
                    .tasks()
                    .claims()
                    .of_task(task)?
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
                worktree_path,
                process_pid: runtime.process_pid,
                last_heartbeat_at: beat,
                // One whose process has died has a while before its claims are free.
                alive: now.duration_since(beat) <= CLAIM_HOLDS
                    && self.coordinator.tasks().driving_process(row.root_id)?.is_some(),
                cost_usd: self.known_cost(&row)?,
            });
        }
        Ok(workers)
    }

    /// What each runner made of the prompt of a run, side by side.
    pub fn results(self, run: TaskId) -> Result<Vec<TryView>, Error> {
        let view = self.coordinator.workflows().status(run)?;
        let within = format!("{SIDE_BY_SIDE}.");
        let mut tries: Vec<TryView> = Vec::new();
        for step in view.steps.iter().filter(|step| step.kind == Some(WorkKind::Agent)) {
            let Some(inner) = step.step.strip_prefix(&within) else { continue };
            let name = inner.split(['[', '.']).next().unwrap_or(inner).to_owned();
            let tree = view.worktrees.iter().find(|tree| tree.name == name);
            let diff = match tree {
                Some(tree) => difference(&tree.path, &tree.base, &tree.branch),
                None => String::new(),
            };
            let row = match step.task {
                Some(task) => self.coordinator.store.tasks().get(task)?,
                None => None,
            };
            let usage = row.as_ref().map(|row| row.usage).unwrap_or_default();
            let is_check = |other: &&StepView| {
                other.kind == Some(WorkKind::Script)
                    && other.step.starts_with(&format!("{within}{name}["))
            };
            let text = |field: &str| step.output[field].as_str().unwrap_or_default().to_owned();
            let files = step.output["changed_files"].as_array().into_iter().flatten();
            tries.retain(|earlier| earlier.name != name);
            tries.push(TryView {
                task: step.task,
                status: step.status,
                summary: text("summary"),
                error: step.error.clone(),
                branch: tree.map(|tree| tree.branch.clone()),
                changed_files: files.filter_map(|file| file.as_str().map(str::to_owned)).collect(),
                diff,
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cost_usd: row.map(|row| self.known_cost(&row)).transpose()?.flatten(),
                checks: view.steps.iter().filter(is_check).map(check).collect(),
                name,
            });
        }
        Ok(tries)
    }

    fn known_cost(self, row: &TaskRow) -> Result<Option<f64>, Error> {
        let is_priced = self.coordinator.store.tasks().is_priced(row.id)?;
        Ok(is_priced.then_some(row.cost_spent))
    }

    /// Says again and again that the workers of this process are alive; never returns.
    pub(crate) async fn send_heartbeats(self) -> std::convert::Infallible {
        let pid = std::process::id();
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            let beaten =
                self.coordinator.store.owners().runtime().beat_workers(pid, self.coordinator.now());
            if let Err(error) = beaten.await {
                tracing::warn!(%error, "the workers' heartbeat could not be written");
            }
        }
    }
}

fn check(step: &StepView) -> CheckView {
    let name = step.step.rsplit('.').next().unwrap_or(&step.step).to_owned();
    let output = step.output["output"].as_str().unwrap_or_default().to_owned();
    CheckView { name, status: step.status, output }
}

/// What a branch changed since its base; empty where git cannot say.
fn difference(path: &str, base: &str, branch: &str) -> String {
    let plain = ["-c", LARGE_FILES, "diff", "--no-color", "--no-ext-diff", "--no-textconv"];
    let wanted = plain.into_iter().chain(["--end-of-options", base, branch]);
    let diff = Git::open(Path::new(path)).and_then(|git| git.run(wanted)).unwrap_or_default();
    prefix(&diff, MAX_DIFF_BYTES).to_owned()
}
