//! Signing in and out.

use std::io;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answers::{ChangeRefused, ReadRefused};
use crate::auth::{LINK_SECONDS, SESSION_SECONDS, User};
use crate::extract::Body;
use crate::guard::{Client, problem_of};
use crate::problem::Problem;
use crate::state::AppState;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(login))
        .routes(routes!(logout))
        .routes(routes!(make_link))
        .routes(routes!(me))
}

/// How long somebody with too many open links waits before the next try.
const LINK_PAUSE_SECONDS: u64 = 60;

/// What a browser signs in with.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    /// The code of a login link, or a token.
    code: String,
}

/// Who is signed in.
#[derive(Serialize, ToSchema)]
struct Me {
    name: String,
    /// `viewer`, `operator` or `admin`.
    access: String,
    /// How long a browser stays signed in without a request.
    session_seconds: i64,
}

impl Me {
    fn of(user: &User) -> Self {
        let access = user.access.to_string();
        Self { name: user.name.clone(), access, session_seconds: SESSION_SECONDS }
    }
}

/// Sign a browser in with the code of a login link
#[utoipa::path(post, path = "/v1/login", operation_id = "login", tag = "server", security(()), request_body = Login,
    responses(
        (status = 200, description = "Signed in; the cookie is set", body = Me),
        ReadRefused, ChangeRefused,
    ))]
async fn login(
    State(state): State<AppState>,
    Extension(Client(from)): Extension<Client>,
    Body(login): Body<Login>,
) -> Result<Response, Problem> {
    let signed_in = state.auth.sign_in(&login.code, from, state.now());
    let user = signed_in.map_err(|refused| problem_of(&refused))?;
    let cookie = state.auth.begin_session(&user, state.now());
    let cookie = cookie.map_err(|error| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-random-numbers", error.to_string())
    })?;
    // The access log names who signed in.
    Ok(([(header::SET_COOKIE, cookie)], Extension(user.clone()), Json(Me::of(&user)))
        .into_response())
}

/// Sign a browser out
#[utoipa::path(post, path = "/v1/logout", operation_id = "logout", tag = "server",
    responses((status = 204, description = "Signed out; the cookie is removed"), ReadRefused, ChangeRefused))]
async fn logout(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, Problem> {
    let now = state.now();
    let end = move || state.auth.end_session(&headers, now).map_err(|error| error.to_string());
    let ended = tokio::task::spawn_blocking(end).await;
    let cookie = ended.unwrap_or_else(|error| Err(error.to_string())).map_err(|error| {
        let detail = format!("the sign-out was not kept: {error}");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-kept", detail)
    })?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// A link that signs a browser in.
#[derive(Serialize, ToSchema)]
struct LoginLink {
    /// The path and the code behind its `#`, which browsers do not send.
    path: String,
    /// How long it works.
    seconds: i64,
}

/// Make a link that signs a browser in as you, once
#[utoipa::path(post, path = "/v1/login-links", operation_id = "make_login_link", tag = "server",
    responses((status = 201, description = "A link", body = LoginLink), ReadRefused, ChangeRefused))]
async fn make_link(State(state): State<AppState>, user: User) -> Result<Response, Problem> {
    let code = state.auth.links.make(&user.name, state.now()).map_err(|error| {
        let detail = error.to_string();
        match error.kind() {
            io::ErrorKind::QuotaExceeded => {
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-links", detail)
                    .after(LINK_PAUSE_SECONDS)
            }
            _ => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-kept", detail),
        }
    })?;
    let link = LoginLink { path: format!("/login#{code}"), seconds: LINK_SECONDS };
    Ok((StatusCode::CREATED, Json(link)).into_response())
}

/// Who you are
#[utoipa::path(get, path = "/v1/me", operation_id = "get_me", tag = "server",
    responses((status = 200, description = "You", body = Me), ReadRefused))]
async fn me(user: User) -> Json<Me> {
    Json(Me::of(&user))
}
