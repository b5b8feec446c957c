//! What was dropped from a task's context, when, and where it can be read.

use jiff::Timestamp;
use windlass_core::event::{CompactionEnd, Event};
use windlass_core::id::TaskId;

use crate::{Coordinator, Error};

/// One compaction of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Compaction {
    /// When it ended.
    pub at: Timestamp,
    /// What it did.
    pub end: CompactionEnd,
}

impl Coordinator {
    /// Every compaction of a task, oldest first.
    pub fn compactions(&self, task: TaskId) -> Result<Vec<Compaction>, Error> {
        let records = self.store.journal().of(task)?;
        let found = records.into_iter().filter_map(|record| match record.event {
            Event::CompactionEnd(end) => Some(Compaction { at: record.at, end }),
            _ => None,
        });
        Ok(found.collect())
    }
}
