//! The lines below everything that was printed, redrawn in place: what runs now, and what was used so far.
//!
//! Invariant: each line is cut to the terminal's width when it is drawn, so a redraw knows how many rows to
//! remove. After the terminal became narrower a line takes several rows, and these are counted then.

use std::io::{self, Write as _};

use unicode_width::UnicodeWidthStr as _;
use windlass_term::strip_controls;
use windlass_term::wrap::cut_columns;

/// Removes the row that the cursor is in.
const CLEAR_ROW: &str = "\r\u{1b}[2K";
/// Goes up and removes that row.
const CLEAR_ABOVE: &str = "\u{1b}[1A\u{1b}[2K";

/// What is drawn now.
#[derive(Default)]
pub(super) struct LiveArea {
    /// The width of each line, in columns.
    widths: Vec<usize>,
}

impl LiveArea {
    /// Removes it, so that something can be printed in its place.
    pub(super) fn clear(&mut self, columns: usize) {
        let removal = self.removal(columns);
        if !removal.is_empty() {
            let _ = write!(io::stderr().lock(), "{removal}");
        }
        self.widths.clear();
    }

    /// Draws these lines in its place.
    pub(super) fn draw(&mut self, lines: &[String], columns: usize) {
        // The last column stays free: a terminal may break the line after it.
        let room = columns.saturating_sub(1).max(1);
        let lines: Vec<String> = lines.iter().map(|line| cut_columns(line, room)).collect();
        let mut text = self.removal(columns);
        if text.is_empty() {
            text.push_str(CLEAR_ROW);
        }
        text.push_str(&lines.join("\n"));
        self.widths = lines.iter().map(|line| strip_controls(line).width()).collect();
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "{text}");
        let _ = stderr.flush();
    }

    fn removal(&self, columns: usize) -> String {
        let rows: usize =
            self.widths.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
        match rows {
            0 => String::new(),
            rows => format!("{CLEAR_ROW}{}", CLEAR_ABOVE.repeat(rows - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_wraps_after_a_resize_is_removed_whole() {
        let area = LiveArea { widths: vec![10, 79] };
        assert_eq!(area.removal(80), format!("{CLEAR_ROW}{CLEAR_ABOVE}"));
        assert_eq!(area.removal(40), format!("{CLEAR_ROW}{}", CLEAR_ABOVE.repeat(2)));
        assert_eq!(LiveArea::default().removal(80), "");
    }
}
