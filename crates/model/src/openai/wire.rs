//! Conversations as Chat Completions bodies.

use serde::Serialize;
use serde_json::json;
use windlass_core::message::{Message, Prelude};

use crate::{Options, Transcript, sanitize};

/// Writes what an epoch begins with: the tools, and the system prompt as first message.
pub(crate) fn begin(transcript: &mut Transcript, prelude: &Prelude) {
    if !prelude.tools.is_empty() {
        let tools: Vec<_> = prelude
            .tools
            .iter()
            .map(|tool| {
                let (name, parameters) = (&tool.name, &tool.parameters);
                let description = &tool.description;
                let function =
                    json!({"name": name, "description": description, "parameters": parameters});
                json!({"type": "function", "function": function})
            })
            .collect();
        transcript.prelude.extend_from_slice(b"\"tools\":");
        write(&mut transcript.prelude, &tools);
        transcript.prelude.push(b',');
    }
    if !prelude.system.is_empty() {
        write(&mut transcript.messages, &Sent::new("system", &prelude.system));
    }
}

/// Appends one message.
pub(crate) fn push(transcript: &mut Transcript, message: &Message) {
    if !transcript.messages.is_empty() {
        transcript.messages.push(b',');
    }
    let sent = match message {
        Message::User { text } => Sent::new("user", text),
        Message::Assistant { text, calls } => {
            let calls: Vec<_> = calls
                .iter()
                .map(|call| SentCall {
                    id: &call.provider_id,
                    kind: "function",
                    function: Function {
                        name: sanitize::name(&call.name),
                        arguments: sanitize::arguments(&call.arguments),
                    },
                })
                .collect();
            let content = (!text.is_empty() || calls.is_empty()).then_some(text.as_str());
            Sent { role: "assistant", content, tool_calls: calls, tool_call_id: None }
        }
        Message::Tool { provider_id, text, .. } => {
            Sent { tool_call_id: Some(provider_id), ..Sent::new("tool", text) }
        }
    };
    write(&mut transcript.messages, &sent);
}

/// The whole request: what varies, the prelude, the messages.
pub(crate) fn body(model: &str, said: &Transcript, options: &Options, limit: &str) -> Vec<u8> {
    let mut head = json!({
        "model": model,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let Some(temperature) = options.temperature {
        head["temperature"] = json!(temperature);
    }
    if let Some(tokens) = options.max_output_tokens {
        head[limit] = json!(tokens);
    }
    if let Some(schema) = &options.schema {
        let schema = json!({"name": "reply", "schema": schema});
        head["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    let mut body = head.to_string().into_bytes();
    body.reserve(said.bytes() + 32);
    // The head's closing brace gives way to what follows.
    body.pop();
    body.push(b',');
    body.extend_from_slice(&said.prelude);
    body.extend_from_slice(b"\"messages\":[");
    body.extend_from_slice(&said.messages);
    body.extend_from_slice(b"]}");
    body
}

fn write(bytes: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(bytes, value).expect("strings and JSON values always serialize");
}

#[derive(Serialize)]
struct Sent<'a> {
    role: &'static str,
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<SentCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct SentCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: std::borrow::Cow<'a, str>,
    arguments: std::borrow::Cow<'a, str>,
}

impl<'a> Sent<'a> {
    fn new(role: &'static str, text: &'a str) -> Self {
        Self { role, content: Some(text), tool_calls: Vec::new(), tool_call_id: None }
    }
}
