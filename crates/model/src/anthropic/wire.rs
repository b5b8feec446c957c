//! Conversations as Messages bodies.
//!
//! The protocol wants the model and the other side to take turns, so all that comes between two
//! replies (results of tools, injections) is blocks of one message. Signed thoughts come before what they led to;
//! one without a signature is left out, because the provider refuses it. Cache marks are on the tools,
//! the system prompt and the last two such messages: four, which is all the provider takes.

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use windlass_core::message::{ArgumentSchema, Message, Prelude};
use windlass_core::picture::Picture;
use windlass_core::reasoning::{Seal, Thought};

use super::thinking::Thinking;
use crate::pieces::{Piece, pieces};
use crate::{Options, Transcript, sanitize};

/// The tool a reply bound to a schema comes as.
pub(crate) const SCHEMA_TOOL: &str = "reply";

/// The protocol demands a limit; all models served today allow this one, and it holds a long file.
pub(crate) const DEFAULT_MAX_TOKENS: u32 = 16_384;

const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// The provider refuses empty texts; this stands for one.
const NOTHING: &str = "(empty)";

#[derive(Serialize)]
struct OfferedTool<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
    description: &'a str,
    input_schema: &'a ArgumentSchema,
    name: &'a str,
}

/// Writes what an epoch begins with: the tools and the system prompt.
pub(crate) fn begin(transcript: &mut Transcript, prelude: &Prelude) {
    let bytes = &mut transcript.prelude;
    if !prelude.tools.is_empty() {
        let last = prelude.tools.len() - 1;
        let tools: Vec<_> = prelude
            .tools
            .iter()
            .enumerate()
            .map(|(at, tool)| OfferedTool {
                cache_control: (at == last).then(|| json!({"type": "ephemeral"})),
                description: &tool.description,
                input_schema: &tool.parameters,
                name: &tool.name,
            })
            .collect();
        bytes.extend_from_slice(b"\"tools\":");
        write(bytes, &tools);
        bytes.push(b',');
    }
    if !prelude.system.is_empty() {
        bytes.extend_from_slice(b"\"system\":");
        let mark = json!({"type": "ephemeral"});
        write(bytes, &json!([{"type": "text", "text": prelude.system, "cache_control": mark}]));
        bytes.push(b',');
    }
}

/// Appends one message, as a block of the open one where that is not the model's.
pub(crate) fn push(transcript: &mut Transcript, message: &Message) {
    match message {
        Message::User { text, pictures } => {
            push_block(transcript, pictures, &SentBlock::text(text))
        }
        Message::Tool { provider_id, text, is_error, .. } => {
            let tool_use_id = sanitize::id(provider_id);
            let content = (!text.is_empty()).then_some(text.as_str());
            let result = SentBlock::ToolResult { tool_use_id, content, is_error: *is_error };
            push_block(transcript, &[], &result);
        }
        Message::Assistant { text, calls, reasoning } => {
            if transcript.open {
                transcript.messages.extend_from_slice(b"]}");
                transcript.open = false;
            }
            separate(transcript);
            let reasoning = transcript.returnable_reasoning(reasoning.as_ref());
            let all = pieces(text, calls, reasoning);
            let mut blocks: Vec<_> = all.iter().filter_map(SentBlock::of).collect();
            // A reply may not be empty, nor end with a thought.
            if all.iter().all(|piece| matches!(piece, Piece::Thought(_))) {
                blocks.push(SentBlock::text(""));
            }
            write(&mut transcript.messages, &Turn { role: "assistant", content: blocks });
        }
    }
}

fn push_block(transcript: &mut Transcript, pictures: &[Picture], block: &SentBlock<'_>) {
    if transcript.open {
        transcript.messages.push(b',');
        transcript.marks.pop();
    } else {
        separate(transcript);
        transcript.messages.extend_from_slice(br#"{"role":"user","content":["#);
        transcript.open = true;
    }
    pictures.iter().for_each(|picture| transcript.show(picture));
    write(&mut transcript.messages, block);
    transcript.mark();
}

fn separate(transcript: &mut Transcript) {
    if !transcript.messages.is_empty() {
        transcript.messages.push(b',');
    }
}

/// The whole request: what varies, the prelude, the messages with their marks.
pub(crate) fn body(
    model: &str,
    said: &Transcript,
    options: &Options,
    thinking: Thinking,
) -> Vec<u8> {
    let tokens = options.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    let mut head = json!({"model": model, "max_tokens": tokens, "stream": true});
    thinking.write(&mut head);
    if let Some(temperature) = options.temperature {
        head["temperature"] = json!(temperature);
    }
    if options.schema.is_some() {
        head["tool_choice"] = json!({"type": "tool", "name": SCHEMA_TOOL});
    }
    let mut body = said.begin_body(&head);
    match &options.schema {
        Some(schema) => extend_with_schema(&mut body, &said.prelude, schema),
        None => body.extend_from_slice(&said.prelude),
    }
    body.extend_from_slice(b"\"messages\":[");
    said.write_messages(&mut body, MARK, |picture, data| match data {
        Ok(data) => {
            let source = json!({"type": "base64", "media_type": picture.format, "data": data});
            json!({"type": "image", "source": source})
        }
        Err(words) => json!({"type": "text", "text": words}),
    });
    body.extend_from_slice(if said.open { b"]}]}" } else { b"]}" });
    body
}

/// Adds the tool that stands for the schema to those of the prelude.
fn extend_with_schema(body: &mut Vec<u8>, prelude: &[u8], schema: &serde_json::Value) {
    let description = "Gives the reply in the form that is asked for.";
    let tool = json!({"name": SCHEMA_TOOL, "description": description, "input_schema": schema});
    body.extend_from_slice(b"\"tools\":[");
    write(body, &tool);
    match prelude.strip_prefix(b"\"tools\":[") {
        Some(rest) => {
            body.push(b',');
            body.extend_from_slice(rest);
        }
        None => {
            body.extend_from_slice(b"],");
            body.extend_from_slice(prelude);
        }
    }
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.trim().to_owned()).expect("`sanitize::arguments` gives valid JSON")
}

fn write(bytes: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(bytes, value).expect("strings and JSON values always serialize");
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<SentBlock<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SentBlock<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: std::borrow::Cow<'a, str>,
        name: std::borrow::Cow<'a, str>,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: std::borrow::Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl<'a> SentBlock<'a> {
    /// A part of a reply; none for a thought that the provider would refuse.
    fn of(piece: &Piece<'a>) -> Option<Self> {
        Some(match *piece {
            Piece::Text(text) => Self::text(text),
            Piece::Thought(thought) => return Self::thought(thought),
            Piece::Call(call) => Self::ToolUse {
                id: sanitize::id(&call.provider_id),
                name: sanitize::name(&call.name),
                input: raw(&sanitize::arguments(&call.arguments)),
            },
        })
    }

    fn thought(thought: &'a Thought) -> Option<Self> {
        match &thought.seal {
            Some(Seal::Signature(signature)) => {
                Some(Self::Thinking { thinking: &thought.text, signature })
            }
            Some(Seal::Redacted(data)) => Some(Self::RedactedThinking { data }),
            Some(Seal::Item(_) | Seal::Field(_) | Seal::Call(_) | Seal::Phase(_)) | None => None,
        }
    }

    fn text(text: &'a str) -> Self {
        Self::Text { text: if text.trim().is_empty() { NOTHING } else { text } }
    }
}
