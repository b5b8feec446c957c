//! OpenAI's Chat Completions, as LiteLLM and most other servers speak it.

use reqwest::header::{AUTHORIZATION, HeaderMap};
use secrecy::{ExposeSecret, SecretString};

use crate::http::request_headers;
use crate::served::ServedModel;
use crate::{Error, Options, Reply, StreamEvent, Transcript};

mod details;
mod stream;
pub(crate) mod wire;

pub(crate) use stream::Chunks;

/// Asks one model that speaks Chat Completions.
pub(crate) async fn ask(
    model: &ServedModel,
    transcript: &Transcript,
    options: &Options,
    live: &mut (dyn FnMut(StreamEvent) + Send),
) -> Result<Reply, Error> {
    let body = wire::body(model, transcript, options);
    model.endpoint.ask(body, HeaderMap::new(), transcript, Chunks::default, live).await
}

/// The headers of every request, or `None` when the key cannot be one.
pub(crate) fn headers(key: Option<&SecretString>) -> Option<HeaderMap> {
    let key = key.map(|key| format!("Bearer {}", key.expose_secret().trim()));
    request_headers(AUTHORIZATION, key)
}
