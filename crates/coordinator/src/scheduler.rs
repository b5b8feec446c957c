//! Where service tasks stand with the scheduler: `queued → due → claimed → dispatched → consumed`, or
//! `expired` (MS-139). Lifecycle is elsewhere: a queued task's status is `todo` (MS-142).

use jiff::Zoned;
use windlass_core::command::TaskResult;
use windlass_core::event::Driver;
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};

use crate::{Coordinator, Error};

impl Coordinator {
    /// Takes a ready task for a worker; `false` when another worker has it.
    pub async fn claim(&self, task: TaskId, worker: &str) -> Result<bool, Error> {
        Ok(self.store.scheduler().claim(task, worker).await?)
    }

    /// This process holds a task's lock and gets ready to run it. A claim that a dead worker left counts
    /// for nothing then: the lock decides.
    pub(crate) async fn taken(&self, state: &TaskState) -> Result<(), Error> {
        if state.created.driver == Driver::Service {
            self.claim(state.id(), &std::process::id().to_string()).await?;
        }
        Ok(())
    }

    /// A segment of a task begins here.
    pub(crate) async fn begun(&self, state: &TaskState) -> Result<(), Error> {
        if state.created.driver == Driver::Service {
            let by = std::process::id().to_string();
            self.store.scheduler().mark_dispatched(state.id(), &by, self.now()).await?;
        }
        Ok(())
    }

    /// A segment of a task ended here.
    pub(crate) async fn segment_over(
        &self,
        state: &TaskState,
        result: &TaskResult,
    ) -> Result<(), Error> {
        let task = result.task_id;
        if state.created.driver == Driver::Service {
            self.store.scheduler().mark_consumed(task, self.now()).await?;
        }
        let row = self.store.tasks().get(task)?;
        let ended = row.as_ref().is_some_and(|row| row.status.is_terminal());
        if ended {
            self.after_the_end(task).await?;
        }
        // Parked until its schedule speaks, or its model's server is to be asked again.
        let by_time = [StatusReason::Schedule, StatusReason::RateLimited];
        let parked =
            row.filter(|row| row.status == TaskStatus::Paused && by_time.contains(&row.reason));
        if let Some(row) = parked {
            self.parked_until(task, row.next_action_at.as_ref()).await?;
        }
        self.wake();
        Ok(())
    }

    /// Puts a task that a schedule looks after back into the queue.
    pub(crate) async fn parked_until(
        &self,
        task: TaskId,
        next: Option<&Zoned>,
    ) -> Result<(), Error> {
        if let Some(next) = next {
            self.store.scheduler().enqueue(task, next.timestamp(), None).await?;
        }
        Ok(())
    }

    /// A task has ended: nothing speaks to it any more.
    pub(crate) async fn after_the_end(&self, task: TaskId) -> Result<(), Error> {
        for row in self.store.schedules().of(task)? {
            self.store.schedules().end(row.schedule.id, "its task has ended").await?;
        }
        Ok(())
    }
}
