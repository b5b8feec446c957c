//! Signs reasoning, and checks the reasoning that comes back: providers refuse reasoning that was changed.

use serde_json::Value;
use windlass_model::Wire;

use super::{Answer, Request};

/// The signature of a thought, or what stands for its encrypted form.
pub(crate) fn of(text: &str) -> String {
    // FNV-1a: the same for the same text, on every machine.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("sealed-{hash:016x}")
}

/// The refusal of a request whose reasoning is not as it was made, in the words of its provider.
pub(crate) fn refusal(request: &Request) -> Option<Answer> {
    let body = request.json();
    let wrong = match request.wire()? {
        Wire::Chat => None,
        Wire::Anthropic => anthropic(&body),
        Wire::Responses => responses(&body),
    }?;
    Some(Answer::error_of(400, "invalid_request_error", wrong.0, &wrong.1))
}

type Wrong = (&'static str, String);

fn anthropic(body: &Value) -> Option<Wrong> {
    let budget = body["thinking"]["budget_tokens"].as_u64();
    if budget.is_some_and(|budget| body["max_tokens"].as_u64().is_none_or(|most| most <= budget)) {
        return Some((
            "error",
            "`max_tokens` must be greater than `thinking.budget_tokens`".into(),
        ));
    }
    for (number, message) in body["messages"].as_array()?.iter().enumerate() {
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (place, block) in blocks.iter().enumerate().filter(|(_, b)| b["type"] == "thinking") {
            let text = block["thinking"].as_str().unwrap_or_default();
            if block["signature"].as_str() != Some(&of(text)) {
                let place = format!("messages.{number}.content.{place}");
                return Some((
                    "error",
                    format!("{place}: Invalid `signature` in `thinking` block"),
                ));
            }
        }
    }
    None
}

fn responses(body: &Value) -> Option<Wrong> {
    if !body["previous_response_id"].is_null() {
        return Some(("error", "the test server stores no responses".into()));
    }
    let items = body["input"].as_array()?;
    for (place, item) in items.iter().enumerate().filter(|(_, i)| i["type"] == "reasoning") {
        let id = item["id"].as_str().unwrap_or_default();
        let sealed = item["encrypted_content"].as_str().unwrap_or_default();
        let summary = item["summary"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text: String = summary.iter().filter_map(|part| part["text"].as_str()).collect();
        let is_ours =
            if summary.is_empty() { sealed.starts_with("sealed-") } else { sealed == of(&text) };
        if !is_ours {
            let words = format!("The encrypted content for item {id} could not be verified.");
            return Some(("invalid_encrypted_content", words));
        }
        let next = items.get(place + 1);
        let follows = next.is_some_and(|next| {
            next["type"] == "function_call"
                || next["type"] == "reasoning"
                || next["role"] == "assistant"
        });
        if !follows {
            let words = format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            );
            return Some(("error", words));
        }
    }
    None
}
