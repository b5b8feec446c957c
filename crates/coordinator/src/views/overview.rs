//! Everything that runs, waits or is scheduled, in one view (MS-120…128), and its totals (MS-207).

use jiff::Timestamp;
use windlass_core::schedule::ScheduleState;
use windlass_store::{Filter, ScheduleRow};

use super::TaskView;
use crate::{Coordinator, Error};

/// Tasks and schedules.
#[derive(Clone, Debug)]
pub struct Overview {
    /// The tasks that the filter lets through, the newest first.
    pub tasks: Vec<TaskView>,
    /// Schedules that have not ended; none where certain statuses are asked for.
    pub schedules: Vec<ScheduleRow>,
}

impl Overview {
    /// The tasks that a filter lets through, and what is scheduled.
    pub fn read(coordinator: &Coordinator, filter: &Filter) -> Result<Self, Error> {
        let tasks = coordinator.tasks().list(filter)?;
        let mut schedules = match filter.statuses.is_empty() {
            true => coordinator.schedules().list()?,
            false => Vec::new(),
        };
        schedules.retain(|row| row.state != ScheduleState::Ended);
        Ok(Self { tasks, schedules })
    }
}

/// How much runs and waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    /// Tasks that have not ended.
    pub live: usize,
    /// Of these, driven by a process.
    pub running: usize,
    /// Of these, waiting to be started: by a service, in the queue of their session, by a clock.
    pub queued: usize,
    /// Of these, waiting for an answer.
    pub asking: usize,
    /// Of these, waiting for a person: for a message, or to be resumed.
    pub resumable: usize,
    /// Of these, conversations that wait for a message.
    pub conversations: usize,
    /// Questions that wait for a person.
    pub questions: usize,
    /// Schedules that run.
    pub active_schedules: usize,
    /// When the next schedule is due.
    pub next_scheduled_at: Option<Timestamp>,
    /// What the live tasks have cost, where anything is known of that.
    pub cost_usd: Option<f64>,
}

impl Totals {
    /// Counts what there is now.
    pub fn read(coordinator: &Coordinator) -> Result<Self, Error> {
        let filter = Filter { live: true, ..Filter::default() };
        let live = coordinator.tasks().list(&filter)?;
        let schedules = coordinator.schedules().list()?;
        let active = schedules.iter().filter(|row| row.state == ScheduleState::Active);
        let known = live.iter().filter_map(|task| task.cost_usd);
        Ok(Self {
            live: live.len(),
            running: live.iter().filter(|task| task.driven_by.is_some()).count(),
            queued: live.iter().filter(|task| task.waits_for_start()).count(),
            asking: live.iter().filter(|task| task.waits_for_answer()).count(),
            resumable: live.iter().filter(|task| task.is_resumable()).count(),
            conversations: live
                .iter()
                .filter(|task| task.is_resumable() && task.waits_for_message())
                .count(),
            questions: coordinator.store.questions().open()?.len(),
            active_schedules: active.count(),
            next_scheduled_at: coordinator.schedules().next_due()?,
            // Where no price of any task is known, the sum is not known either.
            cost_usd: known.reduce(|sum, cost| sum + cost).or(live.is_empty().then_some(0.0)),
        })
    }
}
