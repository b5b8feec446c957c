//! What the commands that put something into a mailbox share.

use windlass_coordinator::MessageReader;
use windlass_core::id::TaskId;
use windlass_core::injection::Control;

use super::AppContext;
use crate::failure::Failure;
use crate::{next_action, show};

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

/// Says so where nobody would start what was queued. With Redis, services on other machines may.
pub(super) fn warn_without_service(app: &AppContext) -> Result<(), Failure> {
    let config = app.environment.config(std::path::Path::new("/"))?;
    if config.coordinator.redis_url.is_none() && !app.coordinator.queue().has_service()? {
        show::note("no service is running: nothing starts it until you run `windlass serve`");
    }
    Ok(())
}

/// Says where a message will be read, if the task is not running.
pub(super) async fn print_uptake(app: &AppContext, task: TaskId) -> Result<u8, Failure> {
    match app.coordinator.messages().wait_for_uptake(task).await? {
        MessageReader::NothingToDo => {}
        MessageReader::ByService => {
            show::note("The task is not running; `windlass serve` will continue it.");
            warn_without_service(app)?;
        }
        MessageReader::AfterResume => {
            // Resumed, a blocked task would only ask again.
            let asks = app.coordinator.inbox().open()?;
            let asks = asks.iter().find(|asked| asked.row.task == task);
            let command = match asks {
                Some(asked) => next_action::answer_command(asked.row.question.id, &[]),
                None => format!("windlass resume {task}"),
            };
            show::note(&format!("The task is not running; continue it with: {command}"));
        }
    }
    Ok(0)
}
