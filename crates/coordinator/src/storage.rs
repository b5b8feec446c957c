//! Where the data is, and whether it is sound.

use std::path::PathBuf;

use windlass_core::id::TaskId;
use windlass_store::Difference;

use crate::{Coordinator, Error};

/// Where the data is, and whether it is sound.
#[derive(Clone, Copy)]
pub struct Storage<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Storage<'_> {
    /// Where the tables disagree with the journal; nothing, if all is well.
    pub fn verify(self) -> Result<Vec<Difference>, Error> {
        Ok(self.coordinator.store.projections().verify()?)
    }

    /// The database's file.
    pub fn database(self) -> PathBuf {
        self.coordinator.store.dir().database()
    }

    /// The directory with the traces of a tree of agents.
    pub fn trace_directory(self, root: TaskId) -> PathBuf {
        self.coordinator.store.dir().traces().join(root.to_string())
    }

    /// The trace of a task.
    pub fn trace_file(self, task: TaskId) -> Result<PathBuf, Error> {
        let root = self.coordinator.tasks().root(task)?;
        Ok(self.trace_directory(root).join(format!("{task}.jsonl")))
    }
}
