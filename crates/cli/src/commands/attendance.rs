//! Looks at whether anybody still works on a task that is watched: a process that was killed writes no event.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};
use windlass_coordinator::views::Attendance;
use windlass_core::id::TaskId;

use super::AppContext;
use crate::failure::Failure;

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(250);

/// Looks in a row that find nobody before that is believed: a process that takes a task over may need a moment.
const PATIENCE: u32 = 8;

/// Looks at one task, from time to time.
pub(super) struct Looks {
    task: TaskId,
    ticks: Interval,
    left: u32,
}

impl Looks {
    pub(super) fn at(task: TaskId) -> Self {
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { task, ticks, left: PATIENCE }
    }

    /// Who works on it, after a while; may be dropped while it waits.
    pub(super) async fn next(&mut self, app: &AppContext) -> Result<Attendance, Failure> {
        self.ticks.tick().await;
        let found = app.coordinator.tasks().attendance(self.task)?;
        self.left = match found {
            Attendance::Attended => PATIENCE,
            Attendance::AtRest
            | Attendance::Asks(_)
            | Attendance::Abandoned
            | Attendance::NoService => self.left.saturating_sub(1),
        };
        let is_sure = match found {
            Attendance::Attended | Attendance::AtRest | Attendance::Asks(_) => true,
            Attendance::Abandoned | Attendance::NoService => self.left == 0,
        };
        Ok(if is_sure { found } else { Attendance::Attended })
    }

    /// Somebody is about to take it over.
    pub(super) fn wait_again(&mut self) {
        self.left = PATIENCE;
    }
}

/// What a person reads of a task that nobody works on, with the command that changes that.
pub(super) fn words(attendance: Attendance, task: TaskId) -> Option<String> {
    match attendance {
        Attendance::Attended | Attendance::AtRest => None,
        Attendance::Asks(_) => {
            Some(format!("it waits for an answer; see the question with: windlass show {task}"))
        }
        Attendance::Abandoned => {
            Some(format!("nobody works on it; resume it with: windlass resume {task}"))
        }
        Attendance::NoService => Some(
            "nobody works on it: it waits for a service, and none runs; start one with: windlass serve"
                .to_owned(),
        ),
    }
}
