//! One message sent to a server over HTTP. The SDK's own way of it reads a body of any length.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::{Client, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::SseStream;

use super::bound::{MAX_MESSAGE_BYTES, MessageBound};

type Failure = StreamableHttpError<reqwest::Error>;

const SESSION: &str = "Mcp-Session-Id";
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// What is said of a body over the bound.
pub(super) const POST_TOO_LARGE: &str = "the answer exceeds the maximum size of a message";

/// Sends a message; reads at most [`MAX_MESSAGE_BYTES`] of the answer.
pub(super) async fn post(
    client: &Client,
    uri: &str,
    message: &ClientJsonRpcMessage,
    session: Option<Arc<str>>,
    auth: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> Result<StreamableHttpPostResponse, Failure> {
    let mut request = client.post(uri).header(ACCEPT, format!("{EVENTS}, {JSON}"));
    if let Some(auth) = auth {
        request = request.bearer_auth(auth);
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(session) = &session {
        request = request.header(SESSION, session.as_ref());
    }
    let response = request.json(message).send().await?;
    let needs_answer = matches!(message, JsonRpcMessage::Request(_));
    let status = response.status();
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if status == StatusCode::NOT_FOUND && session.is_some() {
        return Err(StreamableHttpError::SessionExpired);
    }
    if !status.is_success() {
        return refusal(response).await;
    }
    let next_session = text_of(&response, SESSION);
    let kind = text_of(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
    if kind.starts_with(EVENTS) {
        return Ok(StreamableHttpPostResponse::Sse(events(response), next_session));
    }
    if !kind.starts_with(JSON) {
        return match needs_answer {
            true => Err(StreamableHttpError::UnexpectedContentType(Some(kind))),
            false => Ok(StreamableHttpPostResponse::Accepted),
        };
    }
    let body = body(response).await?;
    match serde_json::from_slice(&body) {
        Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, next_session)),
        Err(_) if !needs_answer => Ok(StreamableHttpPostResponse::Accepted),
        Err(error) => Err(StreamableHttpError::Deserialize(error)),
    }
}

/// Why a message was refused: an error in the protocol's own words, or the status.
async fn refusal(response: Response) -> Result<StreamableHttpPostResponse, Failure> {
    let status = response.status();
    let is_refusal = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if let (StatusCode::UNAUTHORIZED, Some(how)) =
        (status, text_of(&response, WWW_AUTHENTICATE.as_str()))
    {
        return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(how)));
    }
    let is_json = text_of(&response, CONTENT_TYPE.as_str()).is_some_and(|it| it.starts_with(JSON));
    let (session, wait) = (text_of(&response, SESSION), text_of(&response, RETRY_AFTER.as_str()));
    if is_json && !is_refusal && status != StatusCode::TOO_MANY_REQUESTS {
        let body = body(response).await?;
        if let Ok(error @ ServerJsonRpcMessage::Error(_)) = serde_json::from_slice(&body) {
            return Ok(StreamableHttpPostResponse::Json(error, session));
        }
    }
    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        return Err(HttpStatusError::new(status.as_u16(), wait).into());
    }
    Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}").into()))
}

fn text_of(response: &Response, header: &str) -> Option<String> {
    let value = response.headers().get(header)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// A whole body within the bound.
async fn body(mut response: Response) -> Result<Vec<u8>, Failure> {
    let (mut body, mut bound) = (Vec::new(), MessageBound::default());
    while let Some(piece) = response.chunk().await? {
        if !bound.holds_with(&piece) {
            return Err(StreamableHttpError::UnexpectedServerResponse(POST_TOO_LARGE.into()));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The events of one body, which break off at the bound.
fn events(response: Response) -> super::http::Events {
    let mut left = MAX_MESSAGE_BYTES;
    let pieces = response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(std::io::Error::other)?;
        left =
            left.checked_sub(piece.len()).ok_or_else(|| std::io::Error::other(POST_TOO_LARGE))?;
        Ok::<_, std::io::Error>(piece)
    });
    SseStream::from_bytes_stream(pieces).boxed()
}
