//! Chat Completions chunks read into a reply.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use windlass_core::message::{Finish, Usage};

use crate::{
    Fault, StreamEvent,
    assemble::{Assembly, Progress, Reader, parse},
    http::classify_event,
};

/// Where the calls of a stream stand.
#[derive(Default)]
pub(crate) struct Chunks {
    /// The call each index of the stream means at the moment.
    open: HashMap<u64, usize>,
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
                into.add_text(delta.content.or(delta.refusal).unwrap_or_default(), live)?;
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
}

impl Chunks {
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
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
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
    prompt_tokens_details: Option<Details>,
    /// LiteLLM and OpenRouter say here what a streamed call cost.
    cost: Option<f64>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl Tokens {
    fn read(self) -> Usage {
        let cached = self.prompt_tokens_details.and_then(|details| details.cached_tokens);
        Usage {
            input_tokens: self.prompt_tokens.unwrap_or(0),
            output_tokens: self.completion_tokens.unwrap_or(0),
            cached_tokens: cached.unwrap_or(0),
            cost_usd: self.cost.filter(|cost| cost.is_finite() && *cost >= 0.0),
        }
    }
}
