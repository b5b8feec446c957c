//! One line typed at a prompt of the terminal, with the usual editing keys.
//!
//! Invariant: what was typed before the prompt appeared is not part of the line.

use std::io::{self, Write as _};

use windlass_term::{EditOutcome, LineEditor, TerminalStyle};

use super::keyboard::Keyboard;

/// A prompt that reads lines until it is dropped, which leaves the terminal as it was.
pub(super) struct Prompt {
    keyboard: Keyboard,
    editor: LineEditor,
    style: TerminalStyle,
}

impl Prompt {
    /// Takes the keyboard and forgets what was typed so far.
    pub fn open(style: TerminalStyle) -> io::Result<Self> {
        let keyboard = match style.can_redraw {
            true => Keyboard::by_key()?,
            // The terminal itself edits the line.
            false => Keyboard::by_line()?,
        };
        forget_what_was_typed();
        Ok(Self { keyboard, editor: LineEditor::default(), style })
    }

    /// The next line; `None` at the end of input.
    pub async fn line(&mut self, prompt: &str) -> Option<String> {
        if !self.style.can_redraw {
            print(prompt);
        }
        loop {
            self.draw(prompt);
            let bytes = self.keyboard.keys().await?;
            // What follows the end of a line was typed before the next prompt appeared.
            for byte in bytes {
                match self.editor.push(byte) {
                    EditOutcome::Typing => {}
                    EditOutcome::End => return None,
                    EditOutcome::Line(line) => {
                        if self.style.can_redraw {
                            let drawn = self.editor.clear();
                            print(&format!("{drawn}{prompt}{line}\n"));
                        }
                        return Some(line);
                    }
                }
            }
        }
    }

    fn draw(&mut self, prompt: &str) {
        if self.style.can_redraw {
            print(&self.editor.draw(prompt, self.style.notes_width()));
        }
    }
}

/// What was typed before a question was seen is not an answer to it.
pub(super) fn forget_what_was_typed() {
    // Where that fails, nothing was typed: it is not a terminal.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

pub(super) fn print(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{text}");
    let _ = stderr.flush();
}
