//! Runs of workflows: what a run is made of, its steps, its worktrees and its merges.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::TaskId;
use crate::message::Usage;
use crate::status::StatusReason;
use crate::string_enum;

/// What a task is for a workflow: a run, or the work of one of its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum WorkflowPart {
    /// The run itself: an engine drives it, and no model.
    Run(WorkflowSource),
    /// A command of the workflow's file. It runs as one call of `bash`, through the gate.
    Script(ScriptWork),
    /// An agent step that our own loop works on.
    Agent {
        /// The step, as the run names it.
        step: String,
        /// Whether it is one of several tries of the same thing: they may change the same places.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_try: bool,
        /// What the step asks for, in a line for people; the goal wraps it in rules for the agent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        about: String,
    },
    /// An agent step that another program works on.
    Program {
        /// The step, as the run names it.
        step: String,
        /// Who works on it.
        runner: String,
        /// What the step asks for, in a line for people; the goal wraps it in rules for the agent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        about: String,
    },
}

impl WorkflowPart {
    /// What people read in lists, where the goal is written for an agent: the step and what it asks for.
    pub fn title(&self) -> Option<String> {
        match self {
            Self::Agent { step, about, .. } | Self::Program { step, about, .. } => {
                (!about.is_empty()).then(|| format!("{step}: {about}"))
            }
            Self::Run(_) | Self::Script(_) => None,
        }
    }
}

/// Everything that a run is made from, as it was when it began: a file that changes later does not change a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkflowSource {
    pub name: String,
    /// What this run is for, in the person's words; its first line is the title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The file, for people.
    pub path: String,
    /// Its whole text.
    pub text: String,
    /// The spells that it names, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spells: BTreeMap<String, String>,
    /// The project's own system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// What the person gave it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// Whether a person has approved the commands of the file as they are here.
    #[serde(default)]
    pub approved: bool,
}

/// A command of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptWork {
    /// The step, as the run names it.
    pub step: String,
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// A step begins. Journaled before anything of it happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepStarted {
    /// The step, as the run names it: `fix[2].test` is step `test` in the second round of loop `fix`.
    pub step: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Its type: `agent`, `script`, `merge`, `ask`.
    pub kind: String,
    /// The task that works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// What was rendered for it: the prompt, the command, the question.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

string_enum! {
    /// What became of a step.
    StepResult ("step result") {
        Succeeded = "succeeded",
        Failed = "failed",
        /// Its condition did not hold, or a step that it needs did not succeed.
        Skipped = "skipped",
    }
}

/// A step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepEnded {
    pub step: String,
    pub attempt: u32,
    pub result: StepResult,
    /// What later steps find under its name.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// Why it failed or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why the run is blocked where the step stops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<StatusReason>,
}

string_enum! {
    /// How far a worktree is. Each is journaled before what it names begins.
    WorktreeState ("worktree state") {
        /// Git is about to make it.
        Adding = "adding",
        /// It exists; its set-up runs.
        Preparing = "preparing",
        /// Steps may work in it.
        Ready = "ready",
        /// Git is about to remove it.
        Removing = "removing",
        Removed = "removed",
        /// It stays, because something in it would be lost.
        Kept = "kept",
    }
}

/// A worktree of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorktreeChanged {
    /// Its name in the run: empty for the run's own, else the branch of a parallel step.
    pub name: String,
    pub state: WorktreeState,
    pub path: String,
    pub branch: String,
    /// The commit that it began at. Never computed again.
    pub base: String,
    /// A port for what runs in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Why it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

string_enum! {
    /// How far a merge is.
    MergeState ("merge state") {
        /// The merged commit exists, and the target is about to move to it.
        Moving = "moving",
        /// The target has moved.
        Merged = "merged",
        /// Both sides have changed the same places.
        Conflict = "conflict",
    }
}

/// A merge of a run's work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeChanged {
    pub step: String,
    pub attempt: u32,
    pub state: MergeState,
    /// The branch that is merged, and the commit it had.
    pub branch: String,
    pub head: String,
    pub target: String,
    /// The target before.
    pub old: String,
    /// The target after.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub new: String,
    /// The files in conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// What another program reports of itself while it works on a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunnerReported {
    /// Its own name for the conversation, by which it can be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What it does now (WF-009).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// What it printed since the last report (WF-008).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What it used in all, said once at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl super::Event {
    /// What happened in a run, in a line for people; `None` for events of other kinds.
    pub fn workflow_words(&self) -> Option<String> {
        Some(match self {
            Self::WorkflowStepStarted(step) => match step.attempt {
                1 => format!("{} ({})", step.step, step.kind),
                attempt => format!("{} ({}), attempt {attempt}", step.step, step.kind),
            },
            Self::WorkflowStepEnded(step) => match &step.error {
                Some(error) => format!("{} {}: {error}", step.step, step.result),
                None => format!("{} {}", step.step, step.result),
            },
            Self::WorktreeChanged(tree) => match &tree.detail {
                Some(detail) => format!("worktree {}: {} ({detail})", tree.state, tree.path),
                None => format!("worktree {}: {}", tree.state, tree.path),
            },
            Self::MergeChanged(merge) => {
                let files = match merge.files.is_empty() {
                    true => String::new(),
                    false => format!(": {}", merge.files.join(", ")),
                };
                format!("merge of {} into {}: {}{files}", merge.branch, merge.target, merge.state)
            }
            Self::RunnerReported(report) => {
                let said = [&report.activity, &report.session, &report.output];
                said.into_iter().flatten().next().cloned().unwrap_or_default()
            }
            _ => return None,
        })
    }
}
