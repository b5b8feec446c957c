//! What the commands that put something into a mailbox share.

use windlass_coordinator::Uptake;
use windlass_core::id::TaskId;
use windlass_core::injection::Control;

use super::AppContext;
use crate::failure::Failure;
use crate::show;

pub(super) fn control(app: &AppContext, task: &str, control: Control) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let task = coordinator.tasks().find(task)?;
    let status = app.runtime.block_on(coordinator.control().steer(
        task,
        control,
        &app.environment.user(),
    ))?;
    show::note(&format!("{task} {status}"));
    Ok(0)
}

/// Says where a message will be read, if the task is not running.
pub(super) async fn print_uptake(app: &AppContext, task: TaskId) -> Result<u8, Failure> {
    match app.coordinator.messages().wait_for_uptake(task).await? {
        Uptake::NothingToDo => {}
        Uptake::ByService => {
            show::note("The task is not running; `windlass serve` will continue it.")
        }
        Uptake::AfterResume => {
            show::note(&format!(
                "The task is not running; continue it with: windlass resume {task}"
            ));
        }
    }
    Ok(0)
}
