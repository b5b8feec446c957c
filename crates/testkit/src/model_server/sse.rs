//! Scripted replies as the streams providers send.

use serde_json::{Value, json};
use windlass_core::message::{Finish, Usage};
use windlass_model::{Dialect, script::Scripted};

/// A reply as chunks of a stream.
pub(crate) fn stream(dialect: Dialect, reply: &Scripted, asked: &Asked<'_>) -> Vec<Vec<u8>> {
    match dialect {
        Dialect::OpenAi => openai(reply, asked),
        Dialect::Anthropic => anthropic(reply, asked),
    }
}

/// What a reply needs to know about its request.
pub(crate) struct Asked<'a> {
    pub model: &'a str,
    pub turn: usize,
    pub bytes: usize,
}

fn openai(reply: &Scripted, asked: &Asked<'_>) -> Vec<Vec<u8>> {
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
    chunks.extend(parts(&reply.text).map(|part| delta(json!({ "content": part }))));
    for (index, call) in reply.calls.iter().enumerate() {
        let id = call.id.clone().unwrap_or_else(|| format!("call_{}_{index}", asked.turn));
        let function = json!({"name": call.name, "arguments": ""});
        let begin = json!({"index": index, "id": id, "type": "function", "function": function});
        chunks.push(delta(json!({"tool_calls": [begin]})));
        chunks.extend(parts(&call.arguments).map(|part| {
            let more = json!({"index": index, "function": {"arguments": part}});
            delta(json!({"tool_calls": [more]}))
        }));
    }
    let reason = openai_reason(reply.finish());
    chunks.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}]), Value::Null));
    chunks.push(chunk(json!([]), openai_usage(&reply.usage(asked.bytes))));
    chunks.push(b"data: [DONE]\n\n".to_vec());
    chunks
}

fn openai_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
    }
}

fn openai_usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    })
}

fn anthropic(reply: &Scripted, asked: &Asked<'_>) -> Vec<Vec<u8>> {
    let usage = reply.usage(asked.bytes);
    let event = |data: Value| {
        let kind = data["type"].as_str().unwrap_or_default().to_owned();
        format!("event: {kind}\ndata: {data}\n\n").into_bytes()
    };
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": asked.model,
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input_tokens.saturating_sub(usage.cached_tokens),
            "cache_read_input_tokens": usage.cached_tokens,
            "cache_creation_input_tokens": 0,
            "output_tokens": 1,
        },
    });
    let mut chunks = vec![
        event(json!({"type": "message_start", "message": message})),
        event(json!({"type": "ping"})),
    ];
    let mut index = 0;
    let mut block = |begin: Value, deltas: Vec<Value>| {
        let mut block = vec![event(
            json!({"type": "content_block_start", "index": index, "content_block": begin}),
        )];
        block.extend(deltas.into_iter().map(|delta| {
            event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
        }));
        block.push(event(json!({"type": "content_block_stop", "index": index})));
        index += 1;
        block
    };
    if !reply.text.is_empty() {
        let deltas = parts(&reply.text).map(|part| json!({"type": "text_delta", "text": part}));
        chunks.extend(block(json!({"type": "text", "text": ""}), deltas.collect()));
    }
    for (number, call) in reply.calls.iter().enumerate() {
        let id = call.id.clone().unwrap_or_else(|| format!("call_{}_{number}", asked.turn));
        let begin = json!({"type": "tool_use", "id": id, "name": call.name, "input": {}});
        let part = |part: &str| json!({"type": "input_json_delta", "partial_json": part});
        chunks.extend(block(begin, parts(&call.arguments).map(part).collect()));
    }
    let end = json!({"stop_reason": anthropic_reason(reply.finish()), "stop_sequence": null});
    let count = json!({"output_tokens": usage.output_tokens});
    chunks.push(event(json!({"type": "message_delta", "delta": end, "usage": count})));
    chunks.push(event(json!({"type": "message_stop"})));
    chunks
}

fn anthropic_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::ToolCalls => "tool_use",
        Finish::Length => "max_tokens",
        Finish::ContentFilter => "refusal",
    }
}

/// A reply in one piece, for clients that do not stream.
pub(crate) fn whole(dialect: Dialect, reply: &Scripted, asked: &Asked<'_>) -> Value {
    let usage = reply.usage(asked.bytes);
    let id = |index: usize, id: &Option<String>| {
        id.clone().unwrap_or_else(|| format!("call_{}_{index}", asked.turn))
    };
    match dialect {
        Dialect::OpenAi => {
            let calls: Vec<_> = reply
                .calls
                .iter()
                .enumerate()
                .map(|(index, call)| {
                    let function = json!({"name": call.name, "arguments": call.arguments});
                    json!({"id": id(index, &call.id), "type": "function", "function": function})
                })
                .collect();
            let mut message = json!({"role": "assistant", "content": reply.text});
            if !calls.is_empty() {
                message["tool_calls"] = json!(calls);
            }
            let reason = openai_reason(reply.finish());
            json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": asked.model,
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": openai_usage(&usage),
            })
        }
        Dialect::Anthropic => {
            let text =
                (!reply.text.is_empty()).then(|| json!({"type": "text", "text": reply.text}));
            let calls = reply.calls.iter().enumerate().map(|(index, call)| {
                let input: Value = serde_json::from_str(&call.arguments).unwrap_or(json!({}));
                json!({"type": "tool_use", "id": id(index, &call.id), "name": call.name, "input": input})
            });
            let content: Vec<Value> = text.into_iter().chain(calls).collect();
            json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": asked.model,
                "content": content, "stop_reason": anthropic_reason(reply.finish()),
                "usage": {
                    "input_tokens": usage.input_tokens.saturating_sub(usage.cached_tokens),
                    "cache_read_input_tokens": usage.cached_tokens,
                    "output_tokens": usage.output_tokens,
                },
            })
        }
    }
}

/// A text in three parts or fewer, as a stream would bring it.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let cut = |from: usize, share: usize| {
        (from + text.len() / share..=text.len()).find(|at| text.is_char_boundary(*at))
    };
    let first = cut(0, 3).unwrap_or(text.len());
    let second = cut(first, 3).unwrap_or(text.len()).max(first);
    [&text[..first], &text[first..second], &text[second..]]
        .into_iter()
        .filter(|part| !part.is_empty())
}
