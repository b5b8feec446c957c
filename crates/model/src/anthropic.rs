//! Anthropic's Messages, natively.

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use windlass_core::message::{Finish, Prelude};

use crate::{
    BoxFuture, Dialect, Error, Model, ModelName, Options, Reply, StreamEvent, Transcript,
    http::Endpoint,
};

mod stream;
pub(crate) mod wire;

pub(crate) use stream::Events;

/// The version of the protocol we speak.
const VERSION: &str = "2023-06-01";

/// A model behind Anthropic's Messages.
pub(crate) struct Anthropic(pub Endpoint);

impl Model for Anthropic {
    fn name(&self) -> &ModelName {
        &self.0.name
    }

    fn transcript(&self, prelude: &Prelude) -> Transcript {
        Transcript::new(Dialect::Anthropic, prelude)
    }

    fn reply<'a>(
        &'a self,
        transcript: &'a Transcript,
        options: &'a Options,
        live: &'a mut (dyn FnMut(StreamEvent) + Send),
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        transcript.must_be(Dialect::Anthropic);
        let body = wire::body(self.0.name.model(), transcript, options);
        Box::pin(async move {
            let reply = self.0.ask(body, transcript, Events::default, live).await?;
            Ok(if options.schema.is_some() { unwrap_schema(reply) } else { reply })
        })
    }
}

/// A reply bound to a schema comes as a call of the one tool that has it; its text is the arguments.
fn unwrap_schema(mut reply: Reply) -> Reply {
    let found = reply.calls.iter().position(|call| call.name == wire::SCHEMA_TOOL);
    if let Some(at) = found {
        reply.text = reply.calls.swap_remove(at).arguments;
        reply.calls.clear();
        if reply.finish == Finish::ToolCalls {
            reply.finish = Finish::Stop;
        }
    }
    reply
}

/// The headers of every request, or `None` when the key cannot be one.
pub(crate) fn headers(key: Option<&SecretString>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
    if let Some(key) = key {
        let mut value = HeaderValue::from_str(key.expose_secret().trim()).ok()?;
        value.set_sensitive(true);
        headers.insert("x-api-key", value);
    }
    Some(headers)
}
