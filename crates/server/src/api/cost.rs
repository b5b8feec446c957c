//! Tokens and money, and the counters that monitoring reads.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::views::{CostReport, CostSum};
use windlass_core::id::TaskId;

use super::answers::ReadRefused;
use super::owned;
use crate::auth::{Access, User};
use crate::extract::Id;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(total)).routes(routes!(of_task)).routes(routes!(metrics))
}

/// Tasks that are listed by themselves, the newest.
const LISTED_TASKS: usize = 50;

/// What some replies took together.
#[derive(Serialize, ToSchema)]
struct Sum {
    replies: u64,
    input_tokens: u64,
    /// Of these, read from the provider's cache.
    cached_tokens: u64,
    output_tokens: u64,
    /// Of the replies whose price is known; `null` where that is none of them.
    cost_usd: Option<f64>,
    /// Replies whose price is not known.
    unpriced_replies: u64,
}

impl From<&CostSum> for Sum {
    fn from(sum: &CostSum) -> Self {
        Self {
            replies: sum.replies,
            input_tokens: sum.input_tokens,
            cached_tokens: sum.cached_tokens,
            output_tokens: sum.output_tokens,
            cost_usd: sum.cost_usd,
            unpriced_replies: sum.unpriced_replies,
        }
    }
}

/// What tasks have cost.
#[derive(Serialize, ToSchema)]
struct Cost {
    total: Sum,
    /// The sum for each model.
    models: BTreeMap<String, Sum>,
    /// By task; of all tasks only the newest.
    tasks: BTreeMap<String, Sum>,
    /// Whether there are tasks that `tasks` does not have.
    has_older_tasks: bool,
}

impl From<&CostReport> for Cost {
    fn from(report: &CostReport) -> Self {
        Self {
            total: (&report.total).into(),
            models: report.models.iter().map(|(name, sum)| (name.clone(), sum.into())).collect(),
            tasks: report.tasks.iter().map(|(task, sum)| (task.to_string(), sum.into())).collect(),
            has_older_tasks: report.has_older_tasks,
        }
    }
}

/// What all tasks have cost
#[utoipa::path(get, path = "/v1/cost", operation_id = "get_cost", tag = "cost",
    responses((status = 200, description = "The cost", body = Cost), ReadRefused))]
async fn total(State(state): State<AppState>, user: User) -> Result<Json<Cost>, Problem> {
    not_for_operators(&user)?;
    let report = state.read(|coordinator| coordinator.costs().total(LISTED_TASKS)).await?;
    Ok(Json((&report).into()))
}

/// What a task and the agents below it have cost
#[utoipa::path(get, path = "/v1/tasks/{task_id}/cost", operation_id = "get_task_cost", tag = "cost",
    params(("task_id" = String, Path, description = "The task")),
    responses((status = 200, description = "The cost", body = Cost), ReadRefused))]
async fn of_task(
    State(state): State<AppState>,
    user: User,
    Id(task): Id<TaskId>,
) -> Result<Json<Cost>, Problem> {
    owned::task(&state, &user, task).await?;
    let report = state.read(move |coordinator| coordinator.costs().of(task)).await?;
    Ok(Json((&report).into()))
}

/// Counters and histograms of all tasks, as Prometheus reads them (MS-198)
#[utoipa::path(get, path = "/metrics", operation_id = "get_metrics", tag = "server",
    responses(
        (status = 200, description = "Metrics", body = String, content_type = "text/plain"),
        ReadRefused,
    ))]
async fn metrics(State(state): State<AppState>, user: User) -> Result<Response, Problem> {
    not_for_operators(&user)?;
    let metrics = state.read(|coordinator| coordinator.costs().metrics()).await?;
    let media = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((media, metrics.prometheus()).into_response())
}

/// Sums over everybody's tasks are for those who may see everybody's.
fn not_for_operators(user: &User) -> Result<(), Problem> {
    match user.access {
        Access::Viewer | Access::Admin => Ok(()),
        Access::Operator => {
            let detail = "sums over all tasks are for viewers and admins";
            Err(Problem::forbidden("not-allowed", detail))
        }
    }
}
