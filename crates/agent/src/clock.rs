//! Where the time comes from, so that tests own it: the calendar, and how long this process has been running.
//!
//! Invariant: running time only grows, and only while the process runs. A clock that is set, a machine that
//! sleeps and a process that is stopped leave it as it is.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// How often the system's clock looks whether the process runs.
const TICK: Duration = Duration::from_secs(1);

/// The most that the time between two looks counts: what is longer was not lived through.
const LONGEST_STEP: Duration = Duration::from_secs(3);

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// What the calendar says. It may be set, forwards and back.
    fn now(&self) -> Timestamp;

    /// How long this process has been running since some moment.
    fn running_time(&self) -> Duration;
}

/// A calendar alone, for tests and tools: its running time is the monotonic clock.
impl<F: Fn() -> Timestamp + Send + Sync> Clock for F {
    fn now(&self) -> Timestamp {
        self()
    }

    fn running_time(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

/// The machine's clocks.
#[derive(Default)]
pub struct SystemClock {
    meter: OnceLock<Arc<Meter>>,
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn running_time(&self) -> Duration {
        self.meter.get_or_init(Meter::start).read(Instant::now())
    }
}

/// Adds up the time that the process runs. `CLOCK_MONOTONIC` stands still while the machine sleeps, but not
/// while the process is stopped, so a thread looks every second: a long gap was a stop.
struct Meter {
    counted: Mutex<RunningTime>,
}

struct RunningTime {
    last: Instant,
    total: Duration,
}

impl Meter {
    fn new(now: Instant) -> Self {
        Self { counted: Mutex::new(RunningTime { last: now, total: Duration::ZERO }) }
    }

    fn start() -> Arc<Self> {
        let meter = Arc::new(Self::new(Instant::now()));
        let watched = Arc::downgrade(&meter);
        let ticks = move || {
            while let Some(meter) = Weak::upgrade(&watched) {
                meter.read(Instant::now());
                drop(meter);
                thread::sleep(TICK);
            }
        };
        // Without the thread a long wait counts too little, which fails no task.
        let _ = thread::Builder::new().name("windlass-clock".to_owned()).spawn(ticks);
        meter
    }

    fn read(&self, now: Instant) -> Duration {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let step = now.saturating_duration_since(counted.last);
        counted.last = counted.last.max(now);
        counted.total += step.min(LONGEST_STEP);
        counted.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_process_does_not_run() {
        let start = Instant::now();
        let meter = Meter::new(start);
        let read = |seconds| meter.read(start + Duration::from_secs(seconds)).as_secs();
        assert_eq!((read(1), read(2)), (1, 2));
        assert_eq!(read(3600), 5, "it was stopped for an hour");
        assert_eq!(read(3601), 6);
        assert_eq!(read(3600), 6, "it never runs backwards");
    }
}
