//! What a task hands back and leaves behind: its result, its trace, changed files, deliverables.

use axum::Json;
use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::views::Filter;
use windlass_coordinator::{Coordinator, Error, trace};
use windlass_core::id::{SessionId, TaskId};

use super::answers::{ReadRefused, tagged};
use super::owned;
use crate::auth::User;
use crate::extract::{Id, Params};
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(result))
        .routes(routes!(task_trace))
        .routes(routes!(export))
        .routes(routes!(changes))
        .routes(routes!(deliverables))
        .routes(routes!(deliverable_content))
}

/// The result of a task's last segment, as `TaskResult` has it
#[utoipa::path(get, path = "/v1/tasks/{task_id}/result", operation_id = "get_task_result", tag = "tasks",
    params(("task_id" = String, Path, description = "The task")),
    responses(
        (status = 200, description = "The result", body = Object),
        (status = 304, description = "As the client has it (`If-None-Match`)"),
        ReadRefused,
    ))]
async fn result(
    State(state): State<AppState>,
    user: User,
    headers: HeaderMap,
    Id(task): Id<TaskId>,
) -> Result<Response, Problem> {
    owned::task(&state, &user, task).await?;
    let found = state.read(move |coordinator| coordinator.tasks().last_result(task)).await?;
    let none = || Problem::not_found("no-result", format!("`{task}` has no result yet"));
    Ok(tagged(&headers, &json!(found.ok_or_else(none)?)))
}

/// Every event of a task as JSON, one per line
#[utoipa::path(get, path = "/v1/tasks/{task_id}/trace", operation_id = "get_task_trace", tag = "tasks",
    params(("task_id" = String, Path, description = "The task")),
    responses(
        (status = 200, description = "The trace", body = String, content_type = "application/x-ndjson"),
        ReadRefused,
    ))]
async fn task_trace(
    State(state): State<AppState>,
    user: User,
    Id(task): Id<TaskId>,
) -> Result<Response, Problem> {
    owned::task(&state, &user, task).await?;
    let read = move |coordinator: &Coordinator| {
        let records = coordinator.tasks().journal(task)?;
        Ok(records.iter().map(|record| trace::entry(record) + "\n").collect::<String>())
    };
    let lines = state.read(read).await?;
    let media = (header::CONTENT_TYPE, "application/x-ndjson");
    let name = format!("attachment; filename=\"{task}.jsonl\"");
    Ok(([media, (header::CONTENT_DISPOSITION, name.as_str())], lines).into_response())
}

/// Every event of every task of a session as JSON, one per line, each with its task
#[utoipa::path(get, path = "/v1/sessions/{session_id}/export", operation_id = "export_session", tag = "sessions",
    params(("session_id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The events, task by task, the oldest first", body = String, content_type = "application/x-ndjson"),
        ReadRefused,
    ))]
async fn export(
    State(state): State<AppState>,
    user: User,
    Id(session): Id<SessionId>,
) -> Result<Response, Problem> {
    owned::session(&state, &user, session).await?;
    let list = move |coordinator: &Coordinator| {
        let filter = Filter { session: Some(session), ..Filter::default() };
        let rows = coordinator.tasks().rows(&filter)?;
        Ok(rows.into_iter().map(|row| row.id).rev().collect::<Vec<_>>())
    };
    let tasks = state.read(list).await?;
    // Task by task: a session may be longer than what fits into memory.
    let lines = stream::unfold((state, tasks.into_iter()), |(state, mut tasks)| async {
        let task = tasks.next()?;
        let lines = state.read(move |coordinator| lines_of(coordinator, task)).await;
        let lines = lines.map_err(|problem| std::io::Error::other(problem.detail));
        Some((lines, (state, tasks)))
    });
    let media = (header::CONTENT_TYPE, "application/x-ndjson");
    let name = format!("attachment; filename=\"{session}.jsonl\"");
    let headers = [media, (header::CONTENT_DISPOSITION, name.as_str())];
    Ok((headers, HttpBody::from_stream(lines.fuse())).into_response())
}

fn lines_of(coordinator: &Coordinator, task: TaskId) -> Result<String, Error> {
    let records = coordinator.tasks().journal(task)?;
    let line = |entry: String| format!("{{\"task_id\":\"{task}\",{}\n", &entry[1..]);
    Ok(records.iter().map(|record| line(trace::entry(record))).collect())
}

/// A file that a task has changed.
#[derive(Serialize, ToSchema)]
struct Change {
    /// Relative to the workspace.
    path: String,
    /// Whether there was no such file before.
    is_new: bool,
    /// Lines that came; `null` where a version is not text, too large, or no longer kept.
    lines_added: Option<usize>,
    /// Lines that went.
    lines_removed: Option<usize>,
    /// A unified diff.
    diff: Option<String>,
}

/// Files that a task and the agents below it have changed, by path.
#[derive(Serialize, ToSchema)]
struct ChangeList {
    changes: Vec<Change>,
}

/// The files that a task has changed, with diffs
#[utoipa::path(get, path = "/v1/tasks/{task_id}/changes", operation_id = "list_task_changes", tag = "tasks",
    params(("task_id" = String, Path, description = "The task")),
    responses((status = 200, description = "Changed files", body = ChangeList), ReadRefused))]
async fn changes(
    State(state): State<AppState>,
    user: User,
    Id(task): Id<TaskId>,
) -> Result<Json<ChangeList>, Problem> {
    owned::task(&state, &user, task).await?;
    let found = state.read(move |coordinator| coordinator.artifacts().changes().of(task)).await?;
    let changes = found.into_iter().map(|one| Change {
        lines_added: one.file.lines.map(|(added, _)| added),
        lines_removed: one.file.lines.map(|(_, removed)| removed),
        path: one.file.path,
        is_new: one.file.is_new,
        diff: one.diff,
    });
    Ok(Json(ChangeList { changes: changes.collect() }))
}

/// A file that the agent wants people to see.
#[derive(Serialize, ToSchema)]
struct DeliverableEntry {
    /// Relative to the workspace.
    filepath: String,
    description: String,
    /// `report`, `code`, `data`, `screenshot` or `other`.
    #[serde(rename = "type")]
    kind: String,
    /// The text itself, when small.
    content: Option<String>,
    size_bytes: Option<u64>,
}

/// What a task has published, by path.
#[derive(Serialize, ToSchema)]
struct DeliverableList {
    deliverables: Vec<DeliverableEntry>,
}

/// What a task has published
#[utoipa::path(get, path = "/v1/tasks/{task_id}/deliverables", operation_id = "list_deliverables", tag = "tasks",
    params(("task_id" = String, Path, description = "The task")),
    responses((status = 200, description = "Deliverables", body = DeliverableList), ReadRefused))]
async fn deliverables(
    State(state): State<AppState>,
    user: User,
    Id(task): Id<TaskId>,
) -> Result<Json<DeliverableList>, Problem> {
    owned::task(&state, &user, task).await?;
    let found =
        state.read(move |coordinator| coordinator.artifacts().deliverables().of(task)).await?;
    let entries = found.into_iter().map(|one| DeliverableEntry {
        filepath: one.filepath,
        description: one.description,
        kind: one.kind.to_string(),
        content: one.content,
        size_bytes: one.size_bytes,
    });
    Ok(Json(DeliverableList { deliverables: entries.collect() }))
}

/// Which deliverable is read.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ContentQuery {
    /// Its path, as the list has it.
    path: String,
}

/// A deliverable as it is now; only what was published is found
#[utoipa::path(get, path = "/v1/tasks/{task_id}/deliverables/content", operation_id = "get_deliverable", tag = "tasks",
    params(("task_id" = String, Path, description = "The task"), ContentQuery),
    responses(
        (status = 200, description = "The file", body = Vec<u8>, content_type = "application/octet-stream"),
        ReadRefused,
    ))]
async fn deliverable_content(
    State(state): State<AppState>,
    user: User,
    Id(task): Id<TaskId>,
    Params(query): Params<ContentQuery>,
) -> Result<Response, Problem> {
    owned::task(&state, &user, task).await?;
    let path = query.path.clone();
    let bytes = state
        .read(move |coordinator| coordinator.artifacts().deliverables().read(task, &path))
        .await?;
    let none = || {
        let detail = format!("`{task}` has no deliverable `{}` that can be read", query.path);
        Problem::not_found("unknown-deliverable", detail)
    };
    let bytes = bytes.ok_or_else(none)?;
    // Whatever it is, no browser shows it as a page of ours.
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
    ];
    Ok((headers, HttpBody::from(bytes)).into_response())
}

/// Any JSON object.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its description is used")]
struct Object(Value);
