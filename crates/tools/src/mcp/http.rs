//! HTTP as the SDK speaks it, with an ear for a server that dies: the SDK tries again for as long as a call may
//! take, and its caller would not learn of it.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::bound::{MAX_MESSAGE_BYTES, MessageBound};
use super::post::{POST_TOO_LARGE, post};
use super::trouble::{Trouble, Troubles};

type Headers = HashMap<HeaderName, HeaderValue>;
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;
type Failure = StreamableHttpError<reqwest::Error>;

/// A client that reports what breaks.
#[derive(Clone)]
pub(super) struct WatchedClient {
    pub client: reqwest::Client,
    pub troubles: Troubles,
}

impl StreamableHttpClient for WatchedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        match post(&self.client, &uri, &message, session, auth, headers).await {
            Ok(StreamableHttpPostResponse::Sse(events, session)) => {
                Ok(StreamableHttpPostResponse::Sse(self.watch(events), session))
            }
            Err(failure) => Err(self.failed(failure)),
            Ok(answered) => Ok(answered),
        }
    }

    /// The bound of a body is ours, so the SDK's bound of an event has nothing to add.
    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
        _limit: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post_message(uri, message, session, auth, headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.client.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        after: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        let limit = MAX_MESSAGE_BYTES;
        self.get_stream_with_max_sse_event_size(uri, session, after, auth, headers, limit).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        after: Option<String>,
        auth: Option<String>,
        headers: Headers,
        limit: usize,
    ) -> Result<Events, Failure> {
        // With an event to continue after, an answer that broke off is fetched again; else it is only a
        // stream of notices, which may come and go.
        let resumes = after.is_some();
        let client = &self.client;
        let opened = client
            .get_stream_with_max_sse_event_size(uri, session, after, auth, headers, limit)
            .await;
        match opened {
            Err(failure) if resumes => Err(self.failed(failure)),
            opened => opened.map(|events| {
                let troubles = self.troubles.clone();
                let read =
                    move |event| bounded(event).inspect_err(|error| report_size(error, &troubles));
                events.map(read).boxed()
            }),
        }
    }
}

impl WatchedClient {
    fn failed(&self, failure: Failure) -> Failure {
        if matches!(&failure, StreamableHttpError::UnexpectedServerResponse(why) if why == POST_TOO_LARGE)
        {
            self.troubles.report(Trouble::TooLarge);
        }
        if let StreamableHttpError::Client(error) = &failure {
            let words = super::connection::chain(error);
            self.troubles.report(match error.is_connect() {
                true => Trouble::Unreachable(words),
                false => Trouble::Broken(words),
            });
        }
        failure
    }

    /// The events of one answer. Where they break off and cannot be fetched again, the answer is lost.
    fn watch(&self, events: Events) -> Events {
        let troubles = self.troubles.clone();
        let mut watched = Watched { troubles, is_answered: false, can_resume: false };
        let end = futures_util::stream::once(async { None });
        events
            .map(|event| Some(bounded(event)))
            .chain(end)
            .filter_map(move |event| {
                watched.see(event.as_ref());
                std::future::ready(event)
            })
            .boxed()
    }
}

/// What was seen of one answer.
struct Watched {
    troubles: Troubles,
    is_answered: bool,
    /// Whether the server numbers its events, so that it can be asked for the rest.
    can_resume: bool,
}

impl Watched {
    /// Looks at the next event; `None` is the end of the stream.
    fn see(&mut self, event: Option<&Result<Sse, SseError>>) {
        match event {
            Some(Ok(event)) => {
                self.can_resume |= event.id.as_ref().is_some_and(|id| !id.is_empty());
                self.is_answered |= event.data.as_deref().is_some_and(is_response);
            }
            Some(Err(error)) if is_too_large(error) => self.troubles.report(Trouble::TooLarge),
            Some(Err(error)) => self.broke_off(&super::connection::chain(error)),
            None => self.broke_off("the answer ended before its result"),
        }
    }

    fn broke_off(&self, words: &str) {
        if !self.is_answered && !self.can_resume {
            self.troubles.report(Trouble::Broken(words.to_owned()));
        }
    }
}

/// An event whose message may be read.
fn bounded(event: Result<Sse, SseError>) -> Result<Sse, SseError> {
    let event = event?;
    let data = event.data.as_deref().unwrap_or_default();
    match MessageBound::default().holds_with(data.as_bytes()) {
        true => Ok(event),
        false => Err(SseError::Body("the message exceeds its maximum size".into())),
    }
}

fn report_size(error: &SseError, troubles: &Troubles) {
    if is_too_large(error) {
        troubles.report(Trouble::TooLarge);
    }
}

/// Whether a message is the response that its stream was opened for, and not a notice on the way to it.
fn is_response(data: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Answered {
        result: Option<serde::de::IgnoredAny>,
        error: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_str(data)
        .is_ok_and(|kind: Answered| kind.result.is_some() || kind.error.is_some())
}

/// The type of the SDK's own error is hidden; its words are all there is.
fn is_too_large(error: &SseError) -> bool {
    matches!(error, SseError::Body(body) if body.to_string().contains("maximum size"))
}
