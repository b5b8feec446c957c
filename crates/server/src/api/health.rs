//! Whether the server is there, whether it can work, and what it offers.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answers::PublicRefused;
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(healthz))
        .routes(routes!(readyz))
        .route("/openapi.json", axum::routing::get(openapi))
}

/// Whether the server is there
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", tag = "server", security(()),
    responses(
        (status = 200, description = "It is", body = String, content_type = "text/plain"),
        PublicRefused,
    ))]
async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the server can work: its database answers, and has room
#[utoipa::path(get, path = "/readyz", operation_id = "get_readiness", tag = "server", security(()),
    responses(
        (status = 200, description = "It can", body = String, content_type = "text/plain"),
        (status = 500, description = "Stored data is damaged", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "It cannot now", body = Problem, content_type = "application/problem+json"),
        PublicRefused,
    ))]
async fn readyz(State(state): State<AppState>) -> Result<&'static str, Problem> {
    state.read(|coordinator| coordinator.storage().check()).await?;
    Ok("ready\n")
}

/// The description of this API, in the OpenAPI form.
async fn openapi(State(state): State<AppState>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], state.openapi.clone())
}
