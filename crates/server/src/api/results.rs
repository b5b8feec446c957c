//! What a task hands back and leaves behind: its result, its trace, changed files, deliverables.

use axum::Json;
use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::views::Filter;
use windlass_coordinator::{Coordinator, Damage, JournalEntry, trace};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::shown::shown_line;

use super::answers::{ReadRefused, attachment, with_etag};
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
    Ok(with_etag(&headers, &json!(found.ok_or_else(none)?)))
}

/// Every event of a task as JSON, one per line
///
/// In place of one that is damaged stands a line of the type `damaged` that names it.
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
    let lines = stream::try_unfold((state, 0), move |(state, after)| async move {
        let page = state.read(move |coordinator| coordinator.feed().readable(task, after)).await;
        let page = page.map_err(|problem| std::io::Error::other(problem.detail))?;
        let Some(last) = page.last().map(JournalEntry::seq) else { return Ok(None) };
        let lines = page.iter().map(|entry| line(entry) + "\n").collect::<String>();
        Ok::<_, std::io::Error>(Some((lines, (state, last))))
    });
    let media = (header::CONTENT_TYPE, "application/x-ndjson");
    let name = format!("attachment; filename=\"{task}.jsonl\"");
    let headers = [media, (header::CONTENT_DISPOSITION, name.as_str())];
    Ok((headers, HttpBody::from_stream(lines)).into_response())
}

/// Every event of every task of a session as JSON, one per line, each with its task
///
/// In place of one that is damaged stands a line of the type `damaged` that names it.
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
    let tasks = state.read(list).await?.into_iter();
    // Page by page: a session may be longer than what fits into memory.
    let lines = stream::try_unfold((state, tasks, 0), |(state, mut tasks, after)| async move {
        let mut after = after;
        while let Some(&task) = tasks.as_slice().first() {
            let read = move |coordinator: &Coordinator| coordinator.feed().readable(task, after);
            let page = state.read(read).await;
            let page = page.map_err(|problem| std::io::Error::other(problem.detail))?;
            if let Some(last) = page.last().map(JournalEntry::seq) {
                let of_task = |one| format!("{{\"task_id\":\"{task}\",{}\n", &line(one)[1..]);
                let lines = page.iter().map(of_task).collect::<String>();
                return Ok::<_, std::io::Error>(Some((lines, (state, tasks, last))));
            }
            tasks.next();
            after = 0;
        }
        Ok(None)
    });
    let media = (header::CONTENT_TYPE, "application/x-ndjson");
    let name = format!("attachment; filename=\"{session}.jsonl\"");
    let headers = [media, (header::CONTENT_DISPOSITION, name.as_str())];
    Ok((headers, HttpBody::from_stream(lines)).into_response())
}

/// A line of a trace: an event, or the name of what stood there and cannot be read.
fn line(entry: &JournalEntry) -> String {
    match entry {
        JournalEntry::Event(record) => trace::entry(record),
        JournalEntry::Damaged(Damage { first, last, problem, .. }) => {
            let data = json!({ "first_seq": first, "last_seq": last, "problem": problem });
            format!(r#"{{"timestamp":null,"iteration":null,"event_type":"damaged","data":{data}}}"#)
        }
    }
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
        (status = 200, description = "The file", content((Vec<u8> = "application/octet-stream"),
            (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/gif"), (Vec<u8> = "image/webp"))),
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
    let name = query.path.rsplit('/').next().unwrap_or(&query.path);
    // A picture can be drawn inside a page.
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type(&bytes))),
        (header::CONTENT_DISPOSITION, attachment(&shown_line(name))),
    ];
    Ok((headers, HttpBody::from(bytes)).into_response())
}

/// What a file is by its first bytes, where it is a picture without anything active in it.
fn media_type(bytes: &[u8]) -> &'static str {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => "application/octet-stream",
    }
}

/// Any JSON object.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its description is used")]
struct Object(Value);
