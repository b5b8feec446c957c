//! A draft as it is drawn: rows of a width, placeholders as pictures, the place of the cursor.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use super::draft::{Draft, FIRST_PLACEHOLDER, is_placeholder};
use crate::text::{grapheme_width, width};

/// A part of the text that is marked, and how.
#[derive(Clone, Debug, Default)]
pub struct Mark {
    pub range: Range<usize>,
    pub is_painted: bool,
}

impl Mark {
    fn paint(&self, at: usize, shown: &str) -> String {
        match self.is_painted && self.range.contains(&at) {
            true => format!("\u{1b}[7m{shown}\u{1b}[27m"),
            false => shown.to_owned(),
        }
    }
}

/// The rows of a composer and the place of the cursor in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub rows: Vec<String>,
    pub row: usize,
    pub column: usize,
}

/// Where a character is drawn.
pub(super) struct CharPosition {
    pub at: usize,
    pub row: usize,
    pub column: usize,
}

/// A character, what is drawn for it, and where.
struct Cell<'a> {
    place: CharPosition,
    grapheme: &'a str,
    shown: String,
}

impl Draft {
    /// The rows as they are drawn, and where the cursor is in them.
    pub fn lay_out(&self, columns: usize, mark: &Mark) -> Layout {
        let columns = columns.max(2);
        let (cells, end) = self.cells(columns);
        let mut laid =
            Layout { rows: vec![String::new(); end.row + 1], row: end.row, column: end.column };
        for Cell { place, grapheme, shown } in cells {
            if place.at == self.cursor {
                (laid.row, laid.column) = (place.row, place.column);
            }
            let row = &mut laid.rows[place.row];
            match grapheme {
                // An empty line that is marked can be seen.
                "\n" if mark.range.contains(&place.at) && place.column < columns => {
                    row.push_str(&mark.paint(place.at, " "));
                }
                // A space behind the last column is where the row was broken.
                _ if place.column >= columns => {}
                _ => row.push_str(&mark.paint(place.at, &crate::text::cut(&shown, columns))),
            }
        }
        laid
    }

    /// Where each character is drawn, and the end of the text.
    pub(super) fn places(&self, columns: usize) -> Vec<CharPosition> {
        let (cells, end) = self.cells(columns.max(2));
        cells.into_iter().map(|cell| cell.place).chain([end]).collect()
    }

    /// Every character and where it is drawn; then the place of the end. Rows are broken between words, and inside a
    /// word that is longer than a row.
    fn cells(&self, columns: usize) -> (Vec<Cell<'_>>, CharPosition) {
        let (mut row, mut used) = (0, 0);
        let mut cells: Vec<Cell<'_>> = Vec::new();
        // The first character of the word that is being laid out.
        let mut word = 0;
        for (at, grapheme) in self.text.grapheme_indices(true) {
            let shown = self.picture(grapheme);
            let wide = width(&shown).min(columns);
            let is_blank = matches!(grapheme, " " | "\n" | "\t");
            // Placeholders and ideographs stand by themselves.
            let is_alone = is_blank || wide > 1;
            if is_alone {
                word = cells.len();
            }
            if !matches!(grapheme, " " | "\n") && used > 0 && used + wide > columns {
                row += 1;
                used = 0;
                // The word moves on with its beginning, where it does not fill its row.
                if cells.get(word).is_some_and(|first| first.place.column > 0) {
                    for cell in &mut cells[word..] {
                        cell.place = CharPosition { at: cell.place.at, row, column: used };
                        used += width(&cell.shown).min(columns);
                    }
                }
                if used > 0 && used + wide > columns {
                    (row, used) = (row + 1, 0);
                }
            }
            cells.push(Cell { place: CharPosition { at, row, column: used }, grapheme, shown });
            match grapheme {
                "\n" => (row, used) = (row + 1, 0),
                // Spaces at the end of a row take no room in it.
                " " => used = (used + wide).min(columns),
                _ => used += wide,
            }
            if is_alone {
                word = cells.len();
            }
        }
        if used >= columns {
            (row, used) = (row + 1, 0);
        }
        (cells, CharPosition { at: self.text.len(), row, column: used })
    }

    /// What is drawn for one character.
    fn picture(&self, grapheme: &str) -> String {
        let mut chars = grapheme.chars();
        match chars.next() {
            Some('\n') => String::new(),
            Some('\t') => "    ".to_owned(),
            Some(place) if is_placeholder(place) => self.placeholder(place),
            Some(_) if grapheme_width(grapheme) > 0 => grapheme.to_owned(),
            // A mark without a letter has no picture of its own.
            _ => windlass_core::shown::shown_line(grapheme),
        }
    }

    fn placeholder(&self, place: char) -> String {
        let number = u32::from(place) - FIRST_PLACEHOLDER + 1;
        let text = self.pastes.get(&place).map(String::as_str).unwrap_or_default();
        let lines = text.lines().count();
        match lines {
            0 | 1 => format!("[pasted text {number}: {} characters]", text.chars().count()),
            lines => format!("[pasted text {number}: {lines} lines]"),
        }
    }
}
