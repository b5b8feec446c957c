//! The bodies of the events about the sandbox and the commands left running in it.

use serde::{Deserialize, Serialize};

use crate::id::CallId;

/// The sandbox runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxStarted {
    /// Which kind.
    pub kind: String,
    /// How strong it is, in words.
    pub footing: String,
    /// The container's id, where it is one (ES-078).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
}

/// The sandbox is taken down; what is left of it after a crash is removed at the next start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxEnded {
    /// Which kind.
    pub kind: String,
}

/// The sandbox is gone, and every command in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxLost {
    /// Why.
    pub reason: String,
    /// What the agent is told; empty when nothing of its was lost.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A background command ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandExited {
    /// The call that started it.
    pub call: CallId,
    /// The command.
    pub command: String,
    /// How it ended, in words.
    pub exit: String,
    /// What the agent is told.
    pub message: String,
}
