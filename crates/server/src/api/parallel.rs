//! Workers side by side: who works where, and what several runners made of one prompt.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::parallel::{CheckView, TryView, WorkerView};
use windlass_core::id::TaskId;

use super::answers::ReadRefused;
use super::owned;
use crate::auth::User;
use crate::extract::Id;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(workers)).routes(routes!(results))
}

/// Who works in worktrees now.
#[derive(Serialize, ToSchema)]
struct Workers {
    workers: Vec<Worker>,
}

/// A worker in its worktree.
#[derive(Serialize, ToSchema)]
struct Worker {
    task_id: String,
    /// The run that it belongs to.
    run_id: String,
    step: Option<String>,
    /// `windlass`, or the program that works.
    runner: String,
    goal: String,
    status: String,
    /// `thinking`, `writing`, `running_command`, `waiting`, `merging` or `ended`, where its runner says so.
    activity: Option<String>,
    worktree_path: String,
    process_pid: u32,
    last_heartbeat_at: String,
    /// Whether it has given a sign of life in the last 90 seconds.
    alive: bool,
    /// What it will edit.
    claims: Vec<String>,
    cost_usd: f64,
}

impl From<WorkerView> for Worker {
    fn from(view: WorkerView) -> Self {
        Self {
            task_id: view.task.to_string(),
            run_id: view.run.to_string(),
            step: view.step,
            runner: view.runner,
            goal: view.goal,
            status: view.status.to_string(),
            activity: view.activity,
            worktree_path: view.worktree_path,
            process_pid: view.process_pid,
            last_heartbeat_at: view.last_heartbeat_at.to_string(),
            alive: view.alive,
            claims: view.claims,
            cost_usd: view.cost_usd,
        }
    }
}

/// What several runners made of one prompt.
#[derive(Serialize, ToSchema)]
struct Tries {
    tries: Vec<Try>,
}

/// What one runner made of it.
#[derive(Serialize, ToSchema)]
struct Try {
    name: String,
    task_id: Option<String>,
    /// `running`, `succeeded` or `failed`.
    status: String,
    summary: String,
    error: Option<String>,
    branch: Option<String>,
    changed_files: Vec<String>,
    /// A unified diff; its beginning where it is very long.
    diff: String,
    input_tokens: u64,
    output_tokens: u64,
    cost_usd: f64,
    checks: Vec<Check>,
}

/// A command that was run on it.
#[derive(Serialize, ToSchema)]
struct Check {
    name: String,
    /// `running`, `succeeded` or `failed`.
    status: String,
    output: String,
}

impl From<CheckView> for Check {
    fn from(view: CheckView) -> Self {
        Self { name: view.name, status: view.status, output: view.output }
    }
}

impl From<TryView> for Try {
    fn from(view: TryView) -> Self {
        Self {
            name: view.name,
            task_id: view.task.map(|task| task.to_string()),
            status: view.status,
            summary: view.summary,
            error: view.error,
            branch: view.branch,
            changed_files: view.changed_files,
            diff: view.diff,
            input_tokens: view.input_tokens,
            output_tokens: view.output_tokens,
            cost_usd: view.cost_usd,
            checks: view.checks.into_iter().map(Check::from).collect(),
        }
    }
}

/// Who works in worktrees now
#[utoipa::path(
    get, path = "/v1/parallel", operation_id = "list_workers", tag = "parallel",
    responses((status = 200, description = "The workers, the oldest first", body = Workers), ReadRefused)
)]
async fn workers(State(state): State<AppState>, user: User) -> Result<Json<Workers>, Problem> {
    let read = move |coordinator: &windlass_coordinator::Coordinator| {
        let mut seen = Vec::new();
        for worker in coordinator.parallel().workers()? {
            let origin = coordinator.tasks().origin(worker.run)?;
            if origin.is_some_and(|origin| user.may_see(origin.user.as_deref())) {
                seen.push(Worker::from(worker));
            }
        }
        Ok(seen)
    };
    Ok(Json(Workers { workers: state.read(read).await? }))
}

/// What several runners made of one prompt
#[utoipa::path(
    get, path = "/v1/parallel/{run_id}/results", operation_id = "get_tries", tag = "parallel",
    params(("run_id" = String, Path, description = "The run")),
    responses((status = 200, description = "One entry for each runner", body = Tries), ReadRefused)
)]
async fn results(
    State(state): State<AppState>,
    user: User,
    Id(run): Id<TaskId>,
) -> Result<Json<Tries>, Problem> {
    owned::task(&state, &user, run).await?;
    let tries = state.read(move |coordinator| coordinator.parallel().results(run)).await?;
    Ok(Json(Tries { tries: tries.into_iter().map(Try::from).collect() }))
}
