//! A number that only grows, waited for from threads and from async code alike.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

/// How long a test may wait for anything before it is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Signal {
    value: Mutex<usize>,
    changed: Condvar,
    notify: Notify,
}

impl Signal {
    pub fn raise(&self) -> usize {
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        *value += 1;
        self.changed.notify_all();
        self.notify.notify_waiters();
        *value
    }

    pub fn value(&self) -> usize {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the number to be at least `target`, however long it takes.
    pub async fn reach(&self, target: usize) {
        loop {
            // Made before looking, so that no change falls in between.
            let changed = self.notify.notified();
            if self.value() >= target {
                return;
            }
            changed.await;
        }
    }

    /// As `reach`, but a failed test when it takes too long.
    pub async fn expect(&self, target: usize, what: &str) {
        if tokio::time::timeout(PATIENCE, self.reach(target)).await.is_err() {
            panic!("waited too long for {what}: {} of {target}", self.value());
        }
    }

    /// As `expect`, from a thread without a runtime.
    pub fn expect_blocking(&self, target: usize, what: &str) {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(value, PATIENCE, |value| *value < target);
        let (value, late) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!late.timed_out(), "waited too long for {what}: {value} of {target}");
    }
}
