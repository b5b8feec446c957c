//! The Context Service: memories and what is known of a task, over HTTP (ES-019).
//!
//! `GET {base}/v1/context?query=…&task_id=…&session_id=…` answers
//! `{"memories": ["…" | {"text": "…"}], "task_context": "…" | null}`.

use std::time::Duration;

use reqwest::{Client, Url};
use serde::Deserialize;

use super::{BodyError, read_body};
use crate::open::{build_client, parse_base, printable_base};

/// How long it may take; a task waits for it before its first turn.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The largest answer that is read.
const MAX_BYTES: usize = 1024 * 1024;

/// Why nothing was fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContextServiceError {
    /// The base is not one.
    #[error("the Context Service's URL cannot be used: {0}")]
    Base(String),
    /// Nothing answers there, or it answers too late.
    #[error("the Context Service at {base} does not answer: {detail}")]
    #[expect(missing_docs, reason = "the message says it")]
    Unreachable { base: String, detail: String },
    /// It answers, but with something else.
    #[error("the Context Service at {base} answered {detail}")]
    #[expect(missing_docs, reason = "the message says it")]
    Refused { base: String, detail: String },
}

/// A client of the Context Service.
#[derive(Clone, Debug)]
pub struct ContextService {
    client: Client,
    url: Url,
    base: String,
}

/// What it knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What is worth knowing, best first.
    pub memories: Vec<String>,
    /// What is known of this very task.
    pub task_context: Option<String>,
}

#[derive(Deserialize)]
struct ContextServiceAnswer {
    #[serde(default)]
    memories: Vec<Memory>,
    #[serde(default)]
    task_context: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Memory {
    Plain(String),
    Described { text: String },
}

impl ContextService {
    /// A client for the service at `base`; nothing is sent yet.
    pub fn new(base: &str) -> Result<Self, ContextServiceError> {
        let mut url = parse_base(base).map_err(ContextServiceError::Base)?;
        let client =
            build_client(&url).map_err(|error| ContextServiceError::Base(error.to_string()))?;
        let base = printable_base(&url);
        let path = format!("{}/v1/context", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Ok(Self { client, url, base })
    }

    /// Memories that fit a query, and what is known of a task.
    pub async fn fetch(
        &self,
        query: &str,
        task: &str,
        session: &str,
    ) -> Result<Facts, ContextServiceError> {
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .append_pair("query", query)
            .append_pair("task_id", task)
            .append_pair("session_id", session);
        let unreachable = |error: reqwest::Error| ContextServiceError::Unreachable {
            base: self.base.clone(),
            detail: crate::http::innermost(&error.without_url()),
        };
        let refused =
            |detail: String| ContextServiceError::Refused { base: self.base.clone(), detail };
        let response = self.client.get(url).timeout(TIMEOUT).send().await.map_err(unreachable)?;
        if !response.status().is_success() {
            return Err(refused(format!("with status {}", response.status().as_u16())));
        }
        let body = read_body(response, MAX_BYTES).await.map_err(|error| match error {
            BodyError::Broken(error) => unreachable(error),
            BodyError::TooLarge => refused(format!("with more than {MAX_BYTES} bytes")),
        })?;
        let answer: ContextServiceAnswer = serde_json::from_slice(&body)
            .map_err(|error| refused(format!("with something that is not a context: {error}")))?;
        let memories = answer.memories.into_iter().map(|memory| match memory {
            Memory::Plain(text) | Memory::Described { text } => text,
        });
        let task_context = answer.task_context.filter(|text| !text.trim().is_empty());
        Ok(Facts { memories: memories.collect(), task_context })
    }
}
