//! Reading the journals of tasks that are at rest: whole, or as far as they can be read. Who follows one as it grows uses
//! the feed.

use windlass_agent::History;
use windlass_core::event::Record;
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;
use windlass_store::JournalEntry;

use crate::{Coordinator, Error};

/// What was journaled.
#[derive(Clone, Copy)]
pub struct Journals<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Journals<'_> {
    /// Every event of a task. One that is damaged is an error.
    pub fn of(self, task: TaskId) -> Result<Vec<Record>, Error> {
        Ok(self.coordinator.store.journal().of(task)?)
    }

    /// Every event of a task that can be read. It is for lists of what a task has done: `doctor`, a task's page and an
    /// export name those that cannot.
    pub fn readable(self, task: TaskId) -> Result<Vec<Record>, Error> {
        let entries = self.coordinator.store.journal().readable(task, 0, usize::MAX)?;
        Ok(entries.into_iter().filter_map(JournalEntry::into_record).collect())
    }

    /// A task's journal and state for lists of many tasks; `None` where the journal is damaged, so that the others are
    /// shown.
    pub(crate) fn sound_history(self, task: TaskId) -> Result<Option<History>, Error> {
        use windlass_agent::Error::Store as OfStore;
        use windlass_store::Error::{DamagedEvent, Unreadable};
        match History::read(&self.coordinator.store, task) {
            Ok(history) => Ok(Some(history)),
            Err(OfStore(DamagedEvent { .. } | Unreadable { .. })) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The state alone, or `None` in the same case.
    pub(crate) fn sound_state(self, task: TaskId) -> Result<Option<TaskState>, Error> {
        Ok(self.sound_history(task)?.map(History::into_state))
    }
}
