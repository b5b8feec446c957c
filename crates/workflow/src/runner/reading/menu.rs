//! Lists of options with one marked, and numbered lists above a line that asks for a number.

use super::form::{Axis, Question, Reply};
use super::{FoundQuestion, Row};

/// What marks the chosen option. Some are also prompts, or begin the lines of a text: the list around them must say more.
const MARKS: [&str; 10] = ["❯", "›", "▶", "►", "➤", "▸", "→", "●", "◉", ">"];

/// Circles also begin the lines of a text.
const CIRCLES: [char; 2] = ['●', '◉'];

/// Also a quote or a shell prompt.
const QUOTE: &str = ">";

/// What stands before an option that is not chosen.
const UNMARKED: [&str; 4] = ["○", "◯", "◦", "( )"];

/// Empty rows, or rows with a line, between two numbered options.
const MAX_GAP_ROWS: usize = 2;

/// Rows below a list that only say which keys there are.
const MAX_FOOTER_ROWS: usize = 4;

/// How much above a question belongs to it.
const CONTEXT_ROWS: usize = 25;

/// The list of options at the end of the screen.
pub(super) fn find(rows: &[&Row]) -> Option<FoundQuestion> {
    if let Some(found) = in_a_row(rows) {
        return Some(found);
    }
    let marked = rows.iter().rposition(|row| mark(&row.text).is_some())?;
    let block = Block::around(rows, marked)?;
    if !is_footer(&rows[block.end..]) || has_ticks(rows, &block) {
        return None;
    }
    let above = Above::of(rows, block.start);
    let is_question = match block.form {
        Form::Numbered => above.asks || mark(&rows[marked].text) != Some(QUOTE),
        Form::Circles => true,
        Form::Plain => above.is_near && (above.asks || above.names_keys),
        Form::Quoted => above.names_keys,
    };
    // A list that nothing introduces is not a question.
    if !is_question || above.text.is_empty() {
        return None;
    }
    let reply = Reply::Arrows { marked: block.marked, axis: Axis::Column };
    let question = Question::new(above.text, above.context, block.options, reply);
    Some(FoundQuestion { at: rows[block.end - 1].at, question })
}

/// Options side by side: `● Yes / ○ No`.
fn in_a_row(rows: &[&Row]) -> Option<FoundQuestion> {
    let at = rows.iter().rposition(|row| row.text.contains(CIRCLES))?;
    let parts: Vec<&str> = rows[at].text.split(" / ").map(str::trim).collect();
    let is_chosen = |part: &str| part.starts_with(CIRCLES);
    let has_sign = |part: &str| is_chosen(part) || unmarked(part).len() != part.len();
    let chosen = parts.iter().filter(|part| is_chosen(part)).count();
    let is_list = parts.len() >= 2 && chosen == 1 && parts.iter().all(|part| has_sign(part));
    if !is_list || !is_footer(&rows[at + 1..]) {
        return None;
    }
    let above = Above::of(rows, at);
    let marked = parts.iter().position(|part| is_chosen(part))?;
    let options = parts.iter().map(|part| label(part.trim_start_matches(CIRCLES)));
    let reply = Reply::Arrows { marked, axis: Axis::Row };
    let question = Question::new(above.text, above.context, options.collect(), reply);
    (!question.text.is_empty()).then_some(FoundQuestion { at: rows[at].at, question })
}

/// What stands before an option that can be ticked.
const TICKS: [&str; 14] =
    ["[ ]", "[x]", "[X]", "[*]", "[•]", "[✓]", "[✔]", "☐", "☑", "☒", "◻", "◼", "□", "■"];

/// What a list says in which several options can be ticked.
const TICK_HINTS: [&str; 6] = [
    "space to select",
    "space> to select",
    "space to toggle",
    "space> to toggle",
    "a> to toggle",
    "all that apply",
];

/// Whether several options of a list can be ticked. Enter would take those that are ticked, not the one that is marked.
fn has_ticks(rows: &[&Row], block: &Block) -> bool {
    let is_ticked = |row: &&Row| {
        let text = mark(&row.text).map_or(&*row.text, |mark| &row.text[mark.len()..]).trim_start();
        let text = number(text).map_or(text, |(_, rest)| rest.trim_start());
        TICKS.iter().any(|tick| text.starts_with(tick)) || is_marked_twice(&row.text)
    };
    let says_so = |row: &&Row| {
        let text = row.text.to_lowercase();
        TICK_HINTS.iter().any(|hint| text.contains(hint))
    };
    let above = &rows[block.start.saturating_sub(NEAR)..block.start];
    rows[block.start..block.end].iter().any(is_ticked)
        || above.last().is_some_and(is_ticked)
        || above.iter().chain(&rows[block.end..]).any(says_so)
}

/// Whether a circle stands behind another sign: that only says where the cursor is.
fn is_marked_twice(text: &str) -> bool {
    let is_circle = |word: &str| word.starts_with(CIRCLES) || UNMARKED.contains(&word);
    let mut words = text.split_whitespace();
    match (words.next(), words.next()) {
        (Some(first), Some(second)) => {
            let is_sign = first.chars().count() == 1 && !first.contains(char::is_alphanumeric);
            is_sign && !is_circle(first) && is_circle(second)
        }
        _ => false,
    }
}

/// Whether what is below a list only says which keys there are. In a box, that may be followed by other remarks.
fn is_footer(below: &[&Row]) -> bool {
    let is_key_hint = |row: &&Row| is_hint(&row.text);
    below.len() <= MAX_FOOTER_ROWS
        && (below.iter().all(is_key_hint)
            || below.first().is_some_and(is_key_hint) && below.iter().all(|row| row.is_boxed))
}

/// What makes a list one of options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Numbered,
    /// Every option has its circle.
    Circles,
    /// One option has a mark.
    Plain,
    /// The mark is also the one of a quote.
    Quoted,
}

/// Options that belong together.
struct Block {
    start: usize,
    /// The row after the last.
    end: usize,
    options: Vec<String>,
    marked: usize,
    form: Form,
}

impl Block {
    fn around(rows: &[&Row], marked: usize) -> Option<Self> {
        let mark_text = mark(&rows[marked].text)?;
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
        // Numbers hold a list together across a line that is drawn in it.
        let follows = |upper: &Row, lower: &Row| {
            let gap = lower.at - upper.at - 1;
            let continues = || number(option_text(lower)).is_some_and(|(number, _)| number > 1);
            gap == 0 || is_numbered && gap <= MAX_GAP_ROWS && continues()
        };
        let mut start = marked;
        while start > 0 && follows(rows[start - 1], rows[start]) && belongs(rows[start - 1]) {
            start -= 1;
        }
        // What explains nothing stands above the list.
        while start < marked && !is_option(rows[start]) {
            start += 1;
        }
        let mut end = marked + 1;
        while end < rows.len() && follows(rows[end - 1], rows[end]) && belongs(rows[end]) {
            end += 1;
        }
        let listed: Vec<&&Row> = rows[start..end]
            .iter()
            .filter(|row| row.at == rows[marked].at || is_option(row))
            .collect();
        let options: Vec<String> = listed.iter().map(|row| label(option_text(row))).collect();
        let place = listed.iter().position(|row| row.at == rows[marked].at)?;
        let count_is_plain = options.len() >= 2 && options.len() <= 20;
        let all_have_text = options.iter().all(|option| !option.is_empty());
        let numbers: Vec<usize> =
            listed.iter().filter_map(|row| Some(number(option_text(row))?.0)).collect();
        let are_in_order = numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let have_circles = listed
            .iter()
            .all(|row| row.at == rows[marked].at || unmarked(&row.text).len() != row.text.len());
        let form = match is_numbered {
            true => Form::Numbered,
            false if mark_text.starts_with(CIRCLES) => Form::Circles,
            false if mark_text == QUOTE => Form::Quoted,
            false => Form::Plain,
        };
        let is_list = are_in_order && (form != Form::Circles || have_circles);
        (count_is_plain && all_have_text && is_list).then_some(Self {
            start,
            end,
            options,
            marked: place,
            form,
        })
    }
}

/// The mark that a row begins with.
fn mark(text: &str) -> Option<&str> {
    let mark = MARKS.iter().find(|mark| text.starts_with(**mark))?;
    let rest = &text[mark.len()..];
    (rest.starts_with(' ') && !rest.trim().is_empty()).then_some(&text[..mark.len()])
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

/// A row of a list without the signs before its text.
fn option_text(row: &Row) -> &str {
    let text = mark(&row.text).map_or(&*row.text, |mark| &row.text[mark.len()..]);
    unmarked(text.trim_start())
}

/// The number that an option begins with, and its end.
pub(super) fn number(text: &str) -> Option<(usize, &str)> {
    let digits = text.len() - text.trim_start_matches(|char: char| char.is_ascii_digit()).len();
    let rest = text[digits..].strip_prefix(['.', ')', ':'])?;
    let number = text[..digits].parse().ok()?;
    (rest.starts_with(' ')).then_some((number, rest))
}

/// The words of an option: no sign, no number, no keys in brackets behind it.
fn label(text: &str) -> String {
    let text = unmarked(text.trim_start());
    let mut text = number(text).map_or(text, |(_, rest)| rest.trim_start()).trim_end();
    while let Some((words, key)) = text.rsplit_once(" (") {
        let Some(key) = key.strip_suffix(')').filter(|_| !words.trim().is_empty()) else { break };
        if key.chars().count() > 12 || !(is_hint(key) || key.chars().count() == 1) {
            break;
        }
        text = words.trim_end();
    }
    text.trim().to_owned()
}

/// Rows that only say which keys there are.
fn is_hint(text: &str) -> bool {
    let text = text.to_lowercase();
    let keys = ["esc", "enter", "arrow", "arrows", "tab", "ctrl", "navigate", "shift", "space"];
    let names_key =
        text.split(|char: char| !char.is_alphanumeric()).any(|word| keys.contains(&word));
    let says = ["↑", "to select", "to cancel"].iter().any(|words| text.contains(words));
    (names_key || says) && !text.contains("to interrupt")
}

/// Hints that say how to move in a list.
fn is_about_moving(text: &str) -> bool {
    let text = text.to_lowercase();
    ["arrow", "↑", "↓", "navigate", "to move"].iter().any(|word| text.contains(word))
}

/// How far above a list its question may be.
const NEAR: usize = 6;

/// What stands above a list.
pub(super) struct Above {
    /// The words that ask; empty where nothing is above.
    pub text: String,
    /// What is shown around them.
    pub context: String,
    /// Whether the words have the form of a question.
    asks: bool,
    /// Whether the list says how to move in it.
    names_keys: bool,
    /// Whether at most one row is empty between it and the list: a prompt for the next message stands further off.
    is_near: bool,
}

impl Above {
    pub fn of(rows: &[&Row], start: usize) -> Self {
        let from = start.saturating_sub(NEAR);
        let near = &rows[from..start];
        let is_asking = |text: &str| {
            let text = text.to_lowercase();
            let words = ["permission", "select", "choose", "pick ", "which ", "allow "];
            text.contains("? ") || words.iter().any(|word| text.contains(word))
        };
        let ends = |row: &&Row| words(&row.text).ends_with(['?', ':']);
        let names = |row: &&Row| is_asking(&row.text);
        let names_keys = near.last().is_some_and(|row| is_about_moving(&row.text))
            || rows[start..].iter().any(|row| is_hint(&row.text) && is_about_moving(&row.text));
        // The question may be followed by a remark or a command; without one the nearest row introduces the list.
        let at = near.iter().rposition(ends).or_else(|| near.iter().rposition(names));
        let Some(at) = at.or_else(|| near.len().checked_sub(1)).map(|at| from + at) else {
            let (text, context) = (String::new(), String::new());
            return Self { text, context, asks: false, names_keys, is_near: false };
        };
        let text = words(&rows[at].text).to_owned();
        let asks = text.ends_with('?') || is_asking(&rows[at].text);
        // What is between the question and the list belongs to it as much as what is above.
        let rest = rows[at + 1..start].iter();
        let above = rows[at.saturating_sub(CONTEXT_ROWS)..at].iter();
        let context: Vec<&str> = above.chain(rest).map(|row| row.text.as_str()).collect();
        let is_near = rows[start].at - rows[start - 1].at <= 2;
        Self { text, context: context.join("\n"), asks, names_keys, is_near }
    }
}

/// A question without the sign before it and the hint at its keys behind it.
pub(super) fn words(text: &str) -> &str {
    let text = text.trim_start_matches(['?', '◆', '◇', ' ']).trim_end();
    let hint = text.rsplit_once(" (").or_else(|| text.rsplit_once(" ["));
    match hint {
        Some((words, hint)) if hint.ends_with([')', ']']) && is_hint(hint) => words.trim_end(),
        _ => text,
    }
}
