//! Workers side by side: starting them, where each works, and what several runners made of one prompt.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::parallel::{
    Attempts, CheckView, SideBySide, TryView, WorkerList, WorkerView,
};
use windlass_core::id::TaskId;

use super::answers::{ChangeRefused, ReadRefused};
use super::once::{Change, Once};
use super::owned;
use super::workflows::{RunOptions, StartedRun};
use crate::auth::User;
use crate::extract::Id;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(workers, start_workers))
        .routes(routes!(start_tries))
        .routes(routes!(results))
}

/// Who works in worktrees now.
#[derive(Serialize, ToSchema)]
struct Workers {
    workers: Vec<Worker>,
}

/// A worker in its worktree.
#[derive(Serialize, ToSchema)]
pub(super) struct Worker {
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
    /// Whether it has sent a heartbeat in the last 90 seconds.
    alive: bool,
    /// What it will edit.
    claims: Vec<String>,
    /// `null` where its runner does not say it.
    cost_usd: Option<f64>,
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
    /// `null` where its runner does not say it.
    cost_usd: Option<f64>,
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
        Self { name: view.name, status: view.status.to_string(), output: view.output }
    }
}

impl From<TryView> for Try {
    fn from(view: TryView) -> Self {
        Self {
            name: view.name,
            task_id: view.task.map(|task| task.to_string()),
            status: view.status.to_string(),
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

/// Tasks for several workers.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WantedWorkers {
    /// What is to be done, a prompt each.
    #[schema(min_items = 1)]
    tasks: Vec<String>,
    /// How many work at once, 1 to 64.
    #[serde(default = "usual_workers")]
    #[schema(minimum = 1, maximum = 64, default = 3)]
    workers: u32,
    /// Who works: `windlass`, `claude`, `codex`, or a name of `[runners]`.
    #[serde(default = "own_runner")]
    #[schema(default = "windlass")]
    runner: String,
    /// Commands that must succeed on what is merged.
    #[serde(default)]
    gates: Vec<String>,
    /// Whether what they did is merged; else it stays in their worktrees.
    #[serde(default = "yes")]
    #[schema(default = true)]
    merge: bool,
    /// A directory of the project, on the server's machine. Only an admin chooses.
    directory: String,
    /// The model of our own workers.
    model: Option<String>,
    /// What it may cost in US dollars; the configured budget without.
    #[schema(exclusive_minimum = 0.0, maximum = 1_000_000.0)]
    budget_usd: Option<f64>,
    /// `restricted`, `normal`, `trusted` or `unrestricted`; the configured profile without.
    permission_profile: Option<String>,
}

const fn usual_workers() -> u32 {
    3
}

fn own_runner() -> String {
    "windlass".to_owned()
}

const fn yes() -> bool {
    true
}

/// One prompt for several runners.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WantedTries {
    /// What is to be done.
    prompt: String,
    /// At least two: `windlass`, `claude`, `codex`, or a name of `[runners]`.
    #[schema(min_items = 2)]
    runners: Vec<String>,
    /// Commands that are run in each worktree afterwards.
    #[serde(default)]
    checks: Vec<String>,
    /// A directory of the project, on the server's machine. Only an admin chooses.
    directory: String,
    /// The model of our own runner.
    model: Option<String>,
    /// What it may cost in US dollars; the configured budget without.
    #[schema(exclusive_minimum = 0.0, maximum = 1_000_000.0)]
    budget_usd: Option<f64>,
    /// `restricted`, `normal`, `trusted` or `unrestricted`; the configured profile without.
    permission_profile: Option<String>,
}

/// Starts a run of either kind; the service works on it.
async fn start(
    state: &AppState,
    user: User,
    once: &Once,
    what: SideBySide,
    options: RunOptions,
) -> Result<Response, Problem> {
    let run = options.check(state, user)?;
    let make = async {
        let run_id = state.coordinator.parallel().start(what, run).await?;
        Ok(StartedRun { run_id: run_id.to_string() })
    };
    once.created(state, make).await
}

/// Work on a list of tasks, several at once, each in a worktree of its own
#[utoipa::path(
    post, path = "/v1/parallel", operation_id = "start_workers", tag = "parallel", request_body = WantedWorkers,
    params(("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "The run", body = StartedRun), ReadRefused, ChangeRefused)
)]
async fn start_workers(
    State(state): State<AppState>,
    user: User,
    Change { once, body: wanted }: Change<WantedWorkers>,
) -> Result<Response, Problem> {
    let WantedWorkers {
        tasks,
        workers,
        runner,
        gates,
        merge,
        directory,
        model,
        budget_usd,
        permission_profile,
    } = wanted;
    let options = RunOptions { directory, model, budget_usd, permission_profile };
    let crew = SideBySide::Crew(WorkerList { tasks, workers, runner, gates, merge });
    start(&state, user, &once, crew, options).await
}

/// Give one prompt to several runners; which result is taken is then a question
#[utoipa::path(
    post, path = "/v1/parallel/tries", operation_id = "start_tries", tag = "parallel", request_body = WantedTries,
    params(("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "The run", body = StartedRun), ReadRefused, ChangeRefused)
)]
async fn start_tries(
    State(state): State<AppState>,
    user: User,
    Change { once, body: wanted }: Change<WantedTries>,
) -> Result<Response, Problem> {
    let WantedTries { prompt, runners, checks, directory, model, budget_usd, permission_profile } =
        wanted;
    let options = RunOptions { directory, model, budget_usd, permission_profile };
    let tries = SideBySide::Tries(Attempts { prompt, runners, checks });
    start(&state, user, &once, tries, options).await
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
