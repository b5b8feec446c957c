//! What is committed to a session's stream. Bodies only gain fields, each with a default.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AxesChange, Scope, Source};
use crate::axes::Axes;
use crate::event::{ModeChanged, events};
use crate::id::{ChangeId, SessionId, TaskId};
use crate::layout::AddedDirectory;
use crate::policy::allow::AllowRule;

events! {
    /// Something that happened to a session.
    SessionEvent {
        /// The session exists.
        SessionCreated(SessionCreated) = "session_created",
        /// A change of the axes waits for its scope.
        ModeRequested(ModeRequested) = "mode_requested",
        /// The axes changed.
        ModeChanged(ModeChanged) = "mode_changed",
        /// A person named a model, or took that back.
        ModelChosen(ModelChosen) = "model_chosen",
        /// A person allowed something for the session.
        RuleGranted(RuleGranted) = "rule_granted",
        /// A person took a rule back.
        RuleRevoked(RuleRevoked) = "rule_revoked",
        /// A task of the session exists.
        TaskBegun(TaskBegun) = "task_begun",
        /// A person rated what was done.
        Rated(Rated) = "rated",
        /// The conversation ended; the next message begins another.
        Cleared(Cleared) = "cleared",
        /// A person put the session away, or took it back.
        Archived(Archived) = "archived",
    }
}

/// A session's event with its place in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    /// Place in the whole database.
    pub pos: i64,
    pub session: SessionId,
    /// Place in the session's stream, from 1.
    pub seq: u64,
    /// When it was committed.
    pub at: Timestamp,
    pub event: SessionEvent,
}

/// The session exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionCreated {
    /// The axes it starts with.
    pub axes: Axes,
    /// The user that it belongs to, where one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The directory that its tasks work in, where that is a person's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Whether a person stays in it: a final reply waits for the next message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
    /// Directories besides it that a person added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<AddedDirectory>,
    /// What each conversation of it may cost; `None` for what is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_budget: Option<f64>,
}

/// A change of the axes waits for its scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeRequested {
    pub change: ChangeId,
    pub wanted: AxesChange,
    pub reason: String,
    pub scope: Scope,
    pub source: Source,
    /// Who wants it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChosen {
    /// As `provider/model`; `None` for the one of the model mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub by: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleGranted {
    pub rule: AllowRule,
    /// The task whose question was answered.
    pub task: TaskId,
    pub by: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRevoked {
    pub rule: AllowRule,
    pub by: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskBegun {
    pub task: TaskId,
}

/// What a person thinks of the last unit (MS-173).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rated {
    /// From 1 to 5.
    pub stars: u8,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    pub task: TaskId,
    /// The model that worked on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The axes that it had.
    pub axes: Axes,
    pub by: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleared {
    /// The task whose conversation ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub by: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    /// Whether lists leave it out from now on.
    pub is_archived: bool,
    pub by: String,
}
