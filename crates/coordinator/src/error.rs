//! What can go wrong between a surface and a task, one variant per thing a person would do next.

use std::path::PathBuf;

use windlass_core::error::ErrorDetails;
use windlass_core::id::{QuestionId, ScheduleId, SessionId, TaskId};
use windlass_core::question::Answer;
use windlass_core::status::TaskStatus;
use windlass_core::trigger::TriggerStream;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to do.
    #[error("the goal is empty")]
    EmptyGoal,
    /// Sub-agents take answers and control, nothing else (ES-242).
    #[error("`{task}` is a sub-agent, which takes no messages")]
    SubAgent {
        task: TaskId,
        /// The task that a person talks to.
        root: TaskId,
    },
    /// The workspace cannot be used.
    #[error("workspace `{}` {problem}", path.display())]
    Workspace {
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Another live task works in the same directory.
    #[error("`{task}` already works in `{}`", path.display())]
    WorkspaceTaken {
        /// The other task.
        task: TaskId,
        path: PathBuf,
    },
    /// The task has ended.
    #[error("`{task}` is already {status}")]
    Ended {
        task: TaskId,
        /// How it ended.
        status: TaskStatus,
    },
    /// Only an ended task takes a follow-up.
    #[error("`{task}` is {status}; a follow-up comes after a task has ended")]
    NotEnded {
        task: TaskId,
        /// Where it stands.
        status: TaskStatus,
    },
    /// Only a failed task can be retried.
    #[error("`{task}` is {status}, not failed")]
    NotFailed {
        task: TaskId,
        /// Where it stands.
        status: TaskStatus,
    },
    /// The task was retried as often as it may be.
    #[error("`{task}` has no retries left (limit {times})")]
    TriedEnough { task: TaskId, times: u32 },
    /// The question is not open.
    #[error("question `{question}` is no longer open")]
    QuestionClosed { question: QuestionId },
    /// A task was named where a question was meant, and it asks nothing.
    #[error("`{task}` has no open question")]
    NothingAsked { task: TaskId },
    /// A task was named where a question was meant, and it asks several.
    #[error("`{task}` has {} open questions", questions.len())]
    SeveralQuestions {
        task: TaskId,
        /// What it and the agents below it ask.
        questions: Vec<QuestionId>,
    },
    /// The answer is not one of those offered.
    #[error("`{given}` is not an answer; choose one of: {}", options.join(", "))]
    NotAnOption {
        /// What was given.
        given: String,
        /// What is offered.
        options: Vec<String>,
    },
    /// Tasks that must end first have not.
    #[error("`{task}` waits for {}", blockers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Dependencies {
        task: TaskId,
        /// What it waits for.
        blockers: Vec<TaskId>,
    },
    /// The agent could not be made.
    #[error("`{task}` cannot be run: {}", details.message)]
    Equipment { task: TaskId, details: Box<ErrorDetails> },
    /// A user has as many sessions with live tasks as one may have (ES-091).
    #[error("`{user}` already has {limit} sessions with live tasks")]
    TooManySessions {
        user: String,
        /// How many one may have.
        limit: usize,
    },
    /// As many tasks wait to be started as may wait.
    #[error("{limit} {} already waiting to start", if *limit == 1 { "task is" } else { "tasks are" })]
    TooManyWaiting {
        /// How many may.
        limit: usize,
    },
    /// Another process holds the session's lease.
    #[error("another process is working on `{session}`")]
    SessionBusy { session: SessionId },
    /// A session was named where a task was meant, and it has none.
    #[error("`{session}` has no active task")]
    NothingActive { session: SessionId },
    /// A trigger that is not valid; another delivery would not be either.
    #[error("`{stream}` is not valid: {problem}")]
    BadTrigger {
        /// Where it arrived.
        stream: TriggerStream,
        /// What is wrong with it.
        problem: String,
    },
    /// A schedule that cannot be kept.
    #[error("the schedule cannot be kept: {problem}")]
    BadSchedule {
        /// What is wrong with it.
        problem: String,
    },
    /// The schedule has ended.
    #[error("schedule `{schedule}` has ended")]
    ScheduleEnded { schedule: ScheduleId },
    /// The bus does not answer.
    #[error("the bus does not answer")]
    Bus(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A part of the service panicked.
    #[error("a job of the service failed: {0}")]
    Job(String),
    /// The journal could not be read or written.
    #[error(transparent)]
    Store(#[from] windlass_store::Error),
    /// The loop could not continue.
    #[error(transparent)]
    Agent(#[from] windlass_agent::Error),
}

impl Error {
    /// Whether somebody else has answered the question or ended its task meanwhile.
    pub fn is_settled_elsewhere(&self) -> bool {
        use windlass_store::Error as Stored;
        matches!(self, Self::Store(Stored::AlreadyAnswered { .. } | Stored::TaskEnded { .. }))
    }

    /// The answer that was given before this one.
    pub fn earlier_answer(&self) -> Option<Answer> {
        match self {
            Self::Store(windlass_store::Error::AlreadyAnswered { by, text, at, .. }) => {
                Some(Answer { text: text.clone(), by: by.clone(), at: *at })
            }
            _ => None,
        }
    }

    /// The process that drives the task, where that is why nothing was done.
    pub fn driving_process(&self) -> Option<u32> {
        match self {
            Self::Store(windlass_store::Error::Driven { pid, .. }) => Some(*pid),
            _ => None,
        }
    }

    /// Whether the same again may work later. What may not is answered once and not delivered again.
    pub fn is_transient(&self) -> bool {
        use windlass_store::Error as Stored;
        match self {
            Self::SessionBusy { .. } | Self::Bus(_) => true,
            Self::Store(error) => matches!(
                error,
                Stored::Full { .. }
                    | Stored::Busy { .. }
                    | Stored::Database { .. }
                    | Stored::File { .. }
                    | Stored::Stopped
                    | Stored::Driven { .. }
                    | Stored::Superseded { .. }
                    | Stored::MailboxFull { .. }
                    | Stored::StreamFull { .. }
            ),
            Self::Agent(_) | Self::Dependencies { .. } => true,
            Self::Equipment { details, .. } => details.retryable,
            Self::EmptyGoal
            | Self::SubAgent { .. }
            | Self::Workspace { .. }
            | Self::WorkspaceTaken { .. }
            | Self::Ended { .. }
            | Self::NotEnded { .. }
            | Self::NotFailed { .. }
            | Self::TriedEnough { .. }
            | Self::QuestionClosed { .. }
            | Self::NothingAsked { .. }
            | Self::SeveralQuestions { .. }
            | Self::NotAnOption { .. }
            | Self::TooManySessions { .. }
            | Self::TooManyWaiting { .. }
            | Self::NothingActive { .. }
            | Self::BadTrigger { .. }
            | Self::BadSchedule { .. }
            | Self::ScheduleEnded { .. }
            | Self::Job(_) => false,
        }
    }
}
