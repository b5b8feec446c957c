//! The checks of the installation, kept for a while: they take seconds, and a page is drawn often.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Mutex;
use windlass_coordinator::Coordinator;
use windlass_coordinator::health::Check;

/// What the checks have found.
#[derive(Clone)]
pub struct CheckReport {
    pub at: Timestamp,
    pub checks: Arc<[Check]>,
}

/// The last report. Cheap to clone.
#[derive(Clone, Default)]
pub struct Checkup {
    // Whoever asks while checks run waits for this lock, and gets their report.
    last: Arc<Mutex<Option<CheckReport>>>,
}

impl Checkup {
    /// A report of at most this age; runs the checks if the last one is older.
    pub async fn report(&self, coordinator: &Coordinator, max_age: Duration) -> CheckReport {
        let mut last = self.last.lock().await;
        let is_recent = |report: &&CheckReport| {
            let age = coordinator.now().duration_since(report.at);
            age.unsigned_abs() <= max_age
        };
        if let Some(report) = last.as_ref().filter(is_recent) {
            return report.clone();
        }
        // The directory that the server works in, as `windlass doctor` takes it.
        let checks = coordinator.health().check(Path::new(".")).await;
        let report = CheckReport { at: coordinator.now(), checks: checks.into() };
        *last = Some(report.clone());
        report
    }
}
