//! Continuing a task that has ended (`send` to it, `run --continue`), and finding the last task of a directory.

use std::path::{Path, PathBuf};

use windlass_coordinator::{FollowUp, Submission};
use windlass_core::command::ExecutionConfig;
use windlass_core::event::Driver;
use windlass_core::id::TaskId;
use windlass_core::injection::Control;
use windlass_core::state::TaskState;

use super::drive::drive;
use super::{AppContext, mail};
use crate::args::PrintOptions;
use crate::config::{Config, ModelChoice, ModelSelection};
use crate::failure::Failure;
use crate::next_action;
use crate::show::{note, out};
use crate::wiring::{Project, mcp};

/// How a script is written, for someone who has only the program.
const SCRIPT_FORM: &str = "\
a script is a YAML file with the model's replies, in order:
  replies:
    - bash: ls            # a tool and its main argument
    - say: All done.      # words alone end the task";

/// Continues an ended task: here, or in the service where that has driven it.
pub(super) fn follow_up(
    app: &AppContext,
    before: &TaskState,
    wanted: FollowUp,
    printing: &PrintOptions,
) -> Result<u8, Failure> {
    let coordinator = app.service()?;
    let submitted = app.runtime.block_on(coordinator.tasks().follow_up(before.id(), wanted))?;
    let Submission { task, place, .. } = submitted;
    mcp::inherit(&app.environment, before.created.root, task);
    if before.created.driver == Driver::Service {
        out(&task.to_string());
        let place = place.map(|place| format!(", number {place} in line")).unwrap_or_default();
        note(&format!(
            "{task} continues {} and is queued for `windlass serve`{place}",
            before.id()
        ));
        return mail::warn_without_service(app).map(|()| 0);
    }
    app.runtime.block_on(drive(app, task, printing))
}

/// The model that a task would use with these wishes. What is wrong with it is said before anything is
/// journaled.
pub(super) fn check_model(
    app: &AppContext,
    state: &TaskState,
    wishes: &ExecutionConfig,
) -> Result<(Config, ModelSelection), Failure> {
    let workspace = Path::new(&state.created.workspace);
    let project = Project::load(app.environment.clone(), workspace)?;
    let config = project.config().for_task(wishes)?;
    let choice = config.models.for_mode(state.axes.model_mode)?;
    usable_model(&project, &choice)?;
    Ok((config, choice))
}

/// Fails where a model cannot be asked.
pub(super) fn usable_model(project: &Project, choice: &ModelSelection) -> Result<(), Failure> {
    let opened = project.model(choice).map_err(|details| {
        let otherwise = match choice.model {
            ModelChoice::Script(_) => SCRIPT_FORM,
            ModelChoice::Served { .. } => "see `windlass models`",
        };
        let hint = next_action::hint(&details).unwrap_or_else(|| otherwise.to_owned());
        Failure::usage(&details.message, hint)
    });
    opened.map(drop)
}

/// Fails where a task could not use a model that a person names.
pub(super) fn check_named_model(
    app: &AppContext,
    task: TaskId,
    model: &str,
) -> Result<ModelSelection, Failure> {
    let state = app.coordinator.tasks().state(app.coordinator.tasks().root(task)?)?;
    let model = Some(model.to_owned());
    let wishes = ExecutionConfig { model, effort: None, ..state.execution_config() };
    Ok(check_model(app, &state, &wishes)?.1)
}

/// Has a task use another model from its next segment on.
pub(super) async fn change_model(
    app: &AppContext,
    task: TaskId,
    model: Option<&str>,
) -> Result<(), Failure> {
    let Some(model) = model else { return Ok(()) };
    let choice = check_named_model(app, task, model)?.model.to_string();
    let task = app.coordinator.tasks().root(task)?;
    let control = Control::UseModel { model: choice };
    app.coordinator.control().steer(task, control, &app.environment.user()).await?;
    Ok(())
}

/// The directory that tasks of this command line belong to.
pub(super) fn real_directory(workspace: &Path) -> PathBuf {
    workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned())
}
