//! What follows when a task of a plan begins and when a segment of it has ended.

use windlass_core::axes::RunControl;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::event::Driver;
use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::Injection;
use windlass_core::state::TaskState;
use windlass_core::status::TaskStatus;
use windlass_plan::snapshots_notice;
use windlass_store::PlanRow;

use super::Plans;
use super::run::{task_id, tasks_of};
use crate::Error;

impl Plans<'_> {
    /// Step 0: what the tasks before it left is put before a task that begins (PL-058, PL-059). Repeated, it has no
    /// further effect.
    pub(crate) async fn brief(self, state: &TaskState) -> Result<(), Error> {
        let Some(own) = state.created.plan.as_ref().filter(|_| state.created.depth == 0) else {
            return Ok(());
        };
        let is_follow_up = state.created.continues.is_some();
        let Some(plan) = self.get(own.plan)?.filter(|_| !state.attempts.started && !is_follow_up)
        else {
            return Ok(());
        };
        let snapshots = match self.notes_of(plan).snapshots_before(&own.key) {
            Ok(snapshots) => snapshots,
            Err(error) => {
                // One that somebody has edited by hand must not stop the work; the agent reads why it is missing.
                tracing::warn!(task_id = %state.id(), %error, "a snapshot cannot be read");
                Vec::new()
            }
        };
        let id = InjectionId::derived(&state.id().to_string(), "step 0");
        let notice = Injection::notice(id, snapshots_notice(&snapshots), None);
        self.coordinator.messages().inject(state.id(), notice).await?;
        Ok(())
    }

    /// A segment of a task has ended: one that failed is tried again, as often as it may be and nobody has to look
    /// first (C-03); one that is done leaves a snapshot.
    pub(crate) async fn settle(self, result: &TaskResult) -> Result<(), Error> {
        if !self.has_part(result.task_id)? {
            return Ok(());
        }
        let tasks = self.coordinator.tasks();
        let Some(row) = tasks.get(result.task_id)? else { return Ok(()) };
        match result.status {
            ResultStatus::Failed if row.status == TaskStatus::Failed => {
                let state = tasks.state(row.id)?;
                let may_retry = state.created.plan.is_some()
                    && state.axes.run_control == RunControl::Autonomous
                    && state.attempts.retries < state.created.max_retries;
                if may_retry {
                    self.try_again(row.id, state.created.driver).await?;
                }
                Ok(())
            }
            ResultStatus::Completed => self.leave_snapshot(row.id).await,
            ResultStatus::Failed
            | ResultStatus::BlockedUser
            | ResultStatus::Paused
            | ResultStatus::Cancelled => Ok(()),
        }
    }

    /// Whether a task belongs to a plan, as its first event says: most do not, and their journals need not be read.
    fn has_part(self, task: TaskId) -> Result<bool, Error> {
        let created = self.coordinator.store.journal().created(task)?;
        Ok(created.is_some_and(|created| created.plan.is_some()))
    }

    async fn try_again(self, task: TaskId, driver: Driver) -> Result<(), Error> {
        match self.coordinator.tasks().retry(task).await {
            // Another process has seen the same.
            Err(Error::Store(windlass_store::Error::Driven { .. }) | Error::NotFailed { .. }) => {
                return Ok(());
            }
            tried => tried?,
        }
        if driver == Driver::Service {
            let now = self.coordinator.now();
            self.coordinator.store.scheduler().enqueue(task, now, None).await?;
            self.coordinator.queue().wake();
        }
        Ok(())
    }

    /// A task that ended without step 99 leaves what its state says (PL-062).
    async fn leave_snapshot(self, task: TaskId) -> Result<(), Error> {
        let state = self.coordinator.tasks().state(task)?;
        let Some(own) = &state.created.plan else { return Ok(()) };
        let Some(plan) = self.get(own.plan)? else { return Ok(()) };
        if let Err(error) = self.notes_of(plan).save_if_missing(&own.key, &state).await {
            tracing::warn!(%task, %error, "the snapshot of a task could not be saved");
        }
        Ok(())
    }

    /// What a process that was killed has left undone after the end of a task.
    pub(super) async fn catch_up(self, plan: &PlanRow) -> Result<(), Error> {
        let Some(session) = plan.session else { return Ok(()) };
        for task in tasks_of(plan)? {
            let id = task_id(session, &task);
            let Some(row) = self.coordinator.tasks().get(id)? else { continue };
            match row.status {
                TaskStatus::Done => self.leave_snapshot(id).await?,
                TaskStatus::Failed => {
                    if let Some(result) = self.coordinator.tasks().last_result(id)? {
                        self.settle(&result).await?;
                    }
                }
                TaskStatus::Todo
                | TaskStatus::Running
                | TaskStatus::Verifying
                | TaskStatus::Reviewing
                | TaskStatus::Blocked
                | TaskStatus::Paused
                | TaskStatus::Retrying
                | TaskStatus::Cancelled => {}
            }
        }
        Ok(())
    }
}
