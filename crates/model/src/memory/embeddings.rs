//! Embeddings: how near texts are in meaning, from an OpenAI-compatible endpoint.

use std::time::Duration;

use reqwest::{Client, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;

use super::{BodyError, read_body};
use crate::open::{build_client, loopback, parse_base, printable_base};

/// How long one request may take; a search waits for it.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Texts in one request; providers take more, but not all of them.
const BATCH: usize = 96;
/// The largest answer that is read.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Why there are no embeddings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddingsError {
    /// The base or the key cannot be used.
    #[error("the embeddings server cannot be used: {0}")]
    Setup(String),
    /// It does not answer, or with something else.
    #[error("the embeddings server at {base} {detail}")]
    #[expect(missing_docs, reason = "the message says it")]
    Failed { base: String, detail: String },
}

/// A client of an embeddings endpoint.
#[derive(Clone, Debug)]
pub struct Embeddings {
    client: Client,
    url: Url,
    base: String,
    key: Option<SecretString>,
    model: String,
}

#[derive(Deserialize)]
struct EmbeddingsAnswer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    #[serde(default)]
    index: usize,
    embedding: Vec<f32>,
}

impl Embeddings {
    /// A client for `model` at `base`; nothing is sent yet.
    pub fn new(
        base: &str,
        key: Option<SecretString>,
        model: &str,
    ) -> Result<Self, EmbeddingsError> {
        let mut url = parse_base(base).map_err(EmbeddingsError::Setup)?;
        let base = printable_base(&url);
        if key.is_none() && !loopback(&url) {
            let missing = format!("{base} needs a key (EMBEDDINGS_API_KEY)");
            return Err(EmbeddingsError::Setup(missing));
        }
        let client =
            build_client(&url).map_err(|error| EmbeddingsError::Setup(error.to_string()))?;
        let path = format!("{}/embeddings", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Ok(Self { client, url, base, key, model: model.to_owned() })
    }

    /// One vector a text, in order.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingsError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            vectors.extend(self.embed_batch(batch).await?);
        }
        Ok(vectors)
    }

    async fn embed_batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingsError> {
        let failed = |detail: String| EmbeddingsError::Failed { base: self.base.clone(), detail };
        let unreachable = |error: reqwest::Error| {
            failed(format!("does not answer: {}", crate::http::innermost(&error.without_url())))
        };
        let body = json!({"model": self.model, "input": texts, "encoding_format": "float"});
        let mut request = self.client.post(self.url.clone()).timeout(TIMEOUT).json(&body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose_secret());
        }
        let response = request.send().await.map_err(unreachable)?;
        if !response.status().is_success() {
            return Err(failed(format!("answered with status {}", response.status().as_u16())));
        }
        let bytes = read_body(response, MAX_BYTES).await.map_err(|error| match error {
            BodyError::Broken(error) => unreachable(error),
            BodyError::TooLarge => failed(format!("answered with more than {MAX_BYTES} bytes")),
        })?;
        let answer: EmbeddingsAnswer = serde_json::from_slice(&bytes)
            .map_err(|_| failed("answered with something that is not embeddings".to_owned()))?;
        let mut items = answer.data;
        items.sort_by_key(|item| item.index);
        if items.len() != texts.len() {
            let detail = format!("answered {} texts with {} vectors", texts.len(), items.len());
            return Err(failed(detail));
        }
        Ok(items.into_iter().map(|item| item.embedding).collect())
    }
}
