//! What servers say, made fit for people: no keys, no control characters, not too long.

use secrecy::{ExposeSecret, SecretString};

/// The most characters of a server's message we pass on; it is for reading, not for parsing.
const MAX_DETAIL: usize = 600;

/// A shorter key is not a secret but a placeholder for one (`none`, `x`); masking it would only make
/// what the server says unreadable.
const LEAST_SECRET: usize = 8;

const MASK: &str = "[redacted]";

/// Cleans a server's text of the key it may echo.
pub(crate) fn clean(text: &str, key: Option<&SecretString>) -> String {
    let mut text = text.trim().to_owned();
    let secret = |key: &&str| key.len() >= LEAST_SECRET;
    if let Some(key) = key.map(ExposeSecret::expose_secret).filter(secret) {
        text = text.replace(key, MASK);
    }
    let text = mask_tokens(&text);
    let one_line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match one_line.char_indices().nth(MAX_DETAIL) {
        Some((cut, _)) => format!("{}…", &one_line[..cut]),
        None if one_line.is_empty() => "no explanation".to_owned(),
        None => one_line,
    }
}

/// Masks words that look like keys whoever they belong to: `sk-` and more, or a bearer's token.
fn mask_tokens(text: &str) -> String {
    let part = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*' | '.'));
    let mut clean = String::with_capacity(text.len());
    let mut bearer = false;
    for piece in text.split_inclusive(part) {
        let end = piece.trim_end_matches(part).len();
        let (word, rest) = piece.split_at(end);
        let secret = (word.starts_with("sk-") || bearer) && word.len() >= LEAST_SECRET;
        clean.push_str(if secret { MASK } else { word });
        clean.push_str(rest);
        bearer = word.eq_ignore_ascii_case("bearer") || (bearer && word.is_empty());
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echoed_key_is_masked_wherever_it_is() {
        let key = SecretString::from("hunter2:secret");
        assert_eq!(
            clean(
                "no: `hunter2:secret`, sent as Bearer abcdefgh12345 or sk-live-1234567890!",
                Some(&key)
            ),
            "no: `[redacted]`, sent as Bearer [redacted] or [redacted]!"
        );
    }

    #[test]
    fn a_word_in_place_of_a_key_leaves_what_is_said_readable() {
        let key = SecretString::from("x");
        assert_eq!(clean("the maximum does not exist", Some(&key)), "the maximum does not exist");
    }

    #[test]
    fn long_and_ugly_texts_become_one_short_line() {
        assert_eq!(clean("a\n\u{1b}[31mb", None), "a  [31mb");
        assert_eq!(clean(" ", None), "no explanation");
        assert_eq!(clean(&"é".repeat(10_000), None).chars().count(), MAX_DETAIL + 1);
    }
}
