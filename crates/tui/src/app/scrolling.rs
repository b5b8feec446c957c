//! How far back the whole-screen layout shows. Inline, the terminal scrolls by itself.
//!
//! Invariant: whoever is at the end follows it. Whoever is further up stays at the rows that they read, whatever is
//! printed below them and however the live zone grows.

use super::App;
use crate::Moment;
use crate::keys::{Direction, Wheel};
use crate::overlay::{ROWS_PER_NOTCH, ScrollSpeed};
use crate::view;

/// The part of what was printed that is in sight.
#[derive(Debug, Default)]
pub struct Scrolling {
    /// All rows, and those that there is room for.
    rows: usize,
    room: usize,
    /// Rows from the first in sight to the last of all; `None` follows the end.
    from_end: Option<usize>,
    speed: ScrollSpeed,
}

impl Scrolling {
    /// Takes in what can be shown now, with how many rows are new at its end; returns the first row in sight.
    pub fn lay_out(&mut self, rows: usize, added: usize, room: usize) -> usize {
        (self.rows, self.room) = (rows, room);
        if let Some(from_end) = &mut self.from_end {
            *from_end += added;
        }
        self.go(self.top())
    }

    /// Rows below what is in sight, where the end is not followed.
    pub fn rows_below(&self) -> Option<usize> {
        self.from_end.map(|from_end| from_end.saturating_sub(self.room))
    }

    pub fn follow_end(&mut self) {
        self.from_end = None;
    }

    /// Half of what is in sight, so that a reader finds their place again.
    pub(super) fn page(&mut self, direction: Direction) {
        self.step(direction, (self.room / 2).max(1));
    }

    fn notch(&mut self, direction: Direction, now: Moment) {
        let rows: usize = (0..ROWS_PER_NOTCH).map(|_| self.speed.step(direction, now)).sum();
        self.step(direction, rows.min(self.room.max(1)));
    }

    fn step(&mut self, direction: Direction, rows: usize) {
        let top = self.top();
        self.go(match direction {
            Direction::Up => top.saturating_sub(rows),
            Direction::Down => top + rows,
        });
    }

    fn top(&self) -> usize {
        let from_end = self.from_end.unwrap_or(self.room);
        self.rows.saturating_sub(from_end)
    }

    /// Goes to a row, or to the end where there are no rows below.
    fn go(&mut self, top: usize) -> usize {
        let last = self.rows.saturating_sub(self.room);
        self.from_end = (top < last).then(|| self.rows - top);
        top.min(last)
    }
}

impl App {
    /// The wheel scrolls what the mouse points at. It is no typing, and answers nothing.
    pub(super) fn wheel(&mut self, wheel: Wheel) {
        let Wheel { direction, row } = wheel;
        if let Some(overlay) = &mut self.overlay {
            let rows = view::body_rows(overlay, self.size);
            overlay.wheel(direction, rows, self.now);
        } else if row >= self.scrolling.room && !self.questions.is_empty() {
            let last = view::last_question_top(self);
            self.questions.scroll(direction, ROWS_PER_NOTCH, last);
        } else {
            self.scrolling.notch(direction, self.now);
        }
    }
}
