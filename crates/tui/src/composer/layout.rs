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
pub struct Laid {
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

impl Draft {
    /// The rows as they are drawn, and where the cursor is in them.
    pub fn lay_out(&self, columns: usize, mark: &Mark) -> Laid {
        let columns = columns.max(2);
        let mut laid = Laid { rows: vec![String::new()], row: 0, column: 0 };
        let mut used = 0;
        for (at, grapheme) in self.text.grapheme_indices(true) {
            let shown = self.picture(grapheme);
            let wide = width(&shown);
            if grapheme != "\n" && used > 0 && used + wide > columns {
                laid.rows.push(String::new());
                used = 0;
            }
            if at == self.cursor {
                (laid.row, laid.column) = (laid.rows.len() - 1, used);
            }
            if grapheme == "\n" {
                if let Some(row) = laid.rows.last_mut().filter(|_| mark.range.contains(&at)) {
                    row.push_str(&mark.paint(at, if used < columns { " " } else { "" }));
                }
                laid.rows.push(String::new());
                used = 0;
                continue;
            }
            if let Some(row) = laid.rows.last_mut() {
                row.push_str(&mark.paint(at, &crate::text::cut(&shown, columns)));
            }
            used += wide.min(columns);
        }
        if self.cursor == self.text.len() {
            if used >= columns {
                laid.rows.push(String::new());
                used = 0;
            }
            (laid.row, laid.column) = (laid.rows.len() - 1, used);
        }
        laid
    }

    pub(super) fn places(&self, columns: usize) -> Vec<CharPosition> {
        let columns = columns.max(2);
        let (mut places, mut row, mut used) = (Vec::new(), 0, 0);
        for (at, grapheme) in self.text.grapheme_indices(true) {
            let wide = width(&self.picture(grapheme)).min(columns);
            if grapheme != "\n" && used > 0 && used + wide > columns {
                (row, used) = (row + 1, 0);
            }
            places.push(CharPosition { at, row, column: used });
            match grapheme {
                "\n" => (row, used) = (row + 1, 0),
                _ => used += wide,
            }
        }
        if used >= columns {
            (row, used) = (row + 1, 0);
        }
        places.push(CharPosition { at: self.text.len(), row, column: used });
        places
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
