//! Errors as a person reads them: what happened, to which thing, what to do next, and an exit code.

use std::io;

use crate::config::ConfigErrors;
use crate::next_action;
use windlass_coordinator::Error as Coordinated;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::commitment::Refusal;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::question::PERMISSION_OPTIONS;
use windlass_core::status::TaskStatus;

/// The command line, the configuration or the environment are wrong.
pub const USAGE: u8 = 2;
/// It waits for an answer.
pub const BLOCKED: u8 = 3;
/// It is paused, or nobody works on it.
pub const PAUSED: u8 = 4;
/// Its budget is used up: it waits for a person, or one has stopped it there.
pub const BUDGET: u8 = 6;
/// Completed at its deadline, with what there was until then.
pub const PARTIAL: u8 = 7;
/// Interrupted by Ctrl-C; the task is paused.
pub const INTERRUPTED: u8 = 130;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub struct Failure {
    /// What happened, with its causes.
    pub error: anyhow::Error,
    /// What to do next.
    pub hint: Option<String>,
    /// How the program ends.
    pub code: u8,
}

impl Failure {
    /// A usage error in plain words.
    pub fn usage(message: impl std::fmt::Display, hint: impl Into<String>) -> Self {
        Self { error: anyhow::anyhow!("{message}"), hint: Some(hint.into()), code: USAGE }
    }

    /// A part of the wiring that could not be set up.
    pub fn of_details(details: &ErrorDetails) -> Self {
        Self::usage(&details.message, next_action::hint(details).unwrap_or_default())
    }

    /// The process that drives the task, where that is why nothing was done.
    pub fn driver(&self) -> Option<u32> {
        self.error.downcast_ref::<Coordinated>()?.driving_process()
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
        let hint = cause.and_then(|cause| file_hint(cause.kind())).map(str::to_owned);
        Self { error, hint, code: USAGE }
    }
}

/// What to do about a file that cannot be used.
const fn file_hint(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            Some("check that path, and the directories above it")
        }
        io::ErrorKind::PermissionDenied => {
            Some("check who owns it, and who may read and write there")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            Some("its file system is read-only: use another place")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some space: `windlass prune` removes finished tasks")
        }
        // The error itself says what there is to know.
        _ => None,
    }
}

impl From<ConfigErrors> for Failure {
    fn from(mut errors: ConfigErrors) -> Self {
        let general = errors.0.first().and_then(|error| error.general_hint().map(str::to_owned));
        let hint = match errors.0.as_mut_slice() {
            // Printed once, as what to do next.
            [only] => only.hint.take().or(general),
            // Each error prints its own hint.
            _ => general,
        };
        Self { error: errors.into(), hint, code: USAGE }
    }
}

impl From<windlass_store::Error> for Failure {
    fn from(error: windlass_store::Error) -> Self {
        Coordinated::Store(error).into()
    }
}

impl From<Coordinated> for Failure {
    fn from(error: Coordinated) -> Self {
        Self { hint: Some(hint(&error)), error: error.into(), code: USAGE }
    }
}

/// What to do next. A new variant does not compile until someone has thought about it.
fn hint(error: &Coordinated) -> String {
    match error {
        Coordinated::EmptyGoal => "say what to do: `windlass run \"fix the build\"`".into(),
        Coordinated::Workspace { .. } => {
            "name a directory that exists and that you can write to with `--workspace DIR`".into()
        }
        Coordinated::SubAgent { root, .. } => {
            format!(
                "send it to its parent task: `windlass send {root} \"…\"`, or to it alone with `--sub-agent`"
            )
        }
        Coordinated::WorkspaceTaken { task, .. } => format!(
            "wait for it, stop it with `windlass cancel {task}`, add `--share` to work side by side, or only look, \
             with `--mode research`"
        ),
        Coordinated::Ended { task, status: TaskStatus::Failed } => {
            format!("try it again with `windlass retry {task}`")
        }
        Coordinated::NotEnded { task, .. } => {
            format!("send it a message: `windlass send {task} \"…\"`")
        }
        Coordinated::NotFailed { task, .. } => format!("resume it: `windlass resume {task}`"),
        Coordinated::TriedEnough { task, .. } => format!(
            "see `windlass show {task}`; start a new task with `windlass run`, and with more tries by \
             `agent.max_retries`"
        ),
        Coordinated::Ended { task, .. } => {
            format!("continue it with `windlass send {task} \"…\"`")
        }
        Coordinated::QuestionClosed { .. } => "see what is open with `windlass inbox`".into(),
        Coordinated::NothingAsked { .. } => "see `windlass inbox`".into(),
        Coordinated::SeveralQuestions { questions, .. } => {
            let ids: Vec<_> = questions.iter().map(|id| format!("`{id}`")).collect();
            format!("name the question: {}", ids.join(", "))
        }
        Coordinated::NotAnOption { options, .. }
            if options.iter().any(|option| option.starts_with("Raise by")) =>
        {
            "any amount will do, such as `2.50` or `$2`; numbers work too".into()
        }
        Coordinated::NotAnOption { options, .. }
            if options.iter().any(|option| option == PERMISSION_OPTIONS[1]) =>
        {
            "numbers work too, and `y` or `n`; `no, …` tells the agent what to do instead".into()
        }
        Coordinated::NotAnOption { .. } => "numbers work too; see `windlass inbox`".into(),
        Coordinated::Dependencies { .. } => "it can start when they are done".into(),
        Coordinated::Unhealthy { task, .. } => format!(
            "see `windlass doctor`; after `windlass doctor fix` or `heal`, `windlass resume {task}`"
        ),
        Coordinated::Workflow(_) => {
            "`windlass workflow list` shows what there is; `windlass workflow validate` checks it"
                .into()
        }
        Coordinated::MissingInput { input, .. } => format!("give it with `--input {input}=VALUE`"),
        Coordinated::RunElsewhere { .. } => "a run is found by its id everywhere".to_owned(),
        Coordinated::UnknownRun(_) => {
            "`windlass workflow status` lists the runs, `windlass workflow list` the workflows".to_owned()
        }
        Coordinated::NotARun { task } => {
            format!("see `windlass workflow status`, and `windlass show {task}`")
        }
        Coordinated::Equipment { task, details } if details.remedy == Some(Remedy::RepairPath) => {
            format!("make it usable again, or end the task with `windlass cancel {task}`")
        }
        Coordinated::Runner(details) | Coordinated::Equipment { details, .. } => {
            next_action::hint(details).unwrap_or_else(|| "see `windlass config`".into())
        }
        Coordinated::TooManySessions { .. } => {
            "let one of their tasks end, or raise `coordinator.max_sessions`".into()
        }
        Coordinated::TooManyWaiting { .. } => {
            "check that `windlass serve` runs, or raise `coordinator.max_waiting_tasks`".into()
        }
        Coordinated::Picture { .. } => {
            "name a PNG, JPEG, GIF or WebP file that is whole, or make it smaller first".into()
        }
        Coordinated::SessionBusy { .. } => "try again in a moment".into(),
        Coordinated::NothingActive { .. } => "name a task; see `windlass tasks`".into(),
        Coordinated::UnknownCommand { .. } => "`/help` lists the commands".into(),
        Coordinated::BadCommand { usage, .. } => format!("use it as `{usage}`"),
        Coordinated::NotAllowed { .. } => "ask an admin to do it".into(),
        Coordinated::Unrestricted => {
            "put `allow_unrestricted = true` under `[policy]` in your own configuration file".into()
        }
        Coordinated::Unusable { details } => next_action::hint(details)
            .unwrap_or_else(|| "see `windlass models` and `/skills`".into()),
        Coordinated::Working { .. } => "wait for it, or stop it with `/stop`".into(),
        Coordinated::NothingToRate { .. } => "let it do something first".into(),
        Coordinated::BadPlan(_) | Coordinated::PlanFile { .. } => {
            "correct the file, or approve what waits with `windlass trust`; `windlass plan validate` checks it, and \
             docs/plans.md describes it"
                .into()
        }
        Coordinated::NoPlan { named: None, .. } => {
            "activate one with `windlass plan activate PLAN`, or begin one with `windlass plan new NAME`"
                .into()
        }
        Coordinated::NoPlan { .. } => {
            "name a file, or a plan of `.windlass/plans`; `windlass plan list` lists them".into()
        }
        Coordinated::PlanNotActive { name } => {
            format!("activate it first: `windlass plan activate {name}`")
        }
        Coordinated::PlanChanged { .. } => {
            "activate it as it is now: `windlass plan activate`".into()
        }
        Coordinated::NotTrusted { .. } => {
            "look at it and approve it with `windlass trust`".into()
        }
        Coordinated::Snapshot(_) => {
            "a snapshot has failingTests, techDebt, openDecisions and nextTaskIntent".into()
        }
        Coordinated::MissingField { field } => format!("give it with `--{field}`"),
        Coordinated::IssueResolved { .. } => "see `windlass plan issues`".into(),
        Coordinated::CannotExecute { .. } => {
            "claim another with `windlass commitments claim ID`; `windlass commitments list --state open` shows them".into()
        }
        Coordinated::NothingClaimed { .. } => {
            "claim one with `windlass commitments claim ID`; `windlass commitments list` shows what is open".into()
        }
        Coordinated::BadTrigger { .. } => "correct it as it says, and send it again".into(),
        Coordinated::BadSchedule { .. } => "see `windlass schedule add --help`".into(),
        Coordinated::ScheduleEnded { .. } => "see `windlass schedule list`".into(),
        Coordinated::Bus(_) => "check that Redis runs and that `REDIS_URL` names it".into(),
        Coordinated::Agent(windlass_agent::Error::Store(error)) => store_hint(error),
        Coordinated::Agent(_) => {
            "the task is kept as it is; `windlass doctor` names what is damaged".into()
        }
        Coordinated::Job(_) => {
            "this is a bug in windlass; start it again, and the task resumes".into()
        }
        Coordinated::Store(error) => store_hint(error),
    }
}

fn store_hint(error: &windlass_store::Error) -> String {
    use windlass_store::Error;
    let elsewhere = "keep data elsewhere with `--data DIR` (WINDLASS_DATA)";
    match error {
        Error::Directory { .. } | Error::DirectoryNotWritable { .. } => elsewhere.into(),
        Error::ReadOnly { cause, .. } => {
            format!("make `{}` writable, or {elsewhere}", cause.display())
        }
        Error::NotADatabase { path } => format!(
            "move `{}` aside if it is not needed, or {elsewhere}; nothing was changed",
            path.display()
        ),
        Error::Corrupt { path, .. } => format!(
            "keep a copy of `{0}` and its `-wal` file; `sqlite3 {0} .recover` saves what can be read; \
             or {elsewhere}",
            path.display()
        ),
        Error::Emptied { path } => {
            format!("put a copy of `{0}` back; to start again, remove `{0}`", path.display())
        }
        Error::DamagedEvent { .. } => {
            "`windlass doctor` names every damaged task; other tasks are not affected".into()
        }
        Error::Newer { .. } => format!("use the newer windlass that wrote it, or {elsewhere}"),
        Error::Full { .. } => {
            "free some space and try again; resume a task that was running with `windlass resume`"
                .into()
        }
        Error::Busy { .. } => "see which program holds the database open, and try again".into(),
        Error::File { path, source } if source.kind() == io::ErrorKind::PermissionDenied => {
            format!("make `{}` readable and writable for you, or {elsewhere}", path.display())
        }
        Error::Database { .. }
        | Error::File { .. }
        | Error::Unreadable { .. }
        | Error::Malformed { .. } => "`windlass doctor` checks it; nothing was changed".into(),
        Error::Stopped => "the program is ending; run the command again".into(),
        Error::UnknownTask(_) => "list tasks with `windlass tasks`".into(),
        Error::UnknownSession(_) => "list them with `windlass sessions`".into(),
        Error::SessionMoved { .. } => "run the command again".into(),
        Error::UnknownIssue(_) => "list them with `windlass plan issues`".into(),
        Error::UnknownCommitment(_) => "list them with `windlass commitments list`".into(),
        Error::Refused(refusal) => refusal_hint(refusal),
        Error::UnknownSchedule(_) => "list them with `windlass schedule list`".into(),
        Error::TooManyRules { .. } => {
            "revoke some with `windlass permissions revoke N`; see `windlass permissions`".into()
        }
        Error::TooManyPictures { .. } => {
            "remove old tasks with their pictures: `windlass prune`".into()
        }
        Error::TooManySchedules { .. } => {
            "remove some with `windlass schedule remove`; see `windlass schedule list`".into()
        }
        Error::UnknownQuestion(_) | Error::QuestionClosed { .. } => {
            "see what waits for you with `windlass inbox`".into()
        }
        Error::Ambiguous { .. } => "give more of the id".into(),
        Error::TaskExists(task) => format!("see `windlass show {task}`"),
        Error::Driven { task, .. } => format!("watch and steer it with `windlass attach {task}`"),
        Error::Superseded { task } => {
            format!("another process drives it now; watch it with `windlass attach {task}`")
        }
        Error::WrongTree { root, .. } => format!("drive the whole tree: `windlass resume {root}`"),
        Error::StreamInUse(_) | Error::IllegalMove { .. } | Error::DuplicateCreation(_) => {
            "this is a bug in windlass; the journal is unchanged".into()
        }
        Error::EventTooLarge { .. } => "the task is kept as it is; see `windlass show`".into(),
        Error::TaskEnded { task, .. } => {
            format!("continue it with `windlass send {task} \"…\"`")
        }
        Error::AlreadyAnswered { .. } => "the first answer counts".into(),
        Error::MailPending(task) => format!("resume it: `windlass resume {task}`"),
        Error::MailboxFull { task, .. } => {
            format!("let it catch up, or cancel it: `windlass cancel {task}`")
        }
        Error::StreamFull { .. } => "check that `windlass serve` runs and keeps up".into(),
        Error::MessageTooLarge { .. } => {
            "put the text into a file of the workspace and name it".into()
        }
        Error::BadOutputId(_) | Error::UnknownOutput(_) => {
            "`windlass logs TASK` names them; whole outputs are kept for 7 days".into()
        }
    }
}

/// What to do about an order that the ledger refuses.
fn refusal_hint(refusal: &Refusal) -> String {
    match refusal {
        Refusal::AlreadyClaimed { id, .. } => {
            format!(
                "choose another, or take the claim away with `windlass commitments release {id}`"
            )
        }
        Refusal::WrongState { id, .. } => format!(
            "the order is claim, capture, submit, approve or reject; `windlass commitments show {id}` shows \
             its state"
        ),
        Refusal::NotTheClaimer { id, .. } => {
            format!("see who holds it with `windlass commitments show {id}`")
        }
        Refusal::NoEvidence { id } => {
            format!(
                "add evidence first: `windlass commitments capture {id} --type file --path FILE`"
            )
        }
        Refusal::OwnWork { id, .. } => format!(
            "another person judges it, or an agent: `windlass run --role auditor \"audit {id}\"`"
        ),
        Refusal::TooMuchEvidence { id } => format!("submit it: `windlass commitments submit {id}`"),
        Refusal::Empty { .. } | Refusal::TooLong { .. } | Refusal::IncompleteEvidence { .. } => {
            "see `windlass commitments --help`".into()
        }
    }
}

/// One code per outcome, and always true (`docs/design.md` §12).
pub fn exit_code(result: &TaskResult) -> u8 {
    let error = result.error_details.as_ref().map(|error| error.error_type);
    match result.status {
        ResultStatus::Completed if result.partial => PARTIAL,
        ResultStatus::Completed => 0,
        ResultStatus::Failed if error == Some(ErrorType::Budget) => BUDGET,
        ResultStatus::Failed => 1,
        ResultStatus::BlockedUser => BLOCKED,
        ResultStatus::Paused => PAUSED,
        ResultStatus::Cancelled => 5,
    }
}
