//! How long a task has been worked on, in all and in its present attempt.

use jiff::Timestamp;

use super::Attempts;
use crate::command::UsageMetrics;

/// Rounds and active time of a task. Only segments count: not the time in which it was blocked, paused or down.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    pub(super) usage: &'a UsageMetrics,
    pub(super) attempts: &'a Attempts,
}

impl Work<'_> {
    /// Active time up to the last event that says it.
    pub fn active_ms(self) -> u64 {
        self.active_ms_with(self.attempts.segment.map_or(0, |segment| segment.worked_ms))
    }

    /// Active time, when the running segment has been worked on for so long.
    pub fn active_ms_with(self, segment_ms: u64) -> u64 {
        self.usage.duration_ms + segment_ms
    }

    /// Active time by estimate, for a task that another process drives: since its last event the calendar
    /// counts.
    pub fn active_ms_at(self, now: Timestamp) -> u64 {
        let since = self.attempts.segment.map_or(0, |segment| millis(segment.last_event, now));
        self.active_ms() + since
    }

    /// Tool rounds of this attempt.
    pub fn attempt_rounds(self) -> u32 {
        self.usage.iterations.saturating_sub(self.attempts.rounds_before)
    }

    /// The part of the task's active time that this attempt took.
    pub fn attempt_ms(self, active_ms: u64) -> u64 {
        active_ms.saturating_sub(self.attempts.active_ms_before)
    }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}
