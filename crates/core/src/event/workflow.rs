//! Runs of workflows: what a run is made of, its steps, its worktrees and its merges.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{QuestionId, TaskId};
use crate::message::Usage;
use crate::status::StatusReason;
use crate::string_enum;

use super::{Note, Words};

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
    /// The branch that was checked out where it was started. Its work belongs there, whatever is checked out later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
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
    /// The program whose credentials it gets, where the person's configuration names some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
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
        /// The run has given it back: the next run of its workflow works in it.
        Released = "released",
    }
}

string_enum! {
    /// Who makes a worktree, and what becomes of it after its run.
    #[derive(Default)]
    WorktreeKind ("worktree kind") {
        /// Git makes it for one run, and removes it afterwards.
        #[default]
        Single = "single",
        /// Git makes it once; runs of its workflow take turns in it.
        Warm = "warm",
        /// A command of the workflow makes it; git does not know it.
        Command = "command",
    }
}

impl WorktreeKind {
    /// Whether it is the usual kind, which journals do not name.
    pub fn is_single(&self) -> bool {
        *self == Self::Single
    }
}

/// A worktree of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorktreeChanged {
    /// Its name in the run: empty for the run's own, else the branch of a parallel step.
    pub name: String,
    pub state: WorktreeState,
    #[serde(default, skip_serializing_if = "WorktreeKind::is_single")]
    pub kind: WorktreeKind,
    pub path: String,
    /// Its branch; empty where a command has made it.
    pub branch: String,
    /// The commit that it began at. Never computed again. Empty where a command has made it.
    pub base: String,
    /// The directories that are in it, besides the files at the top; all where none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sparse: Vec<String>,
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
    /// The question whose answer it has got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<QuestionId>,
    /// What it used since the last report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The runner that used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
}

impl Words for StepStarted {
    fn words(&self) -> String {
        match self.attempt {
            1 => format!("{} ({})", self.step, self.kind),
            attempt => format!("{} ({}), attempt {attempt}", self.step, self.kind),
        }
    }

    fn note(&self) -> Option<Note> {
        Note::new(self.words())
    }
}

impl Words for StepEnded {
    fn words(&self) -> String {
        match &self.error {
            Some(error) => format!("{} {}: {error}", self.step, self.result),
            None => format!("{} {}", self.step, self.result),
        }
    }

    fn note(&self) -> Option<Note> {
        Note::new(self.words())
    }
}

impl Words for WorktreeChanged {
    fn words(&self) -> String {
        match &self.detail {
            // Paths are long, and a line may be cut.
            Some(detail) => format!("worktree {} ({detail}): {}", self.state, self.path),
            None => format!("worktree {}: {}", self.state, self.path),
        }
    }

    fn note(&self) -> Option<Note> {
        Note::new(self.words())
    }
}

impl Words for MergeChanged {
    fn words(&self) -> String {
        let files = match self.files.is_empty() {
            true => String::new(),
            false => format!(": {}", self.files.join(", ")),
        };
        if self.state == MergeState::Merged && self.old == self.new {
            return format!(
                "merge of {} into {}: there was nothing to merge",
                self.branch, self.target
            );
        }
        format!("merge of {} into {}: {}{files}", self.branch, self.target, self.state)
    }

    fn note(&self) -> Option<Note> {
        Note::new(self.words())
    }
}

impl Words for RunnerReported {
    fn words(&self) -> String {
        let said = [&self.activity, &self.session, &self.output];
        let said = said.into_iter().flatten().next().cloned();
        let delivered = || self.delivered.map(|question| format!("has its answer ({question})"));
        said.or_else(delivered).unwrap_or_default()
    }

    fn note(&self) -> Option<Note> {
        let output = self.output.as_deref()?.trim();
        (!output.is_empty()).then(|| Note::new(output)).flatten()
    }
}
