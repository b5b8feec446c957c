//! Lists of options with one marked, and numbered lists above a line that asks for a number.

use super::form::{Question, Reply};
use super::{FoundQuestion, Row};

/// What marks the chosen option. The last is also a quote or a shell prompt, and needs more to count.
const MARKS: [&str; 9] = ["❯", "›", "▶", "►", "➤", "▸", "●", "◉", "→"];
const WEAK_MARK: &str = ">";

/// What stands before an option that is not chosen.
const UNMARKED: [&str; 4] = ["○", "◯", "◦", "( )"];

/// Rows below a list that only say which keys there are.
const MAX_FOOTER_ROWS: usize = 4;

/// How much above a question belongs to it.
const CONTEXT_ROWS: usize = 25;

/// The list of options at the end of the screen.
pub(super) fn find(rows: &[&Row]) -> Option<FoundQuestion> {
    let marked = rows.iter().rposition(|row| mark(&row.text).is_some())?;
    let block = Block::around(rows, marked)?;
    let below = &rows[block.end..];
    let is_footer = |row: &&Row| is_hint(&row.text);
    if below.len() > MAX_FOOTER_ROWS || !below.iter().all(is_footer) {
        return None;
    }
    let (text, context) = question_above(rows, block.start);
    // A list that nothing introduces is not a question.
    if text.is_empty() {
        return None;
    }
    let reply = Reply::Arrows { marked: block.marked };
    let question = Question::new(text, context, block.options, reply);
    Some(FoundQuestion { at: rows[block.end - 1].at, question })
}

/// Options that belong together.
struct Block {
    start: usize,
    /// The row after the last.
    end: usize,
    options: Vec<String>,
    marked: usize,
}

impl Block {
    fn around(rows: &[&Row], marked: usize) -> Option<Self> {
        let (mark_text, is_strong) = mark(&rows[marked].text)?;
        let rest = rows[marked].text[mark_text.len()..].trim_start();
        let column = column_of_text(rows[marked], mark_text);
        let is_numbered = number(rest).is_some();
        let is_option = |row: &Row| {
            let text = unmarked(&row.text);
            let at = row.indent + row.text.chars().count() - text.chars().count();
            mark(&row.text).is_none() && at == column && number(text).is_some() == is_numbered
        };
        // A numbered option may be explained in the rows below it, further in.
        let explains =
            |row: &Row| is_numbered && row.indent > column && number(&row.text).is_none();
        let belongs = |row: &Row| is_option(row) || explains(row);
        let mut start = marked;
        while start > 0 && rows[start].at == rows[start - 1].at + 1 && belongs(rows[start - 1]) {
            start -= 1;
        }
        // What explains nothing stands above the list.
        while start < marked && !is_option(rows[start]) {
            start += 1;
        }
        let mut end = marked + 1;
        while end < rows.len() && rows[end].at == rows[end - 1].at + 1 && belongs(rows[end]) {
            end += 1;
        }
        let listed =
            || rows[start..end].iter().filter(|row| row.at == rows[marked].at || is_option(row));
        let options: Vec<String> = listed()
            .map(|row| {
                label(mark(&row.text).map_or(&*row.text, |(mark, _)| &row.text[mark.len()..]))
            })
            .collect();
        let place = listed().position(|row| row.at == rows[marked].at)?;
        let count_is_plain = options.len() >= 2 && options.len() <= 20;
        let all_have_text = options.iter().all(|option| !option.is_empty());
        (count_is_plain && all_have_text && (is_strong || is_numbered)).then_some(Self {
            start,
            end,
            options,
            marked: place,
        })
    }
}

/// The mark that a row begins with, and whether it means a choice by itself.
fn mark(text: &str) -> Option<(&str, bool)> {
    let strong = MARKS.iter().find(|mark| text.starts_with(**mark)).map(|mark| (*mark, true));
    let found = strong.or_else(|| text.starts_with(WEAK_MARK).then_some((WEAK_MARK, false)))?;
    let rest = &text[found.0.len()..];
    (rest.starts_with(' ') && !rest.trim().is_empty()).then_some((&text[..found.0.len()], found.1))
}

/// The column in which the words of a marked option begin.
fn column_of_text(row: &Row, mark: &str) -> usize {
    let rest = &row.text[mark.len()..];
    let text = rest.trim_start();
    row.indent + mark.chars().count() + (rest.chars().count() - text.chars().count())
}

/// An option's text without the sign that says it is not chosen.
fn unmarked(text: &str) -> &str {
    let sign = UNMARKED.iter().find_map(|sign| text.strip_prefix(sign));
    sign.map_or(text, str::trim_start)
}

/// The number that an option begins with, and its end.
pub(super) fn number(text: &str) -> Option<(usize, &str)> {
    let digits = text.len() - text.trim_start_matches(|char: char| char.is_ascii_digit()).len();
    let rest = text[digits..].strip_prefix(['.', ')', ':'])?;
    let number = text[..digits].parse().ok()?;
    (rest.starts_with(' ')).then_some((number, rest))
}

/// The words of an option: no sign, no number, no key in brackets behind it.
fn label(text: &str) -> String {
    let text = unmarked(text.trim_start());
    let text = number(text).map_or(text, |(_, rest)| rest.trim_start());
    let words = match text.rsplit_once(" (") {
        Some((words, key)) if key.ends_with(')') && key.chars().count() <= 12 => words,
        _ => text,
    };
    words.trim().to_owned()
}

/// Rows that only say which keys there are.
fn is_hint(text: &str) -> bool {
    let text = text.to_lowercase();
    [
        "esc",
        "enter",
        "↑",
        "arrow",
        "tab",
        "ctrl",
        "navigate",
        "to select",
        "to cancel",
        "shift",
        "space",
    ]
    .iter()
    .any(|word| text.contains(word))
        && !text.contains("to interrupt")
}

/// How far above a list its question may be.
const NEAR: usize = 6;

/// The words that ask, and what is shown above them.
pub(super) fn question_above(rows: &[&Row], start: usize) -> (String, String) {
    let from = start.saturating_sub(NEAR);
    let near = &rows[from..start];
    let ends = |row: &&Row| words(&row.text).ends_with(['?', ':']);
    let names = |row: &&Row| {
        let text = row.text.to_lowercase();
        ["permission", "select", "choose", "pick ", "which ", "allow "]
            .iter()
            .any(|word| text.contains(word))
    };
    // The question may be followed by a remark or a command; without one the nearest row introduces the list.
    let at = near.iter().rposition(ends).or_else(|| near.iter().rposition(names));
    let Some(at) = at.or_else(|| near.len().checked_sub(1)).map(|at| from + at) else {
        return (String::new(), String::new());
    };
    // What is between the question and the list belongs to it as much as what is above.
    let rest = rows[at + 1..start].iter();
    let above = rows[at.saturating_sub(CONTEXT_ROWS)..at].iter();
    let context: Vec<&str> = above.chain(rest).map(|row| row.text.as_str()).collect();
    (words(&rows[at].text).to_owned(), context.join("\n"))
}

/// A question without the sign before it and the hint at its keys behind it.
fn words(text: &str) -> &str {
    let text = text.trim_start_matches(['?', '◆', '◇', ' ']);
    match text.rsplit_once(" (") {
        Some((words, hint)) if hint.ends_with(')') && is_hint(hint) => words.trim_end(),
        _ => text,
    }
}
