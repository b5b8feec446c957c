//! Plans: which are activated, and how far they are.

use std::path::{Path, PathBuf};

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::plans::{NewActivation as Activating, PlanRow, PlanRun, PlanStatus};
use windlass_core::axes::{Axes, WorkMode};
use windlass_core::command::ExecutionConfig;
use windlass_core::event::Driver;
use windlass_core::id::{PlanId, SessionId};

use super::answers::{ChangeRefused, ReadRefused};
use super::once::{Change, Once};
use super::owned;
use super::tasks::invalid;
use crate::auth::User;
use crate::extract::Id;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, activate)).routes(routes!(get)).routes(routes!(run))
}

/// A plan and how far it is.
#[derive(Serialize, ToSchema)]
struct PlanEntry {
    plan_id: String,
    /// Its own name.
    name: String,
    title: String,
    /// The directory that it belongs to.
    project: String,
    path: String,
    /// Whether it is the active plan of its project.
    active: bool,
    /// The session of its run, once there is one.
    session_id: Option<String>,
    /// `waiting`, `running`, `blocked`, `failed` or `done`.
    state: String,
    done: usize,
    total: usize,
    open_issues: usize,
    phases: Vec<PhaseEntry>,
}

/// A phase: a milestone of the plan.
#[derive(Serialize, ToSchema)]
struct PhaseEntry {
    id: String,
    title: String,
    state: String,
    done: usize,
    total: usize,
    tasks: Vec<PlanTaskEntry>,
}

/// A task of a plan.
#[derive(Serialize, ToSchema)]
struct PlanTaskEntry {
    id: String,
    title: String,
    agent: Option<String>,
    /// The task of the run, once there is one.
    task_id: Option<String>,
    status: String,
    /// Tasks that must be done first and are not.
    waits_for: Vec<String>,
}

impl From<PlanStatus> for PlanEntry {
    fn from(status: PlanStatus) -> Self {
        let task = |task: windlass_coordinator::plans::PlanTaskStatus| PlanTaskEntry {
            id: task.id,
            title: task.title,
            agent: task.agent,
            task_id: task.task_id.map(|id| id.to_string()),
            status: task.status.to_string(),
            waits_for: task.waits_for,
        };
        let phase = |phase: windlass_coordinator::plans::PhaseStatus| PhaseEntry {
            id: phase.id,
            title: phase.title,
            state: phase.state.as_str().to_owned(),
            done: phase.done,
            total: phase.total,
            tasks: phase.tasks.into_iter().map(task).collect(),
        };
        Self {
            plan_id: status.plan_id.to_string(),
            name: status.name,
            title: status.title,
            project: status.project,
            path: status.path,
            active: status.active,
            session_id: status.session_id.map(|id| id.to_string()),
            state: status.state.as_str().to_owned(),
            done: status.done,
            total: status.total,
            open_issues: status.open_issues,
            phases: status.phases.into_iter().map(phase).collect(),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct PlanList {
    plans: Vec<PlanEntry>,
}

/// A plan that the user may see.
pub(super) async fn find(state: &AppState, user: &User, id: PlanId) -> Result<PlanRow, Problem> {
    let row = state.read(move |coordinator| coordinator.plans().get(id)).await?;
    let row = row.filter(|row| user.may_see(Some(&row.activated_by)));
    row.ok_or_else(|| Problem::not_found("unknown-plan", format!("there is no plan `{id}`")))
}

async fn entry(state: &AppState, row: PlanRow) -> Result<PlanEntry, Problem> {
    let status = state.read(move |coordinator| coordinator.plans().status_of(&row)).await?;
    Ok(PlanEntry::from(status))
}

/// List the plans that were activated and that you may see, the newest first
#[utoipa::path(get, path = "/v1/plans", operation_id = "list_plans", tag = "plans",
    responses((status = 200, description = "Plans", body = PlanList), ReadRefused))]
async fn list(State(state): State<AppState>, user: User) -> Result<Json<PlanList>, Problem> {
    let rows = state.read(|coordinator| coordinator.plans().list()).await?;
    let mut plans = Vec::new();
    for row in rows.into_iter().filter(|row| user.may_see(Some(&row.activated_by))) {
        plans.push(entry(&state, row).await?);
    }
    Ok(Json(PlanList { plans }))
}

/// Look at a plan: its phases, its tasks, and what each waits for
#[utoipa::path(get, path = "/v1/plans/{plan_id}", operation_id = "get_plan", tag = "plans",
    params(("plan_id" = String, Path, description = "The plan")),
    responses((status = 200, description = "The plan", body = PlanEntry), ReadRefused))]
async fn get(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<PlanId>,
) -> Result<Json<PlanEntry>, Problem> {
    let row = find(&state, &user, id).await?;
    Ok(Json(entry(&state, row).await?))
}

/// A plan to activate.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewActivation {
    /// The session in whose directory the plan is.
    session_id: String,
    /// The plan: a name of `.windlass/plans`, or a file of the directory; the only one there is without.
    plan: Option<String>,
    /// Work on its finished tasks once more; without it they stay finished.
    #[serde(default)]
    again: bool,
}

/// What the activation of a plan has loaded.
#[derive(Serialize, ToSchema)]
struct ActivationEntry {
    plan_id: String,
    name: String,
    /// The only skills that its tasks see.
    skills: Vec<String>,
    /// The only MCP servers that its tasks reach.
    mcp_servers: Vec<String>,
    agents: Vec<String>,
    tasks: usize,
}

/// Activate a plan: load exactly the skills and MCP servers that it names
#[utoipa::path(post, path = "/v1/plans", operation_id = "activate_plan", tag = "plans", request_body = NewActivation,
    params(("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "What it loads", body = ActivationEntry), ReadRefused, ChangeRefused))]
async fn activate(
    State(state): State<AppState>,
    user: User,
    Change { once, body: wanted }: Change<NewActivation>,
) -> Result<Response, Problem> {
    let session: SessionId =
        wanted.session_id.parse().map_err(|error| invalid(format!("`session_id`: {error}")))?;
    owned::session(&state, &user, session).await?;
    let directory = state
        .read(move |coordinator| Ok(coordinator.session(session).state()?.created.workspace))
        .await?;
    let directory = directory.map(PathBuf::from);
    let directory = directory.ok_or_else(|| invalid("the session has no directory"))?;
    let named = wanted.plan.as_deref();
    if named.is_some_and(|name| Path::new(name).is_absolute() || name.contains("..")) {
        return Err(invalid("`plan` names a plan of the session's directory"));
    }
    check_takeover(&state, &user, &directory).await?;
    let (directory, again) = (directory.as_path(), wanted.again);
    let new = Activating { directory, named, by: &user.name, reach: user.reach(), again };
    let activate = async {
        let found = state.coordinator.plans().activate(new).await?;
        Ok(ActivationEntry {
            plan_id: found.plan_id.to_string(),
            name: found.name,
            skills: found.skills,
            mcp_servers: found.mcp_servers,
            agents: found.agents,
            tasks: found.tasks,
        })
    };
    once.created(&state, activate).await
}

/// An operator does not replace the plans that others have activated in a directory.
async fn check_takeover(state: &AppState, user: &User, directory: &Path) -> Result<(), Problem> {
    let directory = directory.to_owned();
    let all = state
        .read(move |coordinator| {
            let project = coordinator.plans().project(&directory).display().to_string();
            let all = coordinator.plans().list()?.into_iter();
            Ok(all.filter(|plan| plan.project == project).collect::<Vec<_>>())
        })
        .await?;
    match all.iter().all(|plan| user.may_see(Some(&plan.activated_by))) {
        true => Ok(()),
        false => {
            let detail = "somebody else has activated a plan of this directory";
            Err(Problem::forbidden("not-allowed", detail))
        }
    }
}

/// Work through a plan: its tasks are queued for this service, in the order of what they wait for
#[utoipa::path(post, path = "/v1/plans/{plan_id}/run", operation_id = "run_plan", tag = "plans",
    params(("plan_id" = String, Path, description = "The plan"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The plan", body = PlanEntry), ReadRefused, ChangeRefused))]
async fn run(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<PlanId>,
    once: Once,
) -> Result<Json<Value>, Problem> {
    let row = find(&state, &user, id).await?;
    let profile = state.coordinator.limits().profile;
    let axes = Axes { work_mode: WorkMode::Build, permission_profile: profile, ..Axes::headless() };
    let run = PlanRun {
        axes,
        workspace: PathBuf::from(&row.project),
        by: user.name.clone(),
        reach: user.reach(),
        driver: Driver::Service,
        session: None,
        execution_config: ExecutionConfig::default(),
        cost_budget: None,
    };
    let begin = async { Ok(PlanEntry::from(state.coordinator.plans().begin(row, run).await?)) };
    once.change(&state, begin).await
}
