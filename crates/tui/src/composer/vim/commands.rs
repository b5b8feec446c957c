//! Commands of one letter, what is put back, and the last change once more.

use super::motion::{self, Letters};
use super::{KeyUse, Mode, Operator, Pending, Register, Vim};
use crate::composer::Composer;
use crate::keys::Code;

impl Vim {
    /// Commands of one letter; false where the letter is none.
    pub(super) fn edit(&mut self, char: char, composer: &mut Composer) -> bool {
        let letters = Letters::of(composer.text());
        let from = letters.number(composer.cursor());
        let times = self.pending.count.unwrap_or(1);
        let start = letters.place(letters.line_start(from));
        let end = letters.place(letters.line_end(from));
        let right = letters.place((from + times).min(letters.line_end(from)));
        let left = letters.place(from.saturating_sub(times).max(letters.line_start(from)));
        let at = composer.cursor();
        let first = motion::follow(&letters, from, '^', None);
        let first = first.map_or(start, |(number, _)| letters.place(number));
        match char {
            'i' => self.insert(),
            'a' => self.insert_at(letters.place((from + 1).min(letters.line_end(from))), composer),
            'I' => self.insert_at(first, composer),
            'A' => self.insert_at(end, composer),
            'o' => self.open_line(end, true, composer),
            'O' => self.open_line(start, false, composer),
            'x' => self.operate(Operator::Delete, at..right, false, composer),
            'X' => self.operate(Operator::Delete, left..at, false, composer),
            's' => self.operate(Operator::Change, at..right, false, composer),
            'S' => self.operate(Operator::Change, start..end, true, composer),
            'D' => self.operate(Operator::Delete, at..end, false, composer),
            'C' => self.operate(Operator::Change, at..end, false, composer),
            'Y' => {
                let line = start..letters.place(letters.line_end(from) + 1);
                self.operate(Operator::Yank, line, true, composer);
                composer.go(at);
            }
            '~' => {
                let with = swapped_case(&composer.text()[at..right]);
                composer.edit(at..right, &with);
            }
            'J' => join(end, composer),
            'p' => self.put(true, times, composer),
            'P' => self.put(false, times, composer),
            'u' => (0..times).for_each(|_| composer.undo()),
            '.' => self.repeat(composer),
            'v' | 'V' => self.mode = Mode::Visual { anchor: at, by_lines: char == 'V' },
            _ => return false,
        }
        if self.mode != Mode::Insert {
            self.pending = Pending::default();
        }
        true
    }

    fn insert_at(&mut self, at: usize, composer: &mut Composer) {
        composer.go(at);
        self.insert();
    }

    fn open_line(&mut self, at: usize, is_below: bool, composer: &mut Composer) {
        composer.edit(at..at, "\n");
        composer.go(if is_below { at + 1 } else { at });
        self.insert();
    }

    pub(super) fn replace(&mut self, char: char, composer: &mut Composer) {
        let range = match self.mode {
            Mode::Visual { .. } => self.marked(composer),
            _ => {
                let letters = Letters::of(composer.text());
                let from = letters.number(composer.cursor());
                let to = from + self.pending.count.unwrap_or(1);
                // Where there are not so many, nothing is replaced.
                let to = if to > letters.line_end(from) { from } else { to };
                composer.cursor()..letters.place(to)
            }
        };
        let count = Letters::of(&composer.text()[range.clone()]).count();
        if count > 0 && !char.is_control() {
            let start = range.start;
            let last = start + char.len_utf8() * (count - 1);
            composer.edit(range, &char.to_string().repeat(count));
            composer.go(if self.mode == Mode::Normal { last } else { start });
        }
        (self.mode, self.pending) = (Mode::Normal, Pending::default());
    }

    /// Puts what was deleted or yanked after the cursor, or before it.
    fn put(&self, is_after: bool, times: usize, composer: &mut Composer) {
        let Register { text, by_lines } = &self.register;
        if text.is_empty() {
            return;
        }
        let letters = Letters::of(composer.text());
        let from = letters.number(composer.cursor());
        if *by_lines {
            let line = text.trim_end_matches('\n');
            let lines = vec![line; times].join("\n");
            let (start, end) = (letters.line_start(from), letters.line_end(from));
            match is_after {
                true => {
                    let at = letters.place(end);
                    composer.edit(at..at, &format!("\n{lines}"));
                    composer.go(at + 1);
                }
                false => {
                    let at = letters.place(start);
                    composer.edit(at..at, &format!("{lines}\n"));
                    composer.go(at);
                }
            }
            return;
        }
        let number = if is_after { (from + 1).min(letters.line_end(from)) } else { from };
        let at = letters.place(number);
        composer.edit(at..at, &text.repeat(times));
        let letters = Letters::of(composer.text());
        let last = letters.place(letters.number(composer.cursor()).saturating_sub(1));
        composer.go(last);
    }

    /// Makes the last change once more.
    fn repeat(&mut self, composer: &mut Composer) {
        let keys = std::mem::take(&mut self.last_change);
        self.pending = Pending::default();
        self.keys.clear();
        for key in &keys {
            let is_taken = self.press(*key, composer) != KeyUse::No;
            match key.code {
                _ if is_taken => {}
                Code::Enter => composer.newline(),
                Code::Char('j') if key.ctrl => composer.newline(),
                _ => drop(composer.key(*key)),
            }
        }
        if self.mode == Mode::Insert {
            self.end_insert(composer);
        }
        self.last_change = keys;
    }
}

/// Joins a line, which ends here, and the next with a space between them.
fn join(end: usize, composer: &mut Composer) {
    let text = composer.text();
    if text[end..].starts_with('\n') {
        let rest = &text[end + 1..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        composer.edit(end..end + 1 + blank, " ");
        composer.go(end);
    }
}

pub(super) fn swapped_case(text: &str) -> String {
    let swap = |char: char| -> String {
        match char.is_lowercase() {
            true => char.to_uppercase().collect(),
            false => char.to_lowercase().collect(),
        }
    };
    text.chars().map(swap).collect()
}
