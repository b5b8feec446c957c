//! The bodies of the events about a completion contract: its checks run, and what they came to. The commands of the
//! checks have events of their own: `risk_check`, `tool_call`, `tool_result`.

use serde::{Deserialize, Serialize};

use crate::contract::CheckResult;
use crate::id::{CallId, TaskId};

/// The checks of a contract begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerificationStarted {
    /// The contract's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub contract: String,
    /// Which time this is, from 1.
    pub attempt: u32,
    /// The commands that run, in order.
    pub checks: Vec<PlannedCheck>,
}

/// A command that a verification runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCheck {
    pub call: CallId,
    pub name: String,
    pub command: String,
    pub timeout_seconds: u64,
}

/// The checks of a contract have ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerificationEnded {
    pub attempt: u32,
    pub passed: bool,
    /// Every requirement, in order.
    pub results: Vec<CheckResult>,
    /// What the agent reads; empty where everything holds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// An agent in the auditor role reviews the finished work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewStarted {
    /// The call that stands for it.
    pub call: CallId,
    /// The auditor's task.
    pub task_id: TaskId,
}
