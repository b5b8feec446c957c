//! What an error is to a program: one of a few classes, and a name that never changes.

use windlass_core::commitment::Refusal;
use windlass_store::Error as Stored;

use crate::Error;

/// What a program can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Send something else: this is not valid.
    Invalid,
    /// Name something that exists.
    Unknown,
    /// Nothing: whoever sends it may not.
    Forbidden,
    /// Look again: the thing has moved on, or somebody else was first.
    Conflict,
    /// Send less at once.
    TooLarge,
    /// Wait until there is room.
    Limited,
    /// Try again later: a part that is needed is not there now.
    Unavailable,
    /// Nothing: it is ours to repair.
    Internal,
}

impl Error {
    /// The class of the error and its name; names are part of the wire contract.
    pub fn code(&self) -> (ErrorClass, &'static str) {
        use ErrorClass::{Conflict, Forbidden, Internal, Invalid, Limited, Unavailable, Unknown};
        match self {
            Self::EmptyGoal => (Invalid, "empty-text"),
            Self::SubAgent { .. } => (Conflict, "sub-agent"),
            Self::Workspace { .. } => (Invalid, "bad-workspace"),
            Self::WorkspaceTaken { .. } => (Conflict, "workspace-taken"),
            Self::Ended { .. } => (Conflict, "task-ended"),
            Self::NotEnded { .. } => (Conflict, "task-not-ended"),
            Self::NotFailed { .. } => (Conflict, "task-not-failed"),
            Self::TriedEnough { .. } => (Conflict, "no-retries-left"),
            Self::QuestionClosed { .. } => (Conflict, "question-closed"),
            Self::NothingAsked { .. } => (Conflict, "nothing-asked"),
            Self::SeveralQuestions { .. } => (Conflict, "several-questions"),
            Self::NotAnOption { .. } => (Invalid, "not-an-option"),
            Self::Dependencies { .. } => (Conflict, "waits-for-tasks"),
            Self::Workflow(_) | Self::MissingInput { .. } => (Invalid, "bad-workflow"),
            Self::Runner(_) => (Invalid, "no-runner"),
            Self::UnknownRun(_) | Self::RunElsewhere { .. } => (Unknown, "unknown-run"),
            Self::NotARun { .. } => (Unknown, "not-a-run"),
            Self::Equipment { .. } => (Unavailable, "not-equipped"),
            Self::Unhealthy { .. } => (Unavailable, "unhealthy"),
            Self::TooManySessions { .. } => (Limited, "too-many-sessions"),
            Self::TooManyWaiting { .. } => (Limited, "too-many-tasks"),
            Self::SessionBusy { .. } => (Unavailable, "session-busy"),
            Self::NothingActive { .. } => (Conflict, "nothing-active"),
            Self::UnknownCommand { .. } => (Unknown, "unknown-command"),
            Self::BadCommand { .. } => (Invalid, "bad-command"),
            Self::NotAllowed { .. } => (Forbidden, "not-allowed"),
            Self::Unrestricted => (Forbidden, "needs-opt-in"),
            Self::Unusable { .. } => (Invalid, "not-usable"),
            Self::Working { .. } => (Conflict, "task-working"),
            Self::NothingToRate { .. } => (Conflict, "nothing-to-rate"),
            Self::BadPlan(_) => (Invalid, "bad-plan"),
            Self::PlanFile { .. } => (Invalid, "bad-plan-file"),
            Self::NoPlan { .. } => (Unknown, "unknown-plan"),
            Self::PlanNotActive { .. } => (Conflict, "plan-not-active"),
            Self::PlanChanged { .. } => (Conflict, "plan-changed"),
            Self::NotTrusted { .. } => (Conflict, "not-trusted"),
            Self::Snapshot(_) => (Invalid, "bad-snapshot"),
            Self::MissingField { .. } => (Invalid, "missing-field"),
            Self::IssueResolved { .. } => (Conflict, "issue-resolved"),
            Self::NothingClaimed { .. } | Self::CannotExecute { .. } => {
                (Conflict, "nothing-claimed")
            }
            Self::BadTrigger { .. } => (Invalid, "bad-request"),
            Self::BadSchedule { .. } => (Invalid, "bad-schedule"),
            Self::ScheduleEnded { .. } => (Conflict, "schedule-ended"),
            Self::Picture { .. } => (Invalid, "bad-picture"),
            Self::Bus(_) => (Unavailable, "bus-unavailable"),
            Self::Job(_) | Self::Agent(_) => (Internal, "internal"),
            Self::Store(error) => code_of_store(error),
        }
    }
}

fn code_of_store(error: &Stored) -> (ErrorClass, &'static str) {
    use ErrorClass::{Conflict, Internal, Invalid, Limited, TooLarge, Unavailable, Unknown};
    match error {
        Stored::UnknownTask(_) => (Unknown, "unknown-task"),
        Stored::UnknownSession(_) => (Unknown, "unknown-session"),
        Stored::SessionMoved { .. } => (Unavailable, "session-moved"),
        Stored::UnknownQuestion(_) => (Unknown, "unknown-question"),
        Stored::UnknownCommitment(_) => (Unknown, "unknown-commitment"),
        Stored::Refused(
            Refusal::Empty { .. } | Refusal::TooLong { .. } | Refusal::IncompleteEvidence { .. },
        ) => (Invalid, "bad-commitment"),
        Stored::Refused(_) => (Conflict, "commitment-refused"),
        Stored::UnknownSchedule(_) => (Unknown, "unknown-schedule"),
        Stored::UnknownIssue(_) => (Unknown, "unknown-issue"),
        Stored::UnknownOutput(_) | Stored::BadOutputId(_) => (Unknown, "unknown-output"),
        Stored::Ambiguous { .. } => (Invalid, "ambiguous-id"),
        Stored::TaskExists(_) => (Conflict, "task-exists"),
        Stored::Driven { .. } => (Conflict, "task-driven"),
        Stored::TaskEnded { .. } => (Conflict, "task-ended"),
        Stored::AlreadyAnswered { .. } => (Conflict, "already-answered"),
        Stored::QuestionClosed { .. } => (Conflict, "question-closed"),
        Stored::MailPending(_) => (Conflict, "unread-mail"),
        Stored::TooManySchedules { .. } => (Limited, "too-many-schedules"),
        Stored::TooManyPictures { .. } => (Limited, "too-many-pictures"),
        Stored::TooManyRules { .. } => (Limited, "too-many-rules"),
        Stored::MailboxFull { .. } => (Limited, "mailbox-full"),
        Stored::StreamFull { .. } => (Limited, "stream-full"),
        Stored::MessageTooLarge { .. } | Stored::EventTooLarge { .. } => (TooLarge, "too-large"),
        Stored::Full { .. } => (Unavailable, "disk-full"),
        Stored::Busy { .. } => (Unavailable, "database-busy"),
        Stored::Stopped | Stored::Superseded { .. } => (Unavailable, "stopping"),
        Stored::ReadOnly { .. } => (Unavailable, "read-only"),
        Stored::DamagedEvent { .. } => (Internal, "damaged-event"),
        Stored::Directory { .. }
        | Stored::DirectoryNotWritable { .. }
        | Stored::NotADatabase { .. }
        | Stored::Corrupt { .. }
        | Stored::Emptied { .. }
        | Stored::Newer { .. }
        | Stored::Database { .. }
        | Stored::File { .. }
        | Stored::Unreadable { .. }
        | Stored::Malformed { .. }
        | Stored::WrongTree { .. }
        | Stored::StreamInUse(_)
        | Stored::IllegalMove { .. }
        | Stored::DuplicateCreation(_) => (Internal, "internal"),
    }
}
