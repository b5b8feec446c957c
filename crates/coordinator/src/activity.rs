//! What this process does with tasks, for a log: which it starts, and how each segment ends. Like all previews it is a
//! broadcast: a slow reader misses some.

use tokio::sync::broadcast;
use windlass_core::command::TaskResult;
use windlass_core::id::TaskId;

/// The beginning or the end of a segment that this process drives.
#[derive(Clone, Debug)]
pub enum Activity {
    /// A segment of a task began.
    Started {
        task: TaskId,
        goal: String,
        /// Whether it ran before.
        is_resumed: bool,
    },
    /// A segment of a task ended.
    Ended(Box<TaskResult>),
    /// So many were missed.
    Missed(u64),
}

/// What this process does with tasks, as it happens.
pub struct ActivityFeed(pub(crate) broadcast::Receiver<Activity>);

impl ActivityFeed {
    /// The next thing; waits for it.
    pub async fn next(&mut self) -> Activity {
        match self.0.recv().await {
            Ok(activity) => activity,
            Err(broadcast::error::RecvError::Lagged(missed)) => Activity::Missed(missed),
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}
