//! How much may go on at once, and how long things may take (ES-015, ES-090…092).
//!
//! Only what a service runs is counted: a person who types `windlass run` has decided (§15.19).

use std::collections::BTreeSet;
use std::time::Duration;

use windlass_core::event::Driver;
use windlass_core::id::{SessionId, TaskId};
use windlass_core::status::TaskStatus;
use windlass_store::{Filter, TaskRow};

use crate::{Coordinator, Error};

/// The coordinator's limits; configuration `[coordinator]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tasks of one session at work at once; the next one is queued.
    pub tasks_per_session: usize,
    /// Sessions of one user with live tasks; the next one is refused.
    pub sessions_per_user: usize,
    /// How long a session is served before another process may.
    pub session_lease: Duration,
    /// How long the router's model may take; then the fallback decides. Shorter than a lease.
    pub router: Duration,
    /// How long a driven task may give no sign of life before it is failed from outside (ES-033). Longer
    /// than the longest call plus a stalled stream.
    pub hang: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tasks_per_session: 3,
            sessions_per_user: 5,
            session_lease: Duration::from_secs(30),
            router: Duration::from_secs(20),
            hang: Duration::from_secs(1200),
        }
    }
}

impl Coordinator {
    /// The same, with other limits.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Refuses a session too many of one user; a session that has live tasks already counts as had.
    pub(crate) fn check_sessions(&self, user: &str, session: SessionId) -> Result<(), Error> {
        let live =
            Filter { live: true, roots: true, driver: Some(Driver::Service), ..Filter::default() };
        let mut sessions = BTreeSet::new();
        for task in self.store.tasks(&live)? {
            sessions.insert(task.session_id);
        }
        if sessions.contains(&session) {
            return Ok(());
        }
        let mut count = 0;
        for other in sessions {
            let row = self.store.session(other)?;
            count += usize::from(row.is_some_and(|row| row.user_id.as_deref() == Some(user)));
        }
        let limit = self.limits.sessions_per_user;
        if count >= limit {
            return Err(Error::TooManySessions { user: user.to_owned(), limit });
        }
        Ok(())
    }

    /// A task's place in the queue of its session, from 1; `None` when it need not wait.
    pub fn place(&self, task: TaskId) -> Result<Option<usize>, Error> {
        let Some(row) = self.store.task(task)? else { return Ok(None) };
        if row.status != TaskStatus::Todo || row.driver != Driver::Service {
            return Ok(None);
        }
        let tasks = self.live_of(row.session_id)?;
        let free = self.limits.tasks_per_session.saturating_sub(at_work(&tasks));
        let waiting: Vec<_> = tasks.iter().filter(|task| task.status == TaskStatus::Todo).collect();
        let place = waiting.iter().position(|other| other.id == task);
        Ok(place.filter(|place| *place >= free).map(|place| place - free + 1))
    }

    /// The live tasks of a session that a service drives, oldest first, sub-agents left out.
    pub(crate) fn live_of(&self, session: SessionId) -> Result<Vec<TaskRow>, Error> {
        let filter = Filter {
            session: Some(session),
            live: true,
            roots: true,
            driver: Some(Driver::Service),
            ..Filter::default()
        };
        let mut tasks = self.store.tasks(&filter)?;
        tasks.reverse();
        Ok(tasks)
    }
}

/// How many of them have a place: begun, not ended and not parked.
pub(crate) fn at_work(tasks: &[TaskRow]) -> usize {
    let has_place = |status| match status {
        TaskStatus::Running
        | TaskStatus::Verifying
        | TaskStatus::Reviewing
        | TaskStatus::Blocked
        | TaskStatus::Retrying => true,
        TaskStatus::Todo
        | TaskStatus::Paused
        | TaskStatus::Done
        | TaskStatus::Failed
        | TaskStatus::Cancelled => false,
    };
    tasks.iter().filter(|task| has_place(task.status)).count()
}
