//! What every route may answer besides what it is for, and how lists are continued.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ring::digest;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, IntoResponses};

use crate::problem::Problem;

/// What a request that changes nothing may be refused with.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only its description is used")]
pub enum ReadRefused {
    /// A parameter is not valid, or a header that counts once is sent twice
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
    /// The head of the request is too large
    #[response(status = 431, content_type = "application/problem+json")]
    HeadTooLarge(#[to_schema] Problem),
    /// Stored data is damaged
    #[response(status = 500, content_type = "application/problem+json")]
    Internal(#[to_schema] Problem),
    /// A part that is needed is not there now
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(#[to_schema] Problem),
}

/// What a request that needs no user may be refused with.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only its description is used")]
pub enum PublicRefused {
    /// A header that counts once is sent twice
    #[response(status = 400, content_type = "application/problem+json")]
    BadRequest(#[to_schema] Problem),
    /// It brings a token or a cookie all the same, and one that is not valid
    #[response(status = 401, content_type = "application/problem+json")]
    NotSignedIn(#[to_schema] Problem),
    /// The request comes from another site's page
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(#[to_schema] Problem),
    /// The request's `Host` is not a name of this server
    #[response(status = 421, content_type = "application/problem+json")]
    Misdirected(#[to_schema] Problem),
    /// Too many wrong tokens came from this address
    #[response(status = 429, content_type = "application/problem+json")]
    TooMany(#[to_schema] Problem),
    /// The head of the request is too large
    #[response(status = 431, content_type = "application/problem+json")]
    HeadTooLarge(#[to_schema] Problem),
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

/// Which part of a list is asked for, where it has no other filter.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// At most this many; 50 without.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<usize>,
    /// `next` of the answer before.
    pub cursor: Option<String>,
}

/// A mark of a text's content.
pub fn digest_of(text: &str) -> String {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON with a tag of its content; a client that has it already gets 304.
pub fn with_etag(headers: &HeaderMap, body: &impl Serialize) -> Response {
    let Ok(text) = serde_json::to_string(body) else {
        let detail = "the answer cannot be written as JSON";
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail).into_response();
    };
    let mark = format!("\"{}\"", &digest_of(&text)[..32]);
    let sent = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok());
    let mut tags = sent.flat_map(|tags| tags.split(',')).map(str::trim);
    let is_known = tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == mark);
    // Weak: the compressed answer and the plain one have the same tag, and not the same bytes.
    let tag = format!("W/{mark}");
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

/// The `Content-Disposition` of a file that is handed over under its own name: no browser shows it as a page of ours.
pub fn attachment(name: &str) -> HeaderValue {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    let name: String = name.bytes().map(encode).collect();
    let value = HeaderValue::try_from(format!("attachment; filename*=UTF-8''{name}"));
    value.unwrap_or(HeaderValue::from_static("attachment"))
}

/// A new thing.
pub fn created(body: impl Serialize) -> Response {
    (StatusCode::CREATED, Json(body)).into_response()
}

/// A change that will be carried out.
pub fn accepted(body: impl Serialize) -> Response {
    (StatusCode::ACCEPTED, Json(body)).into_response()
}
