//! A text with pasted texts in it as placeholders, and the places in it that a cursor goes to.

use std::collections::BTreeMap;

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
}

impl Draft {
    /// A draft of this text, the cursor at its end.
    pub fn of(text: &str) -> Self {
        let text = plain(text);
        Self { cursor: text.len(), text, pastes: BTreeMap::new() }
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

    /// Makes a draft that was read from a file safe to edit.
    pub fn checked(mut self) -> Self {
        self.text.retain(|char| !is_placeholder(char) || self.pastes.contains_key(&char));
        self.cursor = self.cursor.min(self.text.len());
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
