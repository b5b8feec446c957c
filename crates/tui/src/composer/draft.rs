//! A text with pasted texts in it as placeholders, and the places in it that a cursor goes to.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation as _;

/// Placeholders are characters from here on, which nobody types.
pub(super) const FIRST_PLACEHOLDER: u32 = 0xF_0000;
pub(super) const LAST_PLACEHOLDER: u32 = 0xF_FFFD;

/// What is written, and where the cursor is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    pub(crate) text: String,
    /// Pasted texts by their placeholder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) pastes: BTreeMap<char, String>,
    #[serde(default)]
    pub(crate) cursor: usize,
    /// Where a small paste stands in the text, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pasted: Vec<Range<usize>>,
}

impl Draft {
    /// A draft of this text, the cursor at its end.
    pub fn of(text: &str) -> Self {
        let text = plain(text);
        Self { cursor: text.len(), text, ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The whole text, pasted texts in place of their placeholders.
    pub fn expanded(&self) -> String {
        let mut whole = String::with_capacity(self.text.len());
        for char in self.text.chars() {
            match self.pastes.get(&char) {
                Some(paste) => whole.push_str(paste),
                None => whole.push(char),
            }
        }
        whole
    }

    /// The text without what was pasted.
    pub fn own_words(&self) -> String {
        let own = |(at, char)| if is_placeholder(char) || self.is_pasted(at) { ' ' } else { char };
        self.text.char_indices().map(own).collect()
    }

    /// Whether the text begins with something that was pasted. It is no command then.
    pub(crate) fn begins_pasted(&self) -> bool {
        let first = self.text.find(|char: char| !char.is_whitespace());
        first.is_some_and(|at| self.is_pasted(at))
    }

    fn is_pasted(&self, at: usize) -> bool {
        self.pasted.iter().any(|range| range.contains(&at))
    }

    /// Remembers that this part of the text was pasted.
    pub(super) fn mark_pasted(&mut self, range: Range<usize>) {
        self.pasted.push(range);
        self.pasted.sort_by_key(|range| range.start);
    }

    /// Puts a text in place of a part of it. What was pasted moves along; what is typed into it belongs to it.
    pub(super) fn splice(&mut self, part: Range<usize>, with: &str) {
        self.text.replace_range(part.clone(), with);
        let behind = |at: usize| at - part.len() + with.len();
        for range in &mut self.pasted {
            range.start = match range.start {
                at if at >= part.end => behind(at),
                at if at > part.start => part.start + with.len(),
                at => at,
            };
            range.end = match range.end {
                at if at <= part.start => at,
                at if at >= part.end => behind(at),
                _ => part.start,
            };
        }
        self.pasted.retain(|range| range.start < range.end);
    }

    /// Whether a part of the text has a placeholder in it.
    pub(crate) fn holds_paste(&self, part: &str) -> bool {
        part.chars().any(is_placeholder)
    }

    /// Makes a draft that was read from a file safe to edit.
    pub fn checked(mut self) -> Self {
        self.text.retain(|char| !is_placeholder(char) || self.pastes.contains_key(&char));
        self.cursor = self.cursor.min(self.text.len());
        let length = self.text.len();
        self.pasted.retain(|range| range.start < range.end && range.end <= length);
        let starts = self.text.grapheme_indices(true).map(|(at, _)| at);
        let at = starts.rev().find(|at| *at <= self.cursor).unwrap_or(0);
        self.cursor = if self.cursor == self.text.len() { self.cursor } else { at };
        self
    }

    pub(crate) fn left(&self) -> usize {
        let before = &self.text[..self.cursor];
        before.grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    pub(crate) fn right(&self) -> usize {
        self.right_of(self.cursor)
    }

    pub(crate) fn right_of(&self, at: usize) -> usize {
        let mut ends = self.text.grapheme_indices(true).map(|(start, one)| start + one.len());
        ends.find(|end| *end > at).unwrap_or(self.text.len())
    }

    pub(crate) fn word_left(&self) -> usize {
        let before = &self.text[..self.cursor];
        let trimmed = before.trim_end_matches(is_between);
        match trimmed.chars().next_back() {
            // A placeholder is a word of its own.
            Some(last) if is_placeholder(last) => trimmed.len() - last.len_utf8(),
            _ => trimmed
                .char_indices()
                .rev()
                .find(|(_, char)| is_between(*char) || is_placeholder(*char))
                .map_or(0, |(at, char)| at + char.len_utf8()),
        }
    }

    pub(crate) fn word_right(&self) -> usize {
        let after = &self.text[self.cursor..];
        let start = after.len() - after.trim_start_matches(is_between).len();
        let word = &after[start..];
        let end = match word.chars().next() {
            Some(first) if is_placeholder(first) => first.len_utf8(),
            _ => word.find(|char| is_between(char) || is_placeholder(char)).unwrap_or(word.len()),
        };
        self.cursor + start + end
    }

    pub(crate) fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    pub(crate) fn line_end(&self) -> usize {
        let after = &self.text[self.cursor..];
        self.cursor + after.find('\n').unwrap_or(after.len())
    }
}

pub(crate) fn is_between(char: char) -> bool {
    char.is_whitespace() || matches!(char, '/' | '.' | ',' | ';' | ':' | '(' | ')' | '"' | '\'')
}

pub(crate) fn is_placeholder(char: char) -> bool {
    (FIRST_PLACEHOLDER..=LAST_PLACEHOLDER).contains(&u32::from(char))
}

/// A text without what would be taken for a placeholder or would control a terminal.
pub(super) fn plain(text: &str) -> String {
    let kept =
        |char: &char| !is_placeholder(*char) && (!char.is_control() || matches!(char, '\n' | '\t'));
    text.replace("\r\n", "\n").replace('\r', "\n").chars().filter(kept).collect()
}
