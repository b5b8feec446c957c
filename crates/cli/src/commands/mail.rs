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

/// A message to a task that nobody drives waits; the person should know.
pub(super) async fn print_uptake(app: &AppContext, task: TaskId) -> Result<u8, Failure> {
    match app.coordinator.messages().wait_for_uptake(task).await? {
        Uptake::Read => {}
        Uptake::ByService => show::note("nobody drives it now; `windlass serve` continues it"),
        Uptake::AfterResume => {
            show::note(&format!("nobody drives it now; continue with `windlass resume {task}`"));
        }
    }
    Ok(0)
}
