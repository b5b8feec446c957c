//! The program on a pseudo-terminal, as a person sees it: what stays on the screen at the end.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};

use windlass_testkit::on_terminal;

/// A terminal with a program on it.
pub struct Terminal {
    screen: File,
    child: Child,
    seen: Vec<u8>,
}

impl Terminal {
    /// Starts a command with all its streams on a terminal of this many columns.
    pub fn start(command: Command, columns: u16) -> Self {
        let (screen, child) = on_terminal(command, columns, 40).unwrap();
        Self { screen, child, seen: Vec::new() }
    }

    /// Reads until a text has been shown.
    pub fn until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            assert!(self.more(), "`{text}` was never shown:\n{}", self.shown());
        }
    }

    /// Reads until a text has been shown after another one: the prompt of this question, not of one before.
    pub fn until_after(&mut self, first: &str, then: &str) {
        let is_there =
            |seen: &str| seen.rsplit_once(first).is_some_and(|(_, rest)| rest.contains(then));
        while !is_there(&String::from_utf8_lossy(&self.seen)) {
            assert!(self.more(), "`{then}` was never shown after `{first}`:\n{}", self.shown());
        }
    }

    pub fn types(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).unwrap();
    }

    /// Everything that was written, escapes included, and the exit code.
    pub fn end(mut self) -> (String, i32) {
        while self.more() {}
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (String::from_utf8_lossy(&self.seen).into_owned(), code)
    }

    fn more(&mut self) -> bool {
        let mut piece = [0; 4096];
        // A terminal that nobody holds any more is an error, which is its end.
        let count = self.screen.read(&mut piece).unwrap_or(0);
        self.seen.extend_from_slice(&piece[..count]);
        count > 0
    }

    fn shown(&self) -> String {
        remains(&String::from_utf8_lossy(&self.seen))
    }
}

/// What remains on the screen and above it: redrawn lines are gone, colours are left out.
pub fn remains(written: &str) -> String {
    let mut screen = vec![Vec::new()];
    let (mut row, mut column) = (0, 0);
    let mut rest = written.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '\r' => column = 0,
            '\n' => {
                (row, column) = (row + 1, 0);
                if row == screen.len() {
                    screen.push(Vec::new());
                }
            }
            '\u{1b}' if rest.next_if_eq(&'[').is_some() => {
                let mut number = String::new();
                while let Some(digit) = rest.next_if(|next| !next.is_ascii_alphabetic()) {
                    number.push(digit);
                }
                match rest.next() {
                    Some('A') => row = row.saturating_sub(number.parse().unwrap_or(1)),
                    Some('K') => screen[row].clear(),
                    _ => {}
                }
            }
            char => {
                let line: &mut Vec<char> = &mut screen[row];
                line.resize(line.len().max(column), ' ');
                match line.get_mut(column) {
                    Some(place) => *place = char,
                    None => line.push(char),
                }
                column += 1;
            }
        }
    }
    let lines = screen.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}
