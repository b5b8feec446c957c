//! Text: the token estimate, cutting at character boundaries, counts in words, errors in one line.

use std::fmt::Display;

/// Bytes per token, where nothing better is known.
pub const BYTES_PER_TOKEN: u64 = 4;

/// The estimate of how many tokens `bytes` of text are.
pub const fn estimate_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The longest prefix of at most `bytes` that ends at a character.
pub fn prefix(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The longest suffix of at most `bytes` that begins at a character.
pub fn suffix(text: &str, bytes: usize) -> &str {
    let from = text.len().saturating_sub(bytes);
    &text[text.ceil_char_boundary(from)..]
}

/// One line for lists: the first line, cut to `width` characters with an ellipsis.
pub fn one_line(text: &str, width: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let more = line.len() < text.trim().len();
    if line.chars().count() > width || (more && line.chars().count() + 1 > width) {
        let cut: String = line.chars().take(width.saturating_sub(1)).collect();
        format!("{}…", cut.trim_end())
    } else if more {
        format!("{line}…")
    } else {
        line.to_owned()
    }
}

/// A large count in short: `950`, `12.3k`, `4.5M`.
pub fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// Tokens that were used. Zero means that the server does not report them: every request uses some.
pub fn tokens(number: u64) -> String {
    match number {
        0 => "tokens unknown".to_owned(),
        _ => format!("{} tokens", count(number)),
    }
}

/// A count with its noun: `1 line`, `2 lines`. The plural is the noun with an `s`.
pub fn plural<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// An error with its causes, in one line; a cause that was said already is left out.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text.push_str(&format!(": {words}"));
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cuts_fall_between_characters(text in ".{0,60}", bytes in 0usize..80) {
            prop_assert!(prefix(&text, bytes).len() <= bytes);
            prop_assert!(text.starts_with(prefix(&text, bytes)));
            prop_assert!(suffix(&text, bytes).len() <= bytes);
            prop_assert!(text.ends_with(suffix(&text, bytes)));
        }
    }

    #[test]
    fn a_list_line_is_one_line() {
        assert_eq!(one_line("fix it\nplease", 20), "fix it…");
        assert_eq!(one_line("a rather long goal", 8), "a rathe…");
        assert_eq!(one_line("short", 8), "short");
    }

    #[test]
    fn an_error_is_shown_with_each_cause_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct Failed(&'static str, #[source] Option<Box<Failed>>);
        let failed = |text, cause: Option<Failed>| Failed(text, cause.map(Box::new));
        let deep = failed("no such file", None);
        let error = failed("cannot start", Some(failed("cannot open: no such file", Some(deep))));
        assert_eq!(with_causes(&error), "cannot start: cannot open: no such file");
    }
}
