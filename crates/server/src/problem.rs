//! What is refused, and why, as RFC 9457 has it. A type never changes its meaning; texts may.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_coordinator::{Error, ErrorClass};

/// What the type of every problem begins with.
const PREFIX: &str = "urn:windlass:problem:";

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Names the kind of problem: `urn:windlass:problem:` and a word.
    #[serde(rename = "type")]
    #[schema(example = "urn:windlass:problem:unknown-task")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// What happened here.
    pub detail: String,
    /// Seconds to wait before the next try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

impl Problem {
    /// A problem of this kind; `name` is the last word of its type.
    pub fn new(status: StatusCode, name: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("{PREFIX}{name}"),
            title: title(name),
            status: status.as_u16(),
            detail: detail.into(),
            retry_after: None,
        }
    }

    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    pub fn not_found(name: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, name, detail)
    }

    pub fn forbidden(name: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, name, detail)
    }

    pub fn not_signed_in(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "not-signed-in", detail)
    }

    /// Asks to come back after so many seconds.
    pub fn after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The status of the answer.
    pub fn code(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// A name as a sentence: `unknown-task` is `Unknown task`.
fn title(name: &str) -> String {
    let words = name.replace('-', " ");
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// How long to wait for what is full or not there.
const RETRY_SECONDS: u64 = 1;

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let (class, name) = error.code();
        let status = match class {
            ErrorClass::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorClass::Unknown => StatusCode::NOT_FOUND,
            ErrorClass::Forbidden => StatusCode::FORBIDDEN,
            ErrorClass::Conflict => StatusCode::CONFLICT,
            ErrorClass::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorClass::Limited => StatusCode::TOO_MANY_REQUESTS,
            ErrorClass::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorClass::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let detail = windlass_core::text::with_causes(&error);
        if class == ErrorClass::Internal {
            tracing::error!(detail, "a request failed");
        }
        let problem = Self::new(status, name, detail);
        match class {
            ErrorClass::Limited | ErrorClass::Unavailable => problem.after(RETRY_SECONDS),
            ErrorClass::Invalid
            | ErrorClass::Unknown
            | ErrorClass::Forbidden
            | ErrorClass::Conflict
            | ErrorClass::TooLarge
            | ErrorClass::Internal => problem,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, retry_after) = (self.code(), self.retry_after);
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer realm=\"windlass\"");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_title_too() {
        assert_eq!(title("unknown-task"), "Unknown task");
        assert_eq!(title(""), "");
    }
}
