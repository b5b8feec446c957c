//! The page that signs a browser in. The code of a link is behind the `#` of its address: the browser does not send
//! it, and the script hands it in once and takes it out of the address.

use axum::Router;
use axum::http::header;
use axum::response::{Html, IntoResponse};
use axum::routing::get;

use crate::state::AppState;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/login", get(page)).route("/assets/login.js", get(script))
}

const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

async fn page() -> impl IntoResponse {
    let policy = [(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY)];
    (policy, Html(include_str!("login.html")))
}

async fn script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("login.js"))
}
