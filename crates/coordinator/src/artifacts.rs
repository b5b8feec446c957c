//! What tasks and people put into files: one handle for each kind.

use windlass_core::event::Event;
use windlass_core::id::TaskId;

use crate::views::Compaction;
use crate::{Changes, Coordinator, Deliverables, Error, Outputs, Pictures};

/// What commands printed, and the pictures and files of tasks.
#[derive(Clone, Copy)]
pub struct Artifacts<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl<'a> Artifacts<'a> {
    /// What commands printed.
    pub fn outputs(self) -> Outputs<'a> {
        Outputs { coordinator: self.coordinator }
    }

    /// Pictures that people attach to goals and messages.
    pub fn pictures(self) -> Pictures<'a> {
        Pictures { coordinator: self.coordinator }
    }

    /// What tasks have changed in files.
    pub fn changes(self) -> Changes<'a> {
        Changes { coordinator: self.coordinator }
    }

    /// What tasks have published.
    pub fn deliverables(self) -> Deliverables<'a> {
        Deliverables { coordinator: self.coordinator }
    }

    /// Every compaction of a task, oldest first: where what it dropped can be read.
    pub fn compactions(self, task: TaskId) -> Result<Vec<Compaction>, Error> {
        let records = self.coordinator.journals().of(task)?;
        let found = records.into_iter().filter_map(|record| match record.event {
            Event::CompactionEnd(end) => Some(Compaction { at: record.at, end }),
            _ => None,
        });
        Ok(found.collect())
    }
}
