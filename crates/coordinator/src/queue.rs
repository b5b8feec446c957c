//! The queue of service tasks: `queued → due → claimed → dispatched → consumed`, or `expired` (MS-139), and
//! which of them a process should drive now. The kernel lock of each task decides who does. Lifecycle is
//! elsewhere: a queued task's status is `todo` (MS-142).

use std::collections::HashSet;

use jiff::Zoned;
use windlass_core::command::TaskResult;
use windlass_core::event::Driver;
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};

use crate::{Coordinator, Error};

/// Which tasks of the service wait for a process.
#[derive(Clone, Copy)]
pub struct Queue<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Queue<'_> {
    /// A task's place in the queue of its session, from 1; `None` when it need not wait.
    pub fn place(self, task: TaskId) -> Result<Option<usize>, Error> {
        let per_session = self.coordinator.limits.tasks_per_session;
        Ok(self.coordinator.store.scheduler().queue_place(task, per_session)?)
    }

    /// Whether a service or a worker of this data directory runs on this machine.
    pub fn has_service(self) -> Result<bool, Error> {
        Ok(self.coordinator.store.owners().has_service()?)
    }

    /// Says that something may be ready to be driven now.
    pub fn wake(self) {
        self.coordinator.work.notify_waiters();
    }

    /// Resolves when this process has something new to drive. What other processes do is seen through the
    /// store's changes.
    pub async fn wait_for_work(self) {
        self.coordinator.work.notified().await;
    }

    /// Refuses a task too many for the service to start.
    pub(crate) fn check_limit(self) -> Result<(), Error> {
        let limit = self.coordinator.limits.waiting_tasks;
        match self.coordinator.store.scheduler().has_waiting_tasks(limit)? {
            true => Err(Error::TooManyWaiting { limit }),
            false => Ok(()),
        }
    }

    /// Tasks that a service should drive now and nobody drives: interrupted ones, then new ones for which there is a
    /// place, and parked ones that have mail to continue with or whose time has come.
    pub fn ready(self) -> Result<Vec<TaskId>, Error> {
        let mut ready = self.interrupted(&HashSet::new())?;
        ready.extend(self.ready_tasks(usize::MAX)?);
        Ok(ready)
    }

    /// Makes the limits of this process those that ready tasks are chosen by.
    pub(crate) async fn apply_limits(self) -> Result<(), Error> {
        let per_session = self.coordinator.limits.tasks_per_session;
        Ok(self.coordinator.store.scheduler().limit_sessions(per_session).await?)
    }

    /// Tasks that wait for nothing but a process, oldest first; at most `limit`. Cheap, and asked often.
    pub(crate) fn ready_tasks(self, limit: usize) -> Result<Vec<TaskId>, Error> {
        Ok(self.coordinator.store.scheduler().ready_tasks(self.coordinator.now(), limit)?)
    }

    /// Tasks that should be running and have lost their process: one look at the lock of each but `ours`.
    pub(crate) fn interrupted(self, ours: &HashSet<TaskId>) -> Result<Vec<TaskId>, Error> {
        let mut lost = Vec::new();
        for task in self.coordinator.store.scheduler().running_tasks()? {
            if !ours.contains(&task)
                && self.coordinator.store.owners().driving_process(task)?.is_none()
            {
                lost.push(task);
            }
        }
        Ok(lost)
    }

    /// Takes a ready task for a worker; `false` when another worker has it.
    pub async fn claim(self, task: TaskId, worker: &str) -> Result<bool, Error> {
        Ok(self.coordinator.store.scheduler().claim(task, worker).await?)
    }

    /// This process holds a task's lock and prepares to run it. A claim that a dead worker left does not
    /// count then: the lock decides.
    pub(crate) async fn mark_claimed(self, state: &TaskState) -> Result<(), Error> {
        if state.created.driver == Driver::Service {
            self.claim(state.id(), &std::process::id().to_string()).await?;
        }
        Ok(())
    }

    /// A segment of a task begins here.
    pub(crate) async fn mark_dispatched(self, state: &TaskState) -> Result<(), Error> {
        if state.created.driver == Driver::Service {
            let by = std::process::id().to_string();
            self.coordinator
                .store
                .scheduler()
                .mark_dispatched(state.id(), &by, self.coordinator.now())
                .await?;
        }
        Ok(())
    }

    /// A segment of a task ended here.
    pub(crate) async fn finish_segment(
        self,
        state: &TaskState,
        result: &TaskResult,
    ) -> Result<(), Error> {
        let task = result.task_id;
        if state.created.driver == Driver::Service {
            self.coordinator.store.scheduler().mark_consumed(task, self.coordinator.now()).await?;
        }
        let row = self.coordinator.store.tasks().get(task)?;
        // Parked until its next check, or until what it waits for is tried again.
        let has_time =
            |reason: StatusReason| reason == StatusReason::Schedule || reason.resumes_at_a_time();
        let parked = row.filter(|row| row.status == TaskStatus::Paused && has_time(row.reason));
        if let Some(row) = parked {
            self.requeue_at(task, row.next_action_at.as_ref()).await?;
        }
        self.wake();
        Ok(())
    }

    /// Puts a task that a schedule looks after back into the queue.
    pub(crate) async fn requeue_at(self, task: TaskId, next: Option<&Zoned>) -> Result<(), Error> {
        if let Some(next) = next {
            self.coordinator.store.scheduler().enqueue(task, next.timestamp(), None).await?;
        }
        Ok(())
    }
}
