//! Pictures: those that people attach to what they say, and those that a task has seen.

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::Coordinator;
use windlass_coordinator::pictures::MAX_ATTACHED;
use windlass_core::event::Event;
use windlass_core::id::TaskId;
use windlass_core::picture::{Picture, PictureHash};

use super::answers::ReadRefused;
use super::owned;
use super::tasks::invalid;
use crate::auth::User;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(get))
}

/// A picture to attach.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPicture {
    /// What it is called.
    name: String,
    /// A PNG, JPEG, GIF or WebP file in base64.
    data: String,
}

/// Checks pictures and keeps them, so that a goal or a message can name them.
pub(super) async fn keep(
    state: &AppState,
    attached: Vec<NewPicture>,
) -> Result<Vec<Picture>, Problem> {
    if attached.len() > MAX_ATTACHED {
        return Err(invalid(format!("at most {MAX_ATTACHED} pictures can be attached")));
    }
    let mut files = Vec::new();
    for picture in attached {
        let bytes = STANDARD.decode(&picture.data);
        let bytes = bytes.map_err(|_| invalid("`data` is not base64"))?;
        files.push((picture.name, bytes));
    }
    let keep = move |coordinator: &Coordinator| {
        let pictures = coordinator.artifacts().pictures();
        files.iter().map(|(name, bytes)| pictures.keep(bytes, name)).collect()
    };
    state.read(keep).await
}

/// A picture that a task was shown or has seen
#[utoipa::path(get, path = "/v1/tasks/{task_id}/pictures/{hash}", operation_id = "get_picture", tag = "tasks",
    params(("task_id" = String, Path, description = "The task"), ("hash" = String, Path, description = "The hash of the picture")),
    responses(
        (status = 200, description = "A PNG or JPEG file", content((Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"))),
        ReadRefused,
    ))]
async fn get(
    State(state): State<AppState>,
    user: User,
    Path((task, hash)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let none = || Problem::not_found("unknown-picture", format!("there is no picture `{hash}`"));
    let (Ok(task), Ok(wanted)) = (task.parse::<TaskId>(), hash.parse::<PictureHash>()) else {
        return Err(none());
    };
    owned::task(&state, &user, task).await?;
    let read = move |coordinator: &Coordinator| {
        let records = coordinator.journals().readable(task)?;
        let mut pictures = records.iter().flat_map(|record| pictures_of(&record.event));
        let found = pictures.find(|picture| picture.hash == wanted);
        let bytes = found.and_then(|picture| coordinator.artifacts().pictures().read(picture));
        Ok(found.map(|picture| picture.format).zip(bytes))
    };
    let (format, bytes) = state.read(read).await?.ok_or_else(none)?;
    let headers = [
        (header::CONTENT_TYPE, format.as_str()),
        // Its address is its content.
        (header::CACHE_CONTROL, "private, max-age=31536000, immutable"),
    ];
    Ok((headers, bytes).into_response())
}

/// The pictures that an event names.
fn pictures_of(event: &Event) -> &[Picture] {
    match event {
        Event::TaskCreated(created) => &created.pictures,
        Event::InjectionReceived(injection) => &injection.pictures,
        Event::ToolResult(result) => &result.outcome.pictures,
        _ => &[],
    }
}
