//! Messages, as Anthropic sends them.

use serde_json::{Value, json};
use windlass_core::message::{Finish, Usage};
use windlass_model::script::ScriptedReply;

use super::{Made, RequestFacts, call_id, made, parts};
use crate::model_server::seal;

pub(super) fn stream(reply: &ScriptedReply, asked: &RequestFacts<'_>) -> Vec<Vec<u8>> {
    let usage = reply.usage(asked.bytes);
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": asked.model,
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": counts(&usage, 1),
    });
    let mut chunks = vec![
        event(json!({"type": "message_start", "message": message})),
        event(json!({"type": "ping"})),
    ];
    for (index, part) in made(reply).into_iter().enumerate() {
        let (begin, deltas) = block(&part, asked);
        chunks.push(event(
            json!({"type": "content_block_start", "index": index, "content_block": begin}),
        ));
        chunks.extend(deltas.into_iter().map(|delta| {
            event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
        }));
        chunks.push(event(json!({"type": "content_block_stop", "index": index})));
    }
    let end = json!({"stop_reason": stop_reason(reply.finish()), "stop_sequence": null});
    let count = json!({"output_tokens": usage.output_tokens});
    chunks.push(event(json!({"type": "message_delta", "delta": end, "usage": count})));
    chunks.push(event(json!({"type": "message_stop"})));
    chunks
}

/// How a block begins, and what follows of it.
fn block(part: &Made<'_>, asked: &RequestFacts<'_>) -> (Value, Vec<Value>) {
    match part {
        Made::Redacted(data) => (json!({"type": "redacted_thinking", "data": data}), Vec::new()),
        Made::Thought(text) => {
            let more = parts(text).map(|part| json!({"type": "thinking_delta", "thinking": part}));
            let signature = json!({"type": "signature_delta", "signature": seal::of(text)});
            let begin = json!({"type": "thinking", "thinking": "", "signature": ""});
            (begin, more.chain([signature]).collect())
        }
        Made::Text(text) => {
            let more = parts(text).map(|part| json!({"type": "text_delta", "text": part}));
            (json!({"type": "text", "text": ""}), more.collect())
        }
        Made::Call(index, call) => {
            let id = call_id(*index, call, asked);
            let begin = json!({"type": "tool_use", "id": id, "name": call.name, "input": {}});
            let part = |part: &str| json!({"type": "input_json_delta", "partial_json": part});
            (begin, parts(&call.arguments).map(part).collect())
        }
    }
}

pub(super) fn whole(reply: &ScriptedReply, asked: &RequestFacts<'_>) -> Value {
    let content = made(reply).into_iter().map(|part| match part {
        Made::Redacted(data) => json!({"type": "redacted_thinking", "data": data}),
        Made::Thought(text) => {
            json!({"type": "thinking", "thinking": text, "signature": seal::of(text)})
        }
        Made::Text(text) => json!({"type": "text", "text": text}),
        Made::Call(index, call) => {
            let input: Value = serde_json::from_str(&call.arguments).unwrap_or(json!({}));
            let id = call_id(index, call, asked);
            json!({"type": "tool_use", "id": id, "name": call.name, "input": input})
        }
    });
    let usage = reply.usage(asked.bytes);
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": asked.model,
        "content": content.collect::<Vec<_>>(), "stop_reason": stop_reason(reply.finish()),
        "stop_sequence": null, "usage": counts(&usage, usage.output_tokens),
    })
}

fn event(data: Value) -> Vec<u8> {
    let kind = data["type"].as_str().unwrap_or_default().to_owned();
    format!("event: {kind}\ndata: {data}\n\n").into_bytes()
}

fn counts(usage: &Usage, output_tokens: u64) -> Value {
    json!({
        "input_tokens": usage.input_tokens.saturating_sub(usage.cached_tokens),
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": output_tokens,
    })
}

fn stop_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::ToolCalls => "tool_use",
        Finish::Length => "max_tokens",
        Finish::ContentFilter => "refusal",
    }
}
