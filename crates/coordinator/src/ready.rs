//! Which tasks of the service somebody should drive now. Workers ask this; the kernel lock of each task
//! decides who does.

use std::collections::HashSet;

use windlass_core::id::TaskId;

use crate::{Coordinator, Error};

impl Coordinator {
    /// Tasks that a service should drive now and nobody drives: begun ones that were interrupted, then
    /// parked ones that have mail to go on with and new ones for which there is a place.
    pub fn ready(&self) -> Result<Vec<TaskId>, Error> {
        let mut ready = self.interrupted(&HashSet::new())?;
        ready.extend(self.waiting(usize::MAX)?);
        Ok(ready)
    }

    /// Tasks that wait for nothing but a process, oldest first; at most `limit`. Cheap, and asked often.
    pub(crate) fn waiting(&self, limit: usize) -> Result<Vec<TaskId>, Error> {
        Ok(self.store.scheduler().ready_tasks(self.now(), self.limits.tasks_per_session, limit)?)
    }

    /// Tasks that should be running and have lost their process: one look at the lock of each but `ours`.
    pub(crate) fn interrupted(&self, ours: &HashSet<TaskId>) -> Result<Vec<TaskId>, Error> {
        let mut lost = Vec::new();
        for task in self.store.scheduler().running_tasks()? {
            if !ours.contains(&task) && self.store.driving_process(task)?.is_none() {
                lost.push(task);
            }
        }
        Ok(lost)
    }
}
