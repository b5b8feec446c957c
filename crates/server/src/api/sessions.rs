//! Sessions: conversations, their axes, what is said in them, and their slash commands.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::slash::SlashInput;
use windlass_coordinator::views::{SessionDetails, TaskEntry};
use windlass_coordinator::{AxesOrder, Coordinator, Delivery, NewSession, Talk};
use windlass_core::axes::{Axes, Surface};
use windlass_core::id::{ChangeId, SessionId};
use windlass_core::session::{Scope, Source};

use super::answers::{ChangeRefused, ReadRefused, accepted, created, with_etag};
use super::once::{Change, Once};
use super::owned;
use super::pictures::{self, NewPicture};
use super::task_view::AxesView;
use super::tasks::{NewAxes, invalid, workspace};
use crate::auth::{User, Via};
use crate::extract::{Id, Params};
use crate::place;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, begin))
        .routes(routes!(get))
        .routes(routes!(say))
        .routes(routes!(run_command))
        .routes(routes!(change_axes))
        .routes(routes!(clear))
}

/// Sessions in one answer, when the request does not say.
const USUAL_LIMIT: u32 = 50;

/// Sessions in one answer at most.
const MAX_LIMIT: u32 = 200;

/// A conversation and how its tasks are to work.
#[derive(Serialize, ToSchema)]
struct SessionEntry {
    session_id: String,
    /// Whose it is; empty when nobody said so.
    user_id: String,
    /// Whether a person stays in it: a final reply waits for the next message.
    interactive: bool,
    workspace: Option<String>,
    /// The axes in force; later tasks start with them.
    axes: AxesView,
    /// The role that its agents work in: `architect`, `executor` or `auditor`.
    role: Option<String>,
    /// Changes of the axes that wait for their scope, oldest first.
    #[schema(value_type = Vec<Object>)]
    pending: Vec<Value>,
    /// The model that a person has named; it wins over the model mode.
    model: Option<String>,
    /// The task that the next message continues.
    conversation: Option<String>,
    /// The task that a command without a name means.
    active_task_id: Option<String>,
    /// Whether a process works on one of its tasks.
    is_working: bool,
    /// Its tasks, oldest first, sub-agents left out.
    tasks: Vec<SessionTask>,
    created_at: String,
}

/// One task of a session.
#[derive(Serialize, ToSchema)]
struct SessionTask {
    task_id: String,
    /// What is wanted, in one line.
    goal_summary: String,
    status: String,
    created_at: String,
    completed_at: Option<String>,
    /// Its place in the session's queue, from 1, while it waits there.
    queue_place: Option<usize>,
}

impl From<&TaskEntry> for SessionTask {
    fn from(entry: &TaskEntry) -> Self {
        let status = entry.task_status.map(|status| status.to_string());
        Self {
            task_id: entry.task_id.to_string(),
            goal_summary: entry.goal_summary.clone(),
            status: status.unwrap_or_else(|| entry.status.to_string()),
            created_at: entry.created_at.to_string(),
            completed_at: entry.completed_at.map(|at| at.to_string()),
            queue_place: entry.queue_place,
        }
    }
}

impl From<&SessionDetails> for SessionEntry {
    fn from(view: &SessionDetails) -> Self {
        Self {
            session_id: view.session_id.to_string(),
            user_id: view.user_id.clone(),
            interactive: view.interactive,
            workspace: view.workspace.clone(),
            axes: (&view.axes).into(),
            role: view.role.map(|role| role.to_string()),
            pending: view.pending.iter().map(|change| json!(change)).collect(),
            model: view.model.clone(),
            conversation: view.conversation.map(|task| task.to_string()),
            active_task_id: view.active_task_id.map(|task| task.to_string()),
            is_working: view.is_working,
            tasks: view.tasks.iter().map(SessionTask::from).collect(),
            created_at: view.created_at.to_string(),
        }
    }
}

/// Which sessions are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// At most this many.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// `next` of the answer before.
    cursor: Option<String>,
}

/// Sessions, those that changed last first.
#[derive(Serialize, ToSchema)]
struct SessionList {
    sessions: Vec<SessionEntry>,
    /// The cursor to continue with; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List the sessions that you may see, those that changed last first
#[utoipa::path(get, path = "/v1/sessions", operation_id = "list_sessions", tag = "sessions", params(ListQuery),
    responses((status = 200, description = "Sessions", body = SessionList), ReadRefused))]
async fn list(
    State(state): State<AppState>,
    user: User,
    Params(query): Params<ListQuery>,
) -> Result<Json<SessionList>, Problem> {
    let limit = query.limit.unwrap_or(USUAL_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is from 1 to {MAX_LIMIT}")));
    }
    let after = place::of_cursor(query.cursor.as_deref())?;
    let owner = user.limited_to();
    let read = move |coordinator: &Coordinator| {
        // One more says whether there are more.
        let mut rows = coordinator.sessions().newest_of(owner.as_deref(), after, limit + 1)?;
        let has_more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let last = rows.last().filter(|_| has_more);
        let next = last.map(place::after_session);
        let mut sessions = Vec::new();
        for row in &rows {
            sessions.push(SessionEntry::from(&coordinator.session(row.id).details()?));
        }
        Ok(SessionList { sessions, next })
    };
    Ok(Json(state.read(read).await?))
}

/// How a session begins.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Beginning {
    /// What differs from chat, manual, normal, smart.
    axes: Option<NewAxes>,
    /// The directory that its tasks work in, on the server's machine; each has one of its own without. Only an admin
    /// chooses.
    workspace: Option<String>,
}

/// Begin a session
#[utoipa::path(post, path = "/v1/sessions", operation_id = "begin_session", tag = "sessions", request_body = Beginning,
    params(("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "The session", body = SessionEntry), ReadRefused, ChangeRefused))]
async fn begin(
    State(state): State<AppState>,
    user: User,
    Change { once, body: wanted }: Change<Beginning>,
) -> Result<Response, Problem> {
    let session = match once.name() {
        Some(name) => SessionId::derived(&name, "session"),
        None => SessionId::new(state.now()),
    };
    let axes = Axes::interactive(surface(&user));
    let axes = wanted.axes.as_ref().map_or(Ok(axes), |given| given.apply_to(axes))?;
    let place =
        wanted.workspace.as_deref().map(|path| workspace(&state, &user, path)).transpose()?;
    let workspace = place.map(|path| path.display().to_string());
    let new = NewSession::new(axes, user.name, workspace);
    state.coordinator.session(session).begin(new).await?;
    let view = state.read(move |coordinator| coordinator.session(session).details()).await?;
    Ok(created(SessionEntry::from(&view)))
}

const fn surface(user: &User) -> Surface {
    match user.via {
        Via::Token => Surface::Rpc,
        Via::Cookie => Surface::Web,
    }
}

/// Look at a session: its axes, what of them is about to change, its tasks
#[utoipa::path(get, path = "/v1/sessions/{session_id}", operation_id = "get_session", tag = "sessions",
    params(("session_id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The session", body = SessionEntry),
        (status = 304, description = "As the client has it (`If-None-Match`)"),
        ReadRefused,
    ))]
async fn get(
    State(state): State<AppState>,
    user: User,
    headers: HeaderMap,
    Id(session): Id<SessionId>,
) -> Result<Response, Problem> {
    owned::session(&state, &user, session).await?;
    let view = state.read(move |coordinator| coordinator.session(session).details()).await?;
    Ok(with_etag(&headers, &SessionEntry::from(&view)))
}

/// What is said in a session.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewMessage {
    #[schema(min_length = 1, pattern = r"\S")]
    text: String,
    /// What it shows; at most ten.
    #[serde(default)]
    #[schema(max_items = 10)]
    pictures: Vec<NewPicture>,
}

/// What became of a message.
#[derive(Serialize, ToSchema)]
pub(super) struct MessageOutcome {
    /// `begun`: it is a task now; `delivered`: the task of the conversation reads it at its next boundary.
    outcome: String,
    task_id: String,
    /// Its place in the session's queue, from 1; absent when it may start at once.
    queue_place: Option<usize>,
}

impl From<&Delivery> for MessageOutcome {
    fn from(sent: &Delivery) -> Self {
        let (outcome, queue_place) = match sent {
            Delivery::Begun { place, .. } => ("begun", *place),
            Delivery::Delivered { .. } => ("delivered", None),
        };
        Self { outcome: outcome.to_owned(), task_id: sent.task().to_string(), queue_place }
    }
}

/// Say something in a session; a `/name` of a skill calls it
#[utoipa::path(post, path = "/v1/sessions/{session_id}/messages", operation_id = "send_message", tag = "sessions", request_body = NewMessage,
    params(("session_id" = String, Path, description = "The session"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 202, description = "What became of it", body = MessageOutcome), ReadRefused, ChangeRefused))]
async fn say(
    State(state): State<AppState>,
    user: User,
    Id(session): Id<SessionId>,
    Change { once, body: message }: Change<NewMessage>,
) -> Result<Response, Problem> {
    owned::session(&state, &user, session).await?;
    let pictures = pictures::keep(&state, message.pictures).await?;
    let talk = Talk::for_service(message.text, user.name);
    let talk = Talk { request: once.name(), pictures, ..talk };
    let sent = state.coordinator.session(session).conversation().send(talk).await?;
    Ok(accepted(MessageOutcome::from(&sent)))
}

/// A slash command.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CommandLine {
    /// As a person types it, with or without its slash.
    #[schema(min_length = 1, pattern = r"\S", example = "/mode build")]
    line: String,
}

/// Carry out a slash command; the answer is data that any surface can draw (MS-175)
#[utoipa::path(post, path = "/v1/sessions/{session_id}/commands", operation_id = "run_command", tag = "sessions", request_body = CommandLine,
    params(("session_id" = String, Path, description = "The session"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The answer: `command`, `blocks`, `effect`", body = Object), ReadRefused, ChangeRefused))]
async fn run_command(
    State(state): State<AppState>,
    user: User,
    Id(session): Id<SessionId>,
    Change { once, body: command }: Change<CommandLine>,
) -> Result<Json<Value>, Problem> {
    owned::session(&state, &user, session).await?;
    let reach = user.reach();
    let input = SlashInput::for_service(command.line, user.name);
    let input = SlashInput { reach, request: once.name(), ..input };
    let carry_out = async { Ok(state.coordinator.session(session).run(input).await?) };
    once.change(&state, carry_out).await
}

/// A change of the axes.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AxesWish {
    axes: NewAxes,
    /// `now`, `after-current-tool`, `after-current-unit`, `next-milestone` or `for-next-unit`; at once without.
    scope: Option<String>,
    /// Why, in words.
    reason: Option<String>,
}

/// Change the axes of a session; a call that runs keeps those it was allowed by
#[utoipa::path(patch, path = "/v1/sessions/{session_id}/axes", operation_id = "change_axes", tag = "sessions", request_body = AxesWish,
    params(("session_id" = String, Path, description = "The session"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "`from`, `to`, and whether it waits for its scope", body = Object), ReadRefused, ChangeRefused))]
async fn change_axes(
    State(state): State<AppState>,
    user: User,
    Id(session): Id<SessionId>,
    Change { once, body: wanted }: Change<AxesWish>,
) -> Result<Json<Value>, Problem> {
    owned::session(&state, &user, session).await?;
    let change = wanted.axes.change()?;
    let scope = wanted.scope.as_deref().map_or(Ok(Scope::Now), str::parse::<Scope>);
    let scope = scope.map_err(|error| invalid(error.to_string()))?;
    let order = AxesOrder {
        wanted: change,
        scope,
        reason: wanted.reason.unwrap_or_else(|| "over HTTP".to_owned()),
        source: Source::User,
        by: user.name,
        id: once.name().map(|name| ChangeId::derived(&name, "change")),
    };
    let change = async { Ok(state.coordinator.session(session).change(order).await?) };
    once.change(&state, change).await
}

/// The conversation that was ended.
#[derive(Serialize, ToSchema)]
struct ClearedEntry {
    task_id: Option<String>,
}

/// End the conversation of a session; the next message begins another
#[utoipa::path(post, path = "/v1/sessions/{session_id}/clear", operation_id = "clear_session", tag = "sessions",
    params(("session_id" = String, Path, description = "The session"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "What was ended", body = ClearedEntry), ReadRefused, ChangeRefused))]
async fn clear(
    State(state): State<AppState>,
    user: User,
    Id(session): Id<SessionId>,
    once: Once,
) -> Result<Json<Value>, Problem> {
    owned::session(&state, &user, session).await?;
    let clear = async {
        let task = state.coordinator.session(session).conversation().clear(&user.name).await?;
        Ok(ClearedEntry { task_id: task.map(|task| task.to_string()) })
    };
    once.change(&state, clear).await
}

/// Any JSON object.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its description is used")]
struct Object(Value);
