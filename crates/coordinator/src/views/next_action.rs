//! What comes next for a task: what a person can do, or what it waits for (MS-125, MS-128).

use jiff::{Timestamp, Zoned};
use windlass_core::error::Remedy;
use windlass_core::event::Driver;
use windlass_core::id::QuestionId;
use windlass_core::question::QuestionKind;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{QuestionRow, TaskRow};

/// What comes next for a task: what a person can do, or what it waits for. An open question comes first.
/// Each surface words it in one exhaustive match.
#[derive(Clone, Debug, PartialEq)]
pub enum NextAction {
    /// Answer what it or an agent below it asks.
    Answer {
        /// The oldest open question.
        question: QuestionId,
    },
    /// Raise its budget, or stop it: that is what it asks.
    RaiseBudget { question: QuestionId },
    /// Wait until other tasks are done.
    WaitForTasks { count: usize },
    /// Wait until a service starts it.
    WaitForService,
    /// Wait until its schedule checks on it.
    WaitForCheck { at: Zoned },
    /// Wait until its model's server may be asked again.
    WaitForModel { at: Zoned },
    /// Look at what it did, and ask for more or resume it.
    SendMessage,
    /// Resume it: it is stopped until a person does.
    Resume,
    /// Try it again.
    Retry {
        /// What to do first.
        remedy: Option<Remedy>,
    },
    /// Resume it: somebody has judged what it did.
    Review,
    /// Follow it: a process drives it.
    Follow {
        /// When it must be finished.
        deadline: Option<Timestamp>,
    },
    /// It has ended.
    Nothing,
}

impl NextAction {
    /// What comes next for a task, given whether a process drives it, how many of the tasks it waits for are
    /// not done, and what is asked at or below it.
    pub(super) fn of(
        row: &TaskRow,
        is_driven: bool,
        open_blockers: usize,
        questions: &[QuestionRow],
    ) -> Self {
        if let Some(first) = questions.first() {
            let question = first.question.id;
            return match first.question.kind {
                QuestionKind::Budget => Self::RaiseBudget { question },
                QuestionKind::Permission
                | QuestionKind::AskUser
                | QuestionKind::Plan
                | QuestionKind::Review
                | QuestionKind::Runner
                | QuestionKind::Repair => Self::Answer { question },
            };
        }
        match row.status {
            TaskStatus::Done | TaskStatus::Cancelled => Self::Nothing,
            TaskStatus::Failed if row.retry_count < row.max_retries => {
                Self::Retry { remedy: row.error.as_ref().and_then(|error| error.remedy) }
            }
            TaskStatus::Failed => Self::Nothing,
            _ if is_driven => Self::Follow { deadline: row.deadline },
            TaskStatus::Todo if open_blockers > 0 => Self::WaitForTasks { count: open_blockers },
            TaskStatus::Todo if row.driver == Driver::Service => Self::WaitForService,
            TaskStatus::Paused => Self::of_paused(row),
            TaskStatus::Reviewing => Self::Review,
            TaskStatus::Todo
            | TaskStatus::Running
            | TaskStatus::Verifying
            | TaskStatus::Blocked
            | TaskStatus::Retrying => Self::Resume,
        }
    }

    fn of_paused(row: &TaskRow) -> Self {
        let at = row.next_action_at.clone();
        match row.reason {
            StatusReason::Schedule => at.map_or(Self::Resume, |at| Self::WaitForCheck { at }),
            StatusReason::RateLimited | StatusReason::ModelOutage => {
                at.map_or(Self::Resume, |at| Self::WaitForModel { at })
            }
            StatusReason::AwaitingMessage => Self::SendMessage,
            StatusReason::User
            | StatusReason::Finished
            | StatusReason::Question
            | StatusReason::Budget
            | StatusReason::Timeout
            | StatusReason::Deadline
            | StatusReason::Error
            | StatusReason::Dependency
            | StatusReason::MergeConflict
            | StatusReason::ContextFull
            | StatusReason::DiskFull
            | StatusReason::Shutdown => Self::Resume,
        }
    }
}
