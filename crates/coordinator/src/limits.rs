//! How much may run at once, and how long things may take (ES-015, ES-090…092).
//!
//! Only what a service runs is counted: a person who types `windlass run` has decided (§15.19).

use std::time::Duration;

use windlass_core::axes::{Axes, PermissionProfile};

/// The coordinator's limits; configuration `[coordinator]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoordinatorLimits {
    /// Tasks of one session at work at once; the next one is queued.
    pub tasks_per_session: usize,
    /// Sessions of one user with live tasks; the next one is refused.
    pub sessions_per_user: usize,
    /// Tasks that wait for a service to start them; the next one is refused. Each is a row and a directory,
    /// and a task at the end of a longer queue would be out of date when it starts.
    pub waiting_tasks: usize,
    /// How long a session is served before another process may.
    pub session_lease: Duration,
    /// How long a process that drives a service's task may send no heartbeat before another takes it over.
    pub task_lease: Duration,
    /// How long the router's model may take; then the fallback decides. Shorter than a lease.
    pub router: Duration,
    /// How long a driven task may send no heartbeat before it is failed from outside (ES-033). Longer
    /// than the longest call plus a stalled stream.
    pub hang: Duration,
    /// Tasks that a schedule starts within `autonomous_time`; a run beyond that is left out (MS-207).
    pub autonomous_tasks: usize,
    /// How long autonomous work may continue before a person has to look.
    pub autonomous_time: Duration,
    /// How often a failed task may be retried (MS-132); `agent.max_retries`.
    pub retries: u32,
    /// How much tasks may do without asking, where who hands them in does not say; `policy.profile`.
    pub profile: PermissionProfile,
    /// Whether the profile `unrestricted` may be chosen; `policy.allow_unrestricted`.
    pub unrestricted: bool,
}

impl Default for CoordinatorLimits {
    fn default() -> Self {
        Self {
            tasks_per_session: 3,
            sessions_per_user: 5,
            waiting_tasks: 10_000,
            session_lease: Duration::from_secs(30),
            task_lease: Duration::from_secs(30),
            router: Duration::from_secs(20),
            hang: Duration::from_secs(1200),
            autonomous_tasks: 25,
            autonomous_time: Duration::from_secs(8 * 3600),
            retries: 3,
            profile: Axes::headless().permission_profile,
            unrestricted: false,
        }
    }
}
