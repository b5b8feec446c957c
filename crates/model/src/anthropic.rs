//! Anthropic's Messages, natively.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use windlass_core::message::Finish;

use crate::http::{Endpoint, request_headers};
use crate::{Error, Options, Reply, StreamEvent, Transcript};

mod stream;
pub(crate) mod wire;

pub(crate) use stream::Events;

/// The version of the protocol we speak.
const VERSION: &str = "2023-06-01";

/// Asks one model that speaks Messages.
pub(crate) async fn ask(
    endpoint: &Endpoint,
    transcript: &Transcript,
    options: &Options,
    live: &mut (dyn FnMut(StreamEvent) + Send),
) -> Result<Reply, Error> {
    let body = wire::body(endpoint.name.model(), transcript, options);
    let reply = endpoint.ask(body, transcript, Events::default, live).await?;
    Ok(if options.schema.is_some() { unwrap_schema(reply) } else { reply })
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
    let key = key.map(|key| key.expose_secret().trim().to_owned());
    let mut headers = request_headers(HeaderName::from_static("x-api-key"), key)?;
    headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
    Some(headers)
}
