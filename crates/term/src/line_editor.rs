//! A line that a person edits at a prompt: bytes of keys in, what to draw out. Nothing here reads or prints.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The longest line; a longer answer belongs in a file.
const MAX_CHARS: usize = 10_000;
/// The longest sequence of a key; a longer one is dropped.
const MAX_KEY_BYTES: usize = 16;

const ESCAPE: u8 = 0x1b;

/// What a key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// The line is not finished.
    Typing,
    /// Enter was pressed.
    Line(String),
    /// Ctrl-D was pressed on an empty line.
    End,
}

/// One line with a cursor in it.
#[derive(Debug, Default)]
pub struct LineEditor {
    text: Vec<char>,
    cursor: usize,
    /// Bytes of a key or a character that is not complete.
    pending: Vec<u8>,
    /// The row of the cursor and the last row, counted from the prompt's, as they were drawn.
    row: usize,
    last_row: usize,
}

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Insert(char),
    Enter,
    EndOfInput,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Delete,
    Backspace,
    DeleteWord,
    DeleteToStart,
    DeleteToEnd,
    /// A key without a meaning here.
    Other,
}

impl LineEditor {
    /// Takes the next byte that was typed.
    pub fn push(&mut self, byte: u8) -> EditOutcome {
        self.pending.push(byte);
        let Some(key) = decode(&self.pending) else {
            if self.pending.len() > MAX_KEY_BYTES {
                self.pending.clear();
            }
            return EditOutcome::Typing;
        };
        self.pending.clear();
        match key {
            Key::Enter => {
                self.cursor = 0;
                return EditOutcome::Line(self.text.drain(..).collect());
            }
            Key::EndOfInput if self.text.is_empty() => return EditOutcome::End,
            key => self.edit(key),
        }
        EditOutcome::Typing
    }

    /// What is typed so far.
    pub fn text(&self) -> String {
        self.text.iter().collect()
    }

    fn edit(&mut self, key: Key) {
        let end = self.text.len();
        match key {
            Key::Insert(char) if end < MAX_CHARS => {
                self.text.insert(self.cursor, char);
                self.cursor += 1;
            }
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(end),
            Key::WordLeft => self.cursor = self.word_left(),
            Key::WordRight => self.cursor = self.word_right(),
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = end,
            Key::Delete | Key::EndOfInput if self.cursor < end => {
                self.text.remove(self.cursor);
            }
            Key::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.cursor);
            }
            Key::DeleteWord => self.delete_from(self.word_left()),
            Key::DeleteToStart => self.delete_from(0),
            Key::DeleteToEnd => self.text.truncate(self.cursor),
            Key::Insert(_)
            | Key::Delete
            | Key::EndOfInput
            | Key::Backspace
            | Key::Enter
            | Key::Other => {}
        }
    }

    fn delete_from(&mut self, start: usize) {
        self.text.drain(start..self.cursor);
        self.cursor = start;
    }

    fn word_left(&self) -> usize {
        let before = &self.text[..self.cursor];
        let word = before.iter().rposition(|char| !char.is_whitespace()).map_or(0, |at| at + 1);
        before[..word].iter().rposition(|char| char.is_whitespace()).map_or(0, |at| at + 1)
    }

    fn word_right(&self) -> usize {
        let after = &self.text[self.cursor..];
        let word = after.iter().position(|char| !char.is_whitespace()).unwrap_or(after.len());
        let space = after[word..].iter().position(|char| char.is_whitespace());
        self.cursor + space.map_or(after.len(), |at| word + at)
    }

    /// Draws the prompt and the line over what was drawn before, and puts the cursor into its place.
    pub fn draw(&mut self, prompt: &str, columns: usize) -> String {
        let columns = columns.max(1);
        let mut drawn = self.clear();
        drawn.push_str(prompt);
        drawn.extend(&self.text);
        let width = |chars: &[char]| -> usize {
            let wide: usize = chars.iter().map(|char| char.width().unwrap_or(0)).sum();
            prompt.width() + wide
        };
        let (at, end) = (width(&self.text[..self.cursor]), width(&self.text));
        if end > 0 && end.is_multiple_of(columns) {
            // A terminal wraps only with the next character.
            drawn.push_str("\r\n");
        }
        (self.row, self.last_row) = (at / columns, end / columns);
        if at != end {
            drawn.push_str(&up(self.last_row - self.row));
            drawn.push('\r');
            if at % columns > 0 {
                drawn.push_str(&format!("\u{1b}[{}C", at % columns));
            }
        }
        drawn
    }

    /// Removes what was drawn, so that something else can take its place.
    pub fn clear(&mut self) -> String {
        let erase = if self.last_row == 0 { "\r\u{1b}[2K" } else { "\r\u{1b}[J" };
        let cleared = up(self.row) + erase;
        (self.row, self.last_row) = (0, 0);
        cleared
    }
}

fn up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\u{1b}[{rows}A") }
}

/// The key that these bytes are; `None` while more of it is to come.
fn decode(bytes: &[u8]) -> Option<Key> {
    match bytes {
        [ESCAPE] | [ESCAPE, b'[' | b'O'] => None,
        [ESCAPE, b'[', parameters @ .., end @ b'@'..=b'~'] => Some(sequence(parameters, *end)),
        [ESCAPE, b'[', ..] => None,
        [ESCAPE, b'O', end] => Some(sequence(&[], *end)),
        [ESCAPE, b'b'] => Some(Key::WordLeft),
        [ESCAPE, b'f'] => Some(Key::WordRight),
        [ESCAPE, 0x7f | 0x08] => Some(Key::DeleteWord),
        [ESCAPE, ..] => Some(Key::Other),
        [b'\r' | b'\n'] => Some(Key::Enter),
        [0x01] => Some(Key::Home),
        [0x02] => Some(Key::Left),
        [0x04] => Some(Key::EndOfInput),
        [0x05] => Some(Key::End),
        [0x06] => Some(Key::Right),
        [0x7f | 0x08] => Some(Key::Backspace),
        [0x0b] => Some(Key::DeleteToEnd),
        [0x15] => Some(Key::DeleteToStart),
        [0x17] => Some(Key::DeleteWord),
        bytes => character(bytes),
    }
}

fn sequence(parameters: &[u8], end: u8) -> Key {
    match (parameters, end) {
        ([] | b"1", b'D') => Key::Left,
        ([] | b"1", b'C') => Key::Right,
        (b"1;5" | b"1;3", b'D') => Key::WordLeft,
        (b"1;5" | b"1;3", b'C') => Key::WordRight,
        ([] | b"1", b'H') | (b"1" | b"7", b'~') => Key::Home,
        ([] | b"1", b'F') | (b"4" | b"8", b'~') => Key::End,
        (b"3", b'~') => Key::Delete,
        _ => Key::Other,
    }
}

fn character(bytes: &[u8]) -> Option<Key> {
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let typed = text.chars().next().filter(|char| !char.is_control());
            Some(typed.map_or(Key::Other, Key::Insert))
        }
        // A character that has only begun.
        Err(error) if error.error_len().is_none() => None,
        Err(_) => Some(Key::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The line that these keys make.
    fn typed(keys: &str) -> String {
        let mut editor = LineEditor::default();
        for byte in keys.bytes() {
            assert_eq!(editor.push(byte), EditOutcome::Typing);
        }
        match editor.push(b'\r') {
            EditOutcome::Line(line) => line,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_usual_keys_edit_the_line() {
        assert_eq!(typed("alow\u{1b}[D\u{1b}[D\u{1b}[Dl\u{1b}[F!"), "allow!");
        assert_eq!(typed("xno\u{1b}[H\u{1b}[3~\u{1b}OF, grün\u{7f}n"), "no, grün");
        assert_eq!(typed("one two\u{17}three\u{1b}b\u{0b}x\u{1}>"), ">one x");
        assert_eq!(typed("gone\u{15}y\u{1b}[A\u{1b}[B\u{1b}[5~\t"), "y");
        assert_eq!(typed("a b\u{1b}[1;5D\u{1b}[1;5D-\u{1b}[1;5C+"), "-a+ b");
    }

    #[test]
    fn end_of_input_counts_on_an_empty_line_only() {
        let mut editor = LineEditor::default();
        assert_eq!(editor.push(4), EditOutcome::End);
        assert_eq!(typed("ab\u{2}\u{4}"), "a");
    }

    #[test]
    fn a_line_is_drawn_over_the_one_before() {
        let mut editor = LineEditor::default();
        assert_eq!(editor.draw("> ", 80), "\r\u{1b}[2K> ");
        "ab\u{1b}[D".bytes().for_each(|byte| assert_eq!(editor.push(byte), EditOutcome::Typing));
        assert_eq!(editor.draw("> ", 80), "\r\u{1b}[2K> ab\r\u{1b}[3C");
        assert_eq!(editor.draw("> ", 2), "\r\u{1b}[2K> ab\r\n\u{1b}[1A\r\u{1b}[1C");
        assert_eq!(editor.clear(), "\u{1b}[1A\r\u{1b}[J");
    }

    proptest! {
        #[test]
        fn no_keys_break_the_editor(keys in prop::collection::vec(any::<u8>(), 0..60), columns in 0usize..20) {
            let mut editor = LineEditor::default();
            for key in keys {
                editor.push(key);
                editor.draw("> ", columns);
                prop_assert!(editor.cursor <= editor.text.len());
            }
        }
    }
}
