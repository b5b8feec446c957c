//! Editing as in vi: modes, counts, operators, motions, text objects, and the last change once more.
//!
//! Invariant: every change goes through the composer, so its undo and its placeholders hold here too.

mod commands;
mod motion;
mod objects;

use std::ops::Range;

use super::Composer;
use crate::keys::{Code, Key};
use commands::swapped_case;
use motion::{Find, Letters, Reach};

/// The largest count; more is a slip of the finger.
const MAX_COUNT: usize = 9999;

/// What keys mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They are typed.
    #[default]
    Insert,
    /// They are commands.
    Normal,
    /// They are commands for what is marked from here to the cursor.
    Visual { anchor: usize, by_lines: bool },
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    Yes,
    /// It is for others.
    No,
    /// It stands for this one.
    Instead(Key),
}

/// Something that is done to a part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Delete,
    Change,
    Yank,
}

/// What was typed of a command so far.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    count: Option<usize>,
    operator: Option<(Operator, Option<usize>)>,
    /// A letter that needs another one.
    prefix: Option<char>,
}

/// What was last deleted or yanked.
#[derive(Clone, Debug, Default)]
struct Register {
    text: String,
    by_lines: bool,
}

/// The state of editing as in vi.
#[derive(Clone, Debug, Default)]
pub struct Vim {
    mode: Mode,
    pending: Pending,
    register: Register,
    found: Option<Find>,
    /// The keys of the command that is being typed, and of the last one that changed something.
    keys: Vec<Key>,
    last_change: Vec<Key>,
}

impl Vim {
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Another text begins: keys are typed.
    pub fn begin(&mut self) {
        self.keys.clear();
        self.insert();
    }

    fn insert(&mut self) {
        (self.mode, self.pending) = (Mode::Insert, Pending::default());
    }

    /// What is marked.
    pub fn marked(&self, composer: &Composer) -> Range<usize> {
        let Mode::Visual { anchor, by_lines } = self.mode else { return 0..0 };
        let letters = Letters::of(composer.text());
        let (one, other) = (letters.number(anchor), letters.number(composer.cursor()));
        let (mut first, mut last) = (one.min(other), one.max(other) + 1);
        if by_lines {
            (first, last) = (letters.line_start(first), letters.line_end(last - 1) + 1);
        }
        letters.place(first)..letters.place(last)
    }

    /// What a key does to the text.
    pub fn press(&mut self, key: Key, composer: &mut Composer) -> KeyUse {
        let is_escape = key == Key::plain(Code::Escape);
        if self.mode == Mode::Insert {
            self.note(key);
            // With nothing written there is nothing to command: the key keeps its other meaning.
            if !is_escape || composer.is_empty() {
                return KeyUse::No;
            }
            self.end_insert(composer);
            return KeyUse::Yes;
        }
        if is_escape {
            return self.escape();
        }
        if key == Key::ctrl('r') {
            composer.redo();
            return KeyUse::Yes;
        }
        if key == Key::plain(Code::Backspace) {
            return self.press(Key::plain(Code::Char('h')), composer);
        }
        let Some(char) = key.typed() else { return KeyUse::No };
        if self.is_idle() && self.mode == Mode::Normal {
            self.keys.clear();
        }
        self.note(key);
        let before = composer.draft().clone();
        let taken = self.command(char, composer);
        let is_changed = composer.text() != before.text || self.mode == Mode::Insert;
        if is_changed && !matches!(char, 'u' | '.') {
            self.last_change.clone_from(&self.keys);
        }
        self.settle(composer);
        taken
    }

    /// Remembers a key of the command that is being typed.
    fn note(&mut self, key: Key) {
        if self.keys.is_empty() && self.mode == Mode::Insert {
            // So it is repeated as a command.
            self.keys.push(Key::plain(Code::Char('i')));
        }
        if self.keys.len() < MAX_COUNT {
            self.keys.push(key);
        }
    }

    fn is_idle(&self) -> bool {
        let Pending { count, operator, prefix } = self.pending;
        count.is_none() && operator.is_none() && prefix.is_none()
    }

    fn escape(&mut self) -> KeyUse {
        let was_idle = self.is_idle() && self.mode == Mode::Normal;
        (self.mode, self.pending) = (Mode::Normal, Pending::default());
        if was_idle { KeyUse::No } else { KeyUse::Yes }
    }

    fn end_insert(&mut self, composer: &mut Composer) {
        self.last_change.clone_from(&self.keys);
        self.mode = Mode::Normal;
        let letters = Letters::of(composer.text());
        let number = letters.number(composer.cursor());
        let at = letters.place(number.saturating_sub(1).max(letters.line_start(number)));
        composer.go(at);
    }

    /// A cursor of commands stands on a character.
    fn settle(&self, composer: &mut Composer) {
        if self.mode == Mode::Normal {
            let letters = Letters::of(composer.text());
            let number = letters.number(composer.cursor());
            let at = letters.place(number.min(letters.last_in_line(number)));
            composer.go(at);
        }
    }

    fn command(&mut self, char: char, composer: &mut Composer) -> KeyUse {
        if let Some(prefix) = self.pending.prefix.take() {
            return self.second(prefix, char, composer);
        }
        let is_operated = self.pending.operator.is_some();
        let is_visual = self.mode != Mode::Normal;
        match char {
            '0' if self.pending.count.is_none() => self.motion('0', composer),
            '0'..='9' => {
                let digit = char as usize - '0' as usize;
                let count = self.pending.count.unwrap_or(0) * 10 + digit;
                self.pending.count = Some(count.min(MAX_COUNT));
                KeyUse::Yes
            }
            'i' | 'a' if is_operated || is_visual => self.wait(char),
            'f' | 'F' | 't' | 'T' | 'r' | 'g' => self.wait(char),
            'j' | 'k' if !is_operated && !is_visual => {
                self.pending = Pending::default();
                let code = if char == 'j' { Code::Down } else { Code::Up };
                KeyUse::Instead(Key::plain(code))
            }
            'd' | 'c' | 'y' => self.operator(char, composer),
            ';' | ',' => self.find_again(char == ',', composer),
            _ if is_operated => self.motion(char, composer),
            _ if is_visual && self.visual(char, composer) => KeyUse::Yes,
            _ if self.edit(char, composer) => KeyUse::Yes,
            _ => self.motion(char, composer),
        }
    }

    fn wait(&mut self, prefix: char) -> KeyUse {
        self.pending.prefix = Some(prefix);
        KeyUse::Yes
    }

    /// The second letter of a command.
    fn second(&mut self, prefix: char, char: char, composer: &mut Composer) -> KeyUse {
        match prefix {
            'i' | 'a' => {
                let found =
                    objects::around(composer.text(), composer.cursor(), char, prefix == 'a');
                match found {
                    Some(range) => self.take_object(range, char == 'p', composer),
                    None => self.pending = Pending::default(),
                }
            }
            'f' | 'F' | 't' | 'T' => {
                let find = Find { by: prefix, wanted: char };
                self.found = Some(find);
                self.find(find, composer);
            }
            'r' => self.replace(char, composer),
            _ if char == 'g' => return self.motion('g', composer),
            _ => self.pending = Pending::default(),
        }
        KeyUse::Yes
    }

    fn take_object(&mut self, range: Range<usize>, by_lines: bool, composer: &mut Composer) {
        match (self.pending.operator.take(), &mut self.mode) {
            (Some((operator, _)), _) => self.operate(operator, range, by_lines, composer),
            (None, Mode::Visual { anchor, .. }) => {
                *anchor = range.start;
                let letters = Letters::of(composer.text());
                let last = letters.place(letters.number(range.end).saturating_sub(1));
                composer.go(last.max(range.start));
            }
            (None, _) => {}
        }
        self.pending = Pending::default();
    }

    fn operator(&mut self, char: char, composer: &mut Composer) -> KeyUse {
        let operator = match char {
            'd' => Operator::Delete,
            'c' => Operator::Change,
            _ => Operator::Yank,
        };
        if self.mode != Mode::Normal {
            self.visual(char, composer);
            return KeyUse::Yes;
        }
        match self.pending.operator {
            // Twice: the line.
            Some((waiting, count)) if waiting == operator => {
                let times = count.or(self.pending.count).unwrap_or(1);
                self.pending.count = Some(times - usize::from(times > 0));
                let range = self.lines(composer);
                self.operate(operator, range, true, composer);
                self.pending = Pending::default();
            }
            Some(_) => self.pending = Pending::default(),
            None => self.pending.operator = Some((operator, self.pending.count.take())),
        }
        KeyUse::Yes
    }

    /// The line of the cursor and as many after it as were counted.
    fn lines(&self, composer: &Composer) -> Range<usize> {
        let letters = Letters::of(composer.text());
        let from = letters.number(composer.cursor());
        let mut end = letters.line_end(from);
        for _ in 0..self.pending.count.unwrap_or(0) {
            end = letters.line_end((end + 1).min(letters.count()));
        }
        letters.place(letters.line_start(from))..letters.place(end + 1)
    }

    fn find(&mut self, find: Find, composer: &mut Composer) {
        let letters = Letters::of(composer.text());
        let from = letters.number(composer.cursor());
        let found = motion::find(&letters, from, find, self.pending.count.unwrap_or(1));
        self.go(from, found, composer);
    }

    fn find_again(&mut self, is_back: bool, composer: &mut Composer) -> KeyUse {
        if let Some(find) = self.found {
            let by = match (is_back, find.by.is_lowercase()) {
                (false, _) => find.by,
                (true, true) => find.by.to_ascii_uppercase(),
                (true, false) => find.by.to_ascii_lowercase(),
            };
            self.find(Find { by, ..find }, composer);
        }
        KeyUse::Yes
    }

    fn motion(&mut self, char: char, composer: &mut Composer) -> KeyUse {
        let letters = Letters::of(composer.text());
        let from = letters.number(composer.cursor());
        let operator = self.pending.operator.map(|(operator, _)| operator);
        let before = self.pending.operator.and_then(|(_, count)| count);
        let count = match (before, self.pending.count) {
            (Some(one), Some(other)) => Some((one * other).min(MAX_COUNT)),
            (one, other) => one.or(other),
        };
        let after = composer.text()[composer.cursor()..].chars().next();
        let is_on_word = after.is_some_and(|char| !char.is_whitespace());
        if operator == Some(Operator::Change) && matches!(char, 'w' | 'W') && is_on_word {
            // A change of a word leaves the space after it.
            let (_, end) = letters.word(from, char == 'W', false);
            let others = count.unwrap_or(1).saturating_sub(1);
            let rest = motion::follow(
                &letters,
                end - 1,
                if char == 'W' { 'E' } else { 'e' },
                Some(others),
            );
            self.go(from, rest, composer);
            return KeyUse::Yes;
        }
        let mut found = motion::follow(&letters, from, char, count);
        if operator.is_some()
            && let ('w' | 'W', Some((to, _))) = (char, &mut found)
        {
            // The end of the line is not taken with its last word.
            let end = letters.line_end(from);
            *to = if *to > end && end > from { end } else { *to };
        }
        self.go(from, found, composer);
        KeyUse::Yes
    }

    /// Goes where a motion leads, or does to what is between what was asked for.
    fn go(&mut self, from: usize, found: Option<(usize, Reach)>, composer: &mut Composer) {
        let operator = self.pending.operator.map(|(operator, _)| operator);
        self.pending = Pending::default();
        let Some((to, reach)) = found else { return };
        let letters = Letters::of(composer.text());
        let Some(operator) = operator else {
            let at = letters.place(to);
            return composer.go(at);
        };
        let (first, last) = (from.min(to), from.max(to));
        let (first, last) = match reach {
            Reach::Before => (first, last),
            Reach::With => (first, last + 1),
            Reach::Lines => (letters.line_start(first), letters.line_end(last) + 1),
        };
        let range = letters.place(first)..letters.place(last);
        self.operate(operator, range, reach == Reach::Lines, composer);
    }

    fn operate(
        &mut self,
        operator: Operator,
        range: Range<usize>,
        by_lines: bool,
        composer: &mut Composer,
    ) {
        let text = composer.text();
        if range.is_empty() && operator != Operator::Change {
            return;
        }
        self.register = Register { text: text[range.clone()].to_owned(), by_lines };
        let has_end = text[range.clone()].ends_with('\n');
        match operator {
            Operator::Yank => composer.go(range.start),
            Operator::Change => {
                let end = range.end - usize::from(by_lines && has_end);
                composer.edit(range.start..end, "");
                self.insert();
            }
            // Without a line after it, the line end before it goes with it.
            Operator::Delete if by_lines && !has_end && range.start > 0 => {
                composer.edit(range.start - 1..range.end, "");
            }
            Operator::Delete => composer.edit(range, ""),
        }
        if by_lines && operator == Operator::Delete {
            let letters = Letters::of(composer.text());
            let first = motion::follow(&letters, letters.number(composer.cursor()), '^', None);
            let at = first.map_or(0, |(number, _)| letters.place(number));
            composer.go(at);
        }
    }

    /// Commands for what is marked; false where the letter is none.
    fn visual(&mut self, char: char, composer: &mut Composer) -> bool {
        let Mode::Visual { anchor, by_lines } = self.mode else { return false };
        let range = self.marked(composer);
        let operator = match char {
            'd' | 'x' | 'X' => Operator::Delete,
            'c' | 's' | 'S' => Operator::Change,
            'y' => Operator::Yank,
            'p' | 'P' => {
                let with = self.register.text.clone();
                composer.edit(range, &with);
                self.escape();
                return true;
            }
            '~' => {
                let with = swapped_case(&composer.text()[range.clone()]);
                let start = range.start;
                composer.edit(range, &with);
                composer.go(start);
                self.escape();
                return true;
            }
            'o' => {
                self.mode = Mode::Visual { anchor: composer.cursor(), by_lines };
                composer.go(anchor);
                return true;
            }
            'v' | 'V' => {
                let wanted = char == 'V';
                self.mode = match by_lines == wanted {
                    true => Mode::Normal,
                    false => Mode::Visual { anchor, by_lines: wanted },
                };
                return true;
            }
            _ => return false,
        };
        self.escape();
        self.operate(operator, range, by_lines, composer);
        true
    }
}
