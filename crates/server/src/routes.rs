//! Every route, and what is around all of them.

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware;
use axum::response::Redirect;
use axum::routing::get;
use tower_http::compression::CompressionLayer;

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

async fn nothing_here(uri: Uri) -> Problem {
    Problem::not_found("unknown-path", format!("there is nothing at `{}`", uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    let detail = format!("`{}` does not take {method}", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", detail)
}
