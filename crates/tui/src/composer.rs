//! The text that a person writes: several lines, a cursor, pasted texts as placeholders, undo.
//!
//! Invariants:
//! - The cursor stands between two characters as a reader sees them.
//! - A placeholder is one character: it is moved over and removed as a whole, and holds its text until then.
//! - Nothing that was written is lost by a key: what a key removes comes back by `yank` or `undo`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::keys::{Code, Key};
use crate::text::{grapheme_width, width};

/// A paste of more bytes or lines than these becomes a placeholder.
const LARGE_BYTES: usize = 800;
const LARGE_LINES: usize = 8;
/// The most text that one message can have; a larger one belongs into a file.
pub const MAX_BYTES: usize = 200 * 1024;
/// Earlier states that can be returned to.
const UNDO: usize = 100;
/// Placeholders are characters from here on, which nobody types.
const FIRST_PLACEHOLDER: u32 = 0xF_0000;
const LAST_PLACEHOLDER: u32 = 0xF_FFFD;

/// What is written, and where the cursor is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    text: String,
    /// Pasted texts by their placeholder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pastes: BTreeMap<char, String>,
    #[serde(default)]
    cursor: usize,
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
}

/// The text that is being written.
#[derive(Clone, Debug, Default)]
pub struct Composer {
    draft: Draft,
    undo: Vec<Draft>,
    /// What the last deletions removed.
    killed: String,
    /// Whether the last key typed a character, so that undo takes back a run of them.
    is_typing: bool,
    next_paste: u32,
}

/// The rows of a composer and the place of the cursor in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Laid {
    pub rows: Vec<String>,
    pub row: usize,
    pub column: usize,
}

impl Composer {
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    pub fn is_empty(&self) -> bool {
        self.draft.is_empty()
    }

    /// What is written, placeholders as they are.
    pub fn text(&self) -> &str {
        &self.draft.text
    }

    pub fn cursor(&self) -> usize {
        self.draft.cursor
    }

    /// Takes what is written away.
    pub fn take(&mut self) -> Draft {
        self.undo.clear();
        self.is_typing = false;
        std::mem::take(&mut self.draft)
    }

    /// Puts another text in place of what is written.
    pub fn replace(&mut self, draft: Draft) {
        self.remember();
        self.is_typing = false;
        let used = draft.pastes.keys().map(|char| u32::from(*char) - FIRST_PLACEHOLDER + 1).max();
        self.next_paste = self.next_paste.max(used.unwrap_or(0));
        self.draft = draft.checked();
    }

    /// Puts a text in place of the part of it from `start` to the cursor.
    pub fn complete(&mut self, start: usize, with: &str) {
        self.remember();
        let (start, end) = (start.min(self.draft.cursor), self.draft.cursor);
        let with = plain(with);
        self.draft.text.replace_range(start..end, &with);
        self.draft.cursor = start + with.len();
        self.is_typing = false;
    }

    /// Inserts pasted text, as a placeholder where it is large. False where it does not fit.
    pub fn paste(&mut self, text: &str) -> bool {
        let text = plain(text);
        if text.is_empty() {
            return true;
        }
        let held: usize = self.draft.pastes.values().map(String::len).sum();
        if self.draft.text.len() + held + text.len() > MAX_BYTES {
            return false;
        }
        self.remember();
        self.is_typing = false;
        let is_large = text.len() > LARGE_BYTES || text.matches('\n').count() >= LARGE_LINES;
        let place = char::from_u32(FIRST_PLACEHOLDER + self.next_paste);
        match place.filter(|place| is_large && u32::from(*place) <= LAST_PLACEHOLDER) {
            Some(place) => {
                self.next_paste += 1;
                self.draft.pastes.insert(place, text);
                self.insert(place.encode_utf8(&mut [0; 4]));
            }
            None => self.insert(&text),
        }
        true
    }

    /// Puts the pasted text in place of the placeholder at the cursor, or of the first one.
    pub fn unfold(&mut self) -> bool {
        let before = self.draft.text[..self.draft.cursor].chars().next_back();
        let after = self.draft.text[self.draft.cursor..].chars().next();
        let any = self.draft.text.chars().find(|char| is_placeholder(*char));
        let near = [before, after].into_iter().flatten().find(|char| is_placeholder(*char));
        let Some(place) = near.or(any) else { return false };
        let Some(paste) = self.draft.pastes.get(&place).cloned() else { return false };
        let Some(at) = self.draft.text.find(place) else { return false };
        self.remember();
        self.draft.text.replace_range(at..at + place.len_utf8(), &paste);
        self.draft.cursor = at + paste.len();
        self.is_typing = false;
        true
    }

    /// Edits by a key; false where the key has no meaning here.
    pub fn key(&mut self, key: Key) -> bool {
        if let Some(char) = key.typed() {
            self.type_char(char);
            return true;
        }
        let Key { code, ctrl, alt, .. } = key;
        let was_typing = std::mem::take(&mut self.is_typing);
        match (code, ctrl, alt) {
            (Code::Left, false, false) | (Code::Char('b'), true, _) => {
                self.draft.cursor = self.left()
            }
            (Code::Right, false, false) | (Code::Char('f'), true, _) => {
                self.draft.cursor = self.right();
            }
            (Code::Left, _, _) | (Code::Char('b'), false, true) => {
                self.draft.cursor = self.word_left();
            }
            (Code::Right, _, _) | (Code::Char('f'), false, true) => {
                self.draft.cursor = self.word_right();
            }
            (Code::Home, true, _) => self.draft.cursor = 0,
            (Code::End, true, _) => self.draft.cursor = self.draft.text.len(),
            (Code::Home, ..) | (Code::Char('a'), true, _) => self.draft.cursor = self.line_start(),
            (Code::End, ..) | (Code::Char('e'), true, _) => self.draft.cursor = self.line_end(),
            (Code::Backspace, true, _)
            | (Code::Backspace, _, true)
            | (Code::Char('w'), true, _) => self.kill(self.word_left(), self.draft.cursor),
            (Code::Backspace, ..) => self.delete(self.left(), self.draft.cursor),
            (Code::Delete, true, _) | (Code::Char('d'), false, true) => {
                self.kill(self.draft.cursor, self.word_right());
            }
            (Code::Delete, ..) => self.delete(self.draft.cursor, self.right()),
            (Code::Char('k'), true, _) => {
                let end = self.line_end();
                // At the end of a line, the line end itself.
                let end = if end == self.draft.cursor { self.right() } else { end };
                self.kill(self.draft.cursor, end);
            }
            (Code::Char('u'), true, _) => self.kill(self.line_start(), self.draft.cursor),
            (Code::Char('y'), true, _) => {
                self.remember();
                self.insert(&self.killed.clone());
            }
            (Code::Char('_' | '/'), true, _) => {
                if let Some(draft) = self.undo.pop() {
                    self.draft = draft;
                }
            }
            _ => {
                self.is_typing = was_typing;
                return false;
            }
        }
        true
    }

    /// Begins a new line.
    pub fn newline(&mut self) {
        self.remember();
        self.is_typing = false;
        self.insert("\n");
    }

    /// Removes the backslash before the cursor, if there is one: `\` and Enter is a new line.
    pub fn take_backslash(&mut self) -> bool {
        let is_there = self.draft.text[..self.draft.cursor].ends_with('\\');
        if is_there {
            self.delete(self.draft.cursor - 1, self.draft.cursor);
        }
        is_there
    }

    /// Moves up or down a row as it is drawn; false at the first and the last one.
    pub fn vertical(&mut self, rows: i32, columns: usize) -> bool {
        let places = self.places(columns);
        let Some(at) = places.iter().position(|place| place.at == self.draft.cursor) else {
            return false;
        };
        let (row, column) = (places[at].row as i32 + rows, places[at].column);
        if row < 0 {
            return false;
        }
        let in_row = places.iter().filter(|place| place.row as i32 == row);
        match in_row.min_by_key(|place| place.column.abs_diff(column)) {
            Some(place) => self.draft.cursor = place.at,
            None => return false,
        }
        self.is_typing = false;
        true
    }

    /// The rows as they are drawn, and where the cursor is in them.
    pub fn lay_out(&self, columns: usize) -> Laid {
        let columns = columns.max(2);
        let mut laid = Laid { rows: vec![String::new()], row: 0, column: 0 };
        let mut used = 0;
        for (at, grapheme) in self.draft.text.grapheme_indices(true) {
            let shown = self.picture(grapheme);
            let wide = width(&shown);
            if grapheme != "\n" && used > 0 && used + wide > columns {
                laid.rows.push(String::new());
                used = 0;
            }
            if at == self.draft.cursor {
                (laid.row, laid.column) = (laid.rows.len() - 1, used);
            }
            if grapheme == "\n" {
                laid.rows.push(String::new());
                used = 0;
                continue;
            }
            if let Some(row) = laid.rows.last_mut() {
                row.push_str(&crate::text::cut(&shown, columns));
            }
            used += wide.min(columns);
        }
        if self.draft.cursor == self.draft.text.len() {
            if used >= columns {
                laid.rows.push(String::new());
                used = 0;
            }
            (laid.row, laid.column) = (laid.rows.len() - 1, used);
        }
        laid
    }

    fn places(&self, columns: usize) -> Vec<Place> {
        let columns = columns.max(2);
        let (mut places, mut row, mut used) = (Vec::new(), 0, 0);
        for (at, grapheme) in self.draft.text.grapheme_indices(true) {
            let wide = width(&self.picture(grapheme)).min(columns);
            if grapheme != "\n" && used > 0 && used + wide > columns {
                (row, used) = (row + 1, 0);
            }
            places.push(Place { at, row, column: used });
            match grapheme {
                "\n" => (row, used) = (row + 1, 0),
                _ => used += wide,
            }
        }
        if used >= columns {
            (row, used) = (row + 1, 0);
        }
        places.push(Place { at: self.draft.text.len(), row, column: used });
        places
    }

    /// What is drawn for one character.
    fn picture(&self, grapheme: &str) -> String {
        let mut chars = grapheme.chars();
        match chars.next() {
            Some('\n') => String::new(),
            Some('\t') => "    ".to_owned(),
            Some(place) if is_placeholder(place) => self.placeholder(place),
            Some(_) if grapheme_width(grapheme) > 0 => grapheme.to_owned(),
            // A mark without a letter has no picture of its own.
            _ => windlass_core::shown::shown_line(grapheme),
        }
    }

    fn placeholder(&self, place: char) -> String {
        let number = u32::from(place) - FIRST_PLACEHOLDER + 1;
        let text = self.draft.pastes.get(&place).map(String::as_str).unwrap_or_default();
        let lines = text.lines().count();
        match lines {
            0 | 1 => format!("[pasted text {number}: {} characters]", text.chars().count()),
            lines => format!("[pasted text {number}: {lines} lines]"),
        }
    }

    fn type_char(&mut self, char: char) {
        if self.draft.text.len() + char.len_utf8() > MAX_BYTES || is_placeholder(char) {
            return;
        }
        if !self.is_typing || char == ' ' {
            self.remember();
        }
        self.insert(char.encode_utf8(&mut [0; 4]));
        self.is_typing = true;
    }

    fn insert(&mut self, text: &str) {
        self.draft.text.insert_str(self.draft.cursor, text);
        self.draft.cursor += text.len();
        self.settle();
    }

    fn delete(&mut self, start: usize, end: usize) {
        if start < end {
            self.remember();
            self.draft.text.replace_range(start..end, "");
            self.draft.cursor = start;
            self.settle();
        }
    }

    fn kill(&mut self, start: usize, end: usize) {
        if start < end {
            self.killed = self.draft.text[start..end].to_owned();
            self.delete(start, end);
        }
    }

    /// A character may have joined the one before or after it: the cursor goes to its end.
    fn settle(&mut self) {
        let is_border = |at: usize| {
            at == self.draft.text.len()
                || self.draft.text.grapheme_indices(true).any(|(start, _)| start == at)
        };
        if self.draft.text.is_ascii() || is_border(self.draft.cursor) {
            return;
        }
        self.draft.cursor = self.right_of(self.draft.cursor);
    }

    fn remember(&mut self) {
        if self.undo.last() != Some(&self.draft) {
            self.undo.push(self.draft.clone());
        }
        if self.undo.len() > UNDO {
            self.undo.remove(0);
        }
    }

    fn left(&self) -> usize {
        let before = &self.draft.text[..self.draft.cursor];
        before.grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        self.right_of(self.draft.cursor)
    }

    fn right_of(&self, at: usize) -> usize {
        let mut ends = self.draft.text.grapheme_indices(true).map(|(start, one)| start + one.len());
        ends.find(|end| *end > at).unwrap_or(self.draft.text.len())
    }

    fn word_left(&self) -> usize {
        let before = &self.draft.text[..self.draft.cursor];
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

    fn word_right(&self) -> usize {
        let after = &self.draft.text[self.draft.cursor..];
        let start = after.len() - after.trim_start_matches(is_between).len();
        let word = &after[start..];
        let end = match word.chars().next() {
            Some(first) if is_placeholder(first) => first.len_utf8(),
            _ => word.find(|char| is_between(char) || is_placeholder(char)).unwrap_or(word.len()),
        };
        self.draft.cursor + start + end
    }

    fn line_start(&self) -> usize {
        self.draft.text[..self.draft.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let after = &self.draft.text[self.draft.cursor..];
        self.draft.cursor + after.find('\n').unwrap_or(after.len())
    }
}

/// Where a character is drawn.
struct Place {
    at: usize,
    row: usize,
    column: usize,
}

fn is_between(char: char) -> bool {
    char.is_whitespace() || matches!(char, '/' | '.' | ',' | ';' | ':' | '(' | ')' | '"' | '\'')
}

fn is_placeholder(char: char) -> bool {
    (FIRST_PLACEHOLDER..=LAST_PLACEHOLDER).contains(&u32::from(char))
}

/// A text without what would be taken for a placeholder or would control a terminal.
fn plain(text: &str) -> String {
    let kept =
        |char: &char| !is_placeholder(*char) && (!char.is_control() || matches!(char, '\n' | '\t'));
    text.replace("\r\n", "\n").replace('\r', "\n").chars().filter(kept).collect()
}
