//! A task's journal as it is read at a start: once, with the state that it leads to.

use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::state::{FoldError, TaskState};
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
        let state = fold(&records, |_, _| {})
            .map_err(|source| Error::Corrupt { task, source })?
            .ok_or(Error::Empty { task })?;
        Ok(Self { records, state })
    }

    /// What is known of the task.
    pub fn state(&self) -> &TaskState {
        &self.state
    }

    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The state alone.
    pub fn into_state(self) -> TaskState {
        self.state
    }

    /// Shows every event with the state right after it, oldest first.
    pub(crate) fn replay(&self, see: impl FnMut(&Event, &TaskState)) -> Result<(), Error> {
        let task = self.state.id();
        fold(&self.records, see).map(drop).map_err(|source| Error::Corrupt { task, source })
    }

    pub(crate) fn into_parts(self) -> (Vec<Record>, TaskState) {
        (self.records, self.state)
    }
}

fn fold(
    records: &[Record],
    mut see: impl FnMut(&Event, &TaskState),
) -> Result<Option<TaskState>, FoldError> {
    let Some((first, rest)) = records.split_first() else { return Ok(None) };
    let mut state = TaskState::begin(first.at, &first.event)?;
    see(&first.event, &state);
    for record in rest {
        state.apply(record.at, &record.event)?;
        see(&record.event, &state);
    }
    Ok(Some(state))
}
