//! What commands printed: the list of a task, and each one whole.

use std::io::Read as _;

use axum::Json;
use axum::body::Body as HttpBody;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::Coordinator;
use windlass_coordinator::outputs::{OutputReader, Stream};
use windlass_core::id::TaskId;

use super::answers::{PageQuery, ReadRefused};
use super::owned;
use crate::auth::{Access, User};
use crate::extract::{Id, Params};
use crate::place::{self, CallPlace};
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(of_task)).routes(routes!(whole))
}

/// Bytes that are read and sent at once.
const PIECE: usize = 64 * 1024;

/// One command and what is kept of its output.
#[derive(Serialize, ToSchema)]
struct OutputEntry {
    call_id: String,
    tool: String,
    /// When it was started.
    at: String,
    streams: Vec<StreamEntry>,
}

/// One stream of a command.
#[derive(Serialize, ToSchema)]
struct StreamEntry {
    /// `stdout` or `stderr`.
    stream: String,
    /// The text, or its beginning and a notice.
    content: String,
    /// Whether it was cut; the whole is at `/v1/outputs/{call_id}`.
    truncated: bool,
    /// How many bytes were printed.
    original_size: u64,
}

/// What the commands of a task printed, in order.
#[derive(Serialize, ToSchema)]
struct OutputList {
    outputs: Vec<OutputEntry>,
    /// The cursor to continue with; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// What the commands of a task printed
#[utoipa::path(get, path = "/v1/tasks/{task_id}/outputs", operation_id = "list_task_outputs", tag = "outputs",
    params(("task_id" = String, Path, description = "The task"), PageQuery),
    responses((status = 200, description = "Outputs", body = OutputList), ReadRefused))]
async fn of_task(
    State(state): State<AppState>,
    user: User,
    Id(task): Id<TaskId>,
    Params(query): Params<PageQuery>,
) -> Result<Json<OutputList>, Problem> {
    owned::task(&state, &user, task).await?;
    let limit = place::limit_of(query.limit)?;
    let after: Option<CallPlace> = place::of_cursor(query.cursor.as_deref())?;
    let read = move |coordinator: &Coordinator| {
        let after = after.map(|CallPlace(call)| call);
        coordinator.artifacts().outputs().of_after(task, after, limit + 1)
    };
    let mut found = state.read(read).await?;
    let next = place::cut(&mut found, limit, place::after_call);
    let outputs = found.into_iter().map(|one| OutputEntry {
        call_id: one.call.call.to_string(),
        tool: one.call.tool.clone(),
        at: one.at.to_string(),
        streams: one
            .kept
            .into_iter()
            .map(|(stream, kept)| StreamEntry {
                stream: stream.to_string(),
                content: kept.content,
                truncated: kept.truncated,
                original_size: kept.original_size,
            })
            .collect(),
    });
    Ok(Json(OutputList { outputs: outputs.collect(), next }))
}

/// Which stream of a call is read.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct WholeQuery {
    /// `stdout` or `stderr`; both, one after the other, without.
    stream: Option<String>,
}

/// The whole output of a command, by the id of its call; gone after some days (AX-076)
#[utoipa::path(get, path = "/v1/outputs/{call_id}", operation_id = "get_output", tag = "outputs",
    params(("call_id" = String, Path, description = "The call"), WholeQuery),
    responses(
        (status = 200, description = "The output", body = String, content_type = "text/plain"),
        ReadRefused,
    ))]
async fn whole(
    State(state): State<AppState>,
    user: User,
    Path(call): Path<String>,
    Params(query): Params<WholeQuery>,
) -> Result<Response, Problem> {
    let bad = |error| Problem::bad_request(format!("`stream`: {error}"));
    let streams =
        match query.stream.as_deref().map(str::parse::<Stream>).transpose().map_err(bad)? {
            Some(stream) => vec![stream],
            None => Stream::ALL.to_vec(),
        };
    let unknown = || Problem::not_found("unknown-output", format!("there is no output `{call}`"));
    let id = call.clone();
    let task =
        state.read(move |coordinator| coordinator.artifacts().outputs().task_of(&id)).await?;
    match task {
        Some(task) => drop(owned::task(&state, &user, task).await.map_err(|_| unknown())?),
        // An output of no task is the owner's.
        None if user.access == Access::Operator => return Err(unknown()),
        None => {}
    }
    let id = call.clone();
    let open =
        move |coordinator: &Coordinator| coordinator.artifacts().outputs().open(&id, &streams);
    let readers = state.read(open).await?;
    let media = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((media, HttpBody::from_stream(pieces(readers))).into_response())
}

/// The content of files piece by piece, so that none is in memory whole.
fn pieces(
    readers: Vec<OutputReader>,
) -> impl stream::Stream<Item = Result<Vec<u8>, std::io::Error>> + Send {
    let readers: std::collections::VecDeque<_> = readers.into();
    stream::try_unfold(readers, |mut readers| async move {
        let read = tokio::task::spawn_blocking(move || {
            while let Some(reader) = readers.front_mut() {
                let mut piece = vec![0; PIECE];
                let count = reader.read(&mut piece)?;
                piece.truncate(count);
                if count > 0 {
                    return Ok(Some((piece, readers)));
                }
                readers.pop_front();
            }
            Ok(None)
        });
        read.await.map_err(std::io::Error::other)?
    })
}
