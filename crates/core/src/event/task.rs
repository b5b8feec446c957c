//! The bodies of the events about a task as a whole: its creation, its status, its segments.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::axes::Axes;
use crate::command::{Deliverable, Outage, TaskCommand, TaskResult};
use crate::error::ErrorDetails;
use crate::guard::Thresholds;
use crate::id::{ChangeId, TaskId};
use crate::layout::{Layout, LayoutKind, Site};
use crate::message::{Message, Prelude};
use crate::picture::Picture;
use crate::plan::WorkingPlan;
use crate::planning::PlanTask;
use crate::policy::allow::AllowRule;
use crate::role::Role;
use crate::schedule::DeadlineAction;
use crate::session::{AxesChange, Scope, Source};
use crate::status::{StatusReason, TaskStatus};
use crate::string_enum;

use super::{Event, Note, Words, WorkflowPart};

string_enum! {
    /// Who drives a task.
    Driver ("driver") {
        /// The command that a person started; no service resumes it automatically.
        Foreground = "foreground",
        /// A service, which resumes it after a restart.
        Service = "service",
    }
}

/// The task exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskCreated {
    /// What was submitted.
    pub command: TaskCommand,
    /// What people read in place of the goal, where that carries more than was typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_goal: Option<String>,
    /// What its goal shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// The task that started this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// The task that owns the whole tree; itself for a task without parent.
    pub root: TaskId,
    /// How many agents are above it.
    #[serde(default)]
    pub depth: u32,
    /// The axes it starts with.
    pub axes: Axes,
    /// The directory it works in, on the host.
    pub workspace: String,
    /// What belongs to the workspace, and where its own files are.
    #[serde(default, skip_serializing_if = "Site::is_default")]
    pub site: Site,
    /// Who drives it.
    pub driver: Driver,
    /// Tasks that must be done before it starts (MS-131).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependency_blockers: Vec<TaskId>,
    /// How often it may be retried after a failure (MS-132).
    pub max_retries: u32,
    /// What it may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_budget: Option<f64>,
    /// The user that it belongs to, where one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// When it must be finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// What happens when the model server does not answer, where neither the command nor the configuration says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// The ended task whose conversation it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Box<Continuation>>,
    /// Whether a person talks with it: its final reply waits for the next message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub conversation: bool,
    /// What people have allowed in its session before it began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session_rules: Vec<AllowRule>,
    /// What it is for a workflow: a run, or the work of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Box<WorkflowPart>>,
    /// Its place in a plan, where it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<PlanTask>>,
}

impl TaskCreated {
    /// A task of its own, about which nothing more is said.
    pub fn new(
        command: TaskCommand,
        axes: Axes,
        workspace: impl Into<String>,
        driver: Driver,
    ) -> Self {
        Self {
            shown_goal: None,
            pictures: Vec::new(),
            parent: None,
            root: command.task_id,
            depth: 0,
            axes,
            workspace: workspace.into(),
            site: Site::default(),
            driver,
            dependency_blockers: Vec::new(),
            max_retries: 0,
            cost_budget: None,
            user_id: None,
            deadline: None,
            outage: None,
            continues: None,
            conversation: false,
            session_rules: Vec::new(),
            workflow: None,
            plan: None,
            command,
        }
    }

    /// What people read of its goal.
    pub fn goal_for_people(&self) -> &str {
        self.shown_goal.as_deref().unwrap_or(&self.command.goal)
    }

    /// What happens when the model server does not answer, unless somebody has chosen otherwise.
    pub fn outage_by_origin(&self) -> Outage {
        self.outage.unwrap_or(match self.driver {
            Driver::Foreground => Outage::Park,
            Driver::Service => Outage::Fail,
        })
    }
}

impl Event {
    /// What a task was created with; a journal begins with it, and no other event has it.
    pub fn created(&self) -> Option<&TaskCreated> {
        let Self::TaskCreated(created) = self else { return None };
        Some(created)
    }
}

impl TaskCreated {
    /// What it is for, as people read it in lists: its goal, or the step of a workflow that it works on.
    pub fn title(&self) -> String {
        let title = self.workflow.as_deref().and_then(WorkflowPart::title);
        title.unwrap_or_else(|| self.command.goal.clone())
    }

    /// The top of its workspace on the host.
    pub fn boundary(&self) -> &str {
        self.site.boundary.as_deref().unwrap_or(&self.workspace)
    }

    /// Where its files are: for a person on the host, in a service workspace as its agent sees them.
    pub fn layout(&self) -> Layout {
        match self.site.layout {
            LayoutKind::Service => Layout::service(),
            LayoutKind::Personal => Layout::personal(self.root, self.boundary(), &self.workspace),
        }
    }
}

/// The task that a follow-up continues, and what its state takes over from it. The conversation itself is in
/// the first `agent_start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    pub task: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<WorkingPlan>,
    /// The version of each file that the agent has last seen or made.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub known_files: BTreeMap<String, String>,
    /// What people have allowed for the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_rules: Vec<AllowRule>,
    /// The shell's directory, as the agent sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
}

/// When a task must be finished, and what happens if it is not (ES-078).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    pub at: Timestamp,
    /// What happens then.
    pub action: DeadlineAction,
}

/// The status moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusChanged {
    pub from: TaskStatus,
    pub to: TaskStatus,
    pub reason: StatusReason,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What went wrong, when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorDetails>,
    /// When it resumes automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The axes that it had then (MS-193).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axes: Option<Axes>,
}

impl StatusChanged {
    /// A move of which the reason says all.
    pub fn new(from: TaskStatus, to: TaskStatus, reason: StatusReason) -> Self {
        Self { from, to, reason, detail: None, error: None, until: None, axes: None }
    }
}

/// A run segment began (ES-103).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentStart {
    pub task_id: TaskId,
    pub goal: String,
    /// The model it talks to.
    pub model: String,
    /// Where its effects happen.
    pub container: String,
    /// What is missing that one would expect of such a place; empty when nothing is.
    #[serde(rename = "footing", default, skip_serializing_if = "String::is_empty")]
    pub sandbox_gaps: String,
    /// The names of the tools it is offered.
    pub tools: Vec<String>,
    /// The profile that the gate decides by.
    pub risk_policy: String,
    /// The axes that it starts with (MS-193).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axes: Option<Axes>,
    /// The role that it starts with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Limit of tool rounds.
    pub max_iterations: u32,
    /// Limit of active time; `None` when there is none.
    pub timeout_ms: Option<u64>,
    /// Compaction settings in force.
    pub compaction_config: serde_json::Value,
    /// When the doom-loop guard speaks, where that is not as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Thresholds>,
    /// The system prompt and tools; present when an epoch begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prelude: Option<Prelude>,
    /// The version of each skill that the prelude names, so that later changes can be announced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skills: BTreeMap<String, String>,
    /// The messages the conversation opens with; present when it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Message>,
    /// What people said in the conversation that it continues, word for word; compactions keep it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// The skills that the agent follows in the conversation that it continues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followed_skills: Vec<String>,
}

/// The axes changed, of a session or of a task (MS-061).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeChanged {
    pub from: Axes,
    pub to: Axes,
    /// The role after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// In a session: the axes that were named, also where they were the same already.
    #[serde(default, skip_serializing_if = "AxesChange::is_empty")]
    pub wanted: AxesChange,
    pub reason: String,
    /// When it was to take effect.
    pub scope: Scope,
    /// What wanted it.
    #[serde(default)]
    pub source: Source,
    /// Who wanted it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The change of the session that it carries out; none where a task was changed alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeId>,
    /// Whether it takes back a change that was for one unit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reverts: bool,
    /// In a session: the task at whose boundary it took effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

impl ModeChanged {
    /// A change that a task makes itself, and at once; it leaves no role.
    pub fn by_task(from: Axes, to: Axes, source: Source, reason: String, by: &str) -> Self {
        Self {
            from,
            to,
            role: None,
            wanted: AxesChange::default(),
            reason,
            scope: Scope::Now,
            source,
            by: by.to_owned(),
            change: None,
            reverts: false,
            task: None,
        }
    }

    /// The axes that it is about.
    pub fn named_axes(&self) -> AxesChange {
        match self.wanted.is_empty() {
            true => AxesChange::between(&self.from, &self.to),
            false => self.wanted,
        }
    }
}

/// The system prompt, the tools or the model changed while the agent works. The messages stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptChanged {
    /// The model it talks to from now on.
    pub model: String,
    /// The names of the tools it is offered.
    pub tools: Vec<String>,
    /// The profile that the gate decides by.
    pub risk_policy: String,
    /// The axes that the prompt was made for.
    pub axes: Axes,
    /// The role that it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The system prompt and tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prelude: Option<Prelude>,
    /// The version of each skill that the prelude names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skills: BTreeMap<String, String>,
    /// What the agent reads of it; empty where nothing but the model changed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Words for TaskCreated {
    fn words(&self) -> String {
        self.command.goal.clone()
    }
}

impl Words for StatusChanged {
    fn words(&self) -> String {
        let why = self.detail.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        format!("{} → {} ({}){why}", self.from, self.to, self.reason)
    }
}

impl Words for AgentStart {
    fn words(&self) -> String {
        format!("{} · {}", self.model, self.container)
    }
}

impl Words for TaskResult {
    fn words(&self) -> String {
        let why = self.error_details.as_ref().map(|error| format!(": {}", error.message));
        let partial = if self.partial { " (partial)" } else { "" };
        format!("{}{partial}{}", self.status, why.unwrap_or_default())
    }
}

impl Words for ModeChanged {
    fn words(&self) -> String {
        let role = self.role.map(|role| format!(" ({role})")).unwrap_or_default();
        format!("{} → {}{role}: {}", self.from, self.to, self.reason)
    }

    fn note(&self) -> Option<Note> {
        Note::with_detail(format!("Mode: {}", self.to), &self.reason)
    }
}

impl Words for PromptChanged {
    fn words(&self) -> String {
        format!("{}, {}", self.axes, self.model)
    }
}

impl Words for WorkingPlan {
    fn words(&self) -> String {
        format!("{} of {} steps done", self.done(), self.steps.len())
    }
}

impl Words for Deliverable {
    fn words(&self) -> String {
        format!("{}: {}", self.filepath, self.description)
    }
}
