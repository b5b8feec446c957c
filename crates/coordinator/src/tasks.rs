//! Finding, viewing and retrying tasks.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use windlass_agent::History;
use windlass_core::command::TaskResult;
use windlass_core::event::{Event, Record, StatusChanged};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Filter, Level, TaskOrigin, TaskRow};

use crate::views::{Attendance, TaskDetails, TaskView};
use crate::{Coordinator, Error, views};

/// The longest sleep before the clock is read again: a clock may be set, a machine may sleep.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Goals and what became of them.
#[derive(Clone, Copy)]
pub struct Tasks<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

/// How the wait for a parked task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkedWait {
    /// Its time has come.
    Due,
    /// Another process drives it.
    Driven,
    /// Its status has changed.
    Moved(TaskStatus),
}

impl<'a> Tasks<'a> {
    /// A task by its id or by the end of it.
    pub fn find(self, text: &str) -> Result<TaskId, Error> {
        Ok(self.coordinator.store.ids().task(text)?)
    }

    /// A task's row.
    pub fn get(self, task: TaskId) -> Result<Option<TaskRow>, Error> {
        Ok(self.coordinator.store.tasks().get(task)?)
    }

    /// Where a task belongs; `None` where there is no such task.
    pub fn origin(self, task: TaskId) -> Result<Option<TaskOrigin>, Error> {
        Ok(self.coordinator.store.tasks().origin(task)?)
    }

    /// Rows of tasks, the newest first.
    pub fn rows(self, filter: &Filter) -> Result<Vec<TaskRow>, Error> {
        Ok(self.coordinator.store.tasks().list(filter)?)
    }

    /// How many tasks a filter lets through, whatever its limit.
    pub fn count(self, filter: &Filter) -> Result<usize, Error> {
        Ok(self.coordinator.store.tasks().count(filter)?)
    }

    /// Tasks as lists show them, the newest first.
    pub fn list(self, filter: &Filter) -> Result<Vec<TaskView>, Error> {
        views::task::list(self.coordinator, filter)
    }

    /// The same at a glance: nothing is folded, so what a running task uses is as of its last ended segment.
    pub fn list_without_journals(self, filter: &Filter) -> Result<Vec<TaskView>, Error> {
        views::task::list_without_journals(self.coordinator, filter)
    }

    /// A task as lists show it, without what only its journal says: commands in its background, and how long it has
    /// worked since its last segment.
    pub fn view(self, task: TaskId) -> Result<TaskView, Error> {
        views::task::one(self.coordinator, task)
    }

    /// A task as its own page shows it.
    pub fn details(self, task: TaskId) -> Result<TaskDetails, Error> {
        views::task::details(self.coordinator, task)
    }

    /// A task's state, folded from its journal.
    pub fn state(self, task: TaskId) -> Result<TaskState, Error> {
        Ok(History::read(&self.coordinator.store, task)?.into_state())
    }

    /// What the last segment of a task handed back.
    pub fn last_result(self, task: TaskId) -> Result<Option<TaskResult>, Error> {
        let result = |record: Record| match record.event {
            Event::AgentEnd(result) => Some(*result),
            _ => None,
        };
        Ok(self.last_end(task)?.and_then(result))
    }

    /// The event that ended a task's last segment.
    pub fn last_end(self, task: TaskId) -> Result<Option<Record>, Error> {
        let is_end = |record: &Record| matches!(record.event, Event::AgentEnd(_));
        Ok(self.coordinator.journals().of(task)?.into_iter().rev().find(is_end))
    }

    /// The task that a person talks to: itself, or the one at the top of its tree.
    pub fn root(self, task: TaskId) -> Result<TaskId, Error> {
        Ok(self.get(task)?.map_or(task, |row| row.root_id))
    }

    /// The process that drives a task.
    pub fn driving_process(self, task: TaskId) -> Result<Option<u32>, Error> {
        Ok(self.coordinator.store.owners().driving_process(task)?)
    }

    /// Who works on a task.
    pub fn attendance(self, task: TaskId) -> Result<Attendance, Error> {
        let has_service = self.coordinator.queue().has_service()?;
        Ok(self.view(task)?.attendance(has_service))
    }

    /// Whether nothing more will be journaled of a task.
    pub fn has_ended(self, task: TaskId) -> Result<bool, Error> {
        Ok(self.get(task)?.is_none_or(|row| row.status.is_terminal()))
    }

    /// The conversation that a task belongs to.
    pub(crate) fn session_of(self, task: TaskId) -> Result<SessionId, Error> {
        Ok(self.require_row(task)?.session_id)
    }

    /// The row of a task; an error where there is no such task.
    pub(crate) fn require_row(self, task: TaskId) -> Result<TaskRow, Error> {
        let unknown = || windlass_store::Error::UnknownTask(task.to_string());
        self.get(task)?.ok_or_else(unknown).map_err(Error::from)
    }

    /// Makes a failed task ready to run again (`failed → retrying`, under its limit).
    pub async fn retry(self, task: TaskId) -> Result<(), Error> {
        let owner = self.coordinator.store.owners().own(task).await?;
        let state = self.state(task)?;
        let (status, times) = (state.status, state.attempts.retries);
        match status {
            TaskStatus::Failed if times < state.created.max_retries => {}
            TaskStatus::Failed => return Err(Error::TriedEnough { task, times }),
            TaskStatus::Done | TaskStatus::Cancelled => return Err(Error::Ended { task, status }),
            TaskStatus::Todo
            | TaskStatus::Running
            | TaskStatus::Verifying
            | TaskStatus::Reviewing
            | TaskStatus::Blocked
            | TaskStatus::Paused
            | TaskStatus::Retrying => return Err(Error::NotFailed { task, status }),
        }
        let moved = StatusChanged::new(status, TaskStatus::Retrying, StatusReason::User);
        let now = self.coordinator.now();
        owner.append(now, vec![Event::StatusChanged(moved)], Level::Synced).await?;
        Ok(())
    }

    /// The wait for the time at which a task resumes.
    pub fn parked(self, task: TaskId) -> ParkedTask<'a> {
        ParkedTask { coordinator: self.coordinator, task }
    }
}

/// The wait for the time at which a task resumes. The task need not be parked.
#[derive(Clone, Copy)]
pub struct ParkedTask<'a> {
    coordinator: &'a Coordinator,
    task: TaskId,
}

impl ParkedTask<'_> {
    /// When it is tried again; `None` unless it is parked until a time.
    pub fn until(self) -> Result<Option<Timestamp>, Error> {
        let parked = self.coordinator.tasks().get(self.task)?.filter(resumes_at_a_time);
        Ok(parked.and_then(|row| row.next_action_at).map(|at| at.timestamp()))
    }

    /// Waits while it is parked, until `until` at most. Nothing is held meanwhile: others may resume, pause or
    /// cancel it.
    pub async fn wait(self, until: Timestamp) -> Result<ParkedWait, Error> {
        let tasks = self.coordinator.tasks();
        let mut changes = self.coordinator.store.changes();
        loop {
            changes.mark_seen();
            let row = tasks.get(self.task)?;
            let is_free = tasks.driving_process(self.task).is_ok_and(|by| by.is_none());
            let Some(row) = row.filter(|_| is_free) else {
                return Ok(ParkedWait::Driven);
            };
            if !resumes_at_a_time(&row) {
                return Ok(ParkedWait::Moved(row.status));
            }
            let left = until.duration_since(self.coordinator.now());
            let Some(left) = Duration::try_from(left).ok().filter(|left| !left.is_zero()) else {
                return Ok(ParkedWait::Due);
            };
            tokio::select! {
                () = tokio::time::sleep(left.min(LONGEST_SLEEP)) => {}
                changed = changes.changed() => changed?,
            }
        }
    }
}

fn resumes_at_a_time(row: &TaskRow) -> bool {
    row.status == TaskStatus::Paused && row.reason.resumes_at_a_time()
}

/// Who started whom, read once for each task.
#[derive(Default)]
pub(crate) struct Parents(HashMap<TaskId, Option<TaskId>>);

impl Parents {
    /// Whether `task` is `above` or one of the agents below it.
    pub(crate) fn is_at_or_below(
        &mut self,
        coordinator: &Coordinator,
        task: TaskId,
        above: TaskId,
    ) -> Result<bool, Error> {
        let mut next = Some(task);
        while let Some(of) = next.filter(|of| *of != above) {
            next = match self.0.get(&of) {
                Some(known) => *known,
                None => {
                    let parent = coordinator.tasks().get(of)?.and_then(|row| row.parent_id);
                    self.0.insert(of, parent);
                    parent
                }
            };
        }
        Ok(next.is_some())
    }
}
