//! Every route, and what is around all of them.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use tower_http::compression::CompressionLayer;

use crate::auth::User;
use crate::guard;
use crate::problem::Problem;
use crate::state::AppState;
use crate::{api, page};

/// The routes of the API and of the page, behind the guard.
pub fn all(state: &AppState) -> Router {
    let (api, _) = api::routes().split_for_parts();
    let all = api
        .merge(page::routes())
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .layer(CompressionLayer::new())
        .layer(middleware::from_fn_with_state(state.clone(), guard::guard))
        .with_state(state.clone());
    match state.base.is_empty() {
        true => all,
        // Some proxies take their path away, others leave it.
        false => {
            let (base, first_page) = (state.base.clone(), format!("{}/", state.base));
            let to_first_page = move |uri: Uri| async move {
                let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
                Redirect::to(&format!("{base}{query}"))
            };
            let under_base = Router::new().nest(&state.base, all.clone());
            under_base.route(&first_page, get(to_first_page)).merge(all)
        }
    }
}

/// The API in OpenAPI's words, as JSON.
pub fn openapi() -> String {
    let (_, openapi) = api::routes().split_for_parts();
    openapi.to_json().unwrap_or_default()
}

/// A person finds a page that says so, a program a problem.
async fn nothing_here(
    State(state): State<AppState>,
    user: User,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let wants_page = method == Method::GET
        && !uri.path().starts_with("/v1/")
        && accepted.is_some_and(|accepted| accepted.contains("text/html"));
    if wants_page {
        return page::nothing_here(&state, uri.path(), &user).await;
    }
    let detail = format!("there is nothing at `{}`", uri.path());
    Problem::not_found("unknown-path", detail).into_response()
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    let detail = format!("`{}` does not take {method}", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", detail)
}
