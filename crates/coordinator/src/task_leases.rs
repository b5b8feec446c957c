//! Finds processes that have stopped: one that drives a service's tasks and sends no heartbeat for a whole lease
//! loses them to another one (§15.3).
//!
//! Invariants:
//! - A lease is measured by the running time of whoever looks: time in which the machine slept, or in which the
//!   looking process was stopped itself, counts for nobody.
//! - A task is taken over only after its old commands have ended: the helper ends them one lease after the last sign
//!   of life, and we wait for longer than that.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use windlass_core::id::TaskId;
use windlass_store::Pulse;

/// Signs of life within one lease.
const BEATS_PER_LEASE: u32 = 6;

/// The longest time between two heartbeats, which people see too.
const LONGEST_BEAT: Duration = Duration::from_secs(5);

/// How often a process that drives tasks says so.
pub(crate) fn beat_interval(lease: Duration) -> Duration {
    (lease / BEATS_PER_LEASE).min(LONGEST_BEAT)
}

/// How long a heartbeat lets others wait: a lease, the time until the next sign was due, and what a busy machine
/// may take to end commands.
fn time_until_taken_over(lease: Duration) -> Duration {
    lease + lease / 4
}

/// How long a process that cannot say that it lives keeps its tasks: it lets go before others take them.
pub(crate) fn time_until_let_go(lease: Duration) -> Duration {
    lease / 2
}

/// What this process has seen of the tasks of others.
#[derive(Default)]
pub(crate) struct TaskLeases {
    seen: HashMap<TaskId, LeaseObservation>,
}

struct LeaseObservation {
    pulse: (u64, u32, Timestamp),
    /// The running time at which it was first seen.
    since: Duration,
}

/// A task whose owner has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoppedTask {
    pub(crate) task: TaskId,
    /// The owner that has stopped.
    pub(crate) epoch: u64,
}

impl TaskLeases {
    /// Looks at the heartbeats of others; returns the tasks whose owners have sent none for too long.
    pub(crate) fn observe(
        &mut self,
        now: Duration,
        pulses: &[Pulse],
        lease: Duration,
    ) -> Vec<StoppedTask> {
        let mut stopped = Vec::new();
        let mut seen = HashMap::with_capacity(pulses.len());
        for Pulse { task, epoch, process_pid, last_heartbeat_at } in pulses {
            let pulse = (*epoch, *process_pid, *last_heartbeat_at);
            let known = self.seen.get(task).filter(|known| known.pulse == pulse);
            let since = known.map_or(now, |known| known.since);
            if now.saturating_sub(since) >= time_until_taken_over(lease) {
                stopped.push(StoppedTask { task: *task, epoch: *epoch });
            }
            seen.insert(*task, LeaseObservation { pulse, since });
        }
        self.seen = seen;
        stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn pulse(task: TaskId, second: i64) -> Pulse {
        let last_heartbeat_at = Timestamp::from_second(second).unwrap();
        Pulse { task, epoch: 3, process_pid: 7, last_heartbeat_at }
    }

    #[test]
    fn a_silent_owner_loses_its_task_after_more_than_a_lease() {
        let task = TaskId::new(Timestamp::UNIX_EPOCH);
        let mut leases = TaskLeases::default();
        let mut look =
            |now, beat| leases.observe(Duration::from_secs(now), &[pulse(task, beat)], LEASE);
        assert_eq!(look(1_000, 0), []);
        assert_eq!(look(1_030, 0), [], "its commands may still be ending");
        assert_eq!(look(1_036, 5), [], "it lives");
        assert_eq!(look(1_073, 5), []);
        assert_eq!(look(1_074, 5), [StoppedTask { task, epoch: 3 }]);
    }

    #[test]
    fn an_owner_that_just_came_is_new() {
        let task = TaskId::new(Timestamp::UNIX_EPOCH);
        let mut leases = TaskLeases::default();
        assert_eq!(leases.observe(Duration::ZERO, &[pulse(task, 0)], LEASE), []);
        assert_eq!(leases.observe(Duration::from_secs(10), &[], LEASE), []);
        let back = leases.observe(Duration::from_secs(60), &[pulse(task, 0)], LEASE);
        assert_eq!(back, [], "it was away meanwhile");
    }
}
