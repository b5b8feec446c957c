//! Responses events read into a reply.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use windlass_core::message::{Finish, Usage};
use windlass_core::reasoning::Seal;

use crate::{
    Fault, StreamEvent,
    assemble::{Assembly, Progress, Reader, parse},
    http::classify_event,
};

/// The items of a stream so far.
#[derive(Default)]
pub(crate) struct Items {
    /// What each item of the stream is.
    open: HashMap<u64, OpenItem>,
}

/// An item that has begun.
#[derive(Clone, Copy)]
enum OpenItem {
    /// Text; whether some of it came.
    Message { begun: bool },
    /// The call of this index.
    Call(usize),
    /// The thought of this index.
    Thought(usize),
    /// A kind that we did not ask for.
    Other,
}

impl Reader for Items {
    fn read(
        &mut self,
        data: &str,
        into: &mut Assembly,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<Progress, Fault> {
        if data.trim() == "[DONE]" {
            return Ok(Progress::Done);
        }
        let event: WireEvent<'_> = parse("an event", data)?;
        let at = event.output_index.unwrap_or(0);
        let delta = match event.delta {
            Some(Value::String(delta)) => delta,
            _ => String::new(),
        };
        match event.kind.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.open.insert(at, OpenItem::Message { begun: true });
                into.add_text(delta, live)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let thought = self.thought(at, into)?;
                into.add_thought(thought, delta, live)?;
            }
            "response.reasoning_summary_part.added" => {
                let thought = self.thought(at, into)?;
                if !into.thoughts[thought].text.is_empty() {
                    into.add_thought(thought, "\n\n".to_owned(), live)?;
                }
            }
            "response.function_call_arguments.delta" => match self.open.get(&at) {
                Some(OpenItem::Call(call)) => into.add_arguments(*call, delta, live)?,
                _ => {
                    let detail = format!("arguments for item {at}, which is not a call");
                    return Err(Fault::Garbled { detail });
                }
            },
            "response.output_item.added" => {
                if let Some(item) = event.item {
                    self.begin(at, &parse("an item", item.get())?, into, live)?;
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.complete(at, item, into, live)?;
                }
            }
            "response.created" | "response.in_progress" => {
                if let Some(model) = event.response.and_then(|response| response.model) {
                    into.model = model;
                }
            }
            "response.completed" | "response.incomplete" => {
                self.end(event.response.unwrap_or_default(), into, live)?;
                return Ok(Progress::Done);
            }
            "response.failed" => {
                let error = event.response.and_then(|response| response.error);
                return Err(failure(&error.unwrap_or_default()));
            }
            "error" => return Err(failure(&serde_json::from_str(data).unwrap_or_default())),
            // A server that does not stream sends the whole response in one piece.
            "" if data.contains("\"output\"") => {
                let response: Response<'_> = parse("a response", data)?;
                if let Some(error) = response.error.as_ref().filter(|error| !error.is_null()) {
                    return Err(failure(error));
                }
                self.end(response, into, live)?;
                return Ok(Progress::Done);
            }
            "" => {
                let error: Value = parse("an event", data)?;
                if error.get("error").is_some_and(|error| !error.is_null()) {
                    return Err(failure(&error));
                }
            }
            _ => {}
        }
        Ok(Progress::More)
    }
}

impl Items {
    fn begin(
        &mut self,
        at: u64,
        item: &OutputItem,
        into: &mut Assembly,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<OpenItem, Fault> {
        let open = match item.kind.as_str() {
            "message" => {
                if let Some(phase) = &item.phase {
                    into.begin_thought(Some(Seal::Phase(phase.clone())))?;
                }
                OpenItem::Message { begun: false }
            }
            "reasoning" => OpenItem::Thought(into.begin_thought(None)?),
            "function_call" => {
                let id = item.call_id.clone().or_else(|| item.id.clone()).unwrap_or_default();
                OpenItem::Call(into.begin_call(id, item.name.clone().unwrap_or_default(), live)?)
            }
            _ => OpenItem::Other,
        };
        self.open.insert(at, open);
        Ok(open)
    }

    /// Takes in an item that is complete: all that its parts did not bring.
    fn complete(
        &mut self,
        at: u64,
        raw: &RawValue,
        into: &mut Assembly,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<(), Fault> {
        let item: OutputItem = parse("an item", raw.get())?;
        let open = match self.open.get(&at) {
            Some(open) => *open,
            None => self.begin(at, &item, into, live)?,
        };
        match open {
            OpenItem::Message { begun: true } | OpenItem::Other => Ok(()),
            OpenItem::Message { begun: false } => {
                let parts = item.content.unwrap_or_default();
                parts.into_iter().try_for_each(|part| into.add_text(part.words(), live))
            }
            OpenItem::Call(call) => {
                if into.calls[call].arguments.is_empty() {
                    into.add_arguments(call, item.arguments.unwrap_or_default(), live)?;
                }
                Ok(())
            }
            OpenItem::Thought(thought) => {
                if into.thoughts[thought].text.is_empty() {
                    let parts = item.summary.into_iter().chain(item.content).flatten();
                    let words: Vec<_> = parts.map(ContentPart::words).collect();
                    into.add_thought(thought, words.join("\n\n"), live)?;
                }
                into.seal(thought, Seal::Item(raw.get().to_owned()))
            }
        }
    }

    /// The thought that an item is; some servers do not announce it.
    fn thought(&mut self, at: u64, into: &mut Assembly) -> Result<usize, Fault> {
        if let Some(OpenItem::Thought(thought)) = self.open.get(&at) {
            return Ok(*thought);
        }
        let thought = into.begin_thought(None)?;
        self.open.insert(at, OpenItem::Thought(thought));
        Ok(thought)
    }

    fn end(
        &mut self,
        response: Response<'_>,
        into: &mut Assembly,
        live: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<(), Fault> {
        if let Some(model) = response.model {
            into.model = model;
        }
        if let Some(usage) = response.usage {
            into.cache_written = usage.cache_written();
            into.usage = usage.read();
        }
        // Items that came as events are known already.
        for (at, item) in (0..).zip(response.output.unwrap_or_default()) {
            if !self.open.contains_key(&at) {
                self.complete(at, item, into, live)?;
            }
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        into.finish = Some(match reason.as_deref() {
            None if response.status.as_deref() == Some("incomplete") => Finish::Length,
            None => Finish::Stop,
            Some("content_filter") => Finish::ContentFilter,
            Some(_) => Finish::Length,
        });
        Ok(())
    }
}

fn failure(error: &Value) -> Fault {
    match error.get("error").is_some_and(Value::is_object) {
        true => classify_event(error),
        false => classify_event(&serde_json::json!({ "error": error })),
    }
}

#[derive(Deserialize)]
struct WireEvent<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    output_index: Option<u64>,
    /// A text in the events that we read.
    delta: Option<Value>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
}

#[derive(Default, Deserialize)]
struct Response<'a> {
    model: Option<String>,
    status: Option<String>,
    usage: Option<Tokens>,
    error: Option<Value>,
    incomplete_details: Option<Incomplete>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct OutputItem {
    #[serde(rename = "type", default)]
    kind: String,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    /// How a message is labelled.
    phase: Option<String>,
    arguments: Option<String>,
    summary: Option<Vec<ContentPart>>,
    content: Option<Vec<ContentPart>>,
}

#[derive(Deserialize)]
struct ContentPart {
    text: Option<String>,
    refusal: Option<String>,
}

impl ContentPart {
    fn words(self) -> String {
        self.text.or(self.refusal).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
    /// LiteLLM says here what a streamed call cost.
    cost: Option<f64>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl Tokens {
    fn cache_written(&self) -> u64 {
        self.input_tokens_details.as_ref().and_then(|of| of.cache_write_tokens).unwrap_or(0)
    }

    fn read(self) -> Usage {
        let cached = self.input_tokens_details.and_then(|of| of.cached_tokens);
        let reasoning = self.output_tokens_details.and_then(|of| of.reasoning_tokens);
        Usage {
            input_tokens: self.input_tokens.unwrap_or(0),
            output_tokens: self.output_tokens.unwrap_or(0),
            cached_tokens: cached.unwrap_or(0),
            reasoning_tokens: reasoning.unwrap_or(0),
            cost_usd: self.cost.filter(|cost| cost.is_finite() && *cost >= 0.0),
        }
    }
}
