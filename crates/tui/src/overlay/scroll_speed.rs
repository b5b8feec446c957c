//! How far one step of scrolling goes: a single one goes one row, and steps that follow each other quickly go further.
//!
//! Pure: the time comes with each step. A key that is held down repeats about thirty times a second; the wheel of a
//! mouse arrives as three arrow keys a notch.

use std::time::Duration;

use crate::Moment;
use crate::keys::Direction;

/// Steps that are further apart do not belong together.
const TOGETHER: Duration = Duration::from_millis(120);
/// So many steps in a row go one row each: a short press and a notch or two of the wheel stay exact.
const EXACT_STEPS: usize = 6;
/// After those, each so many steps go one row further.
const STEPS_PER_GEAR: usize = 3;
/// The furthest that one step goes.
const MOST_ROWS: usize = 12;

/// The steps that have followed each other quickly.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScrollSpeed {
    last: Option<(Direction, Moment)>,
    steps: usize,
}

impl ScrollSpeed {
    /// Takes one step in; returns how many rows it goes.
    pub fn step(&mut self, direction: Direction, now: Moment) -> usize {
        let continues = self
            .last
            .is_some_and(|(before, at)| before == direction && now.saturating_sub(at) <= TOGETHER);
        self.steps = if continues { self.steps.saturating_add(1) } else { 1 };
        self.last = Some((direction, now));
        (1 + self.steps.saturating_sub(EXACT_STEPS).div_ceil(STEPS_PER_GEAR)).min(MOST_ROWS)
    }

    /// Something else was done in between.
    pub fn stop(&mut self) {
        *self = Self::default();
    }
}
