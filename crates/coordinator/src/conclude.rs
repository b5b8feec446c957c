//! Ending or pausing a task from outside its loop.

use windlass_core::ending::Ending;
use windlass_core::error::ErrorDetails;
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;
use windlass_core::status::TaskStatus;
use windlass_store::Owner;

use crate::{Controls, Error};

impl Controls<'_> {
    /// Ends or pauses a task whose lock we hold and whose loop does not run.
    pub(crate) async fn conclude(
        self,
        owner: &Owner,
        state: &TaskState,
        ending: &Ending,
    ) -> Result<TaskStatus, Error> {
        let store = &self.coordinator.store;
        Ok(windlass_agent::conclude(owner, store, self.coordinator.now(), state, ending).await?)
    }

    /// Fails a task that nobody drives, with the reason.
    pub(crate) async fn fail(self, task: TaskId, error: ErrorDetails) -> Result<(), Error> {
        let owner = self.coordinator.store.owners().own(task).await?;
        let state = self.coordinator.tasks().state(task)?;
        self.conclude(&owner, &state, &Ending::Failed(error)).await.map(drop)
    }
}
