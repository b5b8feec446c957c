//! Text objects of vi: the word, the quotation, the brackets or the paragraph around the cursor.

use std::ops::Range;

use super::motion::{self, Letters};

/// What `i` or `a` and this letter stand for, as a part of the text; `None` where there is no such thing here.
pub(super) fn around(text: &str, at: usize, name: char, with_border: bool) -> Option<Range<usize>> {
    let letters = Letters::of(text);
    let number = letters.number(at);
    let (start, end) = match name {
        'w' | 'W' => letters.word(number, name == 'W', with_border),
        '"' | '\'' | '`' => quotation(&letters, number, name, with_border)?,
        '(' | ')' | 'b' => brackets(&letters, number, ("(", ")"), with_border)?,
        '[' | ']' => brackets(&letters, number, ("[", "]"), with_border)?,
        '{' | '}' | 'B' => brackets(&letters, number, ("{", "}"), with_border)?,
        '<' | '>' => brackets(&letters, number, ("<", ">"), with_border)?,
        'p' => paragraph(&letters, number, with_border),
        _ => return None,
    };
    Some(letters.place(start)..letters.place(end))
}

/// The quotation in this line that the cursor is in, or the next one.
fn quotation(
    letters: &Letters<'_>,
    number: usize,
    mark: char,
    with_border: bool,
) -> Option<(usize, usize)> {
    let (start, end) = (letters.line_start(number), letters.line_end(number));
    let mark = mark.to_string();
    let is_mark = |at: &usize| letters.is_text(*at, &mark);
    let marks: Vec<usize> = (start..end).filter(is_mark).collect();
    let pair = marks.chunks_exact(2).find(|pair| pair[1] >= number)?;
    Some(if with_border { (pair[0], pair[1] + 1) } else { (pair[0] + 1, pair[1]) })
}

fn brackets(
    letters: &Letters<'_>,
    number: usize,
    (open, close): (&str, &str),
    with_border: bool,
) -> Option<(usize, usize)> {
    let start = match letters.is_text(number, open) {
        true => number,
        // As if one stood on the bracket that closes it.
        false => motion::enclosing(letters, number, open, close)?,
    };
    let end = motion::closing(letters, start, open, close)?;
    Some(if with_border { (start, end + 1) } else { (start + 1, end) })
}

/// The lines around the cursor up to an empty one; with those that are empty after it.
fn paragraph(letters: &Letters<'_>, number: usize, with_border: bool) -> (usize, usize) {
    let is_empty = |at: usize| letters.line_start(at) == letters.line_end(at);
    let kind = is_empty(number);
    let mut start = letters.line_start(number);
    while start > 0 && is_empty(start - 1) == kind {
        start = letters.line_start(start - 1);
    }
    let mut end = letters.line_end(number);
    while end < letters.count() && is_empty(end + 1) == kind {
        end = letters.line_end(end + 1);
    }
    while with_border && end < letters.count() && is_empty(end + 1) != kind {
        end = letters.line_end(end + 1);
    }
    (start, (end + 1).min(letters.count()))
}
