//! A session and its tasks as the wire contract has them (ES-077, ES-078, ES-082).

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::schedule::DeadlineAction;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_core::string_enum;
use windlass_store::{SessionRow, TaskRow};

/// Characters of a goal's summary.
const GOAL_WIDTH: usize = 120;

string_enum! {
    /// Where a task stands, on the wire (ES-082).
    EntryStatus ("task entry status") {
        /// It has not ended, and is not parked.
        Running = "RUNNING",
        /// It is parked.
        Paused = "PAUSED",
        /// It is finished.
        Completed = "COMPLETED",
        /// It was given up.
        Failed = "FAILED",
        /// It was stopped for good.
        Cancelled = "CANCELLED",
    }
}

impl EntryStatus {
    /// A status as the wire has it. A task that waits for a person still runs.
    pub const fn of(status: TaskStatus, reason: StatusReason) -> Self {
        match status {
            TaskStatus::Blocked if reason.is_failure_of_blocked_task() => Self::Failed,
            TaskStatus::Blocked
            | TaskStatus::Todo
            | TaskStatus::Running
            | TaskStatus::Verifying
            | TaskStatus::Reviewing
            | TaskStatus::Retrying => Self::Running,
            TaskStatus::Paused => Self::Paused,
            TaskStatus::Done => Self::Completed,
            TaskStatus::Failed => Self::Failed,
            TaskStatus::Cancelled => Self::Cancelled,
        }
    }
}

/// A conversation (ES-077).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionView {
    pub session_id: SessionId,
    /// The user that it belongs to; empty where none is named.
    pub user_id: String,
    /// Its tasks, oldest first, sub-agents left out.
    pub tasks: Vec<TaskEntry>,
    /// The task that a message goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_task_id: Option<TaskId>,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    pub row: SessionRow,
    /// What was wanted first.
    pub goal: Option<String>,
    /// Where its work is done: its own directory, or that of its first task.
    pub directory: Option<String>,
}

/// One task of it (ES-078).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskEntry {
    pub task_id: TaskId,
    /// What is wanted, in one line.
    pub goal_summary: String,
    /// Where it stands, as the wire has it.
    pub status: EntryStatus,
    /// The same in the words of every list; the wire has five words only (ES-082).
    #[serde(skip)]
    pub task_status: Option<TaskStatus>,
    /// The conversation of its agent; one per task, for its whole life.
    pub agent_session_id: String,
    /// Where its effects happen, when that is a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Since when it is parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// When it must be finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// What happens then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_action: Option<DeadlineAction>,
    /// Its place in the session's queue, from 1, while it waits there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_place: Option<usize>,
}

impl TaskEntry {
    pub(crate) fn of(row: &TaskRow, queue_place: Option<usize>) -> Self {
        Self {
            task_id: row.id,
            goal_summary: row.goal_summary(GOAL_WIDTH),
            status: EntryStatus::of(row.status, row.reason),
            task_status: Some(row.status),
            agent_session_id: row.root_id.to_string(),
            container_id: row.container_id.clone(),
            created_at: row.created_at,
            completed_at: row.completed_at,
            paused_at: row.paused_at,
            deadline: row.deadline,
            deadline_action: row.deadline.map(|_| row.deadline_action),
            queue_place,
        }
    }
}

impl fmt::Display for SessionView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tasks.is_empty() {
            return f.write_str("no tasks");
        }
        for (number, task) in self.tasks.iter().enumerate() {
            let gap = if number == 0 { "" } else { "\n" };
            let active = if Some(task.task_id) == self.active_task_id { "*" } else { " " };
            write!(f, "{gap}{active} {} ", task.task_id)?;
            match (task.queue_place, task.task_status) {
                (Some(place), _) => write!(f, "queued {place}")?,
                (None, Some(status)) => write!(f, "{status}")?,
                (None, None) => write!(f, "{}", task.status)?,
            }
            write!(f, "  {}", task.goal_summary)?;
        }
        Ok(())
    }
}
