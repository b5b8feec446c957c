//! The Context Service, embedded: what is worth knowing beyond one task (ES-019, ES-134). Another windlass can be
//! pointed at it with `CONTEXT_SERVICE_URL`.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::Coordinator;
use windlass_core::id::TaskId;

use super::answers::{ChangeRefused, ReadRefused, created};
use super::once::Change;
use super::owned;
use super::tasks::invalid;
use crate::auth::{Access, User};
use crate::extract::Params;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(search, remember))
}

/// Letters of a memory, and of one of its tags; how many tags it has at most.
const MAX_LETTERS: usize = 20_000;
const MAX_TAG_LETTERS: usize = 100;
const MAX_TAGS: usize = 50;

/// Memories in one answer, when the request does not say.
const USUAL_LIMIT: u32 = 8;

/// Memories in one answer at most.
const MAX_LIMIT: u32 = 100;

/// What to look for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SearchQuery {
    /// The words to look for.
    query: String,
    /// The task that asks.
    task_id: Option<String>,
    /// The session that asks; of no use to our own store.
    #[serde(rename = "session_id")]
    _session_id: Option<String>,
    /// Only what belongs to this directory, or to all.
    project: Option<String>,
    /// At most this many.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
}

/// Something worth knowing.
#[derive(Serialize, ToSchema)]
struct MemoryEntry {
    id: i64,
    text: String,
    /// The task it comes from.
    task_id: Option<String>,
    created_at: String,
    /// How well it fits; comparable within one answer only.
    score: f64,
}

/// What is known.
#[derive(Serialize, ToSchema)]
struct ContextAnswer {
    /// The best first.
    memories: Vec<MemoryEntry>,
    /// What is known of the task that asks.
    task_context: Option<String>,
}

/// What is known about something
#[utoipa::path(get, path = "/v1/context", operation_id = "search_context", tag = "context", params(SearchQuery),
    responses((status = 200, description = "Memories", body = ContextAnswer), ReadRefused))]
async fn search(
    State(state): State<AppState>,
    user: User,
    Params(query): Params<SearchQuery>,
) -> Result<Json<ContextAnswer>, Problem> {
    let limit = query.limit.unwrap_or(USUAL_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is from 1 to {MAX_LIMIT}")));
    }
    let read = move |coordinator: &Coordinator| {
        // A task of another data directory is not known here, and needs not be.
        let task = query.task_id.as_deref().and_then(|text| text.parse::<TaskId>().ok());
        let origin = task.map(|task| coordinator.tasks().origin(task)).transpose()?.flatten();
        // What is another's looks like what is not known here.
        let own = origin.is_some_and(|origin| user.may_see(origin.user.as_deref()));
        let task = task.filter(|_| own);
        let row = task.map(|task| coordinator.tasks().get(task)).transpose()?.flatten();
        let project = query.project.as_deref();
        // Left out by the search itself: what is another's takes no place of what is one's own.
        let own = user.limited_to();
        let found = coordinator.memories().search(&query.query, project, own.as_deref(), limit)?;
        Ok((found, row.and_then(|row| row.plan).map(|plan| plan.markdown())))
    };
    let (found, task_context) = state.read(read).await?;
    let memories = found.into_iter().map(|memory| MemoryEntry {
        id: memory.id,
        text: memory.text,
        task_id: memory.task.map(|task| task.to_string()),
        created_at: memory.created_at.to_string(),
        score: memory.score,
    });
    Ok(Json(ContextAnswer { memories: memories.collect(), task_context }))
}

/// Something to remember.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewMemory {
    #[schema(min_length = 1, pattern = r"\S", max_length = 20_000)]
    text: String,
    /// Words it should also be found by; each has at most 100 letters.
    #[serde(default)]
    #[schema(max_items = 50)]
    tags: Vec<String>,
    /// The task it comes from: later tasks of that task's user read it. Those of everybody read what comes from none,
    /// which only an admin adds.
    task_id: Option<String>,
}

/// A memory that is kept.
#[derive(Serialize, ToSchema)]
struct MemoryReceipt {
    id: i64,
}

/// Remember something for later tasks
#[utoipa::path(post, path = "/v1/context", operation_id = "remember", tag = "context", request_body = NewMemory,
    params(("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "Kept", body = MemoryReceipt), ReadRefused, ChangeRefused))]
async fn remember(
    State(state): State<AppState>,
    user: User,
    Change { once, body: new }: Change<NewMemory>,
) -> Result<Response, Problem> {
    if new.text.trim().is_empty() {
        return Err(invalid("`text` is empty"));
    }
    let is_longer = |text: &str, most: usize| text.chars().nth(most).is_some();
    if is_longer(&new.text, MAX_LETTERS) {
        return Err(invalid(format!("`text` has at most {MAX_LETTERS} letters")));
    }
    if new.tags.len() > MAX_TAGS || new.tags.iter().any(|tag| is_longer(tag, MAX_TAG_LETTERS)) {
        let detail = format!("`tags` are at most {MAX_TAGS} of at most {MAX_TAG_LETTERS} letters");
        return Err(invalid(detail));
    }
    let task = new.task_id.as_ref().map(|text| text.parse::<TaskId>()).transpose();
    let task = task.map_err(|error| invalid(format!("`task_id`: {error}")))?;
    if task.is_none() && user.access != Access::Admin {
        return Err(invalid(
            "name a task of yours as `task_id`; without one every user's tasks would read it",
        ));
    }
    if let Some(task) = task {
        owned::task(&state, &user, task).await?;
    }
    if let Some(id) = once.outcome(&state).await?.and_then(|id| id.parse().ok()) {
        return Ok(created(MemoryReceipt { id }));
    }
    let id = state.coordinator.memories().add(&new.text, &new.tags, task).await?;
    once.keep(&state, id.to_string()).await?;
    Ok(created(MemoryReceipt { id }))
}
