//! Chat Completions chunks read into a reply.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_core::message::{Finish, Usage};

use super::details::{Details, Thinking, ThinkingBlock, keep_with_call, text_thought};
use crate::{
    Fault, StreamEvent,
    assemble::{Assembly, Progress, Reader, parse},
    http::classify_event,
};

/// The calls of a stream so far.
#[derive(Default)]
pub(crate) struct Chunks {
    /// The call each index of the stream means at the moment.
    open: HashMap<u64, usize>,
    details: Details,
}

impl Reader for Chunks {
    fn read(
        &mut self,
        data: &str,
        into: &mut Assembly,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<Progress, Fault> {
        if data.trim() == "[DONE]" {
            return Ok(Progress::Done);
        }
        let chunk: Chunk = parse("a chunk", data)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(classify_event(&serde_json::json!({ "error": error })));
        }
        if let Some(model) = chunk.model {
            into.model = model;
        }
        if let Some(usage) = chunk.usage {
            into.usage = usage.read();
        }
        let first = |choice: &Choice| choice.index.unwrap_or(0) == 0;
        for choice in chunk.choices.unwrap_or_default().into_iter().filter(first) {
            if let Some(delta) = choice.delta {
                let thinking = Thinking {
                    reasoning_content: delta.reasoning_content,
                    reasoning: delta.reasoning,
                    thinking_blocks: delta.thinking_blocks.unwrap_or_default(),
                    reasoning_details: delta.reasoning_details.unwrap_or_default(),
                };
                self.details.read(thinking, into, live)?;
                self.content(delta.content, delta.refusal, into, live)?;
                for call in delta.tool_calls.unwrap_or_default() {
                    self.call(call, into, live)?;
                }
            }
            if let Some(reason) = choice.finish_reason {
                into.finish = Some(finish(&reason));
            }
        }
        Ok(Progress::More)
    }

    fn finish(&mut self, into: &mut Assembly) -> Result<(), Fault> {
        self.details.finish(into)
    }
}

impl Chunks {
    fn content(
        &self,
        content: Option<Content>,
        refusal: Option<String>,
        into: &mut Assembly,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<(), Fault> {
        match content {
            Some(Content::Text(text)) => into.add_text(text, live),
            Some(Content::Parts(parts)) => parts.into_iter().try_for_each(|part| {
                for thought in part.thinking.unwrap_or_default() {
                    let at = text_thought("thinking", into)?;
                    into.add_thought(at, thought.text.unwrap_or_default(), live)?;
                }
                into.add_text(part.text.unwrap_or_default(), live)
            }),
            None => into.add_text(refusal.unwrap_or_default(), live),
        }
    }

    fn call(
        &mut self,
        delta: CallDelta,
        into: &mut Assembly,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<(), Fault> {
        let function = delta.function.unwrap_or_default();
        let id = delta.id.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let known = match delta.index {
            Some(index) => self.open.get(&index).copied(),
            // Without indices a call continues until the next has an id.
            None if id.is_empty() => into.calls.len().checked_sub(1),
            None => into.calls.iter().position(|call| call.provider_id == id),
        };
        // Some servers give every parallel call the index 0.
        let other = |at: &usize| {
            let call = &into.calls[*at];
            !id.is_empty()
                && !call.provider_id.is_empty()
                && call.provider_id != id
                && !name.is_empty()
        };
        let at = match known.filter(|at| !other(at)) {
            Some(at) => {
                let call = &mut into.calls[at];
                if call.name.is_empty() {
                    call.name = name;
                }
                if call.provider_id.is_empty() {
                    call.provider_id = id;
                }
                at
            }
            None => into.begin_call(id, name, live)?,
        };
        if let Some(index) = delta.index {
            self.open.insert(index, at);
        }
        if let Some(extra) = delta.extra_content.filter(|extra| !extra.is_null()) {
            keep_with_call(at, &extra, into)?;
        }
        let arguments = match function.arguments {
            Some(Value::String(text)) => text,
            None | Some(Value::Null) => String::new(),
            Some(object) => object.to_string(),
        };
        into.add_arguments(at, arguments, live)
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "tool_calls" | "function_call" => Finish::ToolCalls,
        "length" => Finish::Length,
        "content_filter" => Finish::ContentFilter,
        _ => Finish::Stop,
    }
}

#[derive(Deserialize)]
struct Chunk {
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    /// A server that does not stream sends the whole message in one piece.
    #[serde(alias = "message")]
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Content>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
    thinking_blocks: Option<Vec<ThinkingBlock>>,
    reasoning_details: Option<Vec<Map<String, Value>>>,
}

/// A text, or parts of which some are thoughts, as Mistral sends them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
struct ContentPart {
    text: Option<String>,
    thinking: Option<Vec<ThinkingText>>,
}

#[derive(Deserialize)]
struct ThinkingText {
    text: Option<String>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
    /// What Gemini wants back with a call: the signature of the thought before it.
    extra_content: Option<Value>,
}

#[derive(Default, Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Tokens {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// LiteLLM and OpenRouter say here what a streamed call cost.
    cost: Option<f64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl Tokens {
    fn read(self) -> Usage {
        let cached = self.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let reasoning = self.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        let (input, reasoning) = (self.prompt_tokens.unwrap_or(0), reasoning.unwrap_or(0));
        let output = self.completion_tokens.unwrap_or(0);
        // Some count the thoughts beside the reply; their total says so.
        let with_thoughts = output.saturating_add(reasoning);
        let beside = self.total_tokens == Some(input.saturating_add(with_thoughts));
        Usage {
            input_tokens: input,
            output_tokens: if beside { with_thoughts } else { output },
            cached_tokens: cached.unwrap_or(0),
            reasoning_tokens: reasoning,
            cost_usd: self.cost.filter(|cost| cost.is_finite() && *cost >= 0.0),
        }
    }
}
