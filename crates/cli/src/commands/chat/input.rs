//! Lines of a conversation: typed at a terminal, or from a pipe.

use std::collections::VecDeque;
use std::io;

use windlass_term::{EditOutcome, LineEditor, TerminalStyle};

use super::super::keyboard::Keyboard;
use super::super::prompt;
use crate::show::Screen;

/// What came from the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NextLine {
    Line(String),
    /// There will be no more.
    End,
}

/// Where lines come from.
pub(super) struct ChatInput {
    /// `None` after the end.
    keyboard: Option<Keyboard>,
    editor: LineEditor,
    style: TerminalStyle,
    /// Bytes of a line that is not complete; a pipe needs no editing.
    partial: Vec<u8>,
    /// Lines that are read and not taken.
    lines: VecDeque<String>,
}

impl ChatInput {
    pub(super) fn open(style: TerminalStyle) -> io::Result<Self> {
        let by_key = style.can_ask && style.can_redraw;
        let keyboard = if by_key { Keyboard::by_key()? } else { Keyboard::by_line()? };
        Ok(Self {
            keyboard: Some(keyboard),
            editor: LineEditor::default(),
            style,
            partial: Vec::new(),
            lines: VecDeque::new(),
        })
    }

    /// Makes a line the next one.
    pub(super) fn put_back(&mut self, line: String) {
        self.lines.push_front(line);
    }

    /// Whether a person types the lines.
    pub(super) fn is_typed(&self) -> bool {
        self.style.can_ask && self.style.can_redraw
    }

    /// The next line, with a prompt at a terminal. May be dropped while it waits.
    pub(super) async fn next(&mut self, prompt: &str) -> NextLine {
        if self.style.can_ask && !self.style.can_redraw {
            prompt::print(prompt);
        }
        loop {
            if let Some(line) = self.lines.pop_front() {
                if self.is_typed() {
                    let drawn = self.editor.clear();
                    prompt::print(&format!("{drawn}{prompt}{line}\n"));
                }
                return NextLine::Line(line);
            }
            if self.keyboard.is_none() {
                return NextLine::End;
            }
            if self.is_typed() {
                prompt::print(&self.editor.draw(prompt, self.style.notes_width()));
            }
            self.read().await;
        }
    }

    /// The next line while something works: the screen shows what is typed. Never ends: the end counts when the
    /// work is done.
    pub(super) async fn next_line_during_work(&mut self, screen: &mut Screen) -> String {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return line;
            }
            if self.keyboard.is_none() {
                return std::future::pending().await;
            }
            self.read().await;
            if self.is_typed() {
                screen.show_typing(&self.editor.text());
            }
        }
    }

    /// Reads what there is.
    async fn read(&mut self) {
        let Some(keyboard) = &mut self.keyboard else { return };
        let Some(bytes) = keyboard.keys().await else {
            self.keyboard = None;
            let rest = std::mem::take(&mut self.partial);
            self.lines.extend((!rest.is_empty()).then(|| text(&rest)));
            return;
        };
        for byte in bytes {
            if !self.is_typed() {
                match byte {
                    b'\n' => self.lines.push_back(text(&std::mem::take(&mut self.partial))),
                    byte => self.partial.push(byte),
                }
                continue;
            }
            match self.editor.push(byte) {
                EditOutcome::Typing => {}
                EditOutcome::End => self.keyboard = None,
                EditOutcome::Line(line) => self.lines.push_back(line),
            }
        }
    }

    /// Leaves the terminal as it was.
    pub(super) fn leave(&mut self) {
        if self.is_typed() {
            let drawn = self.editor.clear();
            prompt::print(&drawn);
        }
        self.keyboard = None;
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\r').to_owned()
}
