//! Messages events read into a reply.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use windlass_core::message::Finish;
use windlass_core::reasoning::Seal;

use crate::{
    Fault, StreamEvent,
    assemble::{Assembly, Progress, Reader, parse},
    http::classify_event,
};

/// The blocks of a stream so far.
#[derive(Default)]
pub(crate) struct Events {
    /// The call each tool block of the stream is.
    calls: HashMap<u64, usize>,
    /// The thought each thinking block of the stream is.
    thoughts: HashMap<u64, usize>,
    tokens: Tokens,
}

impl Reader for Events {
    fn read(
        &mut self,
        data: &str,
        into: &mut Assembly,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<Progress, Fault> {
        let event: WireEvent = parse("an event", data)?;
        match event {
            WireEvent::MessageStart { message } => {
                into.model = message.model.unwrap_or_default();
                self.count(message.usage, into);
            }
            WireEvent::ContentBlockStart { index, content_block } => {
                self.begin(index, content_block, into, live)?;
            }
            WireEvent::ContentBlockDelta { index, delta } => match delta {
                Delta::TextDelta { text } => into.add_text(text, live)?,
                Delta::InputJsonDelta { partial_json } => {
                    let at = self.calls.get(&index).copied().ok_or_else(|| Fault::Garbled {
                        detail: format!("arguments for block {index}, which is not a call"),
                    })?;
                    into.add_arguments(at, partial_json, live)?;
                }
                Delta::ThinkingDelta { thinking } => {
                    let at = self.thought(index)?;
                    into.add_thought(at, thinking, live)?;
                }
                Delta::SignatureDelta { signature } => self.sign(index, signature, into)?,
                Delta::Other => {}
            },
            WireEvent::MessageDelta { delta, usage } => {
                self.count(usage, into);
                if let Some(reason) = delta.stop_reason {
                    into.finish = Some(finish(&reason));
                }
            }
            WireEvent::ContentBlockStop { index } => {
                // A call without arguments has no parts, and keeps the object it began with.
                if let Some(at) = self.calls.get(&index).copied()
                    && into.calls[at].arguments.is_empty()
                {
                    into.add_arguments(at, "{}".to_owned(), live)?;
                }
            }
            WireEvent::MessageStop => return Ok(Progress::Done),
            WireEvent::Error { error } => {
                return Err(classify_event(&serde_json::json!({ "error": error })));
            }
            WireEvent::Message(message) => {
                for (index, block) in (0..).zip(message.content) {
                    self.begin(index, block, into, live)?;
                }
                for call in into.calls.iter_mut().filter(|call| call.arguments.is_empty()) {
                    call.arguments.push_str("{}");
                }
                into.model = message.model.unwrap_or_default();
                self.count(message.usage, into);
                into.finish = message.stop_reason.as_deref().map(finish);
                return Ok(Progress::Done);
            }
            WireEvent::Other => {}
        }
        Ok(Progress::More)
    }
}

impl Events {
    fn begin(
        &mut self,
        index: u64,
        block: ReceivedBlock,
        into: &mut Assembly,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<(), Fault> {
        match block {
            ReceivedBlock::Text { text } => into.add_text(text, live)?,
            ReceivedBlock::ToolUse { id, name, input } => {
                let at = into.begin_call(id.unwrap_or_default(), name.unwrap_or_default(), live)?;
                self.calls.insert(index, at);
                // A stream begins with an empty object and sends the real one in parts.
                if let Some(Value::Object(input)) = input.filter(|i| i != &serde_json::json!({})) {
                    into.add_arguments(at, Value::Object(input).to_string(), live)?;
                }
            }
            ReceivedBlock::Thinking { thinking, signature } => {
                let at = into.begin_thought(None)?;
                self.thoughts.insert(index, at);
                into.add_thought(at, thinking.unwrap_or_default(), live)?;
                self.sign(index, signature.unwrap_or_default(), into)?;
            }
            ReceivedBlock::RedactedThinking { data } => {
                into.begin_thought(Some(Seal::Redacted(data)))?;
            }
            ReceivedBlock::Other => {}
        }
        Ok(())
    }

    fn thought(&self, index: u64) -> Result<usize, Fault> {
        self.thoughts.get(&index).copied().ok_or_else(|| Fault::Garbled {
            detail: format!("a thought for block {index}, which is not one"),
        })
    }

    /// A signature may come in parts. A thought without one cannot be sent back.
    fn sign(&self, index: u64, signature: String, into: &mut Assembly) -> Result<(), Fault> {
        if signature.is_empty() {
            return Ok(());
        }
        let at = self.thought(index)?;
        let before = match &into.thoughts[at].seal {
            Some(Seal::Signature(before)) => before.as_str(),
            Some(
                Seal::Redacted(_) | Seal::Item(_) | Seal::Field(_) | Seal::Call(_) | Seal::Phase(_),
            )
            | None => "",
        };
        let whole = format!("{before}{signature}");
        into.seal(at, Seal::Signature(whole))
    }

    /// Takes in counts, of which later ones replace earlier ones.
    fn count(&mut self, new: Option<Tokens>, into: &mut Assembly) {
        let Some(new) = new else { return };
        let old = &mut self.tokens;
        old.input_tokens = new.input_tokens.or(old.input_tokens);
        old.output_tokens = new.output_tokens.or(old.output_tokens);
        old.cache_read_input_tokens = new.cache_read_input_tokens.or(old.cache_read_input_tokens);
        old.cache_creation_input_tokens =
            new.cache_creation_input_tokens.or(old.cache_creation_input_tokens);
        let cached = old.cache_read_input_tokens.unwrap_or(0);
        into.cache_written = old.cache_creation_input_tokens.unwrap_or(0);
        // Here the provider's input is what no cache had a part in; ours is the whole prompt.
        let plain = old.input_tokens.unwrap_or(0);
        into.usage.input_tokens = plain.saturating_add(cached).saturating_add(into.cache_written);
        into.usage.cached_tokens = cached;
        into.usage.output_tokens = old.output_tokens.unwrap_or(0);
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::ContentFilter,
        _ => Finish::Stop,
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireEvent {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        index: u64,
        content_block: ReceivedBlock,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: End,
        usage: Option<Tokens>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    /// A server that does not stream sends the whole message in one piece.
    Message(Message),
    /// `ping`, and what may come in later versions.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Message {
    model: Option<String>,
    usage: Option<Tokens>,
    #[serde(default)]
    content: Vec<ReceivedBlock>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ReceivedBlock {
    Text {
        text: String,
    },
    Thinking {
        thinking: Option<String>,
        signature: Option<String>,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: Option<String>,
        name: Option<String>,
        input: Option<Value>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the protocol's names")]
enum Delta {
    TextDelta {
        text: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct End {
    stop_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}
