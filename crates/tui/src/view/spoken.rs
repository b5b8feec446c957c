//! The live zone for a screen reader: what is written, one line of what is offered for it, and the mode in words.
//! Nothing in it moves by itself; everything else is printed once.

use windlass_term::strip_controls;

use crate::app::{App, Purpose};
use crate::overlay::Overlay;
use crate::screen::Frame;
use crate::text::{cut, signs_to_words, width};

/// Stands before the entry of a list that is chosen.
pub const SELECTED: &str = "selected: ";

/// Rows of the mode in a narrow window.
const MODE_ROWS: usize = 2;
/// Columns that stay for what is written, beside the word in front of it.
const LEAST_TEXT: usize = 10;

/// The live zone.
pub fn zone(app: &App) -> Frame {
    let (room, rows) = (app.size.room(), app.size.rows);
    // What it may do alone comes first in it, and is never hidden; with one row it is in the title.
    let mode = crate::text::broken(&app.facts.mode().words(), room);
    let bottom: Vec<String> = mode.into_iter().take(rows / 2).take(MODE_ROWS).collect();
    let most = (rows / 3).max(1).min(rows.saturating_sub(bottom.len()).max(1));
    let (text, cursor) = written(app, most);
    let has_room = rows > text.len() + bottom.len();
    let mut all: Vec<String> =
        offered(app).filter(|_| has_room).map(|line| cut(&line, room)).into_iter().collect();
    let above = all.len();
    all.extend(text);
    all.extend(bottom);
    Frame { rows: all, cursor: Some((above + cursor.0, cursor.1)) }
}

/// The rows of the text and the place of the cursor in them.
fn written(app: &App, most: usize) -> (Vec<String>, (usize, usize)) {
    let word = match (&app.writing.answering, &app.writing.searching) {
        (Some(answering), _) => match answering.purpose {
            Purpose::Answer { .. } => "answer: ",
            Purpose::Comment { .. } => "comment: ",
            Purpose::Steer { .. } => "to the sub-agent: ",
        },
        (None, Some(_)) => "found: ",
        (None, None) => "message: ",
    };
    let word = if app.size.room() < width(word) + LEAST_TEXT { "" } else { word };
    let indent = width(word);
    let columns = app.size.room().saturating_sub(indent).max(2);
    let laid = app.writing.composer.draft().lay_out(columns, &app.writing.mark());
    let first = (laid.row + 1).saturating_sub(most);
    let shown = laid.rows.iter().skip(first).take(most).enumerate().map(|(at, row)| match at {
        0 => format!("{word}{row}"),
        _ => format!("{}{row}", " ".repeat(indent)),
    });
    (shown.collect(), (laid.row - first, indent + laid.column))
}

/// What a key would put into the text: the completion that is chosen, or what is searched for.
fn offered(app: &App) -> Option<String> {
    if let Some(searching) = &app.writing.searching {
        let words = crate::text::prose_line(&searching.words);
        let label = match searching.is_found {
            true => "search in earlier messages: ",
            false if words.is_empty() => "there are no earlier messages",
            false => "no earlier message has: ",
        };
        let room = app.size.room().saturating_sub(label.len());
        return Some(format!("{label}{}", crate::text::cut_start(&words, room)));
    }
    let list = app.writing.completing.list.as_ref()?;
    let (text, about) = list.items.get(list.selected)?;
    let text = windlass_core::shown::shown_line(text);
    let at = list.selected + 1;
    Some(format!("completion {at} of {}: {text} {about}", list.items.len()).trim_end().to_owned())
}

/// A page without what is only drawn. The cursor stands at what is read next: the entry that is chosen, else the
/// first row below the header.
pub fn page(app: &App, rows: Vec<String>, cursor: Option<(usize, usize)>) -> Frame {
    let is_list = !matches!(app.overlay, Some(Overlay::Page(_)));
    let words = |row: String| match is_list {
        true => signs_to_words(&row),
        // Texts and changes keep their indentation.
        false => strip_controls(&row),
    };
    let rows: Vec<String> = rows.into_iter().map(words).collect();
    let chosen = rows.iter().position(|row| row.starts_with(SELECTED));
    let first = chosen.unwrap_or(1).min(rows.len().saturating_sub(1));
    Frame { rows, cursor: cursor.or(Some((first, 0))) }
}
