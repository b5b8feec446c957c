//! A task's status, why it has it, and which moves are legal.

use crate::string_enum;

string_enum! {
    /// The state of a task in its lifecycle (MS-130). `done`, `failed` and `cancelled` are final.
    TaskStatus ("task status") {
        Todo = "todo",
        /// An agent is working.
        Running = "running",
        /// Checks run on the finished work. Completion contracts produce it.
        Verifying = "verifying",
        /// A person or an auditor reviews the finished work. Completion contracts produce it.
        Reviewing = "reviewing",
        /// Waiting for a person, a budget or another task.
        Blocked = "blocked",
        /// Parked by a person, a schedule or between messages.
        Paused = "paused",
        /// About to run again after a failure.
        Retrying = "retrying",
        Done = "done",
        Failed = "failed",
        /// Stopped for good by a person.
        Cancelled = "cancelled",
    }
}

string_enum! {
    /// Why a task has its status.
    StatusReason ("status reason") {
        /// A person said so.
        User = "user",
        /// The agent finished.
        Finished = "finished",
        /// A question is open.
        Question = "question",
        /// The cost limit was reached.
        Budget = "budget",
        /// The active-time limit was reached.
        Timeout = "timeout",
        /// The deadline passed.
        Deadline = "deadline",
        /// Something went wrong.
        Error = "error",
        /// Another task has to end first. Nothing produces it: a task with unfinished blockers stays `todo`. It is kept
        /// because the wire contract names it (C-02).
        Dependency = "dependency",
        /// Waiting for the next scheduled check.
        Schedule = "schedule",
        /// Work could not be merged. Worktrees produce it.
        MergeConflict = "merge_conflict",
        /// A chat waits for the next message.
        AwaitingMessage = "awaiting_message",
        /// The context is full and its notes are saved; a person decides whether it continues.
        ContextFull = "context_full",
        /// The model server refuses requests for a while (ES-378).
        RateLimited = "rate_limited",
        /// The model server is gone: it refuses connections, breaks them off, or answers with errors of its own.
        ModelOutage = "model_outage",
        /// There is no space left to journal what it does.
        DiskFull = "disk_full",
        /// The process is shutting down.
        Shutdown = "shutdown",
    }
}

/// A move that the lifecycle does not have.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("a task that is `{from}` cannot become `{to}`")]
pub struct IllegalMove {
    /// The status it has.
    pub from: TaskStatus,
    /// The status that was wanted.
    pub to: TaskStatus,
}

impl StatusReason {
    /// Whether a task that is blocked for this reason counts as failed on the wire. Any other block waits for a person.
    pub const fn is_failure_of_blocked_task(self) -> bool {
        match self {
            Self::Timeout | Self::Error => true,
            Self::User
            | Self::Finished
            | Self::Question
            | Self::Budget
            | Self::Deadline
            | Self::Dependency
            | Self::Schedule
            | Self::MergeConflict
            | Self::AwaitingMessage
            | Self::ContextFull
            | Self::RateLimited
            | Self::ModelOutage
            | Self::DiskFull
            | Self::Shutdown => false,
        }
    }

    /// Whether a task that is paused for this reason resumes automatically at a time of its own.
    pub const fn resumes_at_a_time(self) -> bool {
        match self {
            Self::RateLimited | Self::ModelOutage => true,
            Self::User
            | Self::Finished
            | Self::Question
            | Self::Budget
            | Self::Timeout
            | Self::Deadline
            | Self::Error
            | Self::Dependency
            | Self::Schedule
            | Self::MergeConflict
            | Self::AwaitingMessage
            | Self::ContextFull
            | Self::DiskFull
            | Self::Shutdown => false,
        }
    }
}

impl TaskStatus {
    /// Whether nothing but an explicit retry can follow.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }

    /// Checks one move of the lifecycle (ES-083…089).
    pub fn check_move(self, to: Self) -> Result<(), IllegalMove> {
        use TaskStatus::*;
        let legal = match self {
            Todo => matches!(to, Running | Blocked | Paused | Cancelled | Failed),
            Running => {
                matches!(to, Verifying | Reviewing | Blocked | Paused | Done | Failed | Cancelled)
            }
            Verifying => {
                matches!(to, Running | Reviewing | Blocked | Paused | Done | Failed | Cancelled)
            }
            Reviewing => matches!(to, Running | Blocked | Paused | Done | Failed | Cancelled),
            Blocked => matches!(to, Running | Paused | Done | Failed | Cancelled),
            // For another reason: what would resume automatically waits for a person then.
            Paused => matches!(to, Running | Blocked | Paused | Done | Failed | Cancelled),
            Retrying => matches!(to, Running | Blocked | Paused | Failed | Cancelled),
            Failed => matches!(to, Retrying),
            Done | Cancelled => false,
        };
        if legal { Ok(()) } else { Err(IllegalMove { from: self, to }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legal_moves_are_these_and_no_others() {
        let table: String = TaskStatus::ALL
            .iter()
            .map(|from| {
                let to: Vec<_> = TaskStatus::ALL
                    .iter()
                    .filter(|to| from.check_move(**to).is_ok())
                    .map(|to| to.as_str())
                    .collect();
                format!("{from:10} -> {}", to.join(" ")).trim_end().to_owned() + "\n"
            })
            .collect();
        insta::assert_snapshot!(table, @r"
        todo       -> running blocked paused failed cancelled
        running    -> verifying reviewing blocked paused done failed cancelled
        verifying  -> running reviewing blocked paused done failed cancelled
        reviewing  -> running blocked paused done failed cancelled
        blocked    -> running paused done failed cancelled
        paused     -> running blocked paused done failed cancelled
        retrying   -> running blocked paused failed cancelled
        done       ->
        failed     -> retrying
        cancelled  ->
        ");
    }

    /// ES-089
    #[test]
    fn an_illegal_move_names_both_states() {
        let error = TaskStatus::Done.check_move(TaskStatus::Running).unwrap_err();
        assert_eq!(error.to_string(), "a task that is `done` cannot become `running`");
    }
}
