//! How a task ends or is parked: the one place that says which status an ending leaves it in.
//!
//! Invariants:
//! - Pure: the state and the ending decide. Whoever drives the task journals the result.
//! - An ended task stays as it is: no ending changes `done`, `failed` or `cancelled`.

use jiff::Timestamp;

use crate::error::{ErrorDetails, ErrorType};
use crate::event::{Event, StatusChanged};
use crate::schedule::Expiry;
use crate::state::{Signal, TaskState};
use crate::status::{StatusReason, TaskStatus};

/// How a run segment ends, or what happens to a task that nobody drives.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The agent gave its final reply.
    Done,
    /// A question of this task or of one below it is open.
    Blocked,
    /// Nothing is left to spend.
    OverBudget,
    /// Its time is up, and what it has so far counts as the result.
    Partial(String),
    /// A person, a schedule or the end of the process parks it.
    Paused {
        /// Why it is parked.
        reason: StatusReason,
        /// The same in words, where the reason does not say it all.
        detail: Option<String>,
    },
    /// It cannot continue for a while, and resumes automatically.
    Waiting {
        /// What it waits for; a reason that waits for its time.
        reason: StatusReason,
        /// When it is tried again.
        until: Timestamp,
        /// The same in words.
        detail: String,
    },
    /// A step of its workflow failed; resumed, the step is tried again.
    Stuck {
        /// `error`, `timeout` or `merge_conflict`.
        reason: StatusReason,
        error: ErrorDetails,
    },
    /// A person stopped it for good.
    Cancelled(Option<String>),
    /// An error or a limit stopped it for good.
    Failed(ErrorDetails),
}

impl Ending {
    /// A pause of which the reason says it all.
    pub const fn paused(reason: StatusReason) -> Self {
        Self::Paused { reason, detail: None }
    }

    /// What the task's pending signal asks for; `None` when there is no signal.
    pub fn from_signal(state: &TaskState) -> Option<Self> {
        match state.signal.as_ref()? {
            Signal::Cancel(why) => Some(Self::Cancelled(why.clone())),
            Signal::Pause | Signal::Interrupt => Some(Self::paused(StatusReason::User)),
            Signal::Expired(action, why) => Some(Self::expired(state, *action, why)),
        }
    }

    /// What happens to a task whose time is up. One that never started, or whose last attempt failed, has
    /// no partial result.
    pub fn expired(state: &TaskState, action: Expiry, why: &str) -> Self {
        let has_partial_result =
            state.attempts.started && state.status.check_move(TaskStatus::Done).is_ok();
        match action {
            Expiry::Complete if has_partial_result => Self::Partial(why.to_owned()),
            Expiry::Fail | Expiry::Complete => {
                Self::Failed(ErrorDetails::new(ErrorType::Deadline, why))
            }
            Expiry::Pause => {
                Self::Paused { reason: StatusReason::Deadline, detail: Some(why.to_owned()) }
            }
        }
    }

    /// The status that this ending leaves the task in, whether or not the task has it already.
    pub fn status_change(&self, state: &TaskState) -> StatusChanged {
        let to = |status, reason| StatusChanged::new(state.status, status, reason);
        match self {
            Self::Done => to(TaskStatus::Done, StatusReason::Finished),
            Self::Blocked if state.spending.hit.is_some() => {
                to(TaskStatus::Blocked, StatusReason::Budget)
            }
            // Finished work that waits for somebody to judge it.
            Self::Blocked if state.open_questions.has_review() => {
                to(TaskStatus::Reviewing, StatusReason::Question)
            }
            Self::Blocked => to(TaskStatus::Blocked, StatusReason::Question),
            Self::OverBudget => to(TaskStatus::Blocked, StatusReason::Budget),
            Self::Partial(why) => StatusChanged {
                detail: Some(why.clone()),
                ..to(TaskStatus::Done, StatusReason::Deadline)
            },
            Self::Paused { reason, detail } => {
                StatusChanged { detail: detail.clone(), ..to(TaskStatus::Paused, *reason) }
            }
            Self::Waiting { reason, until, detail } => StatusChanged {
                detail: Some(detail.clone()),
                until: Some(*until),
                ..to(TaskStatus::Paused, *reason)
            },
            Self::Stuck { reason, error } => StatusChanged {
                detail: Some(error.message.clone()),
                error: Some(error.clone()),
                ..to(TaskStatus::Blocked, *reason)
            },
            Self::Cancelled(why) => StatusChanged {
                detail: why.clone(),
                ..to(TaskStatus::Cancelled, StatusReason::User)
            },
            Self::Failed(error) => StatusChanged {
                detail: Some(error.message.clone()),
                error: Some(error.clone()),
                ..to(TaskStatus::Failed, reason_of(error.error_type))
            },
        }
    }
}

/// The events that end or park a task; none when it stays as it is.
///
/// A paused task may be paused again for another reason: a pause by a person also stops what would have
/// resumed automatically.
pub fn transition(state: &TaskState, ending: &Ending) -> Vec<Event> {
    let change = ending.status_change(state);
    let stays = change.from == change.to && change.reason == state.reason;
    if stays || change.from.check_move(change.to).is_err() {
        return Vec::new();
    }
    vec![Event::StatusChanged(change)]
}

/// Why a task that failed with this error has failed, as its status says it.
const fn reason_of(error: ErrorType) -> StatusReason {
    use ErrorType::*;
    match error {
        Timeout | Hung => StatusReason::Timeout,
        Deadline => StatusReason::Deadline,
        MaxIterationsExceeded
        | DoomLoop
        | ModelUnreachable
        | ModelUnauthorized
        | ModelUnavailable
        | ModelRateLimited
        | ModelProtocol
        | ModelRefused
        | ContextLength
        | SandboxUnavailable
        | SandboxOutOfMemory
        | ContextServiceUnavailable
        | InvalidCommand
        | Overloaded
        | Storage
        | Workspace
        | Budget
        | Workflow
        | ContractUnmet
        | Internal => StatusReason::Error,
    }
}
