//! What a server's refusal means, from its status and the words both wires use.

use std::time::Duration;

use serde_json::Value;

use crate::{Fault, Wire};

/// Reads a response that is not 200.
pub(crate) fn classify(
    status: u16,
    retry_after: Option<Duration>,
    body: &str,
    wire: Wire,
) -> Fault {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let said = parsed.as_ref().map(ErrorBody::read).unwrap_or_default();
    let detail = said.message.clone().unwrap_or_else(|| body.to_owned());
    let fault = fault_of_status(status, retry_after, &said, detail);
    if matches!(status, 404 | 405) { not_spoken(fault, status, &said, wire) } else { fault }
}

/// Reads an error that arrives inside a stream that began well.
pub(crate) fn classify_event(event: &Value) -> Fault {
    let said = ErrorBody::read(event);
    let detail = said.message.clone().unwrap_or_else(|| event.to_string());
    fault_of_status(said.status(), None, &said, detail)
}

fn fault_of_status(
    status: u16,
    retry_after: Option<Duration>,
    said: &ErrorBody,
    detail: String,
) -> Fault {
    let words = detail.to_ascii_lowercase();
    let code = |wanted: &[&str]| wanted.iter().any(|w| said.code == *w || said.kind == *w);
    if status < 500 && (code(&["context_length_exceeded"]) || status == 413 || too_long(&words)) {
        return Fault::ContextLength { limit: window(&words), detail };
    }
    if code(&["insufficient_quota", "budget_exceeded"])
        || status == 402
        || words.contains("credit balance is too low")
    {
        return Fault::OutOfCredit { detail };
    }
    if code(&["content_filter", "content_policy_violation"]) {
        return Fault::ContentFilter { detail };
    }
    if status < 500 && (code(&["invalid_encrypted_content"]) || refuses_reasoning(&words)) {
        return Fault::ReasoningRefused { detail };
    }
    if status < 500 && wants_reasoning(&words) {
        let detail = format!("{detail}; set `reasoning = \"require\"` for this provider");
        return Fault::BadRequest { status, detail };
    }
    let gone = code(&["model_not_found"]) || words.contains("invalid model name");
    match status {
        400..=499 if gone => Fault::ModelUnavailable { detail },
        401 => Fault::Unauthorized { detail },
        403 => Fault::Forbidden { detail },
        404 if said.kind.is_empty() && said.code.is_empty() => {
            let detail = format!("status 404, `{detail}`; does the base lack a `/v1`?");
            Fault::NotAModelServer { detail }
        }
        404 => Fault::ModelUnavailable { detail },
        408 | 409 => Fault::Dropped { status, retry_after, detail },
        429 => Fault::RateLimited { retry_after, detail },
        503 | 529 => Fault::Overloaded { status, retry_after, detail },
        500..=599 => Fault::Server { status, retry_after, detail },
        400..=499 => Fault::BadRequest { status, detail },
        _ => Fault::NotAModelServer { detail: format!("status {status}") },
    }
}

/// A path that is not there: the server may speak another wire.
fn not_spoken(fault: Fault, status: u16, said: &ErrorBody, wire: Wire) -> Fault {
    let (path, other) = match wire {
        // The usual reason for this one is a base without `/v1`, which the fault says.
        Wire::Chat => return fault,
        Wire::Responses => ("/responses", Wire::Chat),
        Wire::Anthropic => ("/v1/messages", Wire::Chat),
    };
    let words = said.message.as_deref().unwrap_or_default().to_ascii_lowercase();
    let names_model = said.code == "model_not_found" || words.contains("model");
    if names_model && matches!(fault, Fault::ModelUnavailable { .. }) {
        return fault;
    }
    let detail = said.message.clone().unwrap_or_default();
    Fault::NotAModelServer {
        detail: format!(
            "status {status} for `{path}`, `{detail}`; if it speaks another protocol, set `wire`, such as \
             `wire = \"{other}\"`, in `[models.providers.NAME]`"
        ),
    }
}

/// How providers word that they do not take back what their model thought.
fn refuses_reasoning(words: &str) -> bool {
    const WORDINGS: [(&str, &str); 8] = [
        ("signature", "thinking"),
        ("signature", "thought"),
        ("thinking", "cannot be modified"),
        ("encrypted content", "verif"),
        ("encrypted_content", "verif"),
        ("encrypted_content", "decrypt"),
        ("reasoning_content", "not "),
        ("reasoning", "without its required following item"),
    ];
    WORDINGS.iter().any(|(one, other)| words.contains(one) && words.contains(other))
        && !wants_reasoning(words)
}

/// How providers word that they miss what their model thought.
fn wants_reasoning(words: &str) -> bool {
    words.contains("reasoning_content")
        && (words.contains("passed back") || words.contains("missing reasoning_content"))
}

/// The parts of an error that all wires have.
#[derive(Default)]
struct ErrorBody {
    message: Option<String>,
    kind: String,
    code: String,
}

impl ErrorBody {
    fn read(body: &Value) -> Self {
        let error = body.get("error").unwrap_or(body);
        let text = |value: Option<&Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let message = [error.get("message"), body.get("message"), body.get("detail"), Some(error)]
            .into_iter()
            .flatten()
            .find_map(Value::as_str)
            .map(str::to_owned);
        Self { message, kind: text(error.get("type")), code: text(error.get("code")) }
    }

    /// The status such an error would have had as a response.
    fn status(&self) -> u16 {
        let named = |name: &str| match name {
            "overloaded_error" => Some(529),
            "server_error" => Some(500),
            "rate_limit_error" | "rate_limit_exceeded" => Some(429),
            "authentication_error" | "invalid_api_key" => Some(401),
            "permission_error" => Some(403),
            "not_found_error" | "model_not_found" => Some(404),
            "invalid_request_error"
            | "context_length_exceeded"
            | "content_filter"
            | "invalid_prompt" => Some(400),
            "request_too_large" => Some(413),
            // What is wrong with a picture, and what else a failed response says of its request.
            name if name.starts_with("invalid_") || name.starts_with("image_") => Some(400),
            _ => None,
        };
        let number = self.code.parse().ok().filter(|code| (400..600).contains(code));
        number.or_else(|| named(&self.code)).or_else(|| named(&self.kind)).unwrap_or(500)
    }
}

/// How providers word that a conversation does not fit.
fn too_long(words: &str) -> bool {
    const WORDINGS: [&str; 7] = [
        "maximum context length",
        "context window",
        "prompt is too long",
        "exceed context limit",
        "exceeds the context",
        "input is too long",
        "contextwindowexceeded",
    ];
    WORDINGS.iter().any(|wording| words.contains(wording))
}

/// The window's size, where the words give it: `length is 8192 tokens`, `> 200000 maximum`.
fn window(words: &str) -> Option<u64> {
    let after = |mark: &str| words.split_once(mark).and_then(|(_, rest)| leading_number(rest));
    after("context length is ").or_else(|| after(" > ")).or_else(|| after("context limit: "))
}

fn leading_number(text: &str) -> Option<u64> {
    let digits: String = text
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(|c| *c != ',')
        .collect();
    digits.parse().ok()
}
