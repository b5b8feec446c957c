//! Workflows and their runs. A run is a task: it is paused, resumed and cancelled as one.

mod worktrees;

use std::collections::BTreeMap;
use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::workflows::{MergeView, NewRun, RunRow, RunView, StepView, WorkflowView};
use windlass_core::command::ExecutionConfig;
use windlass_core::event::Driver;
use windlass_core::id::TaskId;

use super::answers::{ChangeRefused, ReadRefused};
use super::once::Change;
use super::owned;
use super::tasks::{invalid, workspace};
use crate::auth::User;
use crate::extract::{Id, Params};
use crate::problem::Problem;
use crate::state::AppState;

/// How many runs a list has.
const RUNS: u32 = 100;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(list_runs, start))
        .routes(routes!(get_run))
        .merge(worktrees::routes())
}

/// Where the workflows are.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DirectoryQuery {
    /// A directory of the project, on the server's machine. Only an admin chooses.
    directory: String,
}

/// A workflow file.
#[derive(Serialize, ToSchema)]
struct WorkflowEntry {
    name: String,
    path: String,
    description: String,
    /// The names of its steps, the outer before the inner.
    steps: Vec<String>,
    required_inputs: Vec<String>,
    /// Whether a person has approved its commands, or it has none.
    approved: bool,
    /// What is wrong with it.
    error: Option<String>,
}

impl From<WorkflowView> for WorkflowEntry {
    fn from(view: WorkflowView) -> Self {
        Self {
            name: view.name,
            path: view.path.display().to_string(),
            description: view.description,
            steps: view.steps.into_iter().map(|(name, _)| name).collect(),
            required_inputs: view.required_inputs,
            approved: view.approved,
            error: view.error,
        }
    }
}

#[derive(Serialize, ToSchema)]
struct WorkflowList {
    workflows: Vec<WorkflowEntry>,
}

/// List the workflows of a project
#[utoipa::path(get, path = "/v1/workflows", operation_id = "list_workflows", tag = "workflows", params(DirectoryQuery),
    responses((status = 200, description = "Workflows", body = WorkflowList), ReadRefused))]
async fn list(
    State(state): State<AppState>,
    user: User,
    Params(place): Params<DirectoryQuery>,
) -> Result<Json<WorkflowList>, Problem> {
    // What is wrong with a parameter is a bad request, not a bad body.
    let in_query = |problem: Problem| match problem.code() {
        StatusCode::UNPROCESSABLE_ENTITY => Problem::bad_request(problem.detail),
        _ => problem,
    };
    let directory = workspace(&state, &user, &place.directory).map_err(in_query)?;
    let found = state.read(move |coordinator| Ok(coordinator.workflows().list(&directory))).await?;
    Ok(Json(WorkflowList { workflows: found.into_iter().map(WorkflowEntry::from).collect() }))
}

/// A run in a list.
#[derive(Serialize, ToSchema)]
struct RunEntry {
    /// The run's task.
    run_id: String,
    workflow: String,
    status: String,
    /// `working`, `queued`, `waiting`, `paused`, `stalled`, `left_over` (ended, with a worktree that is still there) or
    /// `ended`.
    standing: String,
    /// The step that began last.
    step: Option<String>,
    created_at: String,
    updated_at: String,
}

impl From<&RunRow> for RunEntry {
    fn from(row: &RunRow) -> Self {
        Self {
            run_id: row.run.to_string(),
            workflow: row.workflow.clone(),
            status: row.status.to_string(),
            standing: row.standing.to_string(),
            step: row.step.clone(),
            created_at: row.created_at.to_string(),
            updated_at: row.updated_at.to_string(),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct RunList {
    runs: Vec<RunEntry>,
}

/// List the runs of workflows that you may see, the newest first
#[utoipa::path(get, path = "/v1/workflows/runs", operation_id = "list_workflow_runs", tag = "workflows",
    responses((status = 200, description = "Runs", body = RunList), ReadRefused))]
async fn list_runs(State(state): State<AppState>, user: User) -> Result<Json<RunList>, Problem> {
    let read = move |coordinator: &windlass_coordinator::Coordinator| {
        let mut seen = Vec::new();
        for row in coordinator.workflows().runs(RUNS)? {
            let origin = coordinator.tasks().origin(row.run)?;
            if origin.is_some_and(|origin| user.may_see(origin.user.as_deref())) {
                seen.push(RunEntry::from(&row));
            }
        }
        Ok(seen)
    };
    Ok(Json(RunList { runs: state.read(read).await? }))
}

/// A run to be started.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WantedRun {
    /// The workflow's name.
    workflow: String,
    /// What it is for; `{{.bead.title}}` in templates.
    #[serde(default)]
    title: String,
    /// Values of its inputs, by name.
    #[serde(default)]
    inputs: BTreeMap<String, String>,
    /// A directory of the project, on the server's machine. Only an admin chooses.
    directory: String,
    /// The model of steps that name none.
    model: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct StartedRun {
    /// The run's task.
    pub run_id: String,
}

/// Run a workflow
#[utoipa::path(post, path = "/v1/workflows/runs", operation_id = "start_workflow_run", tag = "workflows", request_body = WantedRun,
    params(("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "The run", body = StartedRun), ReadRefused, ChangeRefused))]
async fn start(
    State(state): State<AppState>,
    user: User,
    Change { once, body: wanted }: Change<WantedRun>,
) -> Result<Response, Problem> {
    if wanted.workflow.contains('/') {
        return Err(invalid("`workflow` is a name, not a path"));
    }
    let directory: PathBuf = workspace(&state, &user, &wanted.directory)?;
    let run = NewRun {
        workflow: wanted.workflow,
        title: wanted.title,
        inputs: wanted.inputs,
        directory,
        axes: state.coordinator.tasks().default_options().axes,
        execution_config: ExecutionConfig { model: wanted.model, ..ExecutionConfig::default() },
        driver: Driver::Service,
        user_id: Some(user.name),
        cost_budget: None,
        session: None,
    };
    let make = async {
        let run_id = state.coordinator.workflows().start(run).await?;
        Ok(StartedRun { run_id: run_id.to_string() })
    };
    once.created(&state, make).await
}

/// One attempt at a step.
#[derive(Serialize, ToSchema)]
struct StepEntry {
    step: String,
    #[serde(rename = "type")]
    kind: String,
    attempt: u32,
    /// The task that works on it.
    task_id: Option<String>,
    /// `running`, `succeeded`, `failed`, `skipped`, or `stopped` where its run has ended without it.
    status: String,
    started_at: Option<String>,
    ended_at: Option<String>,
    /// What later steps find under its name.
    output: serde_json::Value,
    error: Option<String>,
    /// The git ref of its task's last checkpoint.
    checkpoint_ref: Option<String>,
}

impl From<StepView> for StepEntry {
    fn from(step: StepView) -> Self {
        Self {
            step: step.step,
            kind: step.kind,
            attempt: step.attempt,
            task_id: step.task.map(|task| task.to_string()),
            status: step.status,
            started_at: step.started_at.map(|at| at.to_string()),
            ended_at: step.ended_at.map(|at| at.to_string()),
            output: step.output,
            error: step.error,
            checkpoint_ref: step.checkpoint_ref,
        }
    }
}

/// A worktree of a run.
#[derive(Serialize, ToSchema)]
struct WorktreeEntry {
    name: String,
    state: String,
    /// `single`, `warm` for one that runs take turns in, or `command` where a command of the workflow has made it.
    kind: String,
    /// As that of its run, and `ended` when it is gone.
    standing: String,
    path: String,
    branch: String,
    /// The commit that it began at.
    base: String,
    /// The directories that are in it; all where none is named.
    sparse: Vec<String>,
    port: Option<u16>,
    detail: Option<String>,
}

/// A merge of a run.
#[derive(Serialize, ToSchema)]
struct MergeEntry {
    step: String,
    state: String,
    branch: String,
    target: String,
    /// The commit that the target moved to.
    commit: Option<String>,
    /// The files in conflict.
    files: Vec<String>,
}

impl From<MergeView> for MergeEntry {
    fn from(view: MergeView) -> Self {
        let MergeView { step, state, branch, target, commit, files } = view;
        Self { step, state, branch, target, commit, files }
    }
}

/// Everything about one run.
#[derive(Serialize, ToSchema)]
struct RunDetails {
    run_id: String,
    workflow: String,
    title: String,
    status: String,
    reason: String,
    detail: Option<String>,
    /// As in the list of runs.
    standing: String,
    /// `thinking`, `writing`, `running_command`, `waiting` or `merging`, where it is known.
    activity: Option<String>,
    steps: Vec<StepEntry>,
    worktrees: Vec<WorktreeEntry>,
    merges: Vec<MergeEntry>,
    /// The addresses of pull requests for its branches.
    pull_requests: Vec<String>,
}

impl From<RunView> for RunDetails {
    fn from(view: RunView) -> Self {
        let worktree = |tree: windlass_coordinator::workflows::WorktreeView| WorktreeEntry {
            name: tree.name,
            state: tree.state,
            standing: tree.standing.to_string(),
            path: tree.path,
            branch: tree.branch,
            base: tree.base,
            kind: tree.kind.to_string(),
            sparse: tree.sparse,
            port: tree.port,
            detail: tree.detail,
        };
        Self {
            run_id: view.run.to_string(),
            workflow: view.workflow,
            title: view.title,
            status: view.status.to_string(),
            reason: view.reason.to_string(),
            detail: view.detail,
            standing: view.standing.to_string(),
            activity: view.activity,
            steps: view.steps.into_iter().map(StepEntry::from).collect(),
            worktrees: view.worktrees.into_iter().map(worktree).collect(),
            merges: view.merges.into_iter().map(MergeEntry::from).collect(),
            pull_requests: view.pull_requests,
        }
    }
}

/// Look at a run: its steps, their outputs and its worktrees
#[utoipa::path(get, path = "/v1/workflows/runs/{run_id}", operation_id = "get_workflow_run", tag = "workflows",
    params(("run_id" = String, Path, description = "The run's task")),
    responses((status = 200, description = "The run", body = RunDetails), ReadRefused))]
async fn get_run(
    State(state): State<AppState>,
    user: User,
    Id(run): Id<TaskId>,
) -> Result<Json<RunDetails>, Problem> {
    owned::task(&state, &user, run).await?;
    let view = state.read(move |coordinator| coordinator.workflows().status(run)).await?;
    Ok(Json(RunDetails::from(view)))
}
