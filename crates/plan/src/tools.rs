//! The tools that tasks of a plan have besides all others: they log issues and decisions, and save the snapshot of
//! step 99. What they take is what the commands take.
//!
//! Invariant: a call that starts again after a crash writes the same rows and the same file, because ids come from
//! the call.

mod decision;
mod issue;
mod save_snapshot;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::planning::PlanTask;
use windlass_core::policy::{Assessment, Class};
use windlass_store::Store;
use windlass_tools::{Prepared, Tool};

/// Where a task of a plan leaves what it logs.
#[derive(Clone)]
pub struct PlanLog {
    pub store: Store,
    /// The directory that the plan belongs to.
    pub project: PathBuf,
    pub place: PlanTask,
    /// Reads the time.
    pub now: fn() -> Timestamp,
}

impl PlanLog {
    fn project_name(&self) -> String {
        self.project.display().to_string()
    }
}

/// The tools of a task, in the order the model sees them.
pub fn all(log: &PlanLog) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(issue::LogIssue(log.clone())),
        Arc::new(decision::LogDecision(log.clone())),
        Arc::new(save_snapshot::SaveSnapshot(log.clone())),
    ]
}

/// A call that writes down something about the work.
fn note(
    reason: &str,
    act: impl FnOnce() -> BoxFuture<'static, Outcome> + Send + 'static,
) -> Prepared {
    Prepared::new(Assessment::of(Class::Note, reason), Recovery::Rerun, Box::new(act))
}

/// What an agent reads when a row could not be written.
fn not_written(error: &windlass_store::Error) -> Outcome {
    Outcome::failure(format!("It was not written down: {error}."))
}
