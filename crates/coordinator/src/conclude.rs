//! Ending or pausing a task from outside its loop: its status and result are journaled, the agents below a
//! task that has ended are cancelled, and so are its schedules.

use windlass_agent::{report, tree};
use windlass_core::error::ErrorDetails;
use windlass_core::event::{Event, StatusChanged};
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Level, Owner};

use crate::{Coordinator, Error};

/// The status that a task is left in, and why.
pub(crate) struct Conclusion {
    pub(crate) status: TaskStatus,
    pub(crate) reason: StatusReason,
    pub(crate) detail: Option<String>,
    pub(crate) error: Option<ErrorDetails>,
}

impl Conclusion {
    /// A failure with its error.
    pub(crate) fn failed(reason: StatusReason, error: ErrorDetails) -> Self {
        let detail = Some(error.message.clone());
        Self { status: TaskStatus::Failed, reason, detail, error: Some(error) }
    }
}

impl Coordinator {
    /// Ends or pauses a task whose lock we hold and whose loop does not run.
    pub(crate) async fn conclude(
        &self,
        owner: &Owner,
        state: &TaskState,
        conclusion: Conclusion,
    ) -> Result<(), Error> {
        let (task, now) = (state.id(), self.now());
        let Conclusion { status: to, reason, detail, error } = conclusion;
        let moved = StatusChanged {
            detail,
            error: error.clone(),
            ..StatusChanged::new(state.status, to, reason)
        };
        let mut events = vec![Event::StatusChanged(moved)];
        if to.is_terminal() {
            let result = report::result_of(state, now, to, reason, error);
            events.push(Event::AgentEnd(Box::new(result)));
        }
        owner.append_to(task, now, events, Level::Synced).await?;
        if to.is_terminal() {
            let why = format!("the agent above it is {to}");
            tree::cancel_below(owner, &self.store, now, task, &why).await?;
            self.schedules().end_of(task).await?;
        }
        Ok(())
    }

    /// Fails a task that nobody drives, with the reason.
    pub(crate) async fn fail(&self, task: TaskId, error: ErrorDetails) -> Result<(), Error> {
        let owner = self.store.own(task).await?;
        let state = self.tasks().state(task)?;
        if state.status.is_terminal() {
            return Ok(());
        }
        self.conclude(&owner, &state, Conclusion::failed(StatusReason::Error, error)).await
    }
}
