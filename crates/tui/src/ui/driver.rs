//! The tasks that are driven in this process: that of the conversation, and those of conversations before it.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::{Coordinator, Error};
use windlass_core::command::TaskResult;
use windlass_core::event::Driver as DrivenBy;
use windlass_core::id::TaskId;

/// How long leaving waits until the running step has ended and the task is parked. What still runs then ends with this
/// process, and the task is resumed from its journal.
const PARKING: Duration = Duration::from_secs(10);

/// Drives tasks until they end or this process is left.
pub(super) struct Driver {
    coordinator: Coordinator,
    drives: JoinSet<(TaskId, Result<TaskResult, Error>)>,
    /// The tasks, and what stops each.
    driving: Vec<(TaskId, CancellationToken)>,
    /// Sends what is not committed yet to those who watch from elsewhere; ends with this.
    _sharing: JoinSet<()>,
}

impl Driver {
    pub fn new(coordinator: Coordinator) -> Self {
        let (mut sharing, with) = (JoinSet::new(), coordinator.clone());
        sharing.spawn(async move { with.feed().share_previews().await });
        Self { coordinator, drives: JoinSet::new(), driving: Vec::new(), _sharing: sharing }
    }

    /// Drives a task here, unless somebody drives it or nothing is left to do; whether it does.
    pub fn start(&mut self, task: TaskId, user: &str) -> Result<bool, Error> {
        let tasks = self.coordinator.tasks();
        let is_here = self.driving.iter().any(|(driven, _)| *driven == task);
        let row = tasks.get(task)?;
        let is_service = row.as_ref().is_some_and(|row| row.driver == DrivenBy::Service);
        let is_driven = tasks.driving_process(task)?.is_some();
        if is_here || is_service || is_driven || row.is_none_or(|row| row.status.is_terminal()) {
            return Ok(false);
        }
        let stop = CancellationToken::new();
        self.driving.push((task, stop.clone()));
        let (coordinator, user) = (self.coordinator.clone(), user.to_owned());
        self.drives.spawn(async move {
            let resumed = coordinator.control().resume(task, &user).await;
            let result = match resumed {
                Ok(()) => coordinator.tasks().drive(task, &stop).await,
                Err(error) => Err(error),
            };
            (task, result)
        });
        Ok(true)
    }

    /// The end of a segment that was driven here.
    pub async fn ended(&mut self) -> (TaskId, Result<TaskResult, Error>) {
        loop {
            match self.drives.join_next().await {
                Some(Ok((task, result))) => {
                    self.driving.retain(|(driven, _)| *driven != task);
                    return (task, result);
                }
                // A panic of an agent is its task's failure, which the journal says.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Whether another task than this is driven here.
    pub fn has_other(&self, task: Option<TaskId>) -> bool {
        self.driving.iter().any(|(driven, _)| Some(*driven) != task)
    }

    /// Lets the running steps end and no other begin; the tasks that are then parked.
    pub fn stop(&self) -> Vec<TaskId> {
        self.driving.iter().for_each(|(_, stop)| stop.cancel());
        self.driving.iter().map(|(task, _)| *task).collect()
    }

    /// Waits until what was stopped is parked.
    pub async fn wait_until_parked(&mut self) {
        let parked = async { while self.drives.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(PARKING, parked).await;
        self.driving.clear();
    }
}
