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
pub struct Report {
    pub at: Timestamp,
    pub checks: Arc<[Check]>,
}

/// The last report. Cheap to clone.
#[derive(Clone, Default)]
pub struct Checkup {
    // The lock is the wait: who asks while checks run gets their report.
    last: Arc<Mutex<Option<Report>>>,
}

impl Checkup {
    /// A report of at most this age; the checks run where there is none.
    pub async fn report(&self, coordinator: &Coordinator, max_age: Duration) -> Report {
        let mut last = self.last.lock().await;
        let is_recent = |report: &&Report| {
            let age = coordinator.now().duration_since(report.at);
            age.unsigned_abs() <= max_age
        };
        if let Some(report) = last.as_ref().filter(is_recent) {
            return report.clone();
        }
        // The directory that the server works in, as `windlass doctor` takes it.
        let checks = coordinator.health().check(Path::new(".")).await;
        let report = Report { at: coordinator.now(), checks: checks.into() };
        *last = Some(report.clone());
        report
    }
}
