//! Keys that must not be written down, shown or sent: found in any text and replaced by a mark that names them.
//!
//! Invariants:
//! - Only values of at least [`LEAST_BYTES`] are looked for; a shorter one is a word that stands in for a key.
//! - What its provider has sealed is never changed: it goes whole.
//! - A value is also found as other texts spell it: escaped in JSON, in JSON within JSON, in an address, in HTML, in
//!   UTF-16, and in base64 or hexadecimal digits; with escape sequences in it, too, with characters as `\u002d`, and
//!   where long lines were cut into shorter ones.

mod plain_view;

use std::borrow::Cow;
use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use crate::event::{EVENT_VERSION, Event};
use crate::reasoning::{Reasoning, Seal, Thought};
use plain_view::{PlainView, word_after};

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
        // Every start of a task hides the keys of its project, and nearly always they are known.
        if patterns.len() == self.patterns.len() {
            return self.clone();
        }
        let texts = patterns.iter().map(|pattern| &pattern.text);
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts);
        // Building fails only for more patterns than memory holds.
        Self { finder: finder.ok(), patterns }
    }

    /// A text without keys.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact_bytes(text.as_bytes(), 0) {
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
            None => Cow::Borrowed(text),
        }
    }

    /// An event without keys, whatever field they were in.
    pub fn redact_event(&self, event: Event) -> Event {
        if self.finder.is_none() {
            return event;
        }
        let (kind, body) = event.parts();
        if self.redact_bytes(body.as_bytes(), 0).is_none() {
            return event;
        }
        let event = self.without_broken_seals(event);
        let (_, body) = event.parts();
        let Ok(mut value) = serde_json::from_str(&body) else { return event };
        self.redact_value(&mut value);
        Event::from_parts(kind, EVENT_VERSION, &value.to_string()).unwrap_or(event)
    }

    /// A provider takes a sealed thought back only as it was, so one that holds a key goes whole.
    fn without_broken_seals(&self, event: Event) -> Event {
        match event {
            Event::LlmResponse(mut response) => {
                let reasoning = response.reasoning.as_mut();
                if let Some(Reasoning { thoughts, .. }) = reasoning {
                    thoughts.retain(|thought| !self.breaks_seal(thought));
                }
                response.reasoning = response.reasoning.filter(|made| !made.thoughts.is_empty());
                Event::LlmResponse(response)
            }
            other => other,
        }
    }

    fn breaks_seal(&self, thought: &Thought) -> bool {
        let data = match &thought.seal {
            Some(
                Seal::Signature(data) | Seal::Redacted(data) | Seal::Item(data) | Seal::Call(data),
            ) => data,
            Some(Seal::Field(_) | Seal::Phase(_)) | None => return false,
        };
        let holds_key = |text: &str| self.redact_bytes(text.as_bytes(), 0).is_some();
        holds_key(&thought.text) || holds_key(data)
    }

    /// Takes keys out of what comes in pieces.
    pub fn stream(&self) -> RedactedStream {
        RedactedStream { secrets: self.clone(), held: Vec::new(), word: 0 }
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

    /// The bytes with each key replaced, where they continue a word of this length; `None` where there is none.
    fn redact_bytes(&self, bytes: &[u8], word: usize) -> Option<Vec<u8>> {
        let as_written = self.replaced_in(bytes, None);
        let written = as_written.as_deref().unwrap_or(bytes);
        let as_seen =
            PlainView::of(written, word).and_then(|view| self.replaced_in(written, Some(&view)));
        as_seen.or(as_written)
    }

    /// The same for the keys as they are written, or as a view shows them.
    fn replaced_in(&self, bytes: &[u8], view: Option<&PlainView>) -> Option<Vec<u8>> {
        let finder = self.finder.as_ref()?;
        let mut clean = Vec::new();
        let mut end = 0;
        for found in finder.find_iter(view.map_or(bytes, |view| &view.bytes)) {
            let (from, to) = match view {
                Some(view) => view.original(found.start(), found.end()),
                None => (found.start(), found.end()),
            };
            clean.extend_from_slice(&bytes[end..from]);
            let name = &self.patterns[found.pattern().as_usize()].name;
            clean.extend_from_slice(format!("{MARK}{name}]").as_bytes());
            end = to;
        }
        (end > 0).then(|| {
            clean.extend_from_slice(&bytes[end..]);
            clean
        })
    }

    /// How many bytes at the end may be the beginning of a key.
    fn partial_key_len(&self, bytes: &[u8], word: usize) -> usize {
        let as_written = self.partial_key_at_end(bytes);
        let as_seen = PlainView::of(bytes, word).map_or(0, |view| {
            match self.partial_key_at_end(&view.bytes) {
                0 => 0,
                begun => {
                    let length = view.bytes.len();
                    bytes.len() - view.original(length - begun, length).0
                }
            }
        });
        as_written.max(as_seen)
    }

    fn partial_key_at_end(&self, bytes: &[u8]) -> usize {
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
    // UTF-16 without its last zero or its first: the order of the bytes does not matter.
    all.push(value.split("").filter(|letter| !letter.is_empty()).collect::<Vec<_>>().join("\0"));
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
    /// How long the word is that what was shown ends with.
    word: usize,
}

impl RedactedStream {
    /// What can be shown of the text so far.
    pub fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        if self.secrets.finder.is_none() {
            return Cow::Borrowed(piece);
        }
        self.held.extend_from_slice(piece);
        if let Some(clean) = self.secrets.redact_bytes(&self.held, self.word) {
            self.held = clean;
        }
        let begun = self.secrets.partial_key_len(&self.held, self.word);
        let rest = self.held.split_off(self.held.len() - begun);
        let shown = std::mem::replace(&mut self.held, rest);
        self.word = word_after(self.word, &shown);
        Cow::Owned(shown)
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
    fn a_key_is_found_where_lines_are_cut_within_it() {
        let key = "sk-live-0123456789-abcdefghijklmnopqrstuvwxyz-0123456789-ABCDEFGHIJ";
        let secrets = Secrets::default().with([("KEY", key)]);
        // As `base64`, `xxd -p` and `fold` cut their lines.
        let base64 = "c2stbGl2ZS0wMTIzNDU2Nzg5LWFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6LTAxMjM0NTY3ODkt\n\
                      QUJDREVGR0hJSg==";
        let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
        let cut = |text: &str, size: usize, end: &str| {
            let lines: Vec<&str> = text
                .as_bytes()
                .chunks(size)
                .map(|line| std::str::from_utf8(line).unwrap())
                .collect();
            lines.join(end)
        };
        for text in
            [base64.to_owned(), cut(&hex, 60, "\n"), cut(key, 20, "\r\n"), cut(key, 30, "\\n")]
        {
            let clean = secrets.redact(&format!("a\n{text}\nb")).into_owned();
            assert!(clean.starts_with("a\n[redacted: KEY]"), "{text}: {clean}");
            assert!(clean.len() < "a\n[redacted: KEY]QUJ=\nb".len() + 4, "{clean}");
        }
        let wide: String = key.encode_utf16().flat_map(u16::to_le_bytes).map(char::from).collect();
        assert!(secrets.redact(&wide).contains("[redacted: KEY]"));
        let (_, clean) = secrets.redact_event(reply(&format!("it is {base64}"))).parts();
        assert!(clean.contains("it is [redacted: KEY]"), "{clean}");
    }

    #[test]
    fn a_key_is_found_through_colours_and_escaped_characters() {
        for text in [
            "a \u{1b}[01;31msk-\u{1b}[m\u{1b}[Klive-0123456789 b",
            "a sk-␛[1mlive␛[0m-0123456789 b",
            r#"{"k":"sk\u002dlive-01\u0032\u001b[1m3456789"}"#,
            "a sk-\u{1b}]8;;x\u{7}live-0123456789 b",
        ] {
            let clean = secrets().redact(text).into_owned();
            assert!(clean.contains("[redacted: OPENAI_API_KEY]"), "{text:?}: {clean:?}");
            assert!(!clean.contains("3456789"), "{clean:?}");
        }
        assert_eq!(secrets().redact("sk-live-01234\n56789"), "sk-live-01234\n56789");
        let coloured = "a \u{1b}[31mred\u{1b}[0m \\u00e9 word";
        assert_eq!(secrets().redact(coloured), coloured);
    }

    fn reply(text: &str) -> Event {
        Event::LlmResponse(LlmResponse {
            text: text.to_owned(),
            calls: Vec::new(),
            reasoning: None,
            finish: Finish::Stop,
            usage: Usage::default(),
            model: "m".to_owned(),
            latency_ms: 0,
            segment_ms: None,
        })
    }

    #[test]
    fn an_event_holds_no_key_in_any_field() {
        let event = reply(&format!("your key is {KEY}"));
        let (_, clean) = secrets().redact_event(event).parts();
        assert!(!clean.contains(KEY) && clean.contains("[redacted: OPENAI_API_KEY]"), "{clean}");
    }

    #[test]
    fn a_sealed_thought_that_holds_a_key_is_dropped_whole() {
        let thought = |text: &str, seal: Seal| Thought {
            text: text.to_owned(),
            seal: Some(seal),
            ..Thought::default()
        };
        let (said, sealed) = (format!("use {KEY}"), || Seal::Signature("c2ln".to_owned()));
        let kept = thought("look first", sealed());
        let item = Seal::Item(format!(r#"{{"text":"{KEY}"}}"#));
        let thoughts = vec![
            kept.clone(),
            thought(&said, sealed()),
            thought("look", item),
            thought(&said, Seal::Field("reasoning_content".to_owned())),
        ];
        let with = |thoughts: Vec<Thought>| match reply("hello") {
            Event::LlmResponse(reply) => {
                let reasoning = Some(Reasoning { model: "m".to_owned(), thoughts });
                Event::LlmResponse(LlmResponse { reasoning, ..reply })
            }
            other => other,
        };
        let field = Seal::Field("reasoning_content".to_owned());
        let expected = vec![kept, thought("use [redacted: OPENAI_API_KEY]", field)];
        assert_eq!(secrets().redact_event(with(thoughts)), with(expected));
        let nothing = secrets().redact_event(with(vec![thought(&said, sealed())]));
        assert_eq!(nothing, reply("hello"));
    }

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(
            parts in proptest::collection::vec(
                "(sk-live-)?(\u{1b}\\[[0-9]{0,2}m|\\\\u0030)?(0?123456789)?[a-k0-9-]{0,4}", 0..12),
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

        #[test]
        fn a_key_cut_into_lines_is_found_in_pieces(
            before in "( ?[a-k0-9]{6,40}\r?\n){0,3}[a-k]{0,20}",
            end in "\n|\r\n|\\\\n|\\\\r\\\\n",
            after in "[a-k]{0,4}\n",
            size in 1usize..9,
        ) {
            let text = format!("{before}sk-live-{end}0123456789{after}");
            let (secrets, mut shown) = (secrets(), Vec::new());
            let mut stream = secrets.stream();
            for piece in text.as_bytes().chunks(size) {
                shown.extend_from_slice(&stream.push(piece));
            }
            shown.extend(stream.finish());
            let shown = String::from_utf8(shown).unwrap();
            let word = before.len() - before.rfind('\n').map_or(0, |end| end + 1);
            prop_assert_eq!(shown.contains("[redacted: "), word + 8 >= 16, "{:?}", shown);
            prop_assert_eq!(shown, secrets.redact(&text).into_owned());
        }
    }
}
