//! Worktrees that runs have left: what pruning would do with each and why, and pruning them.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::workflows::{OwnWork, Prunable};
use windlass_coordinator::{Coordinator, Error};
use windlass_core::id::TaskId;

use super::super::answers::{ChangeRefused, ReadRefused};
use super::super::once::Change;
use super::super::tasks::invalid;
use crate::auth::User;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(worktrees)).routes(routes!(prune))
}

/// Worktrees that are still there.
#[derive(Serialize, ToSchema)]
struct LeftWorktrees {
    worktrees: Vec<LeftWorktree>,
}

/// A worktree that is still there.
#[derive(Serialize, ToSchema)]
struct LeftWorktree {
    /// The run that has made it.
    run_id: Option<String>,
    workflow: Option<String>,
    path: String,
    branch: Option<String>,
    /// `remove` (with its branch), `save` (its work is committed to its branch, which stays) or `keep`.
    fate: String,
    why: String,
}

impl From<Prunable> for LeftWorktree {
    fn from(view: Prunable) -> Self {
        Self {
            run_id: view.run.map(|run| run.to_string()),
            workflow: view.workflow,
            path: view.path.display().to_string(),
            branch: view.branch,
            fate: view.fate.to_string(),
            why: view.why,
        }
    }
}

impl From<Vec<Prunable>> for LeftWorktrees {
    fn from(found: Vec<Prunable>) -> Self {
        Self { worktrees: found.into_iter().map(LeftWorktree::from).collect() }
    }
}

/// What pruning would do, as far as the reader may see it.
fn visible(
    coordinator: &Coordinator,
    user: &User,
    only: Option<TaskId>,
    work: OwnWork,
) -> Result<Vec<Prunable>, Error> {
    let mut seen = Vec::new();
    for one in coordinator.workflows().prunable(only, work)? {
        let origin = one.run.map(|run| coordinator.tasks().origin(run)).transpose()?.flatten();
        if origin.is_some_and(|origin| user.may_see(origin.user.as_deref())) {
            seen.push(one);
        }
    }
    Ok(seen)
}

/// List the worktrees that are still there, and what pruning would do with each
#[utoipa::path(get, path = "/v1/workflows/worktrees", operation_id = "list_worktrees", tag = "workflows",
    responses((status = 200, description = "Worktrees", body = LeftWorktrees), ReadRefused))]
async fn worktrees(
    State(state): State<AppState>,
    user: User,
) -> Result<Json<LeftWorktrees>, Problem> {
    let read = move |coordinator: &Coordinator| visible(coordinator, &user, None, OwnWork::Stays);
    Ok(Json(LeftWorktrees::from(state.read(read).await?)))
}

/// Which worktrees are pruned.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WantedPrune {
    /// Only those of this run.
    run_id: Option<String>,
    /// Whether those with work go too: what is not committed is committed to their branches, which stay.
    #[serde(default)]
    save: bool,
}

/// Remove worktrees of ended runs; what would be lost stays
#[utoipa::path(post, path = "/v1/workflows/worktrees/prune", operation_id = "prune_worktrees", tag = "workflows", request_body = WantedPrune,
    params(("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "What became of each", body = LeftWorktrees), ReadRefused, ChangeRefused))]
async fn prune(
    State(state): State<AppState>,
    user: User,
    Change { once, body: wanted }: Change<WantedPrune>,
) -> Result<Json<Value>, Problem> {
    let run = wanted.run_id.map(|run| run.parse::<TaskId>());
    let only = run.transpose().map_err(|_| invalid("`run_id` is not a task"))?;
    let work = if wanted.save { OwnWork::IsSaved } else { OwnWork::Stays };
    let prune = async {
        let plan = state.read(move |coordinator| visible(coordinator, &user, only, work)).await?;
        Ok(LeftWorktrees::from(state.coordinator.workflows().prune(plan).await?))
    };
    once.change(&state, prune).await
}
