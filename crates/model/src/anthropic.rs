//! Anthropic's Messages, natively.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use windlass_core::message::Finish;

use crate::http::request_headers;
use crate::served::ServedModel;
use crate::{Error, Fault, Options, Reply, StreamEvent, Transcript};

mod stream;
mod thinking;
pub(crate) mod wire;

pub(crate) use stream::Events;
use thinking::{Thinking, is_adaptive};

/// The version of the protocol we speak.
const VERSION: &str = "2023-06-01";

/// Lets models that take a budget think between calls too; the others do so anyway.
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";

/// Asks one model that speaks Messages.
pub(crate) async fn ask(
    model: &ServedModel,
    transcript: &Transcript,
    options: &Options,
    live: &mut (dyn FnMut(StreamEvent) + Send),
) -> Result<Reply, Error> {
    let thinking = match options.schema {
        // A forced call and thinking exclude each other.
        Some(_) => Thinking::Off,
        None => Thinking::of(&model.endpoint.name, model.effort, model.efforts),
    };
    let reply = match ask_with(model, transcript, options, thinking, live).await {
        // Some servers do not let a model think that continues calls made without thinking.
        Err(error) if thinking != Thinking::Off && wants_thoughts(&error.fault) => {
            ask_with(model, transcript, options, Thinking::Off, live).await?
        }
        other => other?,
    };
    Ok(if options.schema.is_some() { unwrap_schema(reply) } else { reply })
}

async fn ask_with(
    model: &ServedModel,
    transcript: &Transcript,
    options: &Options,
    thinking: Thinking,
    live: &mut (dyn FnMut(StreamEvent) + Send),
) -> Result<Reply, Error> {
    let wanted = options.max_output_tokens.unwrap_or(wire::DEFAULT_MAX_TOKENS);
    let (thinking, tokens) = thinking.fit_limit(wanted, model.max_output);
    let options = Options {
        max_output_tokens: Some(tokens),
        // Models that think by themselves refuse one, and so does thinking.
        temperature: options
            .temperature
            .filter(|_| thinking == Thinking::Off && !is_adaptive(model.endpoint.name.model())),
        ..options.clone()
    };
    let body = wire::body(model.endpoint.name.model(), transcript, &options, thinking);
    let mut more = HeaderMap::new();
    if matches!(thinking, Thinking::Budget(_)) {
        more.insert("anthropic-beta", HeaderValue::from_static(INTERLEAVED));
    }
    model.endpoint.ask(body, more, transcript, Events::default, live).await
}

fn wants_thoughts(fault: &Fault) -> bool {
    matches!(fault, Fault::BadRequest { detail, .. } if detail.contains("Expected `thinking`"))
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
