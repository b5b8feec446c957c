//! Which tasks of the service somebody should drive now. Workers ask this; the kernel lock of each task
//! decides who does.

use std::collections::BTreeMap;

use windlass_core::event::Driver;
use windlass_core::id::{SessionId, TaskId};
use windlass_core::injection::{Control, Injection, InjectionType};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Filter, TaskRow};

use crate::limits::at_work;
use crate::{Coordinator, Error};

impl Coordinator {
    /// Tasks that a service should drive now and nobody drives, oldest first: begun ones that were
    /// interrupted, parked ones that have mail to go on with, and new ones for which there is a place.
    pub fn ready(&self) -> Result<Vec<TaskId>, Error> {
        let filter =
            Filter { live: true, roots: true, driver: Some(Driver::Service), ..Filter::default() };
        let mut sessions: BTreeMap<SessionId, Vec<TaskRow>> = BTreeMap::new();
        let mut tasks = self.store.tasks(&filter)?;
        tasks.reverse();
        let order: Vec<_> = tasks.iter().map(|task| task.id).collect();
        for task in tasks {
            sessions.entry(task.session_id).or_default().push(task);
        }
        let mut ready = Vec::new();
        for tasks in sessions.into_values() {
            ready.extend(self.ready_of(&tasks)?);
        }
        ready.sort_by_key(|task| order.iter().position(|other| other == task));
        Ok(ready)
    }

    fn ready_of(&self, tasks: &[TaskRow]) -> Result<Vec<TaskId>, Error> {
        let mut free = self.limits.tasks_per_session.saturating_sub(at_work(tasks));
        let mut ready = Vec::new();
        for task in tasks {
            let goes_on = match task.status {
                TaskStatus::Todo if free > 0 && self.store.open_blockers(task.id)?.is_empty() => {
                    free -= 1;
                    true
                }
                TaskStatus::Todo => false,
                TaskStatus::Running
                | TaskStatus::Verifying
                | TaskStatus::Reviewing
                | TaskStatus::Retrying => true,
                TaskStatus::Blocked | TaskStatus::Paused => self.has_reason(task)?,
                TaskStatus::Done | TaskStatus::Failed | TaskStatus::Cancelled => false,
            };
            if goes_on && self.store.driven(task.id)?.is_none() {
                ready.push(task.id);
            }
        }
        Ok(ready)
    }

    /// Whether a parked task has something to go on with; mail alone is not always enough (ES-076).
    fn has_reason(&self, task: &TaskRow) -> Result<bool, Error> {
        // It was parked by a service that went away, and this one is here.
        if task.reason == StatusReason::Shutdown {
            return Ok(true);
        }
        // Answers go to whoever asked, which may be an agent below.
        let tree = Filter { root: Some(task.id), live: true, ..Filter::default() };
        for member in self.store.tasks(&tree)? {
            if !self.store.has_mail(member.id)? {
                continue;
            }
            let mail = self.store.pending_injections(member.id)?;
            if mail.iter().any(|one| moves(task, one)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether this mail lets a parked task go on, or ends it.
fn moves(task: &TaskRow, mail: &Injection) -> bool {
    match (&mail.control, mail.injection_type) {
        (Some(Control::Resume | Control::Cancel { .. } | Control::Expire { .. }), _) => true,
        (Some(Control::Watch { .. }), _) => task.reason == StatusReason::Schedule,
        (Some(Control::Pause | Control::Revoke { .. } | Control::Unwatch { .. }), _) => false,
        (None, InjectionType::HitlResponse) => true,
        (None, InjectionType::UserMessage | InjectionType::ExternalEvent) => {
            matches!(task.reason, StatusReason::Schedule | StatusReason::AwaitingMessage)
        }
        (None, InjectionType::SystemControl) => task.reason == StatusReason::Schedule,
    }
}
