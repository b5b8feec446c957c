//! Workflows and their runs. A run is a task: it is paused, resumed and cancelled as one.

mod files;
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
use super::parallel::Worker;
use super::tasks::{NewAxes, check_model, checked_budget, chosen_axes, chosen_model, workspace};
use crate::auth::User;
use crate::extract::{Id, Params};
use crate::place;
use crate::problem::Problem;
use crate::state::AppState;

/// Runs in one answer, when the request does not say.
const USUAL_LIMIT: u32 = 50;

/// Runs in one answer at most.
const MAX_LIMIT: u32 = 200;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(list_runs, start))
        .routes(routes!(get_run))
        .merge(files::routes())
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
    /// Whether a person has approved its commands; true for a workflow without commands.
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
    let directory = directory(&state, &user, &place.directory)?;
    let found = state.read(move |coordinator| Ok(coordinator.workflows().list(&directory))).await?;
    Ok(Json(WorkflowList { workflows: found.into_iter().map(WorkflowEntry::from).collect() }))
}

/// A directory that a parameter names: what is wrong with it is a bad request, not a bad body.
fn directory(state: &AppState, user: &User, path: &str) -> Result<PathBuf, Problem> {
    workspace(state, user, path).map_err(|problem| match problem.code() {
        StatusCode::UNPROCESSABLE_ENTITY => Problem::bad_request(problem.detail),
        _ => problem,
    })
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

/// Which runs are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunQuery {
    /// At most this many.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// `next` of the answer before.
    cursor: Option<String>,
}

/// Runs, the newest first.
#[derive(Serialize, ToSchema)]
struct RunList {
    runs: Vec<RunEntry>,
    /// The cursor to continue with; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List the runs of workflows that you may see, the newest first
#[utoipa::path(get, path = "/v1/workflows/runs", operation_id = "list_workflow_runs", tag = "workflows", params(RunQuery),
    responses((status = 200, description = "Runs", body = RunList), ReadRefused))]
async fn list_runs(
    State(state): State<AppState>,
    user: User,
    Params(query): Params<RunQuery>,
) -> Result<Json<RunList>, Problem> {
    let limit = query.limit.unwrap_or(USUAL_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is from 1 to {MAX_LIMIT}")));
    }
    let after = place::of_cursor(query.cursor.as_deref())?;
    let owner = user.limited_to();
    let read = move |coordinator: &windlass_coordinator::Coordinator| {
        // One more says whether there are more.
        let mut rows = coordinator.workflows().runs_of(owner.as_deref(), after, limit + 1)?;
        let has_more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().filter(|_| has_more).map(place::after_run);
        Ok(RunList { runs: rows.iter().map(RunEntry::from).collect(), next })
    };
    Ok(Json(state.read(read).await?))
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
    /// What it may cost in US dollars; the configured budget without.
    #[schema(exclusive_minimum = 0.0, maximum = 1_000_000.0)]
    budget_usd: Option<f64>,
    /// `restricted`, `normal`, `trusted` or `unrestricted`; the configured profile without.
    permission_profile: Option<String>,
}

/// Where and how a run works, as a request has it.
pub(super) struct RunOptions {
    pub directory: String,
    pub model: Option<String>,
    pub budget_usd: Option<f64>,
    pub permission_profile: Option<String>,
}

impl RunOptions {
    /// A run with these options, checked, which does nothing yet.
    pub(super) fn check(self, state: &AppState, user: User) -> Result<NewRun, Problem> {
        let axes = NewAxes {
            work_mode: None,
            run_control: None,
            permission_profile: self.permission_profile,
            model_mode: None,
        };
        let axes =
            chosen_axes(state, state.coordinator.tasks().default_options().axes, Some(&axes))?;
        let cost_budget = checked_budget(self.budget_usd)?;
        let model = chosen_model(&user, self.model)?;
        let directory = workspace(state, &user, &self.directory)?;
        check_model(state, Some(&directory), model.as_deref())?;
        Ok(NewRun {
            workflow: String::new(),
            title: String::new(),
            inputs: BTreeMap::new(),
            directory,
            axes,
            execution_config: ExecutionConfig { model, ..ExecutionConfig::default() },
            driver: Driver::Service,
            user_id: Some(user.name),
            cost_budget,
            session: None,
        })
    }
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
    files::check_name(&wanted.workflow)?;
    let WantedRun { workflow, title, inputs, directory, model, budget_usd, permission_profile } =
        wanted;
    let options = RunOptions { directory, model, budget_usd, permission_profile };
    let run = NewRun { workflow, title, inputs, ..options.check(&state, user)? };
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
    /// `running`, `succeeded`, `failed`, `skipped`, `interrupted` where its process died or its run was parked and a
    /// later attempt has begun, or `stopped` where its run has ended without it.
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
            kind: step.kind_word().to_owned(),
            step: step.step,
            attempt: step.attempt,
            task_id: step.task.map(|task| task.to_string()),
            status: step.status.to_string(),
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
    /// Who works for it now.
    workers: Vec<Worker>,
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
            workers: view.workers.into_iter().map(Worker::from).collect(),
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
