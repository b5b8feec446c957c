//! What every route may answer besides what it is for, and how lists are continued.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ring::digest;
use serde::Serialize;
use utoipa::IntoResponses;

use crate::problem::Problem;

/// What a request that changes nothing may be refused with.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only its description is used")]
pub enum ReadRefused {
    /// A parameter is not valid
    #[response(status = 400, content_type = "application/problem+json")]
    BadRequest(#[to_schema] Problem),
    /// Not signed in, or with a token or cookie that is not valid
    #[response(status = 401, content_type = "application/problem+json")]
    NotSignedIn(#[to_schema] Problem),
    /// This user may not, or the request comes from another site's page
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(#[to_schema] Problem),
    /// There is no such thing, or it is another user's
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(#[to_schema] Problem),
    /// The request's `Host` is not a name of this server
    #[response(status = 421, content_type = "application/problem+json")]
    Misdirected(#[to_schema] Problem),
    /// Too many wrong tokens came from this address
    #[response(status = 429, content_type = "application/problem+json")]
    TooMany(#[to_schema] Problem),
    /// Stored data is damaged
    #[response(status = 500, content_type = "application/problem+json")]
    Internal(#[to_schema] Problem),
    /// A part that is needed is not there now
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(#[to_schema] Problem),
}

/// What a change may be refused with besides.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only its description is used")]
pub enum ChangeRefused {
    /// The body did not arrive in time
    #[response(status = 408, content_type = "application/problem+json")]
    TooSlow(#[to_schema] Problem),
    /// The thing has moved on, or somebody else was first
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(#[to_schema] Problem),
    /// The body is too large
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(#[to_schema] Problem),
    /// The body is not `application/json`
    #[response(status = 415, content_type = "application/problem+json")]
    NotJson(#[to_schema] Problem),
    /// The body is JSON, and not what was asked for
    #[response(status = 422, content_type = "application/problem+json")]
    Invalid(#[to_schema] Problem),
}

/// A mark of a text's content.
pub fn digest_of(text: &str) -> String {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON with a tag of its content; a client that has it already gets 304.
pub fn tagged(headers: &HeaderMap, body: &impl Serialize) -> Response {
    let Ok(text) = serde_json::to_string(body) else {
        let detail = "the answer cannot be written as JSON";
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail).into_response();
    };
    let tag = format!("\"{}\"", &digest_of(&text)[..32]);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let is_known = known.is_some_and(|tags| tags.split(',').any(|one| one.trim() == tag));
    let revalidate = (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    let tag = (header::ETAG, HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("")));
    match is_known {
        true => (StatusCode::NOT_MODIFIED, [tag, revalidate]).into_response(),
        false => {
            let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            ([tag, revalidate, json], text).into_response()
        }
    }
}

/// A new thing.
pub fn created(body: impl Serialize) -> Response {
    (StatusCode::CREATED, Json(body)).into_response()
}

/// A change that will be carried out.
pub fn accepted(body: impl Serialize) -> Response {
    (StatusCode::ACCEPTED, Json(body)).into_response()
}
