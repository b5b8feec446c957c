//! Control of tasks from any process: pausing, resuming, cancelling, and what waits for a signal.

use std::fmt;

use windlass_core::ending::Ending;
use windlass_core::event::Driver;
use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Filter, TaskRow};

use crate::{Coordinator, Error};

/// Pausing, resuming and cancelling.
#[derive(Clone, Copy)]
pub struct Controls<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Controls<'_> {
    /// Steers a task, whether or not somebody drives it; returns what became of it.
    pub async fn steer(
        self,
        task: TaskId,
        control: Control,
        by: &str,
    ) -> Result<ControlOutcome, Error> {
        let id = InjectionId::new(self.coordinator.now());
        self.steer_as(id, task, control, by).await
    }

    /// The same by an id of the sender's, so that a repeated delivery has no further effect.
    pub(crate) async fn steer_as(
        self,
        id: InjectionId,
        task: TaskId,
        control: Control,
        by: &str,
    ) -> Result<ControlOutcome, Error> {
        let injection = Injection::control(id, control.clone()).from(by);
        self.coordinator.messages().inject(task, injection).await?;
        let row = self.coordinator.tasks().get(task)?;
        let is_child = row.as_ref().is_some_and(|row| row.parent_id.is_some());
        if control == Control::Resume && is_child {
            // The agent above it takes the mail to it; that one may be parked because of it.
            self.resume(task, by).await?;
            return Ok(ControlOutcome::Queued(control));
        }
        // A task of the service is resumed by the worker that takes it.
        if control == Control::Resume && row.is_some_and(|row| row.driver == Driver::Service) {
            return Ok(ControlOutcome::Queued(control));
        }
        match self.settle(task).await {
            Ok(status) => Ok(ControlOutcome::Applied(status)),
            // Its driver will find the signal.
            Err(Error::Store(windlass_store::Error::Driven { .. })) => {
                Ok(ControlOutcome::Queued(control))
            }
            Err(error) => Err(error),
        }
    }

    /// Resumes a task that a person or its deadline has paused (ES-075), before somebody drives it. A task
    /// that stands still for another reason needs no signal. What is resumed is the agent that is named, and those
    /// above it; of a tree, every agent in it.
    pub async fn resume(self, task: TaskId, by: &str) -> Result<(), Error> {
        let tasks = self.coordinator.tasks();
        let root = tasks.root(task)?;
        let is_paused = |row: &TaskRow| {
            let by_signal = matches!(row.reason, StatusReason::User | StatusReason::Deadline);
            row.status == TaskStatus::Paused && by_signal
        };
        let below = Filter { root: Some(root), live: true, ..Filter::default() };
        let rows = tasks.rows(&below)?;
        let is_driven = tasks.driving_process(root)?.is_some();
        let is_root_paused = rows.iter().any(|row| row.id == root && is_paused(row));
        for row in rows.iter().filter(|row| is_paused(row)) {
            let is_meant = match row.parent_id {
                None => !is_driven,
                Some(_) if row.id == task => true,
                Some(_) => task == root && is_root_paused && !is_driven,
            };
            let pending = self.coordinator.store.mailbox().pending(row.id)?;
            let is_signalled = pending.iter().any(|one| one.control == Some(Control::Resume));
            if is_meant && !is_signalled {
                let id = InjectionId::new(self.coordinator.now());
                let injection = Injection::control(id, Control::Resume).from(by);
                self.coordinator.messages().inject(row.id, injection).await?;
            }
        }
        Ok(())
    }

    /// Carries out the signals of a task that nobody drives; returns the status it then has.
    pub(crate) async fn settle(self, task: TaskId) -> Result<TaskStatus, Error> {
        let owner = self.coordinator.store.owners().own(task).await?;
        owner.stream(task)?.drain(self.coordinator.now()).await?;
        let state = self.coordinator.tasks().state(task)?;
        match Ending::from_signal(&state) {
            Some(ending) => self.conclude(&owner, &state, &ending).await,
            None => Ok(state.status),
        }
    }
}

/// What became of a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlOutcome {
    /// Nobody drives the task, so it was carried out here.
    Applied(TaskStatus),
    /// The process that drives the task will carry it out.
    Queued(Control),
}

impl fmt::Display for ControlOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied(status) => write!(f, "is {status}"),
            Self::Queued(Control::Pause) => f.write_str("pauses after its current step"),
            Self::Queued(Control::Interrupt) => f.write_str("stops what it does"),
            Self::Queued(Control::Cancel { .. }) => f.write_str("is being cancelled"),
            Self::Queued(Control::Resume) => f.write_str("will be resumed"),
            Self::Queued(Control::Steer { .. }) => f.write_str("reads it after its current step"),
            Self::Queued(Control::Revoke { .. }) => f.write_str("will ask again"),
            Self::Queued(Control::Watch { .. }) => f.write_str("will be checked on"),
            Self::Queued(Control::Unwatch { .. }) => f.write_str("is no longer checked on"),
            Self::Queued(Control::UseModel { model }) => {
                write!(f, "will use `{model}` from its next request")
            }
            Self::Queued(Control::ChangeAxes { .. }) => f.write_str("will change its mode"),
            Self::Queued(Control::Grant { .. }) => f.write_str("will not ask about that again"),
            Self::Queued(Control::Expire { .. }) => f.write_str("is out of time"),
        }
    }
}
