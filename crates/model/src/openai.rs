//! OpenAI's Chat Completions, as LiteLLM and most other servers speak it.

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use windlass_core::message::Prelude;

use crate::{
    BoxFuture, Dialect, Error, Model, ModelName, Options, Reply, StreamEvent, Transcript,
    http::Endpoint,
};

mod stream;
pub(crate) mod wire;

pub(crate) use stream::Chunks;

/// A model behind Chat Completions.
pub(crate) struct OpenAi(pub Endpoint);

impl Model for OpenAi {
    fn name(&self) -> &ModelName {
        &self.0.name
    }

    fn transcript(&self, prelude: &Prelude) -> Transcript {
        Transcript::new(Dialect::OpenAi, prelude)
    }

    fn reply<'a>(
        &'a self,
        transcript: &'a Transcript,
        options: &'a Options,
        live: &'a mut (dyn FnMut(StreamEvent) + Send),
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        transcript.must_be(Dialect::OpenAi);
        let limit = match self.0.url.host_str() {
            // OpenAI's newer models refuse the old name; most other servers know only that.
            Some("api.openai.com") => "max_completion_tokens",
            _ => "max_tokens",
        };
        let body = wire::body(self.0.name.model(), transcript, options, limit);
        Box::pin(self.0.ask(body, transcript, Chunks::default, live))
    }
}

/// The headers of every request, or `None` when the key cannot be one.
pub(crate) fn headers(key: Option<&SecretString>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(key) = key {
        let mut value =
            HeaderValue::from_str(&format!("Bearer {}", key.expose_secret().trim())).ok()?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Some(headers)
}
