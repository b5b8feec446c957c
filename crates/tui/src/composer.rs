//! The text that a person writes: several lines, a cursor, pasted texts as placeholders, undo.
//!
//! Invariants:
//! - The cursor stands between two characters as a reader sees them.
//! - A placeholder is one character: it is moved over and removed as a whole, and holds its text until then.
//! - Nothing that was written is lost by a key: what a key removes comes back by `yank` or `undo`.

mod draft;
mod layout;
pub mod vim;

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use crate::keys::{Code, Key};

pub use draft::Draft;
use draft::{FIRST_PLACEHOLDER, LAST_PLACEHOLDER, is_placeholder, plain};
pub use layout::{Layout, Mark};

/// A paste of more bytes or lines than these becomes a placeholder.
const LARGE_BYTES: usize = 800;
const LARGE_LINES: usize = 8;
/// The most text that one message can have; a larger one belongs into a file.
pub const MAX_BYTES: usize = 200 * 1024;
/// Earlier states that can be returned to.
const UNDO: usize = 100;

/// The text that is being written.
#[derive(Clone, Debug, Default)]
pub struct Composer {
    draft: Draft,
    undo: Vec<Draft>,
    /// States that were undone, until something else is changed.
    redo: Vec<Draft>,
    /// What the last deletions removed.
    killed: String,
    /// Whether the last key typed a character, so that undo takes back a run of them.
    is_typing: bool,
    next_paste: u32,
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
        self.redo.clear();
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
        self.draft.splice(start..end, &with);
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
            None => {
                let start = self.draft.cursor;
                self.insert(&text);
                self.draft.mark_pasted(start..start + text.len());
            }
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
        self.draft.splice(at..at + place.len_utf8(), &paste);
        self.draft.mark_pasted(at..at + paste.len());
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
                self.draft.cursor = self.draft.left()
            }
            (Code::Right, false, false) | (Code::Char('f'), true, _) => {
                self.draft.cursor = self.draft.right();
            }
            (Code::Left, _, _) | (Code::Char('b'), false, true) => {
                self.draft.cursor = self.draft.word_left();
            }
            (Code::Right, _, _) | (Code::Char('f'), false, true) => {
                self.draft.cursor = self.draft.word_right();
            }
            (Code::Home, true, _) => self.draft.cursor = 0,
            (Code::End, true, _) => self.draft.cursor = self.draft.text.len(),
            (Code::Home, ..) | (Code::Char('a'), true, _) => {
                self.draft.cursor = self.draft.line_start()
            }
            (Code::End, ..) | (Code::Char('e'), true, _) => {
                self.draft.cursor = self.draft.line_end()
            }
            (Code::Backspace, true, _)
            | (Code::Backspace, _, true)
            | (Code::Char('w'), true, _) => self.kill(self.draft.word_left(), self.draft.cursor),
            (Code::Backspace, ..) => self.delete(self.draft.left(), self.draft.cursor),
            (Code::Delete, true, _) | (Code::Char('d'), false, true) => {
                self.kill(self.draft.cursor, self.draft.word_right());
            }
            (Code::Delete, ..) => self.delete(self.draft.cursor, self.draft.right()),
            (Code::Char('k'), true, _) => {
                let end = self.draft.line_end();
                // At the end of a line, the line end itself.
                let end = if end == self.draft.cursor { self.draft.right() } else { end };
                self.kill(self.draft.cursor, end);
            }
            (Code::Char('u'), true, _) => self.kill(self.draft.line_start(), self.draft.cursor),
            (Code::Char('y'), true, _) => {
                self.remember();
                self.insert(&self.killed.clone());
            }
            (Code::Char('_' | '/'), true, _) => {
                self.undo();
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
        let places = self.draft.places(columns);
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
        self.draft.splice(self.draft.cursor..self.draft.cursor, text);
        self.draft.cursor += text.len();
        self.settle();
    }

    fn delete(&mut self, start: usize, end: usize) {
        if start < end {
            self.remember();
            self.draft.splice(start..end, "");
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
        self.draft.cursor = self.draft.right_of(self.draft.cursor);
    }

    /// Goes to a place in the text.
    pub(crate) fn go(&mut self, at: usize) {
        self.draft.cursor = at.min(self.draft.text.len());
        self.is_typing = false;
    }

    /// Puts a text in place of a part of what is written; the cursor stands after it.
    pub(crate) fn edit(&mut self, range: Range<usize>, with: &str) {
        if self.draft.text.len() - range.len() + with.len() > MAX_BYTES {
            return;
        }
        self.remember();
        self.is_typing = false;
        self.draft.cursor = range.start + with.len();
        self.draft.splice(range, with);
        self.settle();
    }

    pub(crate) fn undo(&mut self) {
        if let Some(draft) = self.undo.pop() {
            self.redo.push(std::mem::replace(&mut self.draft, draft));
        }
    }

    pub(crate) fn redo(&mut self) {
        if let Some(draft) = self.redo.pop() {
            self.undo.push(std::mem::replace(&mut self.draft, draft));
        }
    }

    fn remember(&mut self) {
        self.redo.clear();
        if self.undo.last() != Some(&self.draft) {
            self.undo.push(self.draft.clone());
        }
        if self.undo.len() > UNDO {
            self.undo.remove(0);
        }
    }
}
