//! What a model wrote, made fit to be sent back to any server.
//!
//! Strict servers refuse a whole conversation because of one malformed call in it. The journal has
//! the original; the wire gets the nearest thing every server takes. Well-formed calls stay verbatim.

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// The longest tool name providers take.
const MAX_NAME: usize = 64;

/// The arguments as the text of a JSON object: verbatim if they are one.
pub(crate) fn arguments(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Cow::Borrowed("{}");
    }
    if trimmed.starts_with('{') && serde_json::from_str::<IgnoredAny>(trimmed).is_ok() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(serde_json::json!({ "unparsed_arguments": text }).to_string())
}

/// A tool's name in the letters providers take.
pub(crate) fn name(text: &str) -> Cow<'_, str> {
    word(text, "unknown")
}

/// A call's id in the letters providers take.
pub(crate) fn id(text: &str) -> Cow<'_, str> {
    word(text, "call")
}

fn word<'a>(text: &'a str, none: &'a str) -> Cow<'a, str> {
    let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if text.is_empty() {
        return Cow::Borrowed(none);
    }
    if text.len() <= MAX_NAME && text.chars().all(fit) {
        return Cow::Borrowed(text);
    }
    text.chars().take(MAX_NAME).map(|c| if fit(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_sent_back_verbatim_and_all_else_wrapped_in_one() {
        assert_eq!(arguments(r#"{ "b":1,"a" : 2}"#), r#"{ "b":1,"a" : 2}"#);
        assert_eq!(arguments(" "), "{}");
        assert_eq!(arguments("[1]"), r#"{"unparsed_arguments":"[1]"}"#);
        assert_eq!(arguments(r#"{"a":"#), r#"{"unparsed_arguments":"{\"a\":"}"#);
    }

    #[test]
    fn names_and_ids_have_only_letters_every_provider_takes() {
        assert_eq!(name("read_file"), "read_file");
        assert_eq!(name("functions.bash:0"), "functions_bash_0");
        assert_eq!(name(""), "unknown");
        assert_eq!(id(&"é".repeat(100)).len(), 64);
    }
}
