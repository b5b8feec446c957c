//! What a program on a pseudo-terminal shows: its screen, and everything it wrote as plain text.

use windlass_core::text::suffix;

/// The size of the terminal that programs get: wide enough that few lines are wrapped.
pub(super) const ROWS: u16 = 50;
pub(super) const COLUMNS: u16 = 140;

/// How much of what a program wrote is kept for its output contract.
const KEPT_BYTES: usize = 1024 * 1024;

/// A terminal as a person would see it.
pub struct Screen {
    parser: vt100::Parser,
    plain: Plain,
    text: String,
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            parser: vt100::Parser::new(ROWS, COLUMNS, 0),
            plain: Plain::default(),
            text: String::new(),
        }
    }
}

impl Screen {
    /// Draws what the program wrote; returns it as plain text.
    pub fn write(&mut self, bytes: &[u8]) -> String {
        self.parser.process(bytes);
        let text = self.plain.push(bytes);
        self.text.push_str(&text);
        if self.text.len() > 2 * KEPT_BYTES {
            self.text = suffix(&self.text, KEPT_BYTES).to_owned();
        }
        text
    }

    /// A line was typed that this terminal does not echo, and `next` comes after it: it begins a line of its own, as it
    /// would where a person types. Returns what ends the line.
    pub fn end_line(&mut self, next: &[u8]) -> &'static str {
        let is_text = next.first().is_some_and(|byte| *byte >= b' ' && *byte != 0x7f);
        // A program that draws the screen itself says where it continues.
        if is_text && self.parser.screen().cursor_position().1 > 0 {
            self.parser.process(b"\r\n");
        }
        let ends_itself = next.starts_with(b"\r") || next.starts_with(b"\n");
        if ends_itself || self.text.is_empty() || self.text.ends_with('\n') {
            return "";
        }
        self.text.push('\n');
        "\n"
    }

    /// The rows from top to bottom, without spaces at their ends.
    pub fn rows(&self) -> Vec<String> {
        let rows = self.parser.screen().rows(0, COLUMNS);
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    /// The row in which the cursor is.
    pub fn cursor_row(&self) -> usize {
        usize::from(self.parser.screen().cursor_position().0)
    }

    /// The end of everything that was written.
    pub fn text(&self) -> &str {
        suffix(&self.text, KEPT_BYTES)
    }
}

/// Where in a control sequence the last byte was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    /// Between `ESC [` and its last letter.
    Sequence,
    /// Between `ESC ]` or its like and BEL or `ESC \`.
    Command,
    CommandEscape,
}

/// Takes control sequences out of a stream, wherever it is cut.
#[derive(Debug, Default)]
struct Plain {
    state: State,
    /// The last byte was a carriage return.
    at_return: bool,
    /// The beginning of a character whose rest is still to come.
    partial: Vec<u8>,
}

impl Plain {
    fn push(&mut self, bytes: &[u8]) -> String {
        let mut kept = std::mem::take(&mut self.partial);
        for &byte in bytes {
            self.step(byte, &mut kept);
        }
        let whole = match std::str::from_utf8(&kept) {
            Ok(_) => kept.len(),
            // Only the end of the bytes may still become a character.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => kept.len(),
        };
        self.partial = kept.split_off(whole);
        String::from_utf8_lossy(&kept).into_owned()
    }

    fn step(&mut self, byte: u8, kept: &mut Vec<u8>) {
        self.state = match (self.state, byte) {
            (State::Text, 0x1b) => State::Escape,
            (State::Text, b'\r') => {
                self.at_return = true;
                State::Text
            }
            (State::Text, byte) => {
                // A line that is written again, as progress is, becomes a line of its own.
                if std::mem::take(&mut self.at_return) && byte != b'\n' {
                    kept.push(b'\n');
                }
                if byte >= b' ' && byte != 0x7f || byte == b'\n' || byte == b'\t' {
                    kept.push(byte);
                }
                State::Text
            }
            (State::Escape, b'[') => State::Sequence,
            (State::Escape, b']' | b'P' | b'_' | b'^' | b'X') => State::Command,
            (State::Escape, b' '..=b'/') => State::Escape,
            (State::Escape, _) => State::Text,
            (State::Sequence, b'@'..=b'~') => State::Text,
            (State::Sequence, _) => State::Sequence,
            (State::Command, 0x07) => State::Text,
            (State::Command, 0x1b) => State::CommandEscape,
            (State::Command, _) => State::Command,
            (State::CommandEscape, b'\\') => State::Text,
            (State::CommandEscape, _) => State::Command,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_the_same_wherever_the_stream_is_cut() {
        let bytes = "a\x1b[31mrot\x1b[0m ä→\r\n\x1b]0;title\x07done 10%\rdone 20%\n".as_bytes();
        for cut in 0..bytes.len() {
            let mut plain = Plain::default();
            let text = plain.push(&bytes[..cut]) + &plain.push(&bytes[cut..]);
            assert_eq!(text, "arot ä→\ndone 10%\ndone 20%\n", "cut at {cut}");
        }
    }

    #[test]
    fn the_screen_shows_the_last_state_of_a_line() {
        let mut screen = Screen::default();
        screen.write(b"10%\r20%\r\n\x1b[1mProceed?\x1b[0m ");
        assert_eq!(screen.rows()[..2], ["20%", "Proceed?"]);
        assert_eq!(screen.cursor_row(), 1);
    }
}
