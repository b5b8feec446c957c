//! The files of a session's directory by name, for whoever writes a message.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_coordinator::{Coordinator, files};
use windlass_core::id::SessionId;

use super::answers::ReadRefused;
use super::owned;
use crate::auth::User;
use crate::extract::{Id, Params};
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Names in one answer.
const MOST: usize = 20;

/// Letters to look for.
const MAX_LETTERS: usize = 200;

/// What to look for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FilesQuery {
    /// Letters of the name, in order.
    #[param(max_length = 200)]
    q: Option<String>,
}

/// Names that fit, the best first; a directory ends in a slash.
#[derive(Serialize, ToSchema)]
struct FileList {
    files: Vec<String>,
}

/// Find files of a session's directory by name; what git ignores is left out
#[utoipa::path(get, path = "/v1/sessions/{session_id}/files", operation_id = "find_files", tag = "sessions",
    params(("session_id" = String, Path, description = "The session"), FilesQuery),
    responses((status = 200, description = "Names", body = FileList), ReadRefused))]
async fn list(
    State(state): State<AppState>,
    user: User,
    Id(session): Id<SessionId>,
    Params(query): Params<FilesQuery>,
) -> Result<Json<FileList>, Problem> {
    owned::session(&state, &user, session).await?;
    if query.q.as_ref().is_some_and(|q| q.chars().count() > MAX_LETTERS) {
        return Err(Problem::bad_request(format!("`q` has at most {MAX_LETTERS} letters")));
    }
    let read = move |coordinator: &Coordinator| {
        let view = coordinator.sessions().view(session)?;
        let newest = view.tasks.last().map(|entry| coordinator.tasks().get(entry.task_id));
        let workspace = newest.transpose()?.flatten().map(|row| row.workspace);
        let all = workspace.map(|path| files::list(Path::new(&path))).unwrap_or_default();
        let found = files::best(&all, query.q.as_deref().unwrap_or_default(), MOST);
        Ok(FileList { files: found.into_iter().map(str::to_owned).collect() })
    };
    Ok(Json(state.read(read).await?))
}
