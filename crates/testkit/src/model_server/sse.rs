//! Scripted replies as the streams providers send.

use serde_json::Value;
use windlass_model::{
    Wire,
    script::{ScriptedCall, ScriptedReply},
};

mod anthropic;
mod chat;
mod responses;

/// What a reply needs to know about its request.
pub(crate) struct RequestFacts<'a> {
    pub model: &'a str,
    pub turn: usize,
    pub bytes: usize,
    /// Whether it wants reasoning encrypted, to send it back.
    pub encrypted: bool,
}

/// A reply as chunks of a stream.
pub(crate) fn stream(wire: Wire, reply: &ScriptedReply, asked: &RequestFacts<'_>) -> Vec<Vec<u8>> {
    match wire {
        Wire::Chat => chat::stream(reply, asked),
        Wire::Responses => responses::stream(reply, asked),
        Wire::Anthropic => anthropic::stream(reply, asked),
    }
}

/// A reply in one piece, for clients that do not stream.
pub(crate) fn whole(wire: Wire, reply: &ScriptedReply, asked: &RequestFacts<'_>) -> Value {
    match wire {
        Wire::Chat => chat::whole(reply, asked),
        Wire::Responses => responses::whole(reply, asked),
        Wire::Anthropic => anthropic::whole(reply, asked),
    }
}

/// One part of a reply, in the order the model makes them.
enum Made<'a> {
    Redacted(&'a str),
    Thought(&'a str),
    Text(&'a str),
    Call(usize, &'a ScriptedCall),
}

/// The parts of a reply: the first thought, the text, then calls with the other thoughts before them.
fn made(reply: &ScriptedReply) -> Vec<Made<'_>> {
    let mut made: Vec<_> = reply.redacted.as_deref().map(Made::Redacted).into_iter().collect();
    let mut thoughts = reply.think.iter();
    let first = if reply.calls.is_empty() { reply.think.len() } else { 1 };
    made.extend(thoughts.by_ref().take(first).map(|thought| Made::Thought(thought)));
    if !reply.text.is_empty() {
        made.push(Made::Text(&reply.text));
    }
    for (index, call) in reply.calls.iter().enumerate() {
        if index > 0 {
            made.extend(thoughts.next().map(|thought| Made::Thought(thought)));
        }
        made.push(Made::Call(index, call));
    }
    made
}

/// The id of a call, as the script gives it, else by its place.
fn call_id(index: usize, call: &ScriptedCall, asked: &RequestFacts<'_>) -> String {
    call.id.clone().unwrap_or_else(|| format!("call_{}_{index}", asked.turn))
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
