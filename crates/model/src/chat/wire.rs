//! Conversations as Chat Completions bodies.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use windlass_core::message::{Message, Prelude, ToolRequest, ToolSpec};
use windlass_core::reasoning::{Effort, Reasoning, Seal};

use crate::served::ServedModel;
use crate::{EffortForm, Options, ReasoningUse, Transcript, sanitize};

/// What Gemini takes in place of a signature that is not there any more.
const NO_SIGNATURE: &str = r#"{"google":{"thought_signature":"skip_thought_signature_validator"}}"#;

#[derive(Serialize)]
struct OfferedTool<'a> {
    function: &'a ToolSpec,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Writes what an epoch begins with: the tools, and the system prompt as first message.
pub(crate) fn begin(transcript: &mut Transcript, prelude: &Prelude) {
    if !prelude.tools.is_empty() {
        let tools: Vec<_> = prelude
            .tools
            .iter()
            .map(|tool| OfferedTool { function: tool, kind: "function" })
            .collect();
        transcript.prelude.extend_from_slice(b"\"tools\":");
        write(&mut transcript.prelude, &tools);
        transcript.prelude.push(b',');
    }
    if !prelude.system.is_empty() {
        write(&mut transcript.messages, &SentMessage::new("system", &prelude.system));
    }
}

/// Appends one message.
pub(crate) fn push(transcript: &mut Transcript, message: &Message) {
    if !transcript.messages.is_empty() {
        transcript.messages.push(b',');
    }
    let sent = match message {
        Message::User { text, pictures } if !pictures.is_empty() => {
            transcript.messages.extend_from_slice(br#"{"role":"user","content":["#);
            pictures.iter().for_each(|picture| transcript.show(picture));
            write(&mut transcript.messages, &json!({"type": "text", "text": text}));
            transcript.messages.extend_from_slice(b"]}");
            return;
        }
        Message::User { text, .. } => SentMessage::new("user", text),
        Message::Assistant { text, calls, reasoning } => {
            let reasoning = transcript.returnable_reasoning(reasoning.as_ref());
            let kept = transcript.reasoning_use();
            let content = (!text.is_empty() || calls.is_empty()).then_some(text.as_str());
            SentMessage {
                role: "assistant",
                content,
                returned: ReturnedReasoning::of(reasoning, kept),
                tool_calls: sent_calls(calls, reasoning, kept),
                tool_call_id: None,
            }
        }
        Message::Tool { provider_id, text, .. } => {
            SentMessage { tool_call_id: Some(provider_id), ..SentMessage::new("tool", text) }
        }
    };
    write(&mut transcript.messages, &sent);
}

/// The whole request: what varies, the prelude, the messages.
pub(crate) fn body(model: &ServedModel, said: &Transcript, options: &Options) -> Vec<u8> {
    let mut head = json!({
        "model": model.endpoint.name.model(),
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let Some(temperature) = options.temperature {
        head["temperature"] = json!(temperature);
    }
    if let Some(tokens) = options.max_output_tokens {
        head[limit(model)] = json!(tokens.min(model.max_output.unwrap_or(u32::MAX)));
    }
    write_effort(&mut head, model);
    if let Some(schema) = &options.schema {
        let schema = json!({"name": "reply", "schema": schema});
        head["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    let mut body = said.begin_body(&head);
    body.extend_from_slice(&said.prelude);
    body.extend_from_slice(b"\"messages\":[");
    said.write_messages(&mut body, b"", |picture, data| match data {
        Ok(data) => {
            let url = format!("data:{};base64,{data}", picture.format);
            json!({"type": "image_url", "image_url": {"url": url}})
        }
        Err(words) => json!({"type": "text", "text": words}),
    });
    body.extend_from_slice(b"]}");
    body
}

/// The name of the limit of a reply. OpenAI's newer models refuse the old name; most other servers know only that.
fn limit(model: &ServedModel) -> &'static str {
    match model.endpoint.url.host_str() {
        Some(host) if host == "api.openai.com" || host.ends_with(".openai.azure.com") => {
            "max_completion_tokens"
        }
        _ => "max_tokens",
    }
}

fn write_effort(head: &mut Value, model: &ServedModel) {
    let Some(word) = model.effort_word() else { return };
    match (model.effort_form, model.effort) {
        (EffortForm::Object, _) => head["reasoning"] = json!({ "effort": word }),
        (EffortForm::Thinking, Some(Effort::None)) => {
            head["thinking"] = json!({"type": "disabled"});
        }
        (EffortForm::Field | EffortForm::Thinking, _) => head["reasoning_effort"] = json!(word),
    }
}

fn sent_calls<'a>(
    calls: &'a [ToolRequest],
    reasoning: Option<&'a Reasoning>,
    kept: ReasoningUse,
) -> Vec<SentCall<'a>> {
    let extra = |index: usize| {
        let thoughts = reasoning.map(|reasoning| reasoning.thoughts.as_slice()).unwrap_or_default();
        let found = thoughts.iter().find_map(|thought| match &thought.seal {
            Some(Seal::Call(extra)) if thought.after_calls == index => Some(extra.as_str()),
            _ => None,
        });
        // Of calls side by side only the first is signed.
        let missing = kept == ReasoningUse::Signatures && index == 0;
        found.or(missing.then_some(NO_SIGNATURE))
    };
    let sent = |(index, call): (usize, &'a ToolRequest)| SentCall {
        id: &call.provider_id,
        kind: "function",
        function: Function {
            name: sanitize::name(&call.name),
            arguments: sanitize::arguments(&call.arguments),
        },
        extra_content: extra(index).and_then(|extra| serde_json::from_str(extra).ok()),
    };
    calls.iter().enumerate().map(sent).collect()
}

fn write(bytes: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(bytes, value).expect("strings and JSON values always serialize");
}

#[derive(Serialize)]
struct SentMessage<'a> {
    role: &'static str,
    content: Option<&'a str>,
    #[serde(flatten)]
    returned: ReturnedReasoning<'a>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

impl<'a> SentMessage<'a> {
    fn new(role: &'static str, text: &'a str) -> Self {
        let (returned, tool_calls) = (ReturnedReasoning::default(), Vec::new());
        Self { role, content: Some(text), returned, tool_calls, tool_call_id: None }
    }
}

/// What the model thought, in the fields it came in.
#[derive(Default, Serialize)]
struct ReturnedReasoning<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thinking_blocks: Vec<SentThinking<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SentThinking<'a> {
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
}

impl<'a> ReturnedReasoning<'a> {
    fn of(reasoning: Option<&'a Reasoning>, kept: ReasoningUse) -> Self {
        let mut returned = Self::default();
        for thought in reasoning.map(|reasoning| reasoning.thoughts.as_slice()).unwrap_or_default()
        {
            let text = thought.text.as_str();
            match &thought.seal {
                Some(Seal::Field(field)) if field == "reasoning" => {
                    append(&mut returned.reasoning, text);
                }
                Some(Seal::Field(field)) if field == "reasoning_content" => {
                    append(&mut returned.reasoning_content, text);
                }
                Some(Seal::Signature(signature)) => {
                    append(&mut returned.reasoning_content, text);
                    returned
                        .thinking_blocks
                        .push(SentThinking::Thinking { thinking: text, signature });
                }
                Some(Seal::Redacted(data)) => {
                    returned.thinking_blocks.push(SentThinking::RedactedThinking { data });
                }
                Some(Seal::Item(item)) => {
                    returned.reasoning_details.extend(serde_json::from_str::<&RawValue>(item).ok());
                }
                // A call carries its own; another form has no field to go back in.
                Some(Seal::Call(_) | Seal::Field(_) | Seal::Phase(_)) | None => {}
            }
        }
        // The details hold the text too.
        if !returned.reasoning_details.is_empty() {
            returned.reasoning = None;
        }
        if kept == ReasoningUse::Require && returned.reasoning_content.is_none() {
            returned.reasoning_content = Some(Cow::Borrowed(""));
        }
        returned
    }
}

/// The thoughts of one reply are one text on the wire.
fn append<'a>(text: &mut Option<Cow<'a, str>>, more: &'a str) {
    match text {
        Some(text) => text.to_mut().push_str(more),
        None => *text = Some(Cow::Borrowed(more)),
    }
}
