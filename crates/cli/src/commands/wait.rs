//! Waiting with a task that is parked until a certain time: its model's server asked for it (ES-378).

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::id::TaskId;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::TaskRow;
use windlass_term::strip_controls;

use super::Setting;
use super::interrupts::Interrupts;
use crate::failure::Failure;
use crate::show::Screen;

/// The longest sleep before the clock is looked at again.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// When a task that its model's server has told to wait goes on.
pub(super) fn held_until(
    setting: &Setting,
    result: &TaskResult,
    stop: &CancellationToken,
) -> Result<Option<Timestamp>, Failure> {
    if result.status != ResultStatus::Paused || stop.is_cancelled() {
        return Ok(None);
    }
    let row = setting.coordinator.store().tasks().get(result.task_id)?;
    let held = row.filter(|row| row.reason == StatusReason::RateLimited);
    Ok(held.and_then(|row| row.next_action_at).map(|at| at.timestamp()))
}

/// How a wait ended.
pub(super) enum Waited {
    /// The time has come.
    Over,
    /// Ctrl-C: the task stays parked.
    Interrupted,
    /// Somebody else has done something about the task.
    Elsewhere,
}

/// Waits with a task that is parked until a certain time. Nothing is held meanwhile: others may go on with
/// it, pause or cancel it.
pub(super) async fn until(
    setting: &Setting,
    task: TaskId,
    until: Timestamp,
    screen: &mut Screen,
    interrupts: &mut Interrupts,
) -> Result<Waited, Failure> {
    let (coordinator, store) = (&setting.coordinator, setting.coordinator.store());
    let clock = until.to_zoned(TimeZone::system()).strftime("%F %H:%M:%S").to_string();
    let detail = store.tasks().get(task)?.and_then(|row| row.detail).unwrap_or_default();
    screen.say(
        &setting.style.wrap_note(&format!("waiting until {clock}: {}", strip_controls(&detail))),
    );
    screen.say(&format!("Ctrl-C leaves it parked; go on earlier with: windlass resume {task}"));
    let mut changes = store.changes();
    loop {
        changes.tick();
        let row = store.tasks().get(task)?;
        let held = |row: &TaskRow| {
            row.status == TaskStatus::Paused && row.reason == StatusReason::RateLimited
        };
        let Some(row) =
            row.filter(|row| store.driving_process(row.id).is_ok_and(|by| by.is_none()))
        else {
            screen.say("another process goes on with it");
            return Ok(Waited::Elsewhere);
        };
        if !held(&row) {
            screen.say(&format!("{task} is {} now", row.status));
            return Ok(Waited::Elsewhere);
        }
        let left = until.duration_since(coordinator.now());
        let Some(left) = Duration::try_from(left).ok().filter(|left| !left.is_zero()) else {
            return Ok(Waited::Over);
        };
        tokio::select! {
            // In pieces: a clock may be set, a machine may sleep.
            () = tokio::time::sleep(left.min(LONGEST_SLEEP)) => {}
            changed = changes.changed() => changed?,
            _ = interrupts.recv() => {
                screen.say(&format!("parked; go on with: windlass resume {task}"));
                return Ok(Waited::Interrupted);
            }
        }
    }
}
