//! A request as it arrived.

use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use serde_json::Value;
use windlass_model::{Wire, script::RequestView};

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
        let replies = head.replies();
        let (model, streamed) = (head.model, head.stream);
        let answered = None;
        Self { path, headers, body, connection, model, streamed, replies, received, answered }
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The protocol it is in, by its path.
    pub fn wire(&self) -> Option<Wire> {
        match self.path.split('?').next().unwrap_or_default() {
            path if path.ends_with("/chat/completions") => Some(Wire::Chat),
            path if path.ends_with("/responses") => Some(Wire::Responses),
            path if path.ends_with("/messages") => Some(Wire::Anthropic),
            _ => None,
        }
    }

    /// Whether it asks for encrypted reasoning.
    pub(crate) fn wants_encrypted(&self) -> bool {
        let wanted = "reasoning.encrypted_content";
        self.wire() == Some(Wire::Responses)
            && self.body.windows(wanted.len()).any(|bytes| bytes == wanted.as_bytes())
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

impl RequestView for Request {
    fn turn(&self) -> usize {
        self.replies
    }

    fn new_texts(&self) -> Vec<String> {
        let body = self.json();
        let messages = said(&body);
        let last = messages.iter().rposition(is_reply);
        messages[last.map_or(0, |at| at + 1)..].iter().map(words).collect()
    }

    fn opening(&self) -> (String, String) {
        let body = self.json();
        let first = |role: &str| {
            said(&body).iter().find(|m| m["role"] == role).map(words).unwrap_or_default()
        };
        let system = match (&body["system"], &body["instructions"]) {
            (Value::Null, Value::Null) => first("system"),
            (Value::Null, system) | (system, _) => text(system),
        };
        (system, first("user"))
    }
}

/// The messages or items of a body.
fn said(body: &Value) -> &[Value] {
    let messages = body["messages"].as_array().or_else(|| body["input"].as_array());
    messages.map(Vec::as_slice).unwrap_or_default()
}

/// Whether a message or an item is the model's.
fn is_reply(message: &Value) -> bool {
    message["role"] == "assistant"
        || message["type"] == "function_call"
        || message["type"] == "reasoning"
}

fn words(message: &Value) -> String {
    match &message["output"] {
        Value::Null => text(&message["content"]),
        output => text(output),
    }
}

/// The text of a content of any wire.
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
    #[serde(default)]
    input: Input,
}

#[derive(Deserialize)]
struct Role {
    role: String,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Input {
    #[default]
    Nothing,
    Items(Vec<Item>),
    #[expect(dead_code, reason = "a text holds no reply")]
    Text(String),
}

#[derive(Deserialize)]
struct Item {
    role: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl Head {
    /// How many replies of the model it holds. One reply may be several items.
    fn replies(&self) -> usize {
        let messages = self.messages.iter().filter(|message| message.role == "assistant").count();
        let items = match &self.input {
            Input::Items(items) => items.as_slice(),
            Input::Nothing | Input::Text(_) => &[],
        };
        let is_reply = |item: &Item| {
            item.role.as_deref() == Some("assistant")
                || matches!(item.kind.as_deref(), Some("function_call" | "reasoning"))
        };
        let begins = |at: &usize| is_reply(&items[*at]) && (*at == 0 || !is_reply(&items[*at - 1]));
        messages + (0..items.len()).filter(begins).count()
    }
}
