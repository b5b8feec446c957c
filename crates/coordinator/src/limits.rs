//! How much may go on at once, and how long things may take (ES-015, ES-090…092).
//!
//! Only what a service runs is counted: a person who types `windlass run` has decided (§15.19).

use std::time::Duration;

use windlass_core::axes::{Axes, PermissionProfile};
use windlass_core::id::{SessionId, TaskId};

use crate::{Coordinator, Error, Manner};

/// The coordinator's limits; configuration `[coordinator]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tasks of one session at work at once; the next one is queued.
    pub tasks_per_session: usize,
    /// Sessions of one user with live tasks; the next one is refused.
    pub sessions_per_user: usize,
    /// Tasks that wait for a service to start them; the next one is refused. Each is a row and a directory,
    /// and what waits behind so many would be out of date when its turn comes.
    pub waiting_tasks: usize,
    /// How long a session is served before another process may.
    pub session_lease: Duration,
    /// How long the router's model may take; then the fallback decides. Shorter than a lease.
    pub router: Duration,
    /// How long a driven task may give no sign of life before it is failed from outside (ES-033). Longer
    /// than the longest call plus a stalled stream.
    pub hang: Duration,
    /// Tasks that a schedule starts within `autonomous_time`; a run beyond that is left out (MS-207).
    pub autonomous_tasks: usize,
    /// How long autonomous work goes on before a person has to look.
    pub autonomous_time: Duration,
    /// How often a failed task may be retried (MS-132); `agent.max_retries`.
    pub retries: u32,
    /// How much tasks may do without asking, where who hands them in does not say; `policy.profile`.
    pub profile: PermissionProfile,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tasks_per_session: 3,
            sessions_per_user: 5,
            waiting_tasks: 10_000,
            session_lease: Duration::from_secs(30),
            router: Duration::from_secs(20),
            hang: Duration::from_secs(1200),
            autonomous_tasks: 25,
            autonomous_time: Duration::from_secs(8 * 3600),
            retries: 3,
            profile: Axes::headless().permission_profile,
        }
    }
}

impl Coordinator {
    /// The same, with other limits.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How a command is carried out about which nobody says more.
    pub fn manner(&self) -> Manner {
        let axes = Axes { permission_profile: self.limits.profile, ..Axes::headless() };
        Manner { axes, ..Manner::default() }
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Refuses a session too many of one user; a session that has live tasks already counts as had.
    pub(crate) fn check_sessions(&self, user: &str, session: SessionId) -> Result<(), Error> {
        let limit = self.limits.sessions_per_user;
        match self.store.sessions().count_other_live(user, session)? >= limit {
            true => Err(Error::TooManySessions { user: user.to_owned(), limit }),
            false => Ok(()),
        }
    }

    /// Refuses a task too many for the service to start.
    pub(crate) fn check_waiting(&self) -> Result<(), Error> {
        let limit = self.limits.waiting_tasks;
        match self.store.scheduler().tasks_wait(limit)? {
            true => Err(Error::TooManyWaiting { limit }),
            false => Ok(()),
        }
    }

    /// A task's place in the queue of its session, from 1; `None` when it need not wait.
    pub fn place(&self, task: TaskId) -> Result<Option<usize>, Error> {
        Ok(self.store.scheduler().queue_place(task, self.limits.tasks_per_session)?)
    }
}
