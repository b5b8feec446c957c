//! Errors as a person meets them: what happened, to which thing, what to do next, and an exit code.

use windlass_coordinator::Error as Coordinated;
use windlass_core::command::{ResultStatus, TaskResult};

/// The command line, the configuration or the surroundings are wrong.
pub const USAGE: u8 = 2;
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
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self { error, hint: None, code: USAGE }
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
        Coordinated::EmptyGoal => "say what is to be done: `windlass run \"fix the build\"`".into(),
        Coordinated::Workspace { .. } => {
            "name a directory that exists and that you can write to with `--workspace DIR`".into()
        }
        Coordinated::WorkspaceTaken { task, .. } => format!(
            "wait for it, stop it with `windlass cancel {task}`, or add `--share` to work side by side"
        ),
        Coordinated::Ended { task, .. } => {
            format!("see `windlass result {task}`; start anew with `windlass run`")
        }
        Coordinated::QuestionClosed { .. } => "see what is open with `windlass inbox`".into(),
        Coordinated::NotAnOption { .. } => "answer with one of these words".into(),
        Coordinated::Dependencies { .. } => "it can start when they are done".into(),
        Coordinated::Equipment { details, .. } => {
            details.hint.clone().unwrap_or_else(|| "see `windlass config`".into())
        }
        Coordinated::Agent(_) => "the task is kept as it is; `windlass show` tells where it stands".into(),
        Coordinated::Store(error) => store_hint(error),
    }
}

fn store_hint(error: &windlass_store::Error) -> String {
    let _ = error;
    String::new()
}

/// One code per outcome, and always true (`DESIGN.md` §12).
pub const fn exit_code(result: &TaskResult) -> u8 {
    match result.status {
        ResultStatus::Completed => 0,
        ResultStatus::Failed => 1,
        ResultStatus::BlockedUser => 3,
        ResultStatus::Paused => 4,
        ResultStatus::Cancelled => 5,
    }
}
