//! A request as it arrived.

use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use serde_json::Value;
use windlass_model::{Dialect, script::Asked};

/// One request to the model, kept as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// The path it was sent to.
    pub path: String,
    /// Its headers, names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// Its body, byte for byte.
    pub body: Arc<[u8]>,
    /// Which connection it came on, from 1.
    pub connection: usize,
    /// The model it asks for.
    pub model: String,
    /// Whether it asks for a stream.
    pub streamed: bool,
    /// How many messages of the model it holds.
    pub replies: usize,
    /// When its last byte was there.
    pub received: Instant,
    /// When the last of its answer was handed to the network; unset while that is still to come.
    pub answered: Option<Instant>,
}

impl Request {
    pub(crate) fn new(
        path: String,
        headers: Vec<(String, String)>,
        body: Arc<[u8]>,
        connection: usize,
    ) -> Self {
        // Taken first: what is done here with the request is not the client's time.
        let received = Instant::now();
        // Contents are skipped, not read: this is on the path of every measured turn.
        let head: Head = serde_json::from_slice(&body).unwrap_or_default();
        let replies = head.messages.iter().filter(|message| message.role == "assistant").count();
        let (model, streamed) = (head.model, head.stream);
        let answered = None;
        Self { path, headers, body, connection, model, streamed, replies, received, answered }
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The protocol it is in, by its path.
    pub fn dialect(&self) -> Option<Dialect> {
        match self.path.split('?').next().unwrap_or_default() {
            path if path.ends_with("/chat/completions") => Some(Dialect::OpenAi),
            path if path.ends_with("/messages") => Some(Dialect::Anthropic),
            _ => None,
        }
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Its messages, each byte for byte.
    pub fn messages(&self) -> Vec<crate::RawMessage> {
        crate::messages(&self.body)
    }

    /// Fails unless this request's messages begin with all of `earlier`'s, byte for byte.
    pub fn assert_extends(&self, earlier: &Self) {
        crate::assert_extends(&earlier.body, &self.body);
    }
}

impl Asked for Request {
    fn turn(&self) -> usize {
        self.replies
    }

    fn news(&self) -> Vec<String> {
        let body = self.json();
        let Some(messages) = body["messages"].as_array() else { return Vec::new() };
        let last = messages.iter().rposition(|message| message["role"] == "assistant");
        messages[last.map_or(0, |at| at + 1)..].iter().map(|m| text(&m["content"])).collect()
    }

    fn opening(&self) -> (String, String) {
        let body = self.json();
        let first = |role: &str| {
            let all = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
            all.iter().find(|m| m["role"] == role).map(|m| text(&m["content"])).unwrap_or_default()
        };
        let system = match &body["system"] {
            Value::Null => first("system"),
            system => text(system),
        };
        (system, first("user"))
    }
}

/// The text of a content of either dialect.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let parts = blocks.iter().map(|block| match &block["text"] {
                Value::String(text) => text.clone(),
                _ => text(&block["content"]),
            });
            parts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[derive(Default, Deserialize)]
struct Head {
    #[serde(default)]
    model: String,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    messages: Vec<Role>,
}

#[derive(Deserialize)]
struct Role {
    role: String,
}
