//! The Context Service, embedded: memories in our own store, kept and found by any surface (ES-019).

use windlass_core::id::TaskId;
use windlass_store::{Memory, NewMemory};

use crate::{Coordinator, Error};

/// What is worth knowing beyond one task.
#[derive(Clone, Copy)]
pub struct Memories<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Memories<'_> {
    /// Keeps something that is worth knowing beyond one task; returns its number.
    pub async fn add(
        self,
        text: &str,
        tags: &[String],
        task: Option<TaskId>,
    ) -> Result<i64, Error> {
        let session = match task {
            Some(task) => self.coordinator.store.tasks().get(task)?.map(|row| row.session_id),
            None => None,
        };
        let memory = NewMemory { text: text.to_owned(), tags: tags.to_vec(), task, session };
        Ok(self.coordinator.store.memories().add(self.coordinator.now(), memory).await?)
    }

    /// The memories that fit a query best.
    pub fn search(self, query: &str, limit: u32) -> Result<Vec<Memory>, Error> {
        Ok(self.coordinator.store.memories().search(query, limit)?)
    }
}
