//! The timer: carries out what is due, in any process that serves.
//!
//! Invariants:
//! - `tick` decides by the clock it is given and by rows alone, so a process that was away and one that
//!   was not do the same.
//! - A run has effect once: its ids are derived from the schedule and the time it was due, and only the
//!   process that moves the row on counts it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Zoned};
use tokio_util::sync::CancellationToken;
use windlass_core::id::TaskId;
use windlass_store::ScheduleRow;

use crate::trigger::{Due, ScheduledTrigger};
use crate::{Coordinator, Error, TriggerOutcome};

/// Things that one tick does; the next tick, at once, does the rest.
const BATCH: u32 = 100;

/// The time between two ticks when nothing is due: clocks are set, other processes add schedules, and
/// stalled tasks have to be found.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);

/// What a tick did, and when the next is due.
#[derive(Debug)]
pub struct TickReport {
    /// What was due, and what became of it.
    pub done: Vec<(ScheduledTrigger, Result<TriggerOutcome, Error>)>,
    /// Tasks that were failed because they stalled.
    pub stalled: Vec<TaskId>,
    /// When something is due next, as far as is known.
    pub next: Option<Timestamp>,
}

/// Carries out what is due.
#[derive(Clone, Copy)]
pub struct Timer<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Timer<'_> {
    /// Does what is due now: runs of schedules, ends of patience, deadlines, tasks that hang.
    pub async fn tick(self) -> Result<TickReport, Error> {
        let now = self.coordinator.now();
        let mut due = Vec::new();
        for row in self.coordinator.store.schedules().due(now, BATCH)? {
            due.push(trigger_of(&row, now));
        }
        for task in self.coordinator.store.tasks().deadlines().overdue_tasks(now, BATCH)? {
            due.push(ScheduledTrigger {
                request_id: None,
                trigger_type: Due::Deadline,
                schedule_id: None,
                task_id: Some(task),
                check_prompt: None,
                due_at: Some(now),
            });
        }
        let mut done = Vec::new();
        for trigger in due {
            let handled = self.coordinator.triggers().scheduled_trigger(trigger.clone()).await;
            done.push((trigger, handled));
        }
        self.coordinator.store.scheduler().expire(now).await?;
        let ready = self.coordinator.queue().ready_tasks(BATCH as usize)?;
        if !ready.is_empty() {
            self.coordinator.store.scheduler().mark_due(ready).await?;
        }
        let stalled = self.fail_stalled().await?;
        Ok(TickReport { done, stalled, next: self.next_tick()? })
    }

    /// When something is due next.
    fn next_tick(self) -> Result<Option<Timestamp>, Error> {
        let times = [
            self.coordinator.store.schedules().next_due()?,
            self.coordinator.store.tasks().deadlines().next()?,
        ];
        Ok(times.into_iter().flatten().min())
    }

    /// Ticks until `stop`, sleeping until the next thing is due. What is added meanwhile wakes it, which
    /// costs two reads of an index and no tick.
    pub async fn run(self, stop: &CancellationToken) {
        let mut sweep = tokio::time::Instant::now();
        while !stop.is_cancelled() {
            // Listened for from here on, so that what comes during the tick is not missed.
            let mut woken = std::pin::pin!(self.coordinator.work.notified());
            woken.as_mut().enable();
            let next = self.next_tick();
            let due = matches!(next, Ok(Some(next)) if next <= self.coordinator.now());
            let mut failed = next.is_err();
            if due || sweep <= tokio::time::Instant::now() {
                failed |= !self.tick_and_log().await;
                sweep = tokio::time::Instant::now() + IDLE_INTERVAL;
            }
            let sleep = match self.next_tick() {
                Ok(next) if !failed => self.sleep_until(next),
                _ => IDLE_INTERVAL,
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = &mut woken, if !failed => {}
                () = tokio::time::sleep(sleep) => {}
            }
        }
    }

    /// One tick; whether all of it went well.
    async fn tick_and_log(self) -> bool {
        let ticked = match self.tick().await {
            Ok(ticked) => ticked,
            Err(error) => {
                tracing::error!(%error, "the timer failed");
                return false;
            }
        };
        let failed = ticked
            .done
            .iter()
            .filter_map(|(trigger, handled)| handled.as_ref().err().map(|error| (trigger, error)));
        let mut well = true;
        for (trigger, error) in failed {
            tracing::warn!(?trigger, %error, "scheduled run failed");
            well = false;
        }
        well
    }

    /// How long until then; never longer than to the next sweep.
    fn sleep_until(self, next: Option<Timestamp>) -> Duration {
        let left =
            next.map_or(SignedDuration::MAX, |next| next.duration_since(self.coordinator.now()));
        Duration::try_from(left).unwrap_or(Duration::ZERO).min(IDLE_INTERVAL)
    }
}

fn trigger_of(row: &ScheduleRow, now: Timestamp) -> ScheduledTrigger {
    let ends = row.schedule.timeout_at.filter(|end| *end <= now);
    let (trigger_type, due_at) = match ends {
        Some(end) => (Due::MonitoringTimeout, Some(end)),
        None => (Due::Cron, row.next_at.as_ref().map(Zoned::timestamp)),
    };
    ScheduledTrigger {
        request_id: None,
        trigger_type,
        schedule_id: Some(row.schedule.id),
        task_id: row.schedule.task_id,
        check_prompt: None,
        due_at,
    }
}
