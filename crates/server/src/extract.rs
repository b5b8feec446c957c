//! What handlers take out of a request. Each refuses what is wrong with it as a problem.

use std::str::FromStr;
use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::auth::User;
use crate::problem::Problem;

/// The largest body. A goal has up to 1 MiB, and JSON writes some letters longer.
pub const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The user of a request; pages and handlers take it as a parameter.
impl<S: Send + Sync> FromRequestParts<S> for User {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let user = parts.extensions.get::<Self>().cloned();
        user.ok_or_else(|| Problem::not_signed_in("sign in first"))
    }
}

/// A body of JSON.
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let sent = request.headers().get(header::CONTENT_TYPE);
        let media = sent.and_then(|media| media.to_str().ok()).unwrap_or("");
        let media = media.split(';').next().unwrap_or("").trim();
        if !media.eq_ignore_ascii_case("application/json") {
            let detail = format!("`{media}` is not accepted; send `application/json`");
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", detail));
        }
        let bytes = read_body(request, MAX_BODY_BYTES).await?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| not_readable(&error))
    }
}

/// A body of at most so many bytes.
pub async fn read_body(request: Request, limit: usize) -> Result<Vec<u8>, Problem> {
    let read = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(request.into_body(), limit));
    match read.await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(_)) => {
            let detail = format!("the body did not arrive, or is over {limit} bytes");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail))
        }
        Err(_) => {
            let detail = format!("the body took longer than {} seconds", BODY_TIME.as_secs());
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", detail))
        }
    }
}

/// What is not JSON is a bad request; JSON that is not what was asked for is another thing.
fn not_readable(error: &serde_json::Error) -> Problem {
    match error.classify() {
        Category::Syntax | Category::Eof | Category::Io => {
            Problem::new(StatusCode::BAD_REQUEST, "bad-json", error.to_string())
        }
        Category::Data => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad-fields", error.to_string())
        }
    }
}

/// The parameters behind the `?`.
pub struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read: Result<Query<T>, QueryRejection> = Query::from_request_parts(parts, state).await;
        let Query(params) = read.map_err(|error| Problem::bad_request(error.body_text()))?;
        Ok(Self(params))
    }
}

/// The id in a path. One that cannot be an id names nothing.
pub struct Id<T>(pub T);

impl<S: Send + Sync, T: FromStr<Err: std::fmt::Display>> FromRequestParts<S> for Id<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read: Result<Path<String>, PathRejection> =
            Path::from_request_parts(parts, state).await;
        let Path(text) = read.map_err(|error| Problem::bad_request(error.body_text()))?;
        let id = text.parse::<T>();
        id.map(Self).map_err(|error| Problem::not_found("unknown-id", error.to_string()))
    }
}
