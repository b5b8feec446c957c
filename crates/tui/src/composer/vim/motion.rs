//! Where the motions of vi lead in a text.

use unicode_segmentation::UnicodeSegmentation as _;

use super::super::draft::is_placeholder;

/// What a motion takes with it when something is done to the text that it goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Up to the place, without the character there.
    Before,
    /// The character there too.
    With,
    /// The whole lines from here to there.
    Lines,
}

/// A search for a character in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Find {
    /// One of `f`, `F`, `t` and `T`.
    pub by: char,
    pub wanted: char,
}

/// What kind of character stands at a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Blank,
    Word,
    Sign,
    /// A pasted text is a word of its own.
    Paste,
}

/// A text by what a reader takes for characters.
pub(super) struct Letters<'a> {
    text: &'a str,
    all: Vec<(usize, &'a str)>,
}

impl<'a> Letters<'a> {
    pub fn of(text: &'a str) -> Self {
        Self { text, all: text.grapheme_indices(true).collect() }
    }

    /// The number of the character that begins at a place of the text.
    pub fn number(&self, at: usize) -> usize {
        self.all.partition_point(|(start, _)| *start < at)
    }

    /// The place of a character in the text.
    pub fn place(&self, number: usize) -> usize {
        self.all.get(number).map_or(self.text.len(), |(start, _)| *start)
    }

    fn get(&self, number: usize) -> Option<&'a str> {
        self.all.get(number).map(|(_, letter)| *letter)
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub fn is_text(&self, number: usize, wanted: &str) -> bool {
        self.get(number) == Some(wanted)
    }

    fn is_line_end(&self, number: usize) -> bool {
        self.get(number).is_none_or(|letter| letter == "\n")
    }

    pub fn line_start(&self, number: usize) -> usize {
        (0..number).rev().find(|at| self.get(*at) == Some("\n")).map_or(0, |at| at + 1)
    }

    /// The line end of a line, or the end of the text.
    pub fn line_end(&self, number: usize) -> usize {
        (number..self.all.len()).find(|at| self.is_line_end(*at)).unwrap_or(self.all.len())
    }

    /// The last place in a line where a cursor stands on a character.
    pub fn last_in_line(&self, number: usize) -> usize {
        let (start, end) = (self.line_start(number), self.line_end(number));
        if end > start { end - 1 } else { start }
    }

    fn class(&self, number: usize, by_space: bool) -> Class {
        let Some(char) = self.get(number).and_then(|letter| letter.chars().next()) else {
            return Class::Blank;
        };
        match char {
            char if is_placeholder(char) => Class::Paste,
            char if char.is_whitespace() => Class::Blank,
            char if by_space || char.is_alphanumeric() || char == '_' => Class::Word,
            _ => Class::Sign,
        }
    }

    /// Whether a word begins here that does not continue the one before.
    fn begins(&self, number: usize, by_space: bool) -> bool {
        let class = self.class(number, by_space);
        let is_new =
            number == 0 || self.class(number - 1, by_space) != class || class == Class::Paste;
        class != Class::Blank && is_new
    }

    fn ends(&self, number: usize, by_space: bool) -> bool {
        let class = self.class(number, by_space);
        let is_last = number + 1 >= self.all.len()
            || self.class(number + 1, by_space) != class
            || class == Class::Paste;
        class != Class::Blank && is_last
    }

    /// The first character of a line that is not blank.
    fn first_in_line(&self, number: usize) -> usize {
        let (start, end) = (self.line_start(number), self.line_end(number));
        (start..end).find(|at| self.class(*at, true) != Class::Blank).unwrap_or(start)
    }

    /// The word around a place, as two numbers; the space beside it too, where that is wanted.
    pub fn word(&self, number: usize, by_space: bool, with_space: bool) -> (usize, usize) {
        let same = |at: usize, class: Class| {
            at < self.all.len() && !self.is_line_end(at) && self.class(at, by_space) == class
        };
        let class = self.class(number, by_space);
        let (mut start, mut end) = (number, number + 1);
        if class != Class::Paste {
            while start > 0 && same(start - 1, class) {
                start -= 1;
            }
            while same(end, class) {
                end += 1;
            }
        }
        if with_space {
            let after = end;
            while same(end, Class::Blank) {
                end += 1;
            }
            while end == after && start > 0 && same(start - 1, Class::Blank) {
                start -= 1;
            }
        }
        (start, end.min(self.all.len()))
    }
}

/// Where a motion leads from a character, so many times; `None` where there is no such place.
pub(super) fn follow(
    letters: &Letters<'_>,
    from: usize,
    motion: char,
    count: Option<usize>,
) -> Option<(usize, Reach)> {
    let times = count.unwrap_or(1);
    let last = letters.all.len();
    let repeat = |step: &dyn Fn(usize) -> usize| (0..times).fold(from, |at, _| step(at));
    let found = match motion {
        'h' => (repeat(&|at| at.saturating_sub(1).max(letters.line_start(at))), Reach::Before),
        'l' | ' ' => (repeat(&|at| (at + 1).min(letters.line_end(at))), Reach::Before),
        '0' => (letters.line_start(from), Reach::Before),
        '^' | '_' => (letters.first_in_line(from), Reach::Before),
        '$' => (letters.last_in_line(from), Reach::With),
        'w' | 'W' => {
            let next = |at: usize| {
                let is_word = |at: &usize| letters.begins(*at, motion == 'W');
                (at + 1..last).find(is_word).unwrap_or(last)
            };
            (repeat(&next), Reach::Before)
        }
        'b' | 'B' => {
            let before = |at: usize| {
                let is_word = |at: &usize| letters.begins(*at, motion == 'B');
                (0..at).rev().find(is_word).unwrap_or(0)
            };
            (repeat(&before), Reach::Before)
        }
        'e' | 'E' => {
            let end = |at: usize| {
                let is_end = |at: &usize| letters.ends(*at, motion == 'E');
                (at + 1..last).find(is_end).unwrap_or(last.saturating_sub(1))
            };
            (repeat(&end), Reach::With)
        }
        'j' => (repeat(&|at| (letters.line_end(at) + 1).min(last)), Reach::Lines),
        'k' => {
            let up = |at: usize| letters.line_start(letters.line_start(at).saturating_sub(1));
            (repeat(&up), Reach::Lines)
        }
        'g' => (line(letters, count.unwrap_or(1)), Reach::Lines),
        'G' => (line(letters, count.unwrap_or(usize::MAX)), Reach::Lines),
        '}' => (repeat(&|at| paragraph_end(letters, at)), Reach::Before),
        '{' => (repeat(&|at| paragraph_start(letters, at)), Reach::Before),
        '%' => (partner(letters, from)?, Reach::With),
        _ => return None,
    };
    Some(found)
}

/// The first character of a line that is counted from 1.
fn line(letters: &Letters<'_>, number: usize) -> usize {
    let ends = (0..letters.all.len()).filter(|at| letters.get(*at) == Some("\n"));
    let starts: Vec<usize> = std::iter::once(0).chain(ends.map(|at| at + 1)).collect();
    letters.first_in_line(starts[number.clamp(1, starts.len()) - 1])
}

fn is_empty_line(letters: &Letters<'_>, at: usize) -> bool {
    letters.line_start(at) == letters.line_end(at)
}

fn paragraph_end(letters: &Letters<'_>, from: usize) -> usize {
    let last = letters.all.len();
    let mut at = from;
    let mut was_text = !is_empty_line(letters, at);
    loop {
        at = letters.line_end(at) + 1;
        if at >= last {
            return last;
        }
        let is_empty = is_empty_line(letters, at);
        if is_empty && was_text {
            return at;
        }
        was_text = !is_empty;
    }
}

fn paragraph_start(letters: &Letters<'_>, from: usize) -> usize {
    let mut at = letters.line_start(from);
    let mut was_text = !is_empty_line(letters, at);
    while at > 0 {
        at = letters.line_start(at - 1);
        let is_empty = is_empty_line(letters, at);
        if is_empty && was_text {
            return at;
        }
        was_text = !is_empty;
    }
    0
}

const PAIRS: [(&str, &str); 3] = [("(", ")"), ("[", "]"), ("{", "}")];

/// The bracket that belongs to the first one in the line from here.
fn partner(letters: &Letters<'_>, from: usize) -> Option<usize> {
    let is_bracket = |at: &usize| {
        let letter = letters.get(*at);
        PAIRS.iter().any(|(open, close)| letter == Some(open) || letter == Some(close))
    };
    let at = (from..letters.line_end(from)).find(is_bracket)?;
    let letter = letters.get(at)?;
    let (open, close) =
        PAIRS.into_iter().find(|(open, close)| *open == letter || *close == letter)?;
    match letter == open {
        true => closing(letters, at, open, close),
        false => enclosing(letters, at, open, close),
    }
}

/// The bracket that closes the one at a place.
pub(super) fn closing(
    letters: &Letters<'_>,
    from: usize,
    open: &str,
    close: &str,
) -> Option<usize> {
    let mut depth = 0;
    for at in from..letters.all.len() {
        match letters.get(at) {
            Some(letter) if letter == close => depth -= 1,
            Some(letter) if letter == open => depth += 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The bracket that opens what a place is in.
pub(super) fn enclosing(
    letters: &Letters<'_>,
    number: usize,
    open: &str,
    close: &str,
) -> Option<usize> {
    let mut depth = 0;
    for at in (0..number).rev() {
        match letters.get(at) {
            Some(letter) if letter == close => depth += 1,
            Some(letter) if letter == open && depth == 0 => return Some(at),
            Some(letter) if letter == open => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Where a search for a character leads, so many times.
pub(super) fn find(
    letters: &Letters<'_>,
    from: usize,
    find: Find,
    times: usize,
) -> Option<(usize, Reach)> {
    let mut buffer = [0; 4];
    let wanted = &*find.wanted.encode_utf8(&mut buffer);
    let is_wanted = |at: &usize| letters.get(*at) == Some(wanted);
    let mut at = from;
    for _ in 0..times {
        at = match find.by {
            'f' | 't' => (at + 1..letters.line_end(from)).find(is_wanted)?,
            _ => (letters.line_start(from)..at).rev().find(is_wanted)?,
        };
    }
    Some(match find.by {
        'f' => (at, Reach::With),
        't' => (at - 1, Reach::With),
        'T' => (at + 1, Reach::Before),
        _ => (at, Reach::Before),
    })
}
