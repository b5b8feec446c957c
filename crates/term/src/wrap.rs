//! Wraps prose between words; a terminal would break it inside a word.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::columns::{grapheme_width, width};
use crate::{link, strip_controls};

/// Indentation of the lines that follow the first.
const HANGING: &str = "  ";

/// Wraps text at this many columns. A longer word gets a line of its own. Colour codes take no room.
pub fn wrap(text: &str, columns: usize) -> String {
    text.split('\n').map(|line| wrap_line(line, columns)).collect::<Vec<_>>().join("\n")
}

fn wrap_line(line: &str, columns: usize) -> String {
    let (mut wrapped, mut used) = (String::new(), 0);
    for (index, word) in line.split(' ').enumerate() {
        let wide = width(&strip_controls(word));
        if index > 0 && used + 1 + wide > columns && used > HANGING.len() {
            wrapped.push('\n');
            wrapped.push_str(HANGING);
            used = HANGING.len();
        } else if index > 0 {
            wrapped.push(' ');
            used += 1;
        }
        wrapped.push_str(word);
        used += wide;
    }
    wrapped
}

/// Cuts a line to a number of columns. Colours and links take no room, and end with the line. Other control
/// characters have no place in a line and are left out.
pub fn cut_columns(line: &str, columns: usize) -> String {
    let (mut kept, mut used, mut coloured, mut is_linked) = (String::new(), 0, false, false);
    let mut rest = line;
    while let Some(grapheme) = rest.graphemes(true).next() {
        if let Some(after) = rest.strip_prefix("\u{1b}[") {
            let end = after.find('m').map_or(after.len(), |end| end + 1);
            kept.push_str(&rest[..rest.len() - after.len() + end]);
            rest = &after[end..];
            coloured = true;
            continue;
        }
        if let Some(length) = link::sequence(rest) {
            is_linked = !rest.starts_with(link::END);
            kept.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        rest = &rest[grapheme.len()..];
        if grapheme.chars().all(char::is_control) {
            continue;
        }
        let wide = grapheme_width(grapheme);
        let is_last = used + wide > columns.saturating_sub(1);
        if is_last && used + wide + width(&strip_controls(rest)) > columns {
            kept.push('…');
            break;
        }
        kept.push_str(grapheme);
        used += wide;
    }
    if is_linked {
        kept.push_str(link::END);
    }
    if coloured {
        kept.push_str("\u{1b}[0m");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_stay_whole_and_what_follows_is_indented() {
        assert_eq!(wrap("failed: the model is gone", 15), "failed: the\n  model is gone");
        assert_eq!(wrap("\u{1b}[31mfailed:\u{1b}[0m no", 10), "\u{1b}[31mfailed:\u{1b}[0m no");
        assert_eq!(wrap("\nhint: 漢字 漢字 漢字", 12), "\nhint: 漢字\n  漢字 漢字");
        assert_eq!(wrap("a_very_long_word_indeed x", 8), "a_very_long_word_indeed\n  x");
    }

    #[test]
    fn a_cut_line_keeps_its_colours_and_fits() {
        assert_eq!(cut_columns("abcdef", 6), "abcdef");
        assert_eq!(cut_columns("abcdefg", 6), "abcde…");
        assert_eq!(cut_columns("\u{1b}[1mabcdefg\u{1b}[0m", 6), "\u{1b}[1mabcde…\u{1b}[0m");
        assert_eq!(cut_columns("漢字漢字", 5), "漢字…");
    }

    #[test]
    fn a_character_is_never_cut_in_half() {
        let family = "👨\u{200d}👩\u{200d}👧";
        assert_eq!(cut_columns(&family.repeat(4), 7), format!("{}…", family.repeat(3)));
        assert_eq!(cut_columns(&"❤\u{fe0f}".repeat(4), 6), format!("{}…", "❤\u{fe0f}".repeat(2)));
        assert_eq!(cut_columns("🇫🇷🇩🇪🇮🇹", 5), "🇫🇷🇩🇪…");
        assert_eq!(cut_columns("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
    }

    #[test]
    fn controls_are_left_out_of_a_cut_line() {
        assert_eq!(cut_columns("a\u{9b}\u{85}\tb", 1), "…");
        assert_eq!(cut_columns("\u{7}\u{8}\u{1}ab", 2), "ab");
    }

    proptest! {
        #[test]
        fn whatever_is_cut_fits(text in any::<String>(), columns in 0usize..20) {
            prop_assert!(width(&strip_controls(&cut_columns(&text, columns))) <= columns.max(1));
        }

        #[test]
        fn nothing_is_lost_and_lines_fit(text in "[a-z漢]{1,9}( [a-z漢]{1,9}){0,20}", columns in 22usize..60) {
            let wrapped = wrap(&text, columns);
            prop_assert_eq!(wrapped.split_whitespace().collect::<Vec<_>>().join(" "), text);
            prop_assert!(wrapped.lines().all(|line| width(line) <= columns));
        }
    }
}
