//! Process 1 of a container: keeps it open for as long as a helper works in it, and no longer.
//!
//! Invariants:
//! - An abandoned container ends automatically: when nothing but this process has run for [`IDLE_LIMIT`].
//! - An orphan that comes here has lost its helper, and is killed.

use std::fs;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{DumpableBehavior, Pid, Signal};

use crate::process_tree;
use crate::sys::{self, ChildExit, Signals};

/// How long a container waits for its next helper. An engine that restarts is back by then, and a windlass
/// that was killed for good has left nothing running.
const IDLE_LIMIT: Duration = Duration::from_secs(120);

const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Waits for the end of the container's work.
pub fn run() -> ! {
    // Commands run as the same user, and must not see its memory or environment.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let Ok(signals) = Signals::open(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT]) else {
        std::process::exit(1)
    };
    let mut alone_since = Instant::now();
    loop {
        sys::wait(&mut [PollFd::new(&signals, PollFlags::IN)], Some(CHECK_INTERVAL));
        let stop = signals.drain().iter().any(|signal| signal.number != libc::SIGCHLD);
        while matches!(sys::reap(), ChildExit::Child(..)) {}
        for orphan in process_tree::children(rustix::process::getpid()) {
            sys::kill(orphan, Signal::KILL);
        }
        if !is_alone() {
            alone_since = Instant::now();
        }
        if stop || alone_since.elapsed() > IDLE_LIMIT {
            // The kernel ends the whole container with its process 1.
            std::process::exit(0);
        }
    }
}

fn is_alone() -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let own = rustix::process::getpid();
    let mut others = entries
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter(|&pid| pid != own);
    others.next().is_none()
}
