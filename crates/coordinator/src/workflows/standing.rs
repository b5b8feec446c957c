//! The state of runs and of their worktrees. Runs that need a different action have different words: waiting, paused,
//! stalled (it should be running, and no process works on it), and ended but not cleaned up.

use std::path::Path;

use windlass_core::event::{Driver, WorktreeChanged, WorktreeState};
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;
use windlass_core::string_enum;
use windlass_store::TaskRow;

use crate::parallel::WorkerView;
use crate::{Coordinator, Error};

string_enum! {
    /// Where a run or one of its worktrees stands.
    Standing ("standing") {
        /// Somebody works on it.
        Working = "working",
        /// The service begins or continues it.
        Queued = "queued",
        /// A person has to answer, or to decide after a failure.
        Waiting = "waiting",
        Paused = "paused",
        /// It should be at work, and nobody works on it or sends a heartbeat.
        Stalled = "stalled",
        /// Its run has ended, and it is still there.
        LeftOver = "left_over",
        /// It has ended, and nothing of it is left.
        Ended = "ended",
    }
}

impl Standing {
    /// What a person reads.
    pub const fn words(self) -> &'static str {
        match self {
            Self::LeftOver => "not cleaned up",
            other => other.as_str(),
        }
    }

    /// What the status of a run or the state of a worktree does not say by itself.
    pub const fn remark(self) -> Option<&'static str> {
        match self {
            Self::Stalled => Some("stalled: nobody works on it"),
            Self::LeftOver => Some("not cleaned up"),
            Self::Working | Self::Queued | Self::Waiting | Self::Paused | Self::Ended => None,
        }
    }

    /// Where a run stands. `workers` are those of every run.
    pub(super) fn of_run<'t>(
        coordinator: &Coordinator,
        row: &TaskRow,
        trees: impl IntoIterator<Item = &'t WorktreeChanged>,
        workers: &[WorkerView],
    ) -> Result<Self, Error> {
        Ok(match row.status {
            TaskStatus::Running | TaskStatus::Verifying | TaskStatus::Reviewing => {
                let is_silent = |worker: &WorkerView| worker.run == row.id && !worker.alive;
                let is_working = is_driven(coordinator, row.id)? && !workers.iter().any(is_silent);
                if is_working { Self::Working } else { Self::Stalled }
            }
            TaskStatus::Todo | TaskStatus::Retrying => match row.driver {
                Driver::Service => Self::Queued,
                Driver::Foreground if is_driven(coordinator, row.id)? => Self::Working,
                Driver::Foreground => Self::Stalled,
            },
            TaskStatus::Blocked => Self::Waiting,
            TaskStatus::Paused => Self::Paused,
            TaskStatus::Done | TaskStatus::Failed | TaskStatus::Cancelled => {
                match trees.into_iter().any(is_there) {
                    true => Self::LeftOver,
                    false => Self::Ended,
                }
            }
        })
    }

    /// The state of a worktree whose run is in this state.
    pub(super) fn of_worktree(self, tree: &WorktreeChanged, workers: &[WorkerView]) -> Self {
        let is_silent = |worker: &WorkerView| worker.worktree_path == tree.path && !worker.alive;
        match is_there(tree) {
            false => Self::Ended,
            true if self == Self::Working && workers.iter().any(is_silent) => Self::Stalled,
            true => self,
        }
    }
}

fn is_driven(coordinator: &Coordinator, run: TaskId) -> Result<bool, Error> {
    Ok(coordinator.tasks().driving_process(run)?.is_some())
}

/// Whether a worktree takes up space.
pub(super) fn is_there(tree: &WorktreeChanged) -> bool {
    let is_ours = !matches!(tree.state, WorktreeState::Removed | WorktreeState::Released);
    is_ours && Path::new(&tree.path).exists()
}
