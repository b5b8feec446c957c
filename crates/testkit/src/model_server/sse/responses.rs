//! Responses, as OpenAI sends them.

use serde_json::{Value, json};
use windlass_core::message::{Finish, Usage};
use windlass_model::script::ScriptedReply;

use super::{Made, RequestFacts, call_id, made, parts};
use crate::model_server::seal;

pub(super) fn stream(reply: &ScriptedReply, asked: &RequestFacts<'_>) -> Vec<Vec<u8>> {
    let mut events = vec![
        json!({"type": "response.created", "response": response(asked, "in_progress")}),
        json!({"type": "response.in_progress", "response": response(asked, "in_progress")}),
    ];
    for (index, part) in made(reply).iter().enumerate() {
        events.extend(item_events(index, part, asked));
    }
    let whole = whole(reply, asked);
    let status = whole["status"].as_str().unwrap_or_default().to_owned();
    events.push(json!({"type": format!("response.{status}"), "response": whole}));
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        format!("event: {kind}\ndata: {event}\n\n").into_bytes()
    });
    numbered.collect()
}

pub(super) fn whole(reply: &ScriptedReply, asked: &RequestFacts<'_>) -> Value {
    let (status, reason) = match reply.finish() {
        Finish::Stop | Finish::ToolCalls => ("completed", None),
        Finish::Length => ("incomplete", Some("max_output_tokens")),
        Finish::ContentFilter => ("incomplete", Some("content_filter")),
    };
    let mut whole = response(asked, status);
    let made = made(reply);
    let output: Vec<_> =
        made.iter().enumerate().map(|(index, part)| item(index, part, asked)).collect();
    whole["output"] = json!(output);
    whole["usage"] = counts(&reply.usage(asked.bytes));
    if let Some(reason) = reason {
        whole["incomplete_details"] = json!({ "reason": reason });
    }
    whole
}

fn response(asked: &RequestFacts<'_>, status: &str) -> Value {
    json!({
        "id": format!("resp_{}", asked.turn), "object": "response", "created_at": 1,
        "status": status, "model": asked.model, "output": [], "error": null,
        "incomplete_details": null, "instructions": null, "metadata": {}, "temperature": 1.0,
        "top_p": 1.0, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
        "store": false, "usage": null,
    })
}

/// An item as it is when it is complete.
fn item(index: usize, part: &Made<'_>, asked: &RequestFacts<'_>) -> Value {
    let id = |kind: &str| format!("{kind}_{}_{index}", asked.turn);
    match part {
        Made::Redacted(data) => reasoning(&id("rs"), data, &[], asked),
        Made::Thought(text) => {
            let summary = [json!({"type": "summary_text", "text": text})];
            reasoning(&id("rs"), text, &summary, asked)
        }
        Made::Text(text) => json!({
            "id": id("msg"), "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        Made::Call(number, call) => json!({
            "id": id("fc"), "type": "function_call", "status": "completed",
            "call_id": call_id(*number, call, asked), "name": call.name,
            "arguments": call.arguments,
        }),
    }
}

fn reasoning(id: &str, sealed: &str, summary: &[Value], asked: &RequestFacts<'_>) -> Value {
    let content = asked.encrypted.then(|| seal::of(sealed));
    json!({"id": id, "type": "reasoning", "summary": summary, "encrypted_content": content})
}

/// The events of one item.
fn item_events(index: usize, part: &Made<'_>, asked: &RequestFacts<'_>) -> Vec<Value> {
    let done = item(index, part, asked);
    let at = |mut event: Value| {
        event["output_index"] = json!(index);
        event["item_id"] = done["id"].clone();
        event
    };
    let mut begun = done.clone();
    let mut events = Vec::new();
    match part {
        Made::Redacted(_) => {}
        Made::Thought(text) => {
            begun["summary"] = json!([]);
            begun["encrypted_content"] = Value::Null;
            let of = |kind: &str| format!("response.reasoning_summary_{kind}");
            let part = |text: &str| json!({"type": "summary_text", "text": text});
            events
                .push(at(json!({"type": of("part.added"), "summary_index": 0, "part": part("")})));
            events.extend(parts(text).map(|delta| {
                at(json!({"type": of("text.delta"), "summary_index": 0, "delta": delta}))
            }));
            events.push(at(json!({"type": of("text.done"), "summary_index": 0, "text": text})));
            events
                .push(at(json!({"type": of("part.done"), "summary_index": 0, "part": part(text)})));
        }
        Made::Text(text) => {
            begun["content"] = json!([]);
            begun["status"] = json!("in_progress");
            let of = |kind: &str| format!("response.{kind}");
            let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
            events.push(at(
                json!({"type": of("content_part.added"), "content_index": 0, "part": part("")}),
            ));
            events.extend(parts(text).map(|delta| {
                let kind = of("output_text.delta");
                at(json!({"type": kind, "content_index": 0, "delta": delta, "logprobs": []}))
            }));
            let kind = of("output_text.done");
            events
                .push(at(json!({"type": kind, "content_index": 0, "text": text, "logprobs": []})));
            events.push(at(
                json!({"type": of("content_part.done"), "content_index": 0, "part": part(text)}),
            ));
        }
        Made::Call(_, call) => {
            begun["arguments"] = json!("");
            begun["status"] = json!("in_progress");
            let of = |kind: &str| format!("response.function_call_arguments.{kind}");
            events.extend(
                parts(&call.arguments)
                    .map(|delta| at(json!({"type": of("delta"), "delta": delta}))),
            );
            let arguments = &call.arguments;
            events.push(at(json!({"type": of("done"), "name": call.name, "arguments": arguments})));
        }
    }
    let added = json!({"type": "response.output_item.added", "output_index": index, "item": begun});
    let end = json!({"type": "response.output_item.done", "output_index": index, "item": done});
    [added].into_iter().chain(events).chain([end]).collect()
}

fn counts(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    })
}
