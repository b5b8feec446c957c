//! Schedules: made, stopped and ended by people; the timer runs them.

use jiff::{Timestamp, Zoned};
use windlass_core::id::{InjectionId, ScheduleId};
use windlass_core::injection::{Control, Injection};
use windlass_core::schedule::{Rhythm, Schedule, ScheduleAction, ScheduleState};
use windlass_store::ScheduleRow;

use crate::{Coordinator, Error, Timer};

/// What happens automatically, and when.
#[derive(Clone, Copy)]
pub struct Schedules<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl<'a> Schedules<'a> {
    /// Carries out what is due.
    pub fn timer(self) -> Timer<'a> {
        Timer { coordinator: self.coordinator }
    }

    /// A schedule by its id or by the end of it.
    pub fn find(self, text: &str) -> Result<ScheduleId, Error> {
        Ok(self.coordinator.store.ids().schedule(text)?)
    }

    /// A schedule and where it stands.
    pub fn get(self, id: ScheduleId) -> Result<Option<ScheduleRow>, Error> {
        Ok(self.coordinator.store.schedules().get(id)?)
    }

    /// Every schedule, those that have ended last; what a person has removed is not among them.
    pub fn list(self) -> Result<Vec<ScheduleRow>, Error> {
        let mut rows = self.coordinator.store.schedules().list()?;
        rows.retain(|row| row.ended_reason.as_deref() != Some(REMOVED));
        Ok(rows)
    }

    /// When the next one is due.
    pub fn next_due(self) -> Result<Option<Timestamp>, Error> {
        Ok(self.coordinator.store.schedules().next_due()?)
    }

    /// Adds a schedule and notifies its task, if it has one; returns its first run.
    pub async fn add(self, schedule: Schedule) -> Result<Option<Zoned>, Error> {
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
        let now = self.coordinator.now();
        let next = schedule.next(now).ok_or_else(|| match &schedule.rhythm {
            Rhythm::Once { date, time } => bad(format!("{date} {time} is in the past")),
            Rhythm::Every { .. } | Rhythm::Cron { .. } | Rhythm::Daily { .. } => {
                bad("it would never run".to_owned())
            }
        })?;
        if let Some(task) = schedule.task_id {
            let status = self.coordinator.tasks().require_row(task)?.status;
            if status.is_terminal() {
                return Err(Error::Ended { task, status });
            }
        }
        let (id, task, check) = (schedule.id, schedule.task_id, schedule.action);
        self.coordinator.store.schedules().add(schedule.clone(), Some(next.clone())).await?;
        if let Some(task) = task.filter(|_| check == ScheduleAction::Check) {
            let control = Control::Watch { schedule: id, next: Some(next.clone()) };
            let words = schedule_notice(&schedule, &next);
            let injection = InjectionId::derived(&id.to_string(), "watch");
            self.coordinator
                .messages()
                .inject(task, Injection::control(injection, control).with_content(words))
                .await?;
        }
        self.coordinator.queue().wake();
        Ok(Some(next))
    }

    /// Stops a schedule for now.
    pub async fn pause(self, id: ScheduleId) -> Result<(), Error> {
        match self.coordinator.store.schedules().set_state(id, ScheduleState::Paused, None).await? {
            true => Ok(()),
            false => Err(Error::ScheduleEnded { schedule: id }),
        }
    }

    /// Resumes a schedule; returns its next run. What was missed meanwhile is not made up for: a person
    /// wanted it so.
    pub async fn resume(self, id: ScheduleId) -> Result<Option<Zoned>, Error> {
        let ended = Error::ScheduleEnded { schedule: id };
        let Some(row) = self.coordinator.store.schedules().get(id)? else { return Err(ended) };
        let next = row.schedule.next(self.coordinator.now());
        match self
            .coordinator
            .store
            .schedules()
            .set_state(id, ScheduleState::Active, next.clone())
            .await?
        {
            true => {
                self.coordinator.queue().wake();
                Ok(next)
            }
            false => Err(ended),
        }
    }

    /// Ends a schedule; its task, if one waits for it, gets no message and is no longer parked.
    pub async fn remove(self, id: ScheduleId) -> Result<(), Error> {
        let Some(row) = self.coordinator.store.schedules().get(id)? else {
            return Err(windlass_store::Error::UnknownSchedule(id.to_string()).into());
        };
        if !self.coordinator.store.schedules().end(id, REMOVED).await? {
            return Err(Error::ScheduleEnded { schedule: id });
        }
        self.unwatch(&row).await
    }

    /// Takes a schedule off its task, so that a final reply ends it again.
    pub(crate) async fn unwatch(self, row: &ScheduleRow) -> Result<(), Error> {
        let Some(task) = row.schedule.task_id else { return Ok(()) };
        let control = Control::Unwatch { schedule: row.schedule.id };
        let id = InjectionId::derived(&row.schedule.id.to_string(), "unwatch");
        match self.coordinator.messages().inject(task, Injection::control(id, control)).await {
            Ok(_) => Ok(()),
            Err(Error::Store(windlass_store::Error::TaskEnded { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Why a schedule ended that a person has removed.
const REMOVED: &str = "removed";

/// What an agent reads when a schedule begins to check on it.
fn schedule_notice(schedule: &Schedule, next: &Zoned) -> String {
    let prompt = schedule.check_prompt.as_deref().unwrap_or_default();
    include_str!("prompts/schedule_added.md")
        .trim_end()
        .replace("{monitor}", include_str!("prompts/monitor.md").trim())
        .replace("{first}", &next.strftime("%F %H:%M:%S %Z").to_string())
        .replace("{prompt}", prompt)
}
