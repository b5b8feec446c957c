//! Process 1 of a container: holds it open for as long as a helper works in it, and no longer.
//!
//! Invariants:
//! - A container that nobody speaks to ends by itself: when nothing but this has run for [`IDLE`].
//! - What comes here as an orphan lost its helper, and is ended.

use std::fs;
use std::time::{Duration, Instant};

use crate::{minder, sys};

/// How long a container waits for its next helper: an engine that restarts is back by then, and a windlass
/// that was killed and is not coming back has left nothing running.
const IDLE: Duration = Duration::from_secs(120);

/// How often it looks around.
const LOOK: i32 = 1000;

/// Waits for the end of the container's work. Never returns.
pub fn hold() -> ! {
    const SIGINT: i32 = 2;
    let heard = [sys::SIGCHLD, sys::SIGTERM, SIGINT];
    sys::block(&heard);
    // Commands run as the same user, and have no business in its memory or environment.
    let _ = sys::set_process(sys::PR_SET_DUMPABLE, 0);
    let Ok(signals) = sys::signals(&heard) else { sys::_exit(1) };
    let mut alone_since = Instant::now();
    loop {
        let mut asked = false;
        sys::wait(&mut [sys::readable(&signals)], LOOK);
        sys::pending(&signals, |number, _| asked |= number != sys::SIGCHLD);
        while matches!(sys::reap(), Ok(Some(_))) {}
        for orphan in minder::children(sys::getpid()) {
            sys::kill(orphan, sys::SIGKILL);
        }
        if !alone() {
            alone_since = Instant::now();
        }
        if asked || alone_since.elapsed() > IDLE {
            // As process 1 of its namespace it takes with it whatever is left.
            sys::_exit(0);
        }
    }
}

/// Whether no other process is there.
fn alone() -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let own = sys::getpid();
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    !pids.into_iter().any(|pid: i32| pid != own)
}
