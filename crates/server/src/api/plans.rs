//! Plans: which are activated, how far they are, their issues, decisions and snapshots.

use std::path::{Path, PathBuf};

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::plans::{
    DecisionDraft, IssueDraft, PlanRow, PlanRun, PlanStatus, PlanningFilter,
};
use windlass_core::axes::{Axes, WorkMode};
use windlass_core::command::ExecutionConfig;
use windlass_core::event::Driver;
use windlass_core::id::{IssueId, PlanId, SessionId};

use super::answers::{ChangeRefused, ReadRefused, created};
use super::owned;
use super::tasks::invalid;
use crate::auth::User;
use crate::extract::{Body, Id, Params};
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, activate))
        .routes(routes!(get))
        .routes(routes!(run))
        .routes(routes!(issues, log_issue))
        .routes(routes!(resolve_issue))
        .routes(routes!(decisions, log_decision))
        .routes(routes!(snapshot, save_snapshot))
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
async fn find(state: &AppState, user: &User, id: PlanId) -> Result<PlanRow, Problem> {
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
    responses((status = 201, description = "What it loads", body = ActivationEntry), ReadRefused, ChangeRefused))]
async fn activate(
    State(state): State<AppState>,
    user: User,
    Body(wanted): Body<NewActivation>,
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
    let found = state.coordinator.plans().activate(&directory, named, &user.name).await?;
    Ok(created(ActivationEntry {
        plan_id: found.plan_id.to_string(),
        name: found.name,
        skills: found.skills,
        mcp_servers: found.mcp_servers,
        agents: found.agents,
        tasks: found.tasks,
    }))
}

/// Work through a plan: its tasks are queued for this service, in the order of what they wait for
#[utoipa::path(post, path = "/v1/plans/{plan_id}/run", operation_id = "run_plan", tag = "plans",
    params(("plan_id" = String, Path, description = "The plan")),
    responses((status = 200, description = "The plan", body = PlanEntry), ReadRefused, ChangeRefused))]
async fn run(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<PlanId>,
) -> Result<Json<PlanEntry>, Problem> {
    let row = find(&state, &user, id).await?;
    let profile = state.coordinator.limits().profile;
    let axes = Axes { work_mode: WorkMode::Build, permission_profile: profile, ..Axes::headless() };
    let run = PlanRun {
        axes,
        workspace: PathBuf::from(&row.project),
        by: user.name.clone(),
        driver: Driver::Service,
        session: None,
        execution_config: ExecutionConfig::default(),
        cost_budget: None,
    };
    let status = state.coordinator.plans().begin(Path::new(&row.project), run).await?;
    Ok(Json(PlanEntry::from(status)))
}

/// An issue that somebody logged.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct IssueEntry {
    id: String,
    plan_id: Option<String>,
    task_id: Option<String>,
    /// `low`, `medium`, `high` or `critical`.
    severity: String,
    owner_team: Option<String>,
    description: String,
    created_at: String,
    resolved_at: Option<String>,
    /// `fixed`, `not_an_issue`, `duplicate` or `wont_fix`.
    resolution: Option<String>,
}

impl From<windlass_coordinator::plans::Issue> for IssueEntry {
    fn from(issue: windlass_coordinator::plans::Issue) -> Self {
        Self {
            id: issue.id.to_string(),
            plan_id: issue.plan_id,
            task_id: issue.task_id,
            severity: issue.severity.to_string(),
            owner_team: issue.owner_team,
            description: issue.description,
            created_at: issue.created_at.to_string(),
            resolved_at: issue.resolved_at.map(|at| at.to_string()),
            resolution: issue.resolution.map(|resolution| resolution.to_string()),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct IssueList {
    issues: Vec<IssueEntry>,
}

/// Which issues are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct IssueFilter {
    /// Those of this task.
    task: Option<String>,
    /// Those of this severity.
    severity: Option<String>,
    /// Those of this team or person.
    owner: Option<String>,
}

/// List the issues of a plan's project
#[utoipa::path(get, path = "/v1/plans/{plan_id}/issues", operation_id = "list_issues", tag = "plans",
    params(("plan_id" = String, Path, description = "The plan"), IssueFilter),
    responses((status = 200, description = "Issues", body = IssueList), ReadRefused))]
async fn issues(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<PlanId>,
    Params(wanted): Params<IssueFilter>,
) -> Result<Json<IssueList>, Problem> {
    let row = find(&state, &user, id).await?;
    let severity = wanted.severity.map(|word| word.parse()).transpose();
    let severity = severity.map_err(|error: windlass_core::axes::UnknownValue| {
        Problem::bad_request(format!("`severity`: {error}"))
    })?;
    let filter = PlanningFilter {
        project: row.project,
        task: wanted.task,
        severity,
        owner: wanted.owner,
        ..PlanningFilter::default()
    };
    let found = state.read(move |coordinator| coordinator.plans().issues(&filter)).await?;
    Ok(Json(IssueList { issues: found.into_iter().map(IssueEntry::from).collect() }))
}

/// An issue to log.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewIssue {
    /// `low`, `medium`, `high` or `critical`.
    severity: String,
    description: String,
    /// The task of the plan that it concerns.
    task: Option<String>,
    /// The team or the person that should look at it.
    owner: Option<String>,
}

/// Log an issue
#[utoipa::path(post, path = "/v1/plans/{plan_id}/issues", operation_id = "log_issue", tag = "plans", request_body = NewIssue,
    params(("plan_id" = String, Path, description = "The plan")),
    responses((status = 201, description = "The issue", body = IssueEntry), ReadRefused, ChangeRefused))]
async fn log_issue(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<PlanId>,
    Body(wanted): Body<NewIssue>,
) -> Result<Response, Problem> {
    let row = find(&state, &user, id).await?;
    let severity = wanted.severity.parse();
    let severity = severity.map_err(|error: windlass_core::axes::UnknownValue| {
        invalid(format!("`severity`: {error}"))
    })?;
    let NewIssue { description, task, owner, .. } = wanted;
    let draft = IssueDraft { task, severity, owner, description };
    let issue = state.coordinator.plans().log_issue(Path::new(&row.project), draft).await?;
    Ok(created(IssueEntry::from(issue)))
}

/// What became of an issue.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewResolution {
    /// `fixed`, `not_an_issue`, `duplicate` or `wont_fix`.
    resolution: String,
}

/// Say what became of an issue
#[utoipa::path(post, path = "/v1/issues/{issue_id}/resolve", operation_id = "resolve_issue", tag = "plans", request_body = NewResolution,
    params(("issue_id" = String, Path, description = "The issue")),
    responses((status = 200, description = "The issue", body = IssueEntry), ReadRefused, ChangeRefused))]
async fn resolve_issue(
    State(state): State<AppState>,
    _user: User,
    Id(id): Id<IssueId>,
    Body(wanted): Body<NewResolution>,
) -> Result<Json<IssueEntry>, Problem> {
    let resolution = wanted.resolution.parse();
    let resolution = resolution.map_err(|error: windlass_core::axes::UnknownValue| {
        invalid(format!("`resolution`: {error}"))
    })?;
    let issue = state.coordinator.plans().resolve_issue(&id.to_string(), resolution).await?;
    Ok(Json(IssueEntry::from(issue)))
}

/// A decision that somebody logged.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DecisionEntry {
    id: String,
    plan_id: Option<String>,
    task_id: Option<String>,
    title: String,
    reasoning: String,
    /// What else was possible.
    alternatives: Vec<String>,
    created_at: String,
}

impl From<windlass_coordinator::plans::Decision> for DecisionEntry {
    fn from(decision: windlass_coordinator::plans::Decision) -> Self {
        Self {
            id: decision.id.to_string(),
            plan_id: decision.plan_id,
            task_id: decision.task_id,
            title: decision.title,
            reasoning: decision.reasoning,
            alternatives: decision.alternatives,
            created_at: decision.created_at.to_string(),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct DecisionList {
    decisions: Vec<DecisionEntry>,
}

/// List the decisions of a plan's project
#[utoipa::path(get, path = "/v1/plans/{plan_id}/decisions", operation_id = "list_decisions", tag = "plans",
    params(("plan_id" = String, Path, description = "The plan")),
    responses((status = 200, description = "Decisions", body = DecisionList), ReadRefused))]
async fn decisions(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<PlanId>,
) -> Result<Json<DecisionList>, Problem> {
    let row = find(&state, &user, id).await?;
    let filter = PlanningFilter { project: row.project, ..PlanningFilter::default() };
    let found = state.read(move |coordinator| coordinator.plans().decisions(&filter)).await?;
    Ok(Json(DecisionList { decisions: found.into_iter().map(DecisionEntry::from).collect() }))
}

/// A decision to log.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewDecision {
    title: String,
    reasoning: String,
    /// What else was possible; at least one.
    #[schema(min_items = 1)]
    alternatives: Vec<String>,
    /// The task of the plan that it concerns.
    task: Option<String>,
}

/// Log a decision
#[utoipa::path(post, path = "/v1/plans/{plan_id}/decisions", operation_id = "log_decision", tag = "plans", request_body = NewDecision,
    params(("plan_id" = String, Path, description = "The plan")),
    responses((status = 201, description = "The decision", body = DecisionEntry), ReadRefused, ChangeRefused))]
async fn log_decision(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<PlanId>,
    Body(wanted): Body<NewDecision>,
) -> Result<Response, Problem> {
    let row = find(&state, &user, id).await?;
    let NewDecision { title, reasoning, alternatives, task } = wanted;
    let draft = DecisionDraft { task, title, reasoning, alternatives };
    let decision = state.coordinator.plans().log_decision(Path::new(&row.project), draft).await?;
    Ok(created(DecisionEntry::from(decision)))
}

/// Which snapshot is wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct SnapshotFilter {
    /// The task that left it, or that comes after those that did; the one saved last without.
    task: Option<String>,
}

/// Read what a task left, or what the tasks before it left
#[utoipa::path(get, path = "/v1/plans/{plan_id}/snapshot", operation_id = "load_snapshot", tag = "plans",
    params(("plan_id" = String, Path, description = "The plan"), SnapshotFilter),
    responses((status = 200, description = "The snapshot", body = Object), ReadRefused))]
async fn snapshot(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<PlanId>,
    Params(wanted): Params<SnapshotFilter>,
) -> Result<Json<Value>, Problem> {
    let row = find(&state, &user, id).await?;
    let found = state
        .read(move |coordinator| {
            coordinator.plans().load_snapshot(Path::new(&row.project), wanted.task.as_deref())
        })
        .await?;
    let unknown = || Problem::not_found("unknown-snapshot", "there is no snapshot");
    Ok(Json(serde_json::json!(found.ok_or_else(unknown)?)))
}

/// What the next task must know; all four fields besides the task are needed.
#[derive(Deserialize, ToSchema)]
struct NewSnapshot {
    /// The task that leaves it.
    task: String,
    /// `failingTests`, `techDebt`, `openDecisions` and `nextTaskIntent`.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    fields: Map<String, Value>,
}

/// Save what the next task must know
#[utoipa::path(post, path = "/v1/plans/{plan_id}/snapshot", operation_id = "save_snapshot", tag = "plans", request_body = NewSnapshot,
    params(("plan_id" = String, Path, description = "The plan")),
    responses((status = 201, description = "The snapshot", body = Object), ReadRefused, ChangeRefused))]
async fn save_snapshot(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<PlanId>,
    Body(wanted): Body<NewSnapshot>,
) -> Result<Response, Problem> {
    let row = find(&state, &user, id).await?;
    let plans = state.coordinator.plans();
    let saved = plans.save_snapshot(Path::new(&row.project), &wanted.task, &wanted.fields).await?;
    Ok(created(serde_json::json!(saved.snapshot)))
}
