//! The task that is driven in this process.

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

/// Drives one task at a time.
pub(super) struct Driver {
    coordinator: Coordinator,
    drives: JoinSet<(TaskId, Result<TaskResult, Error>)>,
    /// The task, and what stops it.
    driving: Option<(TaskId, CancellationToken)>,
}

impl Driver {
    pub fn new(coordinator: Coordinator) -> Self {
        Self { coordinator, drives: JoinSet::new(), driving: None }
    }

    /// Drives a task here, unless somebody drives it or nothing is left to do; whether it does.
    pub fn start(&mut self, task: TaskId, user: &str) -> Result<bool, Error> {
        let tasks = self.coordinator.tasks();
        let is_here = self.driving.as_ref().is_some_and(|(driven, _)| *driven == task);
        let row = tasks.get(task)?;
        let is_service = row.as_ref().is_some_and(|row| row.driver == DrivenBy::Service);
        let is_driven = tasks.driving_process(task)?.is_some();
        if is_here || is_service || is_driven || row.is_none_or(|row| row.status.is_terminal()) {
            return Ok(false);
        }
        let stop = CancellationToken::new();
        self.driving = Some((task, stop.clone()));
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
                    self.driving.take_if(|(driven, _)| *driven == task);
                    return (task, result);
                }
                // A panic of an agent is its task's failure, which the journal says.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Lets the running step end and no other begin; the task that is then parked.
    pub fn stop(&self) -> Option<TaskId> {
        let (task, stop) = self.driving.as_ref()?;
        stop.cancel();
        Some(*task)
    }

    /// Waits until what was stopped is parked.
    pub async fn wait_until_parked(&mut self) {
        let parked = async { while self.drives.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(PARKING, parked).await;
        self.driving = None;
    }

    /// Leaves a task to itself: it is stopped, and nobody waits for it.
    pub fn leave(&mut self) {
        if let Some((_, stop)) = self.driving.take() {
            stop.cancel();
        }
    }
}
