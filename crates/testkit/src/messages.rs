//! The messages of request bodies, compared as the bytes they are.

use serde::Deserialize;
use serde_json::value::RawValue;

/// One message of a request, as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawMessage {
    /// Whose it is; the kind of an item that has no role.
    pub role: String,
    /// The message exactly as it was sent.
    pub raw: String,
}

/// The messages of a body of any wire; the items, where it has those.
pub fn messages(body: &[u8]) -> Vec<RawMessage> {
    let array: Vec<&RawValue> =
        serde_json::from_str(messages_array(body)).expect("`messages` is an array");
    array
        .into_iter()
        .map(|raw| {
            let role: Role = serde_json::from_str(raw.get()).expect("a message is an object");
            let role = role.role.or(role.kind).expect("a message has a role, an item a type");
            RawMessage { role, raw: raw.get().to_owned() }
        })
        .collect()
}

/// The bytes of a body's `messages`, brackets included.
pub fn messages_array(body: &[u8]) -> &str {
    let body: Body<'_> = serde_json::from_slice(body).expect("a request body is JSON");
    body.messages.get()
}

/// Fails unless `later` begins with all of `earlier`'s messages, byte for byte, cache marks aside.
pub fn assert_extends(earlier: &[u8], later: &[u8]) {
    let (earlier, later) = (unmarked(messages_array(earlier)), unmarked(messages_array(later)));
    let begin = earlier.trim_end_matches(']');
    if let Some(at) = begin.bytes().zip(later.bytes()).position(|(a, b)| a != b) {
        let around = |text: &str| {
            let bytes = &text.as_bytes()[at.saturating_sub(40)..text.len().min(at + 40)];
            String::from_utf8_lossy(bytes).into_owned()
        };
        panic!("messages differ at byte {at}:\n  {}\n  {}", around(begin), around(&later));
    }
    assert!(later.len() >= begin.len(), "the later request is shorter");
}

fn unmarked(messages: &str) -> String {
    messages.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, alias = "input")]
    messages: &'a RawValue,
}

#[derive(Deserialize)]
struct Role {
    role: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
}
