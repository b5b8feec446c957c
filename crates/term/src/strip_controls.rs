//! Removes from text whatever would control a terminal.

use std::iter::Peekable;
use std::str::Chars;

/// Returns the text without escape sequences, control characters and marks that reorder text.
/// A lone carriage return becomes a line end, because programs use it to overwrite a line.
pub fn strip_controls(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '\u{1b}' => skip_sequence(&mut rest),
            // The one-character forms of `ESC [` and of the sequences that run to a terminator.
            '\u{9b}' => skip_control(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut rest),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => kept.push('\n'),
            '\n' | '\t' => kept.push(char),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {}
            char if char.is_control() => {}
            char => kept.push(char),
        }
    }
    kept
}

fn skip_sequence(rest: &mut Peekable<Chars<'_>>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_control(rest);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            rest.next();
            skip_string(rest);
        }
        // Intermediate characters, then one that ends it.
        Some(_) => {
            while rest.next_if(|next| matches!(next, ' '..='/')).is_some() {}
            rest.next_if(|next| matches!(next, '0'..='~'));
        }
        None => {}
    }
}

/// Parameters, then one character that ends it; what cannot belong to it is text again.
fn skip_control(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|next| matches!(next, ' '..='?')).is_some() {}
    rest.next_if(|next| matches!(next, '@'..='~'));
}

/// Up to BEL or `ESC \`. A string without an end stops at its line, so that the rest is not lost.
fn skip_string(rest: &mut Peekable<Chars<'_>>) {
    while let Some(next) = rest.next_if(|next| *next != '\n') {
        match next {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn colours_titles_links_and_cursor_moves_are_gone() {
        assert_eq!(strip_controls("\u{1b}[1;31mred\u{1b}[0m"), "red");
        assert_eq!(strip_controls("\u{1b}]0;title\u{7}x"), "x");
        assert_eq!(strip_controls("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\"), "link");
        assert_eq!(strip_controls("\u{1b}(Ba\u{1b}7b\u{9b}2Jc\u{1b}Pq\u{1b}\\d"), "abcd");
        assert_eq!(strip_controls("10%\r20%\r\ndone\u{8}\u{7f}"), "10%\n20%\ndone");
        assert_eq!(strip_controls("\u{1b}]0;no end\nnext"), "\nnext");
        assert_eq!(strip_controls("a\u{202e}b"), "ab");
    }

    proptest! {
        #[test]
        fn nothing_that_controls_a_terminal_remains(text in "[\\x1b\\[\\]P0-9;m\\\\a-z\\x07\\x9b\\x9d\\r\\n\\t é]{0,80}") {
            let kept = strip_controls(&text);
            prop_assert!(kept.chars().all(|char| char == '\n' || char == '\t' || !char.is_control()));
            prop_assert_eq!(strip_controls(&kept), kept);
        }
    }
}
