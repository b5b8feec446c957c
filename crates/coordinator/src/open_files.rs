//! How many files this process may have open, and how many tasks fit into that.
//!
//! Invariant: a task that does not fit waits, instead of starting and failing because no file can be opened.

use std::fs::File;
use std::os::fd::AsRawFd as _;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files that a task has open: its lock, its helper's channel, its trace, its connection to the model, its calls.
const PER_TASK: u64 = 16;

/// Files that the process itself needs: the database, the bus, sockets, what it reads now and then.
const RESERVED: u64 = 64;

/// Lets this process open as many files as it may. Most systems allow few at first and many when asked.
pub fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        // What is refused leaves the limit as it is, and tasks wait for it.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// How many tasks fit at once; at least one is tried.
pub fn task_capacity() -> usize {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return usize::MAX };
    let tasks = limit.saturating_sub(RESERVED) / PER_TASK;
    usize::try_from(tasks).unwrap_or(usize::MAX).max(1)
}

/// Whether one more task finds enough files to open.
pub(crate) fn has_room() -> bool {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return true };
    let Ok(probe) = File::open("/dev/null") else { return false };
    // The kernel gives the lowest free number: while that is low, so is the count.
    let lowest = u64::try_from(probe.as_raw_fd()).unwrap_or(0);
    if lowest < limit / 2 {
        return true;
    }
    let open = std::fs::read_dir("/proc/self/fd").map_or(u64::MAX, |all| all.count() as u64);
    open.saturating_add(PER_TASK + RESERVED / 2) <= limit
}

/// How many connections of clients fit besides tasks: a quarter of all files.
pub fn connection_capacity() -> usize {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return usize::MAX };
    usize::try_from(limit / 4).unwrap_or(usize::MAX).max(16)
}
