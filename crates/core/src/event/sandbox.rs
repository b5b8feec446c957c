//! The bodies of the events about the sandbox and the commands left running in it.

use serde::{Deserialize, Serialize};

use crate::id::CallId;

use super::{Note, Words};

/// The sandbox runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxStarted {
    pub kind: String,
    /// What it isolates, in words; `footing` in journals.
    #[serde(rename = "footing")]
    pub isolation: String,
    /// The container's id, where it is one (ES-078).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
}

/// The sandbox is removed. What is left of it after a crash is removed at the next start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxEnded {
    pub kind: String,
}

/// The sandbox is gone, and every command in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxLost {
    pub reason: String,
    /// What the agent reads; empty when nothing of its work was lost.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A background command ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandExited {
    /// The call that started it.
    pub call: CallId,
    pub command: String,
    /// How it ended, in words.
    pub exit: String,
    /// What the agent reads.
    pub message: String,
}

impl Words for SandboxStarted {
    fn words(&self) -> String {
        format!("{}: {}", self.kind, self.isolation)
    }
}

impl Words for SandboxEnded {
    fn words(&self) -> String {
        self.kind.clone()
    }
}

impl Words for SandboxLost {
    fn words(&self) -> String {
        self.reason.clone()
    }

    fn note(&self) -> Option<Note> {
        Note::warning("Its sandbox is gone", Some(&self.reason))
    }
}

impl Words for CommandExited {
    fn words(&self) -> String {
        format!("{}: {}", self.command, self.exit)
    }

    fn note(&self) -> Option<Note> {
        Note::with_detail(format!("Background command ended: {}", self.exit), &self.command)
    }
}
