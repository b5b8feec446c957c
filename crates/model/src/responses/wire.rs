//! Conversations as Responses bodies: a reply is several items, in the order the model made them.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use serde::Serialize;
use serde_json::{json, value::RawValue};
use windlass_core::message::{Message, Prelude, ToolSpec};
use windlass_core::reasoning::{Seal, Thought};

use crate::pieces::{Piece, pieces};
use crate::served::ServedModel;
use crate::{Options, ReasoningUse, Transcript, sanitize};

#[derive(Serialize)]
struct OfferedTool<'a> {
    #[serde(flatten)]
    tool: &'a ToolSpec,
    /// Our schemas have optional arguments, which strict ones may not.
    strict: bool,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Writes what an epoch begins with: the tools and the system prompt.
pub(crate) fn begin(transcript: &mut Transcript, prelude: &Prelude) {
    let bytes = &mut transcript.prelude;
    if !prelude.tools.is_empty() {
        let tools: Vec<_> = prelude
            .tools
            .iter()
            .map(|tool| OfferedTool { tool, strict: false, kind: "function" })
            .collect();
        bytes.extend_from_slice(b"\"tools\":");
        write(bytes, &tools);
        bytes.push(b',');
    }
    if !prelude.system.is_empty() {
        bytes.extend_from_slice(b"\"instructions\":");
        write(bytes, &prelude.system);
        bytes.push(b',');
    }
}

/// Appends one message.
pub(crate) fn push(transcript: &mut Transcript, message: &Message) {
    match message {
        Message::User { text, pictures } if !pictures.is_empty() => {
            separate(transcript);
            let begin = br#"{"type":"message","role":"user","content":["#;
            transcript.messages.extend_from_slice(begin);
            pictures.iter().for_each(|picture| transcript.show(picture));
            write(&mut transcript.messages, &ContentPart { kind: "input_text", text });
            transcript.messages.extend_from_slice(b"]}");
        }
        Message::User { text, .. } => {
            push_item(transcript, &InputItem::of_text("user", "input_text", text));
        }
        Message::Tool { provider_id, text, .. } => {
            let call_id = sanitize::id(provider_id);
            push_item(transcript, &InputItem::FunctionCallOutput { call_id, output: text });
        }
        Message::Assistant { text, calls, reasoning } => {
            let reasoning = transcript.returnable_reasoning(reasoning.as_ref());
            let all = pieces(text, calls, reasoning);
            // The provider wants an answer after each thought.
            let empty = all.iter().all(|piece| matches!(piece, Piece::Thought(_)));
            let mut phase = None;
            for piece in all {
                match piece {
                    Piece::Text(text) => {
                        push_item(transcript, &InputItem::answer(text, phase.take()))
                    }
                    Piece::Thought(thought) => match &thought.seal {
                        // Models are worse where the label of their own words is missing.
                        Some(Seal::Phase(label)) => phase = Some(label.as_str()),
                        Some(
                            Seal::Signature(_)
                            | Seal::Redacted(_)
                            | Seal::Item(_)
                            | Seal::Field(_)
                            | Seal::Call(_),
                        )
                        | None => push_thought(transcript, thought),
                    },
                    Piece::Call(call) => push_item(
                        transcript,
                        &InputItem::FunctionCall {
                            call_id: sanitize::id(&call.provider_id),
                            name: sanitize::name(&call.name),
                            arguments: sanitize::arguments(&call.arguments),
                        },
                    ),
                }
            }
            if empty {
                push_item(transcript, &InputItem::answer(text, phase));
            }
        }
    }
}

/// A thought goes back as the very item it came as.
fn push_thought(transcript: &mut Transcript, thought: &Thought) {
    if let Some(Seal::Item(item)) = &thought.seal
        && let Ok(item) = serde_json::from_str::<&RawValue>(item)
    {
        push_item(transcript, item);
    }
}

fn push_item(transcript: &mut Transcript, item: &(impl Serialize + ?Sized)) {
    separate(transcript);
    write(&mut transcript.messages, item);
}

fn separate(transcript: &mut Transcript) {
    if !transcript.messages.is_empty() {
        transcript.messages.push(b',');
    }
}

/// The whole request: what varies, the prelude, the items.
pub(crate) fn body(model: &ServedModel, said: &Transcript, options: &Options) -> Vec<u8> {
    let mut head = json!({
        "model": model.endpoint.name.model(),
        "store": false,
        "stream": true,
        "parallel_tool_calls": true,
    });
    if let Some(key) = said.cache_key() {
        head["prompt_cache_key"] = json!(key);
    }
    if model.reasons && model.reasoning != ReasoningUse::Off {
        head["include"] = json!(["reasoning.encrypted_content"]);
        let mut reasoning = json!({});
        if !model.summaries_refused.load(Ordering::Relaxed) {
            reasoning["summary"] = json!("auto");
        }
        if let Some(word) = model.effort_word() {
            reasoning["effort"] = json!(word);
        }
        head["reasoning"] = reasoning;
    } else if let Some(temperature) = options.temperature {
        // Models that reason refuse one.
        head["temperature"] = json!(temperature);
    }
    if let Some(tokens) = options.max_output_tokens {
        head["max_output_tokens"] = json!(tokens.min(model.max_output.unwrap_or(u32::MAX)));
    }
    if let Some(schema) = &options.schema {
        let format = json!({"type": "json_schema", "name": "reply", "schema": schema});
        head["text"] = json!({ "format": format });
    }
    let mut body = said.begin_body(&head);
    body.extend_from_slice(&said.prelude);
    body.extend_from_slice(b"\"input\":[");
    said.write_messages(&mut body, b"", |picture, data| match data {
        Ok(data) => {
            let url = format!("data:{};base64,{data}", picture.format);
            json!({"type": "input_image", "image_url": url})
        }
        Err(words) => json!({"type": "input_text", "text": words}),
    });
    body.extend_from_slice(b"]}");
    body
}

fn write(bytes: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(bytes, value).expect("strings and JSON values always serialize");
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum InputItem<'a> {
    Message {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
        content: [ContentPart<'a>; 1],
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: &'a str,
    },
}

#[derive(Serialize)]
struct ContentPart<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

impl<'a> InputItem<'a> {
    fn of_text(role: &'static str, kind: &'static str, text: &'a str) -> Self {
        Self::Message { role, phase: None, content: [ContentPart { kind, text }] }
    }

    /// What the model itself has said, with the label that it had.
    fn answer(text: &'a str, phase: Option<&'a str>) -> Self {
        let content = [ContentPart { kind: "output_text", text }];
        Self::Message { role: "assistant", phase, content }
    }
}
