//! What a screen of a CLI agent means: it works, it asks, it is done, it failed.
//!
//! A question that is not recognised costs time; one that is recognised where there is none could be answered. So a
//! question must be the last thing on the screen, and have a form that only questions have.

mod form;
mod line_prompt;
mod menu;
mod signs;

use super::{Activity, Asks};
pub use form::Question;

/// What a screen shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenState {
    /// A spinner, a progress bar, or a line that says so.
    Working(Activity),
    Question(Question),
    /// It waits at its own prompt, or says that it is done.
    Finished,
    /// It says that something went wrong, in this line.
    Error(String),
    /// The same, and it waits at its own prompt: it does not try again.
    Stopped(String),
    /// None of these.
    Nothing,
}

/// Reads a screen from its rows and the row of the cursor.
pub fn read_screen(rows: &[String], cursor_row: usize) -> ScreenState {
    let rows: Vec<Row> = rows.iter().enumerate().map(|(at, text)| Row::new(at, text)).collect();
    let shown: Vec<&Row> = rows.iter().filter(|row| !row.text.is_empty()).collect();
    let working = signs::working(&shown);
    let question = menu::find(&shown).or_else(|| line_prompt::find(&shown, cursor_row));
    match (question, working) {
        // A spinner below a list means that the list is something the program has written.
        (Some(found), Some((at, activity))) if at > found.at => ScreenState::Working(activity),
        (Some(found), _) => ScreenState::Question(found.question),
        (None, Some((_, activity))) => ScreenState::Working(activity),
        (None, None) => signs::rest(&shown),
    }
}

/// One row without the box that is drawn around it.
#[derive(Clone, Debug)]
struct Row {
    at: usize,
    /// Spaces before the text.
    indent: usize,
    /// Empty where there are only lines of a box.
    text: String,
    /// Whether a line of a box is before it.
    is_boxed: bool,
}

/// What boxes are drawn with.
const SIDES: [char; 8] = ['│', '┃', '║', '|', '▌', '▐', '┊', '╎'];

impl Row {
    fn new(at: usize, raw: &str) -> Self {
        let is_line =
            |char: char| ('\u{2500}'..='\u{257f}').contains(&char) || "▀▄─━═".contains(char);
        let is_rule = !raw.trim().is_empty()
            && raw.trim().chars().all(|char| is_line(char) || char.is_whitespace());
        let inner = raw.trim_end().trim_end_matches(SIDES).trim_end();
        let start = inner.trim_start();
        let inside = start.strip_prefix(SIDES);
        let (indent, text) = match inside {
            Some(rest) => {
                let text = rest.trim_start();
                (inner.chars().count() - text.chars().count(), text)
            }
            None => (inner.chars().count() - start.chars().count(), start),
        };
        let text = if is_rule { String::new() } else { text.to_owned() };
        Self { at, indent, text, is_boxed: inside.is_some() }
    }
}

/// A question and the last row that belongs to it.
struct FoundQuestion {
    at: usize,
    question: Question,
}

/// Which kind of question a text with these options is.
fn kind_of(text: &str, options: &[String]) -> Asks {
    let text = text.to_lowercase();
    let is_permission = [
        "allow",
        "proceed",
        "permission",
        "approv",
        "run ",
        "execut",
        "do you want to",
        "apply",
        "trust",
        "edit",
        "overwrite",
        "delete",
        "write ",
    ]
    .iter()
    .any(|word| text.contains(word));
    match (options, is_permission) {
        ([], _) => Asks::Text,
        (options, _) if form::decisions(options).is_none() => Asks::Choice,
        (_, true) => Asks::Permission,
        (_, false) => Asks::Confirm,
    }
}
