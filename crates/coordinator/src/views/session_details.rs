//! A session as a surface shows it: its axes, what of them is about to change, its conversation and its tasks.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use windlass_core::axes::Axes;
use windlass_core::id::{ChangeId, SessionId, TaskId};
use windlass_core::policy::allow::AllowRule;
use windlass_core::role::Role;
use windlass_core::session::{AxesChange, ModeRequested, Scope, Source};

use super::TaskEntry;

/// A session as a surface shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionDetails {
    pub session_id: SessionId,
    /// The user that it belongs to; empty where none is named.
    pub user_id: String,
    /// The number of its last event; another number is another state.
    pub seq: u64,
    /// Whether a person stays in it: a final reply waits for the next message.
    pub interactive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The axes in force; later tasks start with them.
    pub axes: Axes,
    /// The role that its agents work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Changes that wait for their scope, oldest first.
    pub pending: Vec<PendingChange>,
    /// The axes before a change that is for this unit alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_this_unit: Option<Axes>,
    /// The model that a person has named; it wins over the model mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What people have allowed for the session.
    pub rules: Vec<AllowRule>,
    /// The task that the next message continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<TaskId>,
    /// The task that a command without a name means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_task_id: Option<TaskId>,
    /// Whether a process works on one of its tasks.
    pub is_working: bool,
    /// Its tasks, oldest first, sub-agents left out.
    pub tasks: Vec<TaskEntry>,
    pub created_at: Timestamp,
}

/// A change of the axes that waits for its scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingChange {
    pub change: ChangeId,
    pub wanted: AxesChange,
    pub scope: Scope,
    pub source: Source,
    pub by: String,
}

impl PendingChange {
    pub(crate) fn of(request: &ModeRequested) -> Self {
        Self {
            change: request.change,
            wanted: request.wanted,
            scope: request.scope,
            source: request.source,
            by: request.by.clone(),
        }
    }
}
