//! When something happens by itself: deadlines, and schedules with their runs.

use crate::words;

/// How a final reply begins that ends a task which a schedule looks after; any other parks it until the
/// schedule speaks again. A monitor that goes on by mistake is seen; one that stops by mistake is not.
pub const MONITORING_COMPLETE: &str = "MONITORING COMPLETE";

words! {
    /// What happens when a task's deadline passes (ES-079…081).
    DeadlineAction ("deadline action") {
        /// It fails.
        Fail = "fail",
        /// It ends with what it has.
        CompletePartial = "complete_partial",
        /// It is parked and a person is told.
        PauseAndNotify = "pause_and_notify",
    }
}

words! {
    /// What happens when a monitor has waited long enough (ES-286).
    TimeoutAction ("timeout action") {
        /// The task ends with what it has.
        Complete = "complete",
        /// The task fails.
        Fail = "fail",
    }
}

words! {
    /// How a task ends, or is parked, when its time is up.
    Expiry ("expiry") {
        /// It fails.
        Fail = "fail",
        /// It ends with what it has.
        Complete = "complete",
        /// It is parked.
        Pause = "pause",
    }
}

impl From<DeadlineAction> for Expiry {
    fn from(action: DeadlineAction) -> Self {
        match action {
            DeadlineAction::Fail => Self::Fail,
            DeadlineAction::CompletePartial => Self::Complete,
            DeadlineAction::PauseAndNotify => Self::Pause,
        }
    }
}

impl From<TimeoutAction> for Expiry {
    fn from(action: TimeoutAction) -> Self {
        match action {
            TimeoutAction::Fail => Self::Fail,
            TimeoutAction::Complete => Self::Complete,
        }
    }
}

words! {
    /// Where a task stands with the scheduler, apart from its own status (MS-139, MS-142).
    SchedulerStatus ("scheduler status") {
        /// Waiting for its time or its place.
        Queued = "queued",
        /// Its time has come.
        Due = "due",
        /// A worker has taken it.
        Claimed = "claimed",
        /// An agent works on it.
        Dispatched = "dispatched",
        /// The run it was scheduled for has ended.
        Consumed = "consumed",
        /// Its time passed before anybody took it.
        Expired = "expired",
    }
}
