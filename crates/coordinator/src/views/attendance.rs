//! Whether anybody works on a task: what a person who watches it has to know.

use windlass_core::event::Driver;
use windlass_core::id::QuestionId;
use windlass_core::status::TaskStatus;

use super::{NextAction, TaskView};

/// Who works on a task that somebody watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attendance {
    /// A process drives it, or one will without a person: a service, or whoever waits for a clock or another task.
    Attended,
    /// It has ended, or was paused by a person or a limit. Its last result says why.
    AtRest,
    /// It waits for the answer to this question, and no process drives it.
    Asks(QuestionId),
    /// It could continue, and its process is gone, or none has begun.
    Abandoned,
    /// It waits for a service, and none runs.
    NoService,
}

impl TaskView {
    /// Who works on it, given whether a service runs.
    pub fn attendance(&self, has_service: bool) -> Attendance {
        let is_of_service = self.row.driver == Driver::Service;
        let by_service = match has_service {
            true => Attendance::Attended,
            false => Attendance::NoService,
        };
        match self.next_action() {
            NextAction::Follow { .. } => Attendance::Attended,
            NextAction::Answer { .. } | NextAction::RaiseBudget { .. }
                if self.driven_by.is_some() =>
            {
                Attendance::Attended
            }
            NextAction::Answer { question } | NextAction::RaiseBudget { question } => {
                Attendance::Asks(question)
            }
            NextAction::WaitForService => by_service,
            NextAction::WaitForTasks { .. }
            | NextAction::WaitForCheck { .. }
            | NextAction::WaitForModel { .. }
                if is_of_service =>
            {
                by_service
            }
            NextAction::WaitForTasks { .. }
            | NextAction::WaitForCheck { .. }
            | NextAction::WaitForModel { .. } => Attendance::Attended,
            NextAction::Resume if self.queue_place.is_some() => by_service,
            NextAction::Resume if self.row.status == TaskStatus::Paused => Attendance::AtRest,
            // A service takes over what was interrupted.
            NextAction::Resume if is_of_service && has_service => Attendance::Attended,
            NextAction::Resume => Attendance::Abandoned,
            NextAction::SendMessage
            | NextAction::Review
            | NextAction::Retry { .. }
            | NextAction::Nothing => Attendance::AtRest,
        }
    }
}
