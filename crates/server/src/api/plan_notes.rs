//! What is kept of the work on a plan: issues, decisions and snapshots.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::Coordinator;
use windlass_coordinator::plans::{
    Decision, DecisionDraft, Issue, IssueDraft, PlanRow, PlanningFilter,
};
use windlass_core::id::{IssueId, PlanId};

use super::answers::{ChangeRefused, ReadRefused};
use super::once::Change;
use super::plans::find;
use super::tasks::invalid;
use crate::auth::User;
use crate::extract::{Id, Params};
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(issues, log_issue))
        .routes(routes!(resolve_issue))
        .routes(routes!(decisions, log_decision))
        .routes(routes!(snapshot, save_snapshot))
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

impl From<Issue> for IssueEntry {
    fn from(issue: Issue) -> Self {
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

/// What a user sees of a plan's project: an operator, what belongs to the plan.
fn filter(user: &User, plan: &PlanRow) -> PlanningFilter {
    PlanningFilter {
        project: plan.project.clone(),
        plan: (!user.may_see(None)).then(|| plan.name.clone()),
        ..PlanningFilter::default()
    }
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
    let filter =
        PlanningFilter { task: wanted.task, severity, owner: wanted.owner, ..filter(&user, &row) };
    let read = move |coordinator: &Coordinator| coordinator.plans().notes_of(row).issues(&filter);
    let found = state.read(read).await?;
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
    params(("plan_id" = String, Path, description = "The plan"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "The issue", body = IssueEntry), ReadRefused, ChangeRefused))]
async fn log_issue(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<PlanId>,
    Change { once, body: wanted }: Change<NewIssue>,
) -> Result<Response, Problem> {
    let row = find(&state, &user, id).await?;
    let severity = wanted.severity.parse();
    let severity = severity.map_err(|error: windlass_core::axes::UnknownValue| {
        invalid(format!("`severity`: {error}"))
    })?;
    let NewIssue { description, task, owner, .. } = wanted;
    let draft = IssueDraft { task, severity, owner, description };
    let make = async {
        let issue = state.coordinator.plans().notes_of(row).log_issue(draft).await?;
        Ok(IssueEntry::from(issue))
    };
    once.created(&state, make).await
}

/// What became of an issue.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewResolution {
    /// `fixed`, `not_an_issue`, `duplicate` or `wont_fix`.
    resolution: String,
}

/// Close an issue and say how it was resolved
#[utoipa::path(post, path = "/v1/issues/{issue_id}/resolve", operation_id = "resolve_issue", tag = "plans", request_body = NewResolution,
    params(("issue_id" = String, Path, description = "The issue"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The issue", body = IssueEntry), ReadRefused, ChangeRefused))]
async fn resolve_issue(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<IssueId>,
    Change { once, body: wanted }: Change<NewResolution>,
) -> Result<Json<Value>, Problem> {
    let issue = find_issue(&state, &user, id).await?;
    let resolution = wanted.resolution.parse();
    let resolution = resolution.map_err(|error: windlass_core::axes::UnknownValue| {
        invalid(format!("`resolution`: {error}"))
    })?;
    let notes = state.coordinator.plans().notes(Path::new(&issue.project))?;
    let resolve =
        async { Ok(IssueEntry::from(notes.resolve_issue(&id.to_string(), resolution).await?)) };
    once.change(&state, resolve).await
}

/// An issue that the user may see: it belongs to a plan that they may see. One of no plan is nobody's.
async fn find_issue(state: &AppState, user: &User, id: IssueId) -> Result<Issue, Problem> {
    let read = move |coordinator: &Coordinator| {
        let issue = coordinator.plans().issue(id)?;
        let plan = issue.plan_id.as_ref().map(|name| PlanId::derived(&issue.project, name));
        let plan = plan.map(|plan| coordinator.plans().get(plan)).transpose()?.flatten();
        Ok((issue, plan.map(|plan| plan.activated_by)))
    };
    let (issue, owner) = state.read(read).await?;
    match user.may_see(owner.as_deref()) {
        true => Ok(issue),
        false => Err(Problem::not_found("unknown-issue", format!("there is no issue `{id}`"))),
    }
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

impl From<Decision> for DecisionEntry {
    fn from(decision: Decision) -> Self {
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
    let filter = filter(&user, &row);
    let read =
        move |coordinator: &Coordinator| coordinator.plans().notes_of(row).decisions(&filter);
    let found = state.read(read).await?;
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
    params(("plan_id" = String, Path, description = "The plan"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "The decision", body = DecisionEntry), ReadRefused, ChangeRefused))]
async fn log_decision(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<PlanId>,
    Change { once, body: wanted }: Change<NewDecision>,
) -> Result<Response, Problem> {
    let row = find(&state, &user, id).await?;
    let NewDecision { title, reasoning, alternatives, task } = wanted;
    let draft = DecisionDraft { task, title, reasoning, alternatives };
    let make = async {
        let decision = state.coordinator.plans().notes_of(row).log_decision(draft).await?;
        Ok(DecisionEntry::from(decision))
    };
    once.created(&state, make).await
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
            coordinator.plans().notes_of(row).load_snapshot(wanted.task.as_deref())
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
    params(("plan_id" = String, Path, description = "The plan"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "The snapshot", body = Object), ReadRefused, ChangeRefused))]
async fn save_snapshot(
    State(state): State<AppState>,
    user: User,
    Id(id): Id<PlanId>,
    Change { once, body: wanted }: Change<NewSnapshot>,
) -> Result<Response, Problem> {
    let row = find(&state, &user, id).await?;
    let notes = state.coordinator.plans().notes_of(row);
    let save = async { Ok(notes.save_snapshot(&wanted.task, &wanted.fields).await?.snapshot) };
    once.created(&state, save).await
}
