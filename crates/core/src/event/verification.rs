//! The bodies of the events about a completion contract: its checks and their results. The commands of the
//! checks have their own events: `risk_check`, `tool_call`, `tool_result`.

use serde::{Deserialize, Serialize};

use crate::contract::CheckResult;
use crate::id::{CallId, TaskId};
use crate::text::plural;

use super::{Note, Words};

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

impl Words for VerificationStarted {
    fn words(&self) -> String {
        format!("attempt {}, {}", self.attempt, plural(self.checks.len(), "command"))
    }

    fn note(&self) -> Option<Note> {
        Note::new(format!("Checking the completion contract, attempt {}", self.attempt))
    }
}

impl Words for VerificationEnded {
    /// What is not met, by name.
    fn words(&self) -> String {
        let unmet = self.results.iter().filter(|result| !result.passed);
        let unmet: Vec<_> =
            unmet.map(|result| format!("{}: {}", result.name, result.detail)).collect();
        match unmet.is_empty() {
            true => format!("{} met", plural(self.results.len(), "requirement")),
            false => format!("not met: {}", unmet.join("; ")),
        }
    }

    fn note(&self) -> Option<Note> {
        let text = format!("Completion contract: {}", self.words());
        if self.passed { Note::new(text) } else { Note::warning(text, None) }
    }
}

impl Words for ReviewStarted {
    fn words(&self) -> String {
        format!("auditor {}", self.task_id)
    }

    fn note(&self) -> Option<Note> {
        Note::new("An auditor reviews the work")
    }
}
