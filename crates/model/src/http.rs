//! One request over HTTP: sent, retried, its stream read event by event.

use std::{
    error::Error as _,
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use secrecy::SecretString;
use sse_stream::SseStream;
use tokio::time::{Instant, timeout};
use windlass_core::reasoning::Reasoning;

mod refusal;

pub(crate) use refusal::classify_event;

use crate::{
    Error, Fault, MAX_REPLY_BYTES, ModelName, Price, Reply, Retry, StreamEvent, Transcript, Wire,
    assemble::{Assembly, Progress, Reader},
    redact, retry,
};

/// The most of an error's body we read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The most bytes one line of a stream may have: a whole reply as JSON escapes fits in it.
const MAX_LINE_BYTES: usize = 2 * MAX_REPLY_BYTES;

/// The most bytes one stream may have, pings and thoughts included: longer is not a reply.
const MAX_STREAM_BYTES: u64 = 256 * 1024 * 1024;

/// How long a stream may take to close after its last event before its connection is given up.
const DRAIN: Duration = Duration::from_millis(100);

/// The headers of a request for a streamed answer, or `None` when the key cannot be one.
pub(crate) fn request_headers(name: HeaderName, key: Option<String>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(key) = key {
        let mut value = HeaderValue::from_str(&key).ok()?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Some(headers)
}

/// What is sent, the same for each attempt.
struct RequestParts {
    body: Bytes,
    /// Headers beyond those of every request.
    more: HeaderMap,
}

/// Where one model is asked, and how.
pub(crate) struct Endpoint {
    pub name: ModelName,
    pub wire: Wire,
    pub url: Url,
    /// The base as people may see it.
    pub base: String,
    pub client: Client,
    pub headers: HeaderMap,
    pub key: Option<SecretString>,
    pub retry: Retry,
    pub stall: Duration,
    pub price: Option<Price>,
}

impl Endpoint {
    /// Asks until there is a reply, or a failure that asking again does not cure. (ES-370, ES-383)
    pub async fn ask<R: Reader>(
        &self,
        body: Vec<u8>,
        more: HeaderMap,
        transcript: &Transcript,
        reader: impl Fn() -> R + Send + Sync,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<Reply, Error> {
        let asked = RequestParts { body: Bytes::from(body), more };
        let mut attempts = 1;
        loop {
            let fault = match self.attempt(&asked, transcript, reader(), live).await {
                Ok(reply) => return Ok(reply),
                Err(fault) => fault,
            };
            let Some(after) = self.retry.wait(attempts, &fault, retry::random_fraction()) else {
                return Err(self.error(attempts, fault));
            };
            let (attempt, reason) = (attempts, fault.to_string());
            live(match fault.retry_after() {
                Some(_) => StreamEvent::Waiting { attempt, after, reason },
                None => StreamEvent::Retrying { attempt, after, reason },
            });
            tokio::time::sleep(after).await;
            attempts += 1;
        }
    }

    fn error(&self, attempts: u32, fault: Fault) -> Error {
        Error { model: self.name.clone(), base: self.base.clone(), attempts, fault }
    }

    async fn attempt<R: Reader>(
        &self,
        asked: &RequestParts,
        transcript: &Transcript,
        mut reader: R,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<Reply, Fault> {
        let sent = Instant::now();
        let response = self.send(asked).await?;
        let cost = header_cost(response.headers());
        let mut assembly = Assembly::default();
        let kind = content_type(&response);
        let progress = match kind.as_str() {
            "application/json" => {
                let whole = self.text(response, MAX_LINE_BYTES).await?;
                if whole.len() >= MAX_LINE_BYTES {
                    return Err(Fault::TooLarge { what: "bytes", limit: MAX_LINE_BYTES });
                }
                match reader.read(&whole, &mut assembly, live) {
                    Err(Fault::Garbled { .. }) => return Err(self.not_a_model_server(&kind)),
                    other => other.map_err(|fault| self.clean(fault))?,
                }
            }
            "text/html" => return Err(self.not_a_model_server(&kind)),
            "text/event-stream" => self.stream(response, &mut reader, &mut assembly, live).await?,
            // Simple servers mislabel their streams, so what it is shows when it is read.
            _ => match self.stream(response, &mut reader, &mut assembly, live).await {
                Err(Fault::Garbled { .. }) => return Err(self.not_a_model_server(&kind)),
                other => other?,
            },
        };
        // Something that says it is a stream may have been cut before its first word.
        if kind != "text/event-stream" && assembly.is_untouched() {
            return Err(self.not_a_model_server(&kind));
        }
        reader.finish(&mut assembly)?;
        let finish = assembly.settle(progress, transcript)?;
        let Assembly { text, calls, thoughts, mut usage, cache_written, mut model, .. } = assembly;
        // Proxies also report a cost of zero for models they have no price for, so zero is only the last resort.
        let streamed = usage.cost_usd.filter(|cost| *cost > 0.0);
        let priced = || self.price.map(|price| price.cost(&usage, cache_written));
        usage.cost_usd = streamed.or(cost).or_else(priced).or(usage.cost_usd);
        if model.is_empty() {
            model = self.name.model().to_owned();
        }
        let reasoning =
            (!thoughts.is_empty()).then(|| Reasoning { model: self.name.to_string(), thoughts });
        Ok(Reply { text, calls, reasoning, finish, usage, model, latency: sent.elapsed() })
    }

    async fn send(&self, asked: &RequestParts) -> Result<Response, Fault> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone());
        let request = request.headers(asked.more.clone()).body(asked.body.clone());
        let response = match timeout(self.stall, request.send()).await {
            Err(_) => return Err(Fault::Stalled { after: self.stall }),
            Ok(Err(error)) => return Err(self.unsent(error)),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response);
        }
        let wait = retry::retry_after(response.headers());
        let body = self.text(response, MAX_ERROR_BYTES).await.unwrap_or_default();
        Err(self.clean(refusal::classify(status.as_u16(), wait, &body, self.wire)))
    }

    async fn stream(
        &self,
        response: Response,
        reader: &mut impl Reader,
        assembly: &mut Assembly,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<Progress, Fault> {
        let seen = AtomicU64::new(0);
        let bytes = std::pin::pin!(lines(response, self.stall, &seen));
        let mut events = SseStream::from_bytes_stream(bytes);
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| self.clean(unreadable(error)))?;
            live(StreamEvent::Bytes(seen.load(Ordering::Relaxed)));
            let Some(data) = event.data else { continue };
            let progress = reader.read(&data, assembly, live).map_err(|fault| self.clean(fault))?;
            if progress == Progress::Done {
                // Read to its end, the connection serves the next request; else it is closed.
                let rest = async { while let Some(Ok(_)) = events.next().await {} };
                let _ = timeout(DRAIN, rest).await;
                return Ok(Progress::Done);
            }
        }
        Ok(Progress::More)
    }

    /// Reads a body that is not a stream, up to `limit` bytes.
    async fn text(&self, response: Response, limit: usize) -> Result<String, Fault> {
        let seen = AtomicU64::new(0);
        let mut bytes = std::pin::pin!(lines(response, self.stall, &seen));
        let mut body = Vec::new();
        while let Some(more) = bytes.next().await {
            body.extend_from_slice(&more.map_err(|StreamFault(fault)| self.clean(fault))?);
            if body.len() > limit {
                body.truncate(limit);
                break;
            }
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    fn not_a_model_server(&self, kind: &str) -> Fault {
        let detail = format!("it answers with `{kind}` instead of an event stream");
        self.clean(Fault::NotAModelServer { detail })
    }

    fn key(&self) -> Option<&SecretString> {
        self.key.as_ref()
    }

    /// What went wrong before there was a response.
    fn unsent(&self, error: reqwest::Error) -> Fault {
        let error = error.without_url();
        match cause(&error) {
            Cause::Refused => Fault::Refused,
            Cause::Tls(detail) => Fault::Tls { detail },
            Cause::Closed if !error.is_connect() => {
                Fault::Truncated { detail: "the connection was closed without a response".into() }
            }
            Cause::Closed | Cause::Other => {
                Fault::Unreachable { detail: redact::clean(&innermost(&error), self.key()) }
            }
        }
    }

    /// The same fault with its detail fit for people.
    fn clean(&self, mut fault: Fault) -> Fault {
        match &mut fault {
            Fault::Unreachable { detail }
            | Fault::Tls { detail }
            | Fault::Unauthorized { detail }
            | Fault::Forbidden { detail }
            | Fault::ModelUnavailable { detail }
            | Fault::RateLimited { detail, .. }
            | Fault::OutOfCredit { detail }
            | Fault::Dropped { detail, .. }
            | Fault::Overloaded { detail, .. }
            | Fault::Server { detail, .. }
            | Fault::BadRequest { detail, .. }
            | Fault::ReasoningRefused { detail }
            | Fault::ContextLength { detail, .. }
            | Fault::ContentFilter { detail }
            | Fault::Truncated { detail }
            | Fault::Garbled { detail }
            | Fault::NotAModelServer { detail }
            | Fault::Script { detail }
            | Fault::Recording { detail } => *detail = redact::clean(detail, self.key()),
            Fault::Refused | Fault::Stalled { .. } | Fault::EmptyReply | Fault::TooLarge { .. } => {
            }
        }
        fault
    }
}

/// The bytes of a response, watched: not too long silent, no line too long.
fn lines<'a>(
    response: Response,
    stall: Duration,
    seen: &'a AtomicU64,
) -> impl Stream<Item = Result<Bytes, StreamFault>> + Send + 'a {
    stream::try_unfold((response, 0_usize), move |(mut response, mut line)| async move {
        let Ok(chunk) = timeout(stall, response.chunk()).await else {
            return Err(StreamFault(Fault::Stalled { after: stall }));
        };
        let Some(chunk) = chunk.map_err(broken_off)? else { return Ok(None) };
        line = match chunk.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => chunk.len() - end,
            None => line + chunk.len(),
        };
        if line > MAX_LINE_BYTES {
            let what = "bytes in one line";
            return Err(StreamFault(Fault::TooLarge { what, limit: MAX_LINE_BYTES }));
        }
        let before = seen.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        if before > MAX_STREAM_BYTES {
            let limit = MAX_STREAM_BYTES as usize;
            return Err(StreamFault(Fault::TooLarge { what: "bytes in its stream", limit }));
        }
        Ok(Some((chunk, (response, line))))
    })
}

/// Carries a fault through the event parser.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct StreamFault(Fault);

fn broken_off(error: reqwest::Error) -> StreamFault {
    StreamFault(Fault::Truncated { detail: innermost(&error.without_url()) })
}

fn unreadable(error: sse_stream::Error) -> Fault {
    match error {
        sse_stream::Error::Body(source) => match source.downcast::<StreamFault>() {
            Ok(broken) => broken.0,
            Err(other) => Fault::Truncated { detail: other.to_string() },
        },
        other => Fault::Garbled { detail: format!("the event stream is not one: {other}") },
    }
}

/// Why a connection could not be had.
pub(crate) enum Cause {
    Refused,
    Tls(String),
    Closed,
    Other,
}

pub(crate) fn cause(error: &reqwest::Error) -> Cause {
    let mut next = error.source();
    while let Some(source) = next {
        if let Some(found) = known_cause(source) {
            return found;
        }
        next = source.source();
    }
    // hyper says so itself when a connection ends before the response begins.
    if innermost(error).contains("closed before message completed") {
        return Cause::Closed;
    }
    Cause::Other
}

fn known_cause(error: &(dyn std::error::Error + 'static)) -> Option<Cause> {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(Cause::Tls(tls.to_string()));
    }
    let io = error.downcast_ref::<io::Error>()?;
    // An I/O error hides what it wraps from `source`; several may be wrapped in each other.
    if let Some(found) = io.get_ref().and_then(|inner| known_cause(inner)) {
        return Some(found);
    }
    match io.kind() {
        io::ErrorKind::ConnectionRefused => Some(Cause::Refused),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => Some(Cause::Closed),
        _ => None,
    }
}

pub(crate) fn innermost(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = value.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// What LiteLLM says the call cost. For streams it may say zero before it knows, and says the cost
/// in the last usage instead.
fn header_cost(headers: &HeaderMap) -> Option<f64> {
    let cost: f64 = headers.get("x-litellm-response-cost")?.to_str().ok()?.parse().ok()?;
    (cost.is_finite() && cost > 0.0).then_some(cost)
}
