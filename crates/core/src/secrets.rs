//! Keys that must not be written down, shown or sent: found in any text and replaced by a mark that names them.
//!
//! Invariants:
//! - Only values of at least [`LEAST_BYTES`] are looked for; a shorter one is a word that stands in for a key.
//! - A value is also found as other texts spell it: escaped in JSON, in JSON within JSON, in an address, in HTML, and on
//!   one line of base64 or of hexadecimal digits.

use std::borrow::Cow;
use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use crate::event::{EVENT_VERSION, Event};

/// The length from which a value is taken for a key.
pub const LEAST_BYTES: usize = 12;

const MARK: &str = "[redacted: ";

/// The keys that are looked for.
#[derive(Clone, Default)]
pub struct Secrets {
    /// What is searched for, and whose value it is.
    patterns: Vec<Pattern>,
    finder: Option<AhoCorasick>,
}

#[derive(Clone, PartialEq, Eq)]
struct Pattern {
    name: String,
    text: String,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.patterns.iter().map(|pattern| &pattern.name)).finish()
    }
}

/// Whether a text holds the mark of a key that was taken out of it.
pub fn holds_mark(text: &str) -> bool {
    text.split(MARK).skip(1).any(|rest| {
        let name = rest.split(']').next().unwrap_or_default();
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte))
    })
}

impl Secrets {
    /// These and more; each with the name that its mark shows.
    #[must_use]
    pub fn with<'a>(&self, named: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut patterns = self.patterns.clone();
        for (name, value) in named.into_iter().filter(|(_, value)| value.len() >= LEAST_BYTES) {
            for text in spellings(value) {
                if patterns.iter().all(|known| known.text != text) {
                    patterns.push(Pattern { name: name.to_owned(), text });
                }
            }
        }
        let texts = patterns.iter().map(|pattern| &pattern.text);
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts);
        // Building fails only for more patterns than memory holds.
        Self { finder: finder.ok().filter(|_| !patterns.is_empty()), patterns }
    }

    /// A text without keys.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.replaced(text.as_bytes()) {
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
            None => Cow::Borrowed(text),
        }
    }

    /// An event without keys, whatever field they were in.
    pub fn redact_event(&self, event: Event) -> Event {
        let Some(finder) = &self.finder else { return event };
        let (kind, body) = event.parts();
        if !finder.is_match(&body) {
            return event;
        }
        let Ok(mut value) = serde_json::from_str(&body) else { return event };
        self.redact_value(&mut value);
        Event::from_parts(kind, EVENT_VERSION, &value.to_string()).unwrap_or(event)
    }

    /// Takes keys out of what comes in pieces.
    pub fn stream(&self) -> RedactedStream {
        RedactedStream { secrets: self.clone(), held: Vec::new() }
    }

    fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact(text).into_owned(),
            Value::Array(all) => all.iter_mut().for_each(|one| self.redact_value(one)),
            Value::Object(fields) => {
                let named = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                    self.redact_value(&mut value);
                    (self.redact(&name).into_owned(), value)
                });
                *fields = named.collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The bytes with each key replaced; `None` where there is none.
    fn replaced(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let finder = self.finder.as_ref()?;
        let mut clean = Vec::new();
        let mut end = 0;
        for found in finder.find_iter(bytes) {
            clean.extend_from_slice(&bytes[end..found.start()]);
            let name = &self.patterns[found.pattern().as_usize()].name;
            clean.extend_from_slice(format!("{MARK}{name}]").as_bytes());
            end = found.end();
        }
        (end > 0).then(|| {
            clean.extend_from_slice(&bytes[end..]);
            clean
        })
    }

    /// How many bytes at the end may be the beginning of a key.
    fn begun(&self, bytes: &[u8]) -> usize {
        let begun = |pattern: &Pattern| {
            let longest = (pattern.text.len() - 1).min(bytes.len());
            let is_begun = |length: &usize| bytes.ends_with(&pattern.text.as_bytes()[..*length]);
            (1..=longest).rev().find(is_begun).unwrap_or(0)
        };
        self.patterns.iter().map(begun).max().unwrap_or(0)
    }
}

/// How a value looks in the texts that programs make of it. Most keys have one spelling: letters, digits, `-` and `_`.
fn spellings(value: &str) -> Vec<String> {
    let json = json_escaped(value);
    let mut all = vec![value.to_owned(), json_escaped(&json), json.replace('/', "\\/"), json];
    // Some programs keep the slash, and some write small digits.
    for kept in ["", "/"] {
        all.push(percent_encoded(value, kept, |byte| format!("%{byte:02X}")));
        all.push(percent_encoded(value, kept, |byte| format!("%{byte:02x}")));
    }
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    all.push(html.replace('"', "&quot;"));
    all.push(html.replace('"', "&#34;").replace('\'', "&#39;"));
    for before in 0..3 {
        let digits = base64_inside(value.as_bytes(), before);
        all.push(digits.replace('+', "-").replace('/', "_"));
        all.push(digits);
    }
    all.push(value.bytes().map(|byte| format!("{byte:02x}")).collect());
    all.push(value.bytes().map(|byte| format!("{byte:02X}")).collect());
    all
}

/// The digits of base64 that depend on these bytes alone, where so many others come before them in a group of three: in
/// `user:key` the digits differ from those of `key`.
fn base64_inside(bytes: &[u8], before: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = |at: usize| {
        let byte = bytes[at / 8 - before];
        usize::from((byte >> (7 - at % 8)) & 1)
    };
    let first = (before * 8).div_ceil(6);
    let end = (before + bytes.len()) * 8 / 6;
    let digit = |at: usize| (at * 6..at * 6 + 6).fold(0, |digit, at| (digit << 1) | bit(at));
    (first..end).map(|at| char::from(DIGITS[digit(at)])).collect()
}

fn json_escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// As in a part of an address, with these characters beside letters and digits kept.
fn percent_encoded(text: &str, kept: &str, encode: impl Fn(u8) -> String) -> String {
    let is_kept = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || kept.as_bytes().contains(&byte)
    };
    let spell = |byte| if is_kept(byte) { char::from(byte).to_string() } else { encode(byte) };
    text.bytes().map(spell).collect()
}

/// A text that comes in pieces, without keys. What may be the beginning of a key waits for the next piece.
#[derive(Debug)]
pub struct RedactedStream {
    secrets: Secrets,
    held: Vec<u8>,
}

impl RedactedStream {
    /// What can be shown of the text so far.
    pub fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        if self.secrets.finder.is_none() {
            return Cow::Borrowed(piece);
        }
        self.held.extend_from_slice(piece);
        if let Some(clean) = self.secrets.replaced(&self.held) {
            self.held = clean;
        }
        let rest = self.held.split_off(self.held.len() - self.secrets.begun(&self.held));
        Cow::Owned(std::mem::replace(&mut self.held, rest))
    }

    /// The rest, when no more comes.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::LlmResponse;
    use crate::message::{Finish, Usage};

    const KEY: &str = "sk-live-0123456789";

    fn secrets() -> Secrets {
        Secrets::default().with([
            ("OPENAI_API_KEY", KEY),
            ("SHORT", "secret"),
            ("ODD", r#"quo"ted\secret"#),
        ])
    }

    #[test]
    fn a_key_becomes_a_mark_with_its_name() {
        let clean = secrets().redact("a sk-live-0123456789, a secret").into_owned();
        assert_eq!(clean, "a [redacted: OPENAI_API_KEY], a secret");
        assert!(holds_mark(&clean) && !holds_mark("[redacted: ] and [redacted: some words]"));
        let clean = secrets().redact(r#"{"a":"quo\"ted\\secret"}"#).into_owned();
        assert_eq!(clean, r#"{"a":"[redacted: ODD]"}"#);
        assert!(!format!("{:?}", secrets()).contains("live"));
    }

    #[test]
    fn a_key_is_found_however_a_program_spells_it() {
        let secrets = Secrets::default().with([("KEY", r#"a/b+c="d\e0123"#)]);
        for text in [
            r#"https://host/?k=a%2Fb%2Bc%3D%22d%5Ce0123"#,
            r#"https://host/?k=a/b%2bc%3d%22d%5ce0123"#,
            r#"{"k":"a\/b+c=\"d\\e0123"}"#,
            r#""{\"k\":\"a/b+c=\\\"d\\\\e0123\"}""#,
            r#"<p title="a/b+c=&quot;d\e0123">"#,
        ] {
            let clean = secrets.redact(text).into_owned();
            assert!(clean.contains("[redacted: KEY]") && !clean.contains("e0123"), "{clean}");
        }
    }

    #[test]
    fn a_key_is_found_in_base64_and_in_hexadecimal_digits() {
        let secrets = Secrets::default().with([("KEY", "sk-live-0123456789")]);
        for text in [
            // The key; `u:` and the key; `me:`, the key and a line break.
            "c2stbGl2ZS0wMTIzNDU2Nzg5",
            "Basic dTpzay1saXZlLTAxMjM0NTY3ODk=",
            "bWU6c2stbGl2ZS0wMTIzNDU2Nzg5Cg==",
            "1 736b2d6c6976652d30313233343536373839 2",
            "736B2D6C6976652D30313233343536373839",
        ] {
            let clean = secrets.redact(text).into_owned();
            assert!(clean.contains("[redacted: KEY]"), "{text}: {clean}");
        }
        assert_eq!(secrets.redact("c2stbGl2ZS0wMTIzNDU2Nzg4"), "c2stbGl2ZS0wMTIzNDU2Nzg4");
    }

    #[test]
    fn an_event_holds_no_key_in_any_field() {
        let event = Event::LlmResponse(LlmResponse {
            text: format!("your key is {KEY}"),
            calls: Vec::new(),
            reasoning: None,
            finish: Finish::Stop,
            usage: Usage::default(),
            model: "m".to_owned(),
            latency_ms: 0,
            segment_ms: None,
        });
        let (_, clean) = secrets().redact_event(event).parts();
        assert!(!clean.contains(KEY) && clean.contains("[redacted: OPENAI_API_KEY]"), "{clean}");
    }

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(
            parts in proptest::collection::vec("(sk-live-)?(0123456789)?[a-k0-9-]{0,4}", 0..12),
            size in 1usize..9,
        ) {
            let text = parts.concat();
            let (secrets, mut shown) = (secrets(), Vec::new());
            let mut stream = secrets.stream();
            for piece in text.as_bytes().chunks(size) {
                shown.extend_from_slice(&stream.push(piece));
                prop_assert!(!String::from_utf8_lossy(&shown).contains(KEY));
            }
            shown.extend(stream.finish());
            prop_assert_eq!(String::from_utf8(shown).unwrap(), secrets.redact(&text).into_owned());
        }
    }
}
