//! A task's journal as it is read at a start: once, with the state that it leads to.

use windlass_core::event::Record;
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;
use windlass_store::Store;

use crate::Error;

/// The events of a task so far, and the state they lead to.
pub struct History {
    records: Vec<Record>,
    state: TaskState,
}

impl History {
    /// Reads the whole journal of a task and folds it.
    pub fn read(store: &Store, task: TaskId) -> Result<Self, Error> {
        let records = store.journal().of(task)?;
        let events = records.iter().map(|record| (record.at, &record.event));
        let state = TaskState::fold(events)
            .map_err(|source| Error::Corrupt { task, source })?
            .ok_or(Error::Empty { task })?;
        Ok(Self { records, state })
    }

    /// What is known of the task.
    pub fn state(&self) -> &TaskState {
        &self.state
    }

    /// The events.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The state alone.
    pub fn into_state(self) -> TaskState {
        self.state
    }

    pub(crate) fn into_parts(self) -> (Vec<Record>, TaskState) {
        (self.records, self.state)
    }
}
