//! The words of core's enums as they are in SQL texts.
//!
//! SQLite uses a partial index only for a query that repeats the index's condition as text, so these are texts
//! and not bound parameters. Each is made from the enum itself: a status with another name, or another one that
//! ends a task, changes every query. A test compares them with the conditions of the indexes.

use std::fmt;

use windlass_core::commitment::CommitmentState;
use windlass_core::event::Driver;
use windlass_core::injection::InjectionType;
use windlass_core::question::QuestionStatus;
use windlass_core::schedule::{ScheduleState, SchedulerStatus};
use windlass_core::status::TaskStatus;

use crate::planning::PlanActivation;

/// Tasks that have not ended. `tasks.{LIVE}` names the table too.
pub(crate) const LIVE: Statuses = Statuses { condition: "NOT IN" };
pub(crate) const ENDED: Statuses = Statuses { condition: "IN" };
/// Tasks of the service that have no parent and have not ended.
pub(crate) const OF_SERVICE: OfService = OfService;

pub(crate) const SERVICE: Driver = Driver::Service;

pub(crate) const TODO: TaskStatus = TaskStatus::Todo;
pub(crate) const BLOCKED: TaskStatus = TaskStatus::Blocked;
pub(crate) const DONE: TaskStatus = TaskStatus::Done;

pub(crate) const QUEUED: SchedulerStatus = SchedulerStatus::Queued;
pub(crate) const DUE: SchedulerStatus = SchedulerStatus::Due;
pub(crate) const CLAIMED: SchedulerStatus = SchedulerStatus::Claimed;
pub(crate) const DISPATCHED: SchedulerStatus = SchedulerStatus::Dispatched;
pub(crate) const CONSUMED: SchedulerStatus = SchedulerStatus::Consumed;
pub(crate) const EXPIRED: SchedulerStatus = SchedulerStatus::Expired;

pub(crate) const SCHEDULE_ACTIVE: ScheduleState = ScheduleState::Active;
pub(crate) const SCHEDULE_ENDED: ScheduleState = ScheduleState::Ended;

/// Commitments that somebody holds.
pub(crate) const HELD: HeldStates = HeldStates;
pub(crate) const COMMITMENT_APPROVED: CommitmentState = CommitmentState::Approved;

pub(crate) const QUESTION_OPEN: QuestionStatus = QuestionStatus::Open;
pub(crate) const QUESTION_ANSWERED: QuestionStatus = QuestionStatus::Answered;

pub(crate) const PLAN_ACTIVE: PlanActivation = PlanActivation::Active;

pub(crate) const MESSAGE: InjectionType = InjectionType::UserMessage;
pub(crate) const OUTSIDE_EVENT: InjectionType = InjectionType::ExternalEvent;
pub(crate) const ANSWER: InjectionType = InjectionType::HitlResponse;

/// A condition on the status of a task, by whether the status ends it.
#[derive(Clone, Copy)]
pub(crate) struct Statuses {
    condition: &'static str,
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {} (", self.condition)?;
        write_list(f, TaskStatus::ALL.iter().filter(|status| status.is_terminal()))?;
        f.write_str(")")
    }
}

#[derive(Clone, Copy)]
pub(crate) struct HeldStates;

impl fmt::Display for HeldStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("state IN (")?;
        write_list(f, CommitmentState::ALL.iter().filter(|state| state.is_held()))?;
        f.write_str(")")
    }
}

fn write_list(
    f: &mut fmt::Formatter<'_>,
    words: impl Iterator<Item = impl fmt::Display>,
) -> fmt::Result {
    for (place, word) in words.enumerate() {
        let gap = if place > 0 { ", " } else { "" };
        write!(f, "{gap}'{word}'")?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
pub(crate) struct OfService;

impl fmt::Display for OfService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "driver = '{SERVICE}' AND parent_id IS NULL AND {LIVE}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index whose condition reads differently would no longer be used.
    #[test]
    fn queries_repeat_the_conditions_of_the_indexes() {
        let journal = include_str!("migrations/0001_journal.sql");
        let routing = include_str!("migrations/0002_routing.sql");
        let ready = include_str!("migrations/0006_ready.sql");
        assert!(journal.contains(&format!("ON tasks (workspace) WHERE {LIVE};")));
        assert!(ready.contains(&format!("WHERE {OF_SERVICE};")));
        let due = format!("ON schedules (next_due) WHERE state = '{SCHEDULE_ACTIVE}';");
        assert!(routing.contains(&due));
        let plans = include_str!("migrations/0013_plans.sql");
        assert!(plans.contains(&format!("ON plans (project) WHERE state = '{PLAN_ACTIVE}';")));
        let questions = include_str!("migrations/0014_commitments.sql");
        let asked = format!("ON questions (asked_at) WHERE state = '{QUESTION_OPEN}';");
        assert!(questions.contains(&asked));
        let open = format!("IN ('{QUEUED}', '{DUE}', '{CLAIMED}', '{DISPATCHED}')");
        assert!(routing.contains(&open));
    }
}
