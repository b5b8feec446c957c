//! OpenAI's Chat Completions, as LiteLLM and most other servers speak it.

use reqwest::header::{AUTHORIZATION, HeaderMap};
use secrecy::{ExposeSecret, SecretString};

use crate::http::{Endpoint, request_headers};
use crate::{Error, Options, Reply, StreamEvent, Transcript};

mod stream;
pub(crate) mod wire;

pub(crate) use stream::Chunks;

/// Asks one model that speaks Chat Completions.
pub(crate) async fn ask(
    endpoint: &Endpoint,
    transcript: &Transcript,
    options: &Options,
    live: &mut (dyn FnMut(StreamEvent) + Send),
) -> Result<Reply, Error> {
    let limit = match endpoint.url.host_str() {
        // OpenAI's newer models refuse the old name; most other servers know only that.
        Some("api.openai.com") => "max_completion_tokens",
        _ => "max_tokens",
    };
    let body = wire::body(endpoint.name.model(), transcript, options, limit);
    endpoint.ask(body, transcript, Chunks::default, live).await
}

/// The headers of every request, or `None` when the key cannot be one.
pub(crate) fn headers(key: Option<&SecretString>) -> Option<HeaderMap> {
    let key = key.map(|key| format!("Bearer {}", key.expose_secret().trim()));
    request_headers(AUTHORIZATION, key)
}
