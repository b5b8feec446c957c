//! Messages that wait until a session has nothing to do.

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_core::id::{InjectionId, SessionId};

use super::answers::{ChangeRefused, ReadRefused, accepted, created};
use super::once::{Change, Once};
use super::owned;
use super::pictures::{self, NewPicture};
use super::sessions::MessageOutcome;
use super::tasks::invalid;
use crate::auth::User;
use crate::extract::Id;
use crate::problem::Problem;
use crate::queue::{Edit, MOST, NotChanged, Queued, SendError};
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, add))
        .routes(routes!(edit, remove))
        .routes(routes!(send))
}

/// A message that waits.
#[derive(Serialize, ToSchema)]
struct QueuedEntry {
    message_id: String,
    text: String,
    /// What the pictures are called that it shows.
    pictures: Vec<String>,
    user_id: String,
    queued_at: String,
    /// Why it could not be sent; it waits until somebody changes or sends it.
    problem: Option<String>,
}

impl From<&Queued> for QueuedEntry {
    fn from(queued: &Queued) -> Self {
        Self {
            message_id: queued.id.to_string(),
            text: queued.text.clone(),
            pictures: queued.pictures.iter().map(|picture| picture.name.clone()).collect(),
            user_id: queued.by.clone(),
            queued_at: queued.at.to_string(),
            problem: queued.problem.clone(),
        }
    }
}

/// What waits, the next first.
#[derive(Serialize, ToSchema)]
struct QueueEntry {
    messages: Vec<QueuedEntry>,
}

/// A message and the session that it waits in.
struct QueuedMessagePath {
    session: SessionId,
    message: InjectionId,
}

impl FromRequestParts<AppState> for QueuedMessagePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let read = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((session, message)) =
            read.map_err(|error| Problem::bad_request(error.body_text()))?;
        let unknown = |error: String| Problem::not_found("unknown-id", error);
        let session = session.parse().map_err(|error| unknown(format!("{error}")))?;
        let message = message.parse().map_err(|error| unknown(format!("{error}")))?;
        let user = User::from_request_parts(parts, state).await?;
        owned::session(state, &user, session).await?;
        Ok(Self { session, message })
    }
}

impl From<NotChanged> for Problem {
    fn from(refused: NotChanged) -> Self {
        match refused {
            NotChanged::Full => {
                let detail = format!("{MOST} messages wait already");
                Self::new(StatusCode::CONFLICT, "queue-full", detail)
            }
            NotChanged::Gone => {
                Self::new(StatusCode::CONFLICT, "message-gone", "it was sent or removed already")
            }
            NotChanged::Changed(text) => {
                let detail = format!("somebody has changed it meanwhile; it says: {text}");
                Self::new(StatusCode::CONFLICT, "message-changed", detail)
            }
            NotChanged::File(error) => {
                let detail = format!("the queue was not kept: {error}");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "not-kept", detail)
            }
        }
    }
}

/// List the messages that wait in a session, the next first
#[utoipa::path(get, path = "/v1/sessions/{session_id}/queue", operation_id = "list_queue", tag = "sessions",
    params(("session_id" = String, Path, description = "The session")),
    responses((status = 200, description = "What waits", body = QueueEntry), ReadRefused))]
async fn list(
    State(state): State<AppState>,
    user: User,
    Id(session): Id<SessionId>,
) -> Result<Json<QueueEntry>, Problem> {
    owned::session(&state, &user, session).await?;
    let messages = state.queues.of(session).iter().map(QueuedEntry::from).collect();
    Ok(Json(QueueEntry { messages }))
}

/// What to say later.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewQueued {
    #[schema(min_length = 1, pattern = r"\S")]
    text: String,
    /// What it shows; at most ten.
    #[serde(default)]
    #[schema(max_items = 10)]
    pictures: Vec<NewPicture>,
}

/// Say something when the session has nothing to do
#[utoipa::path(post, path = "/v1/sessions/{session_id}/queue", operation_id = "queue_message", tag = "sessions", request_body = NewQueued,
    params(("session_id" = String, Path, description = "The session"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 201, description = "It waits", body = QueuedEntry), ReadRefused, ChangeRefused))]
async fn add(
    State(state): State<AppState>,
    user: User,
    Id(session): Id<SessionId>,
    Change { once, body }: Change<NewQueued>,
) -> Result<Response, Problem> {
    owned::session(&state, &user, session).await?;
    let id = match once.name() {
        Some(name) => InjectionId::derived(&name, "queued"),
        None => InjectionId::new(state.now()),
    };
    let text = non_empty(body.text)?;
    let pictures = pictures::keep(&state, body.pictures).await?;
    let message = Queued { id, text, pictures, by: user.name, at: state.now(), problem: None };
    state.queues.add(session, message.clone())?;
    Ok(created(QueuedEntry::from(&message)))
}

/// What is different.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct QueuedChange {
    #[schema(min_length = 1, pattern = r"\S")]
    text: Option<String>,
    /// Its new place, from 1.
    #[schema(minimum = 1, maximum = 50)]
    place: Option<usize>,
    /// The text that this is a change of; where somebody has changed it since, nothing is written.
    was: Option<String>,
}

/// Change a message that waits, or its place
#[utoipa::path(patch, path = "/v1/sessions/{session_id}/queue/{message_id}", operation_id = "edit_queued", tag = "sessions", request_body = QueuedChange,
    params(("session_id" = String, Path, description = "The session"), ("message_id" = String, Path, description = "The message"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 200, description = "The message", body = QueuedEntry), ReadRefused, ChangeRefused))]
async fn edit(
    State(state): State<AppState>,
    place: QueuedMessagePath,
    Change { once, body }: Change<QueuedChange>,
) -> Result<Json<Value>, Problem> {
    let to = body.place.map(|place| match place {
        1..=MOST => Ok(place - 1),
        _ => Err(invalid(format!("`place` is from 1 to {MOST}"))),
    });
    let (text, to) = (body.text.map(non_empty).transpose()?, to.transpose()?);
    let edit = async {
        let edit = Edit { text, was: body.was, place: to };
        let edited = state.queues.edit(place.session, place.message, edit)?;
        Ok(QueuedEntry::from(&edited))
    };
    once.change(&state, edit).await
}

/// Remove a message that waits
#[utoipa::path(delete, path = "/v1/sessions/{session_id}/queue/{message_id}", operation_id = "remove_queued", tag = "sessions",
    params(("session_id" = String, Path, description = "The session"), ("message_id" = String, Path, description = "The message"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 204, description = "Removed"), ReadRefused, ChangeRefused))]
async fn remove(
    State(state): State<AppState>,
    place: QueuedMessagePath,
    once: Once,
) -> Result<StatusCode, Problem> {
    let remove = async {
        state.queues.remove(place.session, place.message)?;
        Ok(())
    };
    once.removed(&state, remove).await
}

/// Send a message that waits now; a task at work reads it at its next step
#[utoipa::path(post, path = "/v1/sessions/{session_id}/queue/{message_id}/send", operation_id = "send_queued", tag = "sessions",
    params(("session_id" = String, Path, description = "The session"), ("message_id" = String, Path, description = "The message"),
        ("idempotency-key" = Option<String>, Header, description = "The same for a repeated request")),
    responses((status = 202, description = "What became of it", body = MessageOutcome), ReadRefused, ChangeRefused))]
async fn send(
    State(state): State<AppState>,
    place: QueuedMessagePath,
    once: Once,
) -> Result<Response, Problem> {
    let send = async {
        match state.queues.send(&state.coordinator, place.session, place.message).await {
            Ok(sent) => Ok(MessageOutcome::from(&sent)),
            Err(SendError::Gone) => Err(NotChanged::Gone.into()),
            Err(SendError::Refused(error)) => Err(error.into()),
        }
    };
    once.first(&state, send).await.map(accepted)
}

/// A text that says something.
fn non_empty(text: String) -> Result<String, Problem> {
    match text.trim().is_empty() {
        true => Err(invalid("`text` is empty")),
        false => Ok(text),
    }
}
