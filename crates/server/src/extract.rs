//! What handlers take out of a request. Each refuses what is wrong with it as a problem.

mod fields;

use std::str::FromStr;
use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use futures_util::StreamExt as _;
use hyper::body::Body as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::auth::User;
use crate::json::Unambiguous;
use crate::problem::Problem;

/// The largest body: a goal with ten pictures as the page sends them.
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
        let Unambiguous(sent) = serde_json::from_slice(&bytes).map_err(|error| not_json(&error))?;
        fields_of(sent).map(Self)
    }
}

/// A body of at most so many bytes.
async fn read_body(request: Request, limit: usize) -> Result<Vec<u8>, Problem> {
    let too_large = || {
        let detail = format!("the body is over {limit} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
    };
    // A sender that asks first is refused before it sends too much. Another one would find a broken connection.
    let waits = request.headers().contains_key(header::EXPECT);
    if waits && request.body().size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut chunks = request.into_body().into_data_stream();
    let read = async {
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| Problem::bad_request("the body did not arrive whole"))?;
            if bytes.len() + chunk.len() > limit {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    };
    tokio::time::timeout(BODY_TIME, read).await.unwrap_or_else(|_| {
        let detail = format!("the body took longer than {} seconds", BODY_TIME.as_secs());
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", detail))
    })
}

/// What is not JSON is a bad request; JSON that is not what was asked for is another thing.
fn not_json(error: &serde_json::Error) -> Problem {
    if error.is_data() {
        let detail = error.to_string();
        return Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad-fields", detail);
    }
    // It also says what is JSON but cannot be taken: too many levels, a number that is too large.
    let detail = format!("the body cannot be read as JSON: {error}");
    Problem::new(StatusCode::BAD_REQUEST, "bad-json", detail)
}

/// The fields of a body.
pub fn fields_of<T: DeserializeOwned>(sent: Value) -> Result<T, Problem> {
    let refused = |error: fields::FieldError| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad-fields", error.to_string())
    };
    fields::of_json(sent).map_err(refused)
}

/// The parameters behind the `?`.
pub struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read: Result<Query<Vec<(String, String)>>, QueryRejection> =
            Query::from_request_parts(parts, state).await;
        let unreadable = |_| Problem::bad_request("what is behind the `?` cannot be read");
        let Query(given) = read.map_err(unreadable)?;
        let read = fields::of_parameters(given);
        read.map(Self).map_err(|error| Problem::bad_request(error.to_string()))
    }
}

/// The id in a path. One that cannot be an id names nothing.
pub struct Id<T>(pub T);

impl<S: Send + Sync, T: FromStr<Err: std::fmt::Display>> FromRequestParts<S> for Id<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read: Result<Path<String>, PathRejection> =
            Path::from_request_parts(parts, state).await;
        let Path(text) = read.map_err(|_| Problem::bad_request("the path is not UTF-8"))?;
        let id = text.parse::<T>();
        id.map(Self).map_err(|error| Problem::not_found("unknown-id", error.to_string()))
    }
}
