//! What can go wrong between a surface and a task, one variant per thing a person would do next.

use std::path::PathBuf;

use windlass_core::error::ErrorDetails;
use windlass_core::id::{CommitmentId, IssueId, QuestionId, ScheduleId, SessionId, TaskId};
use windlass_core::planning::Resolution;
use windlass_core::question::Answer;
use windlass_core::status::TaskStatus;
use windlass_model::picture::PictureError;

use crate::trigger::TriggerStream;

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
    /// A workflow, its spells or its inputs are not usable.
    #[error("{0}")]
    Workflow(String),
    /// A runner that is not configured, or not installed.
    #[error("{}", .0.message)]
    Runner(Box<ErrorDetails>),
    #[error("workflow `{workflow}` needs the input `{input}`")]
    MissingInput { workflow: String, input: String },
    /// Neither a run nor a workflow that has run has this name.
    #[error("there is no run `{0}`, and no workflow of that name has run")]
    UnknownRun(String),
    /// Runs of a workflow of this name belong to other projects.
    #[error("no run of `{workflow}` was started in this project; `{run}` was in `{directory}`")]
    RunElsewhere { workflow: String, run: TaskId, directory: String },
    /// The task is not a run of a workflow.
    #[error("`{task}` is not a run of a workflow")]
    NotARun { task: TaskId },
    /// The agent could not be made.
    #[error("`{task}` cannot be run: {}", details.message)]
    Equipment { task: TaskId, details: Box<ErrorDetails> },
    /// The installation is not sound enough to run it.
    #[error("`{task}` was not started: {problem}")]
    Unhealthy {
        task: TaskId,
        /// What the health check found.
        problem: String,
    },
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
    /// A session was named where a task was meant, and the session has no task.
    #[error("`{session}` has no active task")]
    NothingActive { session: SessionId },
    /// A slash command that does not exist.
    #[error("`/{name}` is not a command{}", nearest.as_ref().map(|near| format!("; did you mean `/{near}`?")).unwrap_or_default())]
    UnknownCommand {
        name: String,
        /// The command that is meant, probably.
        nearest: Option<String>,
    },
    /// A slash command that is not used as it can be.
    #[error("{problem}")]
    BadCommand {
        problem: String,
        /// How it is used.
        usage: String,
    },
    /// What is somebody else's, or everybody's, is not for whoever may change only what is theirs.
    #[error("{what}, which is for admins")]
    NotAllowed {
        /// What is not theirs.
        what: String,
    },
    /// `unrestricted` needs the user's opt-in.
    #[error("`unrestricted` is not allowed until you opt in")]
    Unrestricted,
    /// A model or a skill that cannot be used.
    #[error("{}", details.message)]
    Unusable { details: Box<ErrorDetails> },
    /// Something cannot be done while a task works.
    #[error("`{task}` is working")]
    Working { task: TaskId },
    /// There is no task that could be rated.
    #[error("`{session}` has done nothing that could be rated")]
    NothingToRate { session: SessionId },
    /// A plan or a file of it is not valid.
    #[error(transparent)]
    BadPlan(#[from] windlass_plan::Problems),
    /// A file of a plan cannot be read.
    #[error("`{}` {problem}", path.display())]
    PlanFile {
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no such plan, or none is active.
    #[error("{}", match named {
        Some(named) => format!("there is no plan `{named}` in `{}`", directory.display()),
        None => format!("no plan is active in `{}`", directory.display()),
    })]
    NoPlan {
        directory: PathBuf,
        /// What it was called by.
        named: Option<String>,
    },
    /// Another plan of the project is the active one.
    #[error("plan `{name}` is not the active one")]
    PlanNotActive { name: String },
    /// A plan is not as it was activated.
    #[error("`{}` has changed since it was activated", path.display())]
    PlanChanged { path: PathBuf },
    /// A project's file sets what it may set only when a person has approved it.
    #[error("`{}` is not approved, and sets: {sets}", path.display())]
    NotTrusted {
        path: PathBuf,
        /// What it sets.
        sets: String,
    },
    /// A snapshot is not complete, or cannot be read or written.
    #[error(transparent)]
    Snapshot(#[from] windlass_plan::snapshot_file::Error),
    /// Something was left out that is needed.
    #[error("`{field}` is missing or empty")]
    MissingField { field: &'static str },
    /// The issue was resolved before.
    #[error("`{issue}` is already resolved: {resolution}")]
    IssueResolved { issue: IssueId, resolution: Resolution },
    /// An executor works on a commitment that is claimed, and none is (AX-056).
    #[error("Executor mode needs a claimed commitment, and nothing is claimed for `{session}`")]
    NothingClaimed { session: SessionId },
    /// An executor works on a commitment that is claimed, and this one cannot be worked on here.
    #[error("Executor mode needs a claimed commitment of this project, and `{id}` {problem}")]
    CannotExecute { id: CommitmentId, problem: String },
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
    /// A file that was named as a picture cannot be shown.
    #[error("`{name}` {problem}")]
    Picture {
        /// What it is called.
        name: String,
        /// What is wrong with it. Not its source: the text above says all of it.
        problem: PictureError,
    },
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
        let Self::Store(windlass_store::Error::AlreadyAnswered { by, text, at, .. }) = self else {
            return None;
        };
        Some(Answer { text: text.clone(), by: by.clone(), at: *at })
    }

    /// The process that drives the task, where that is why nothing was done.
    pub fn driving_process(&self) -> Option<u32> {
        let Self::Store(windlass_store::Error::Driven { pid, .. }) = self else { return None };
        Some(*pid)
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
                    | Stored::SessionMoved { .. }
                    | Stored::MailboxFull { .. }
                    | Stored::StreamFull { .. }
            ),
            Self::Agent(_) | Self::Dependencies { .. } => true,
            Self::Equipment { details, .. } => details.retryable,
            Self::Unhealthy { .. } => false,
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
            | Self::Workflow(_)
            | Self::Runner(_)
            | Self::MissingInput { .. }
            | Self::UnknownRun(_)
            | Self::RunElsewhere { .. }
            | Self::NotARun { .. }
            | Self::TooManySessions { .. }
            | Self::TooManyWaiting { .. }
            | Self::NothingActive { .. }
            | Self::UnknownCommand { .. }
            | Self::BadCommand { .. }
            | Self::NotAllowed { .. }
            | Self::Unrestricted
            | Self::Unusable { .. }
            | Self::Working { .. }
            | Self::NothingToRate { .. }
            | Self::BadPlan(_)
            | Self::PlanFile { .. }
            | Self::NoPlan { .. }
            | Self::PlanNotActive { .. }
            | Self::PlanChanged { .. }
            | Self::NotTrusted { .. }
            | Self::Snapshot(_)
            | Self::MissingField { .. }
            | Self::IssueResolved { .. }
            | Self::NothingClaimed { .. }
            | Self::CannotExecute { .. }
            | Self::BadTrigger { .. }
            | Self::BadSchedule { .. }
            | Self::ScheduleEnded { .. }
            | Self::Picture { .. }
            | Self::Job(_) => false,
        }
    }
}
