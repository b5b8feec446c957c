//! Schedules: made, stopped and ended by people; run by the clock.
//!
//! Invariants:
//! - `tick` decides by the clock it is given and by rows alone, so a process that was away and one that
//!   was not do the same.
//! - A run has effect once: its ids are derived from the schedule and the time it was due, and only the
//!   process that moves the row on counts it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Zoned};
use tokio_util::sync::CancellationToken;
use windlass_core::id::{InjectionId, ScheduleId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::schedule::{Schedule, ScheduleAction, ScheduleState};
use windlass_core::trigger::{Due, ScheduledTrigger};
use windlass_store::ScheduleRow;

use crate::{Coordinator, Error, Handled};

/// Things that one tick does; the next tick, at once, does the rest.
const BATCH: u32 = 100;

/// The time between two ticks when nothing is due: clocks are set, other processes add schedules, and
/// what hangs has to be looked at.
const SWEEP: Duration = Duration::from_secs(5);

/// What a tick did, and when the next is due.
#[derive(Debug)]
pub struct Ticked {
    /// What was due, and what became of it.
    pub done: Vec<(ScheduledTrigger, Result<Handled, Error>)>,
    /// Tasks that were given up because they hang.
    pub hung: Vec<TaskId>,
    /// When something is due next, as far as is known.
    pub next: Option<Timestamp>,
}

impl Coordinator {
    /// Adds a schedule and tells its task, if it has one; returns its first run.
    pub async fn add_schedule(&self, schedule: Schedule) -> Result<Option<Zoned>, Error> {
        let bad = |problem: String| Error::BadSchedule { problem };
        let zone = windlass_core::schedule::time_zone(&schedule.time_zone)
            .map_err(|error| bad(error.to_string()))?;
        schedule.rhythm.check(&zone).map_err(|error| bad(error.to_string()))?;
        let said =
            |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
        match schedule.action {
            ScheduleAction::Check
                if schedule.task_id.is_none() || !said(&schedule.check_prompt) =>
            {
                return Err(bad("a check needs a task and what to check".to_owned()));
            }
            ScheduleAction::Message
                if !said(&schedule.check_prompt)
                    || (schedule.task_id.is_none() && schedule.session_id.is_none()) =>
            {
                return Err(bad("a message needs a task or session, and a text".to_owned()));
            }
            ScheduleAction::Start if !said(&schedule.goal) => {
                return Err(bad("a start needs a goal".to_owned()));
            }
            ScheduleAction::Check | ScheduleAction::Message | ScheduleAction::Start => {}
        }
        let now = self.now();
        let next = schedule.next(now).ok_or_else(|| bad("it would never run".to_owned()))?;
        if let Some(task) = schedule.task_id {
            let status = self.state(task)?.status;
            if status.is_terminal() {
                return Err(Error::Ended { task, status });
            }
        }
        let (id, task, check) = (schedule.id, schedule.task_id, schedule.action);
        self.store.schedules().add(schedule.clone(), Some(next.clone())).await?;
        if let Some(task) = task.filter(|_| check == ScheduleAction::Check) {
            let control = Control::Watch { schedule: id, next: Some(next.clone()) };
            let words = told_of(&schedule, &next);
            let injection = InjectionId::derived(&id.to_string(), "watch");
            self.inject(task, Injection::control(injection, control).because(words)).await?;
        }
        self.wake();
        Ok(Some(next))
    }

    /// Stops a schedule for now.
    pub async fn pause_schedule(&self, id: ScheduleId) -> Result<(), Error> {
        match self.store.schedules().set_state(id, ScheduleState::Paused, None).await? {
            true => Ok(()),
            false => Err(Error::ScheduleEnded { schedule: id }),
        }
    }

    /// Lets a schedule go on; returns its next run. What was missed meanwhile is not made up for: a person
    /// wanted it so.
    pub async fn resume_schedule(&self, id: ScheduleId) -> Result<Option<Zoned>, Error> {
        let ended = Error::ScheduleEnded { schedule: id };
        let Some(row) = self.store.schedules().get(id)? else { return Err(ended) };
        let next = row.schedule.next(self.now());
        match self.store.schedules().set_state(id, ScheduleState::Active, next.clone()).await? {
            true => {
                self.wake();
                Ok(next)
            }
            false => Err(ended),
        }
    }

    /// Ends a schedule; its task, if one waits for it, is told nothing and is parked no more.
    pub async fn remove_schedule(&self, id: ScheduleId) -> Result<(), Error> {
        let Some(row) = self.store.schedules().get(id)? else {
            return Err(windlass_store::Error::UnknownSchedule(id.to_string()).into());
        };
        if !self.store.schedules().end(id, "removed").await? {
            return Err(Error::ScheduleEnded { schedule: id });
        }
        self.unwatch(&row).await
    }

    /// Takes a schedule off its task, so that a final reply ends it again.
    pub(crate) async fn unwatch(&self, row: &ScheduleRow) -> Result<(), Error> {
        let Some(task) = row.schedule.task_id else { return Ok(()) };
        let control = Control::Unwatch { schedule: row.schedule.id };
        let id = InjectionId::derived(&row.schedule.id.to_string(), "unwatch");
        match self.inject(task, Injection::control(id, control)).await {
            Ok(_) => Ok(()),
            Err(Error::Store(windlass_store::Error::TaskEnded { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Does what is due now: runs of schedules, ends of patience, deadlines, tasks that hang.
    pub async fn tick(&self) -> Result<Ticked, Error> {
        let now = self.now();
        let mut due = Vec::new();
        for row in self.store.schedules().due(now, BATCH)? {
            due.push(trigger_of(&row, now));
        }
        for task in self.store.deadlines().passed(now, BATCH)? {
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
            let handled = self.scheduled_trigger(trigger.clone()).await;
            done.push((trigger, handled));
        }
        self.store.scheduler().expire(now).await?;
        let ready = self.waiting(BATCH as usize)?;
        if !ready.is_empty() {
            self.store.scheduler().mark_due(ready).await?;
        }
        let hung = self.give_up_on_hung().await?;
        Ok(Ticked { done, hung, next: self.next_tick()? })
    }

    /// When something is due next.
    fn next_tick(&self) -> Result<Option<Timestamp>, Error> {
        let times = [self.store.schedules().next_due()?, self.store.deadlines().next()?];
        Ok(times.into_iter().flatten().min())
    }

    /// Ticks until `stop`, sleeping until the next thing is due. What is added meanwhile wakes it, which
    /// costs two reads of an index and no tick.
    pub async fn keep_time(&self, stop: &CancellationToken) {
        let mut sweep = tokio::time::Instant::now();
        while !stop.is_cancelled() {
            // Listened for from here on, so that what comes during the tick is not missed.
            let mut woken = std::pin::pin!(self.woken.notified());
            woken.as_mut().enable();
            let next = self.next_tick();
            let due = matches!(next, Ok(Some(next)) if next <= self.now());
            let mut failed = next.is_err();
            if due || sweep <= tokio::time::Instant::now() {
                failed |= !self.tick_and_log().await;
                sweep = tokio::time::Instant::now() + SWEEP;
            }
            let sleep = match self.next_tick() {
                Ok(next) if !failed => self.sleep_until(next),
                _ => SWEEP,
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = &mut woken, if !failed => {}
                () = tokio::time::sleep(sleep) => {}
            }
        }
    }

    /// One tick; whether all of it went well.
    async fn tick_and_log(&self) -> bool {
        let ticked = match self.tick().await {
            Ok(ticked) => ticked,
            Err(error) => {
                tracing::error!(%error, "the clock could not be served");
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
    fn sleep_until(&self, next: Option<Timestamp>) -> Duration {
        let left = next.map_or(SignedDuration::MAX, |next| next.duration_since(self.now()));
        Duration::try_from(left).unwrap_or(Duration::ZERO).min(SWEEP)
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

/// What an agent is told when a schedule begins to look after it.
fn told_of(schedule: &Schedule, next: &Zoned) -> String {
    let prompt = schedule.check_prompt.as_deref().unwrap_or_default();
    format!(
        "You will be asked again, first at {}: {prompt}\n{}",
        next.strftime("%F %H:%M:%S %Z"),
        include_str!("prompts/monitor.md").trim()
    )
}
