//! Waits for a parked task until its model's server is tried again (ES-378).

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::ParkedWait;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::id::TaskId;
use windlass_core::shown::shown;
use windlass_core::status::StatusReason;

use super::AppContext;
use super::interrupts::Interrupts;
use crate::failure::Failure;
use crate::show::Screen;

/// When a parked task is tried again.
pub(super) fn parked_until(
    app: &AppContext,
    result: &TaskResult,
    stop: &CancellationToken,
) -> Result<Option<Timestamp>, Failure> {
    if result.status != ResultStatus::Paused || stop.is_cancelled() {
        return Ok(None);
    }
    Ok(app.coordinator.tasks().parked(result.task_id).until()?)
}

/// How a wait ended.
pub(super) enum WaitOutcome {
    /// The time has come.
    Due,
    /// Ctrl-C: the task stays paused.
    Interrupted,
    /// Somebody else has done something about the task.
    Elsewhere,
}

/// Waits until a paused task may continue. It holds no lock while it waits: another process may resume,
/// pause or cancel the task.
pub(super) async fn until(
    app: &AppContext,
    task: TaskId,
    until: Timestamp,
    screen: &mut Screen,
    interrupts: &mut Interrupts,
) -> Result<WaitOutcome, Failure> {
    let tasks = app.coordinator.tasks();
    let clock = until.to_zoned(TimeZone::system()).strftime("%F %H:%M:%S").to_string();
    let row = tasks.get(task)?;
    let is_outage = row.as_ref().is_some_and(|row| row.reason == StatusReason::ModelOutage);
    let detail = row.and_then(|row| row.detail).unwrap_or_default();
    screen.say(&app.style.wrap_note(&format!("waiting until {clock}: {}", shown(&detail))));
    if is_outage {
        screen.say("it is tried again automatically; `windlass models` shows where it looks");
    }
    screen.say(&format!("Ctrl-C leaves it paused; resume earlier with: windlass resume {task}"));
    let waited = tokio::select! {
        waited = tasks.parked(task).wait(until) => waited?,
        _ = interrupts.recv() => {
            screen.say(&format!("paused; resume with: windlass resume {task}"));
            return Ok(WaitOutcome::Interrupted);
        }
    };
    Ok(match waited {
        ParkedWait::Due => WaitOutcome::Due,
        ParkedWait::Driven => {
            screen.say("another process continues it");
            WaitOutcome::Elsewhere
        }
        ParkedWait::Moved(status) => {
            screen.say(&format!("{task} is {status} now"));
            WaitOutcome::Elsewhere
        }
    })
}
