//! Chat Completions, as most servers send them.

use serde_json::{Value, json};
use windlass_core::message::{Finish, Usage};
use windlass_model::script::ScriptedReply;

use super::{Made, RequestFacts, call_id, made, parts};

pub(super) fn stream(reply: &ScriptedReply, asked: &RequestFacts<'_>) -> Vec<Vec<u8>> {
    let chunk = |choices: Value, usage: Value| {
        let body = json!({
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": asked.model,
            "choices": choices,
            "usage": usage,
        });
        format!("data: {body}\n\n").into_bytes()
    };
    let delta = |delta: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null)
    };
    let mut chunks = vec![delta(json!({"role": "assistant", "content": ""}))];
    for part in made(reply) {
        match part {
            // Servers of this kind have no form for it.
            Made::Redacted(_) => {}
            Made::Thought(text) => {
                chunks.extend(parts(text).map(|part| delta(json!({ "reasoning_content": part }))));
            }
            Made::Text(text) => {
                chunks.extend(parts(text).map(|part| delta(json!({ "content": part }))));
            }
            Made::Call(index, call) => {
                let id = call_id(index, call, asked);
                let function = json!({"name": call.name, "arguments": ""});
                let begin =
                    json!({"index": index, "id": id, "type": "function", "function": function});
                chunks.push(delta(json!({"tool_calls": [begin]})));
                chunks.extend(parts(&call.arguments).map(|part| {
                    let more = json!({"index": index, "function": {"arguments": part}});
                    delta(json!({"tool_calls": [more]}))
                }));
            }
        }
    }
    let reason = finish_reason(reply.finish());
    chunks.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}]), Value::Null));
    chunks.push(chunk(json!([]), usage(&reply.usage(asked.bytes))));
    chunks.push(b"data: [DONE]\n\n".to_vec());
    chunks
}

pub(super) fn whole(reply: &ScriptedReply, asked: &RequestFacts<'_>) -> Value {
    let call = |(index, call)| {
        let id = call_id(index, call, asked);
        let function = json!({"name": call.name, "arguments": call.arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    let calls: Vec<_> = reply.calls.iter().enumerate().map(call).collect();
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    if !reply.think.is_empty() {
        message["reasoning_content"] = json!(reply.think.concat());
    }
    let reason = finish_reason(reply.finish());
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage(&reply.usage(asked.bytes)),
    })
}

fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
    }
}

fn usage(usage: &Usage) -> Value {
    let mut counts = json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    });
    if usage.reasoning_tokens > 0 {
        counts["completion_tokens_details"] = json!({"reasoning_tokens": usage.reasoning_tokens});
    }
    counts
}
