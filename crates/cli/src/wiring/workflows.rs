//! What workflows need of the wiring: the model that plays a command, and trust in a project's workflow files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use windlass_agent::Summarizer;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{ScriptWork, WorkflowPart, WorkflowSource};
use windlass_core::id::TaskId;
use windlass_core::message::Usage;
use windlass_core::state::TaskState;
use windlass_core::tool_name;
use windlass_model::script::{Script, ScriptedCall, ScriptedReply};
use windlass_model::{Model, ModelName};
use windlass_workflow::files::Files;
use windlass_workflow::git::Git;

use super::trust::ApprovableFile;
use super::{Environment, mcp};
use crate::config::{File, ModelChoice, ModelSelection, Trust};

/// How long a command may take that has no `timeout`: a test suite takes minutes, and nobody waits an hour.
const DEFAULT_TIMEOUT_SECONDS: u64 = 600;

/// The window of a model that plays a command; the command's output is cut to a quarter of it.
const WINDOW: u64 = 200_000;

/// The command that a task of a workflow is for.
pub(super) fn script(task: &TaskState) -> Option<&ScriptWork> {
    match task.created.workflow.as_deref()? {
        WorkflowPart::Script(script) => Some(script),
        WorkflowPart::Run(_) | WorkflowPart::Agent { .. } | WorkflowPart::Program { .. } => None,
    }
}

/// The task that a sandbox belongs to: the steps of a run have one each.
pub(super) fn sandbox_of(task: &TaskState) -> TaskId {
    match task.created.workflow {
        Some(_) => task.id(),
        None => task.created.root,
    }
}

/// How long a command of a workflow may take.
pub(super) fn timeout(script: Option<&ScriptWork>) -> Duration {
    let seconds = |script: &ScriptWork| script.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
    Duration::from_secs(script.map_or(0, seconds))
}

/// A model is chosen for nothing: a command needs none.
pub(super) fn no_choice() -> ModelSelection {
    ModelSelection::from(ModelChoice::Script(PathBuf::from("workflow")))
}

/// A model that calls `bash` once, with the command, and ends. So a command of a workflow passes the gate, runs in the
/// sandbox and is journaled as any other.
pub(super) fn models(script: &ScriptWork) -> (Arc<dyn Model>, Summarizer) {
    let arguments = serde_json::json!({
        "command": script.command, "timeout": timeout(Some(script)).as_secs(),
    });
    let call = ScriptedCall {
        name: tool_name::BASH.to_owned(),
        id: None,
        arguments: arguments.to_string(),
    };
    // Nobody is asked, so nothing is used.
    let usage = Some(Usage { cost_usd: Some(0.0), ..Usage::default() });
    let run = ScriptedReply { calls: vec![call], usage, ..ScriptedReply::default() };
    let text = "The command has ended.".to_owned();
    let end = ScriptedReply { turn: 1, text, usage, ..ScriptedReply::default() };
    let script = Script { replies: vec![run, end], rules: Vec::new() };
    let name = ModelName::new("script", "workflow").expect("both parts are plain words");
    let model = script.into_model(name);
    (model.clone(), Summarizer { model, window: WINDOW, price: None })
}

/// The workflow files of a project that bring commands.
pub fn files(workspace: &Path) -> Vec<PathBuf> {
    let found = Files::of(&super::skills::real_path(workspace)).list();
    let brings = |one: &windlass_workflow::files::WorkflowFile| {
        one.workflow.as_ref().is_ok_and(|workflow| !workflow.commands().is_empty())
    };
    found.into_iter().filter(brings).map(|one| one.path).collect()
}

/// The settings of a project's own repository that have git run commands when a workflow works there, as a file of them
/// alone: the rest of that file changes with every branch.
pub fn git_settings(workspace: &Path) -> Option<File> {
    let git = Git::open(&super::skills::real_path(workspace)).ok()?;
    // A workflow may begin with what the remote has.
    let settings = git.commanding_settings(true).ok()??;
    Some(File { path: settings.path, text: settings.text })
}

/// Whether a person has approved a workflow file as it is now.
pub(super) fn is_approved(environment: &Environment, directory: &Path, file: &Path) -> bool {
    let Ok(Some(file)) = mcp::open(file) else { return false };
    ApprovableFile::new(directory, file).trust(&environment.data) == Trust::Approved
}

/// The same of a workflow as a run has it.
pub(super) fn is_source_approved(
    environment: &Environment,
    directory: &Path,
    source: &WorkflowSource,
) -> bool {
    approvable(directory, source).trust(&environment.data) == Trust::Approved
}

fn approvable(directory: &Path, source: &WorkflowSource) -> ApprovableFile {
    let file = File { path: PathBuf::from(&source.path), text: source.text.clone() };
    ApprovableFile::new(directory, file)
}

/// Approves the commands of a workflow as a run has them.
pub(super) fn approve(
    environment: &Environment,
    directory: &Path,
    source: &WorkflowSource,
) -> Result<(), ErrorDetails> {
    approvable(directory, source).approve(&environment.data).map_err(|error| {
        let message = format!("`{}` cannot be written to: {error}", environment.data.display());
        ErrorDetails::new(ErrorType::Storage, message)
    })
}
