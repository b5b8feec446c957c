//! The layout that takes the whole screen: the end of what was printed, or what is scrolled to, above the live zone.

use super::zone;
use crate::app::App;
use crate::screen::Frame;
use crate::text::broken;
use crate::transcript::{Entry, REPRINTED_ROWS};

/// What was printed, as rows of this width.
#[derive(Debug, Default)]
pub struct WholeScreen {
    rows: Vec<String>,
}

impl WholeScreen {
    /// The width or the form of the rows has changed: they are made again.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// The whole screen.
    pub fn frame(&mut self, app: &mut App) -> Frame {
        let added = self.take_new(app);
        let live = zone(app);
        let room = app.size.rows.saturating_sub(live.rows.len());
        let top = app.scrolling.lay_out(self.rows.len(), added, room);
        // It says how much is below.
        let live = if app.scrolling.rows_below().is_some() { zone(app) } else { live };
        let mut rows: Vec<String> = self.rows.iter().skip(top).take(room).cloned().collect();
        rows.resize(room, String::new());
        rows.extend(live.rows);
        Frame { rows, cursor: live.cursor.map(|(row, column)| (room + row, column)) }
    }

    /// Takes in what was printed since the last frame; returns how many rows that are.
    fn take_new(&mut self, app: &mut App) -> usize {
        let columns = app.size.room();
        // Nothing is broken here but by us.
        let broken = |rows: &[String]| -> Vec<String> {
            rows.iter().flat_map(|row| broken(row, columns)).collect()
        };
        let new = app.transcript.postpone_new();
        let mut is_blank = self.rows.last().is_some_and(String::is_empty);
        let added = broken(&Entry::all_rows(&new, app.form(), &mut is_blank)).len();
        if !new.is_empty() || self.rows.is_empty() {
            self.rows = broken(&app.transcript.rows(app.form(), REPRINTED_ROWS));
        }
        added
    }
}
