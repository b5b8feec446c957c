//! A plan as its manifest says it (PL-001…008): phases, tasks, and what they may load.

use serde::Serialize;
use windlass_core::axes::PermissionProfile;
use windlass_core::contract::Contract;
use windlass_core::planning::{Approval, Mutation, Severity};

/// A plan as its file describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Its name in commands and rows.
    pub id: String,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The only skills that load (PL-001). Without the list, the project's skills load as ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_skills: Option<Vec<String>>,
    /// The only MCP servers that start (PL-002).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_mcp_tools: Option<Vec<String>>,
    /// The roster (PL-003).
    pub assigned_agents: Vec<AgentRef>,
    /// The agent of every task that names no nearer one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned_agent: Option<String>,
    /// What must hold before each task is done that says nothing of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<Contract>,
    pub phases: Vec<Phase>,
}

/// An agent of the roster: a name, which `.windlass/agents/NAME.md` defines, or a definition in its place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentRef {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_profile: Option<PermissionProfile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// A phase: a milestone of the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    pub id: String,
    pub title: String,
    /// The agent of all its tasks (PL-004).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned_agent: Option<String>,
    /// The phases that must be done first; the one before it where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<String>>,
    pub tasks: Vec<Task>,
}

/// A task of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    pub id: String,
    pub title: String,
    /// The file whose text it is, where it is not in the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its own agent (PL-005).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned_agent: Option<String>,
    /// What the agent reads; it names what to use (PL-006).
    pub best_pattern_prompt: String,
    /// The only tools of the task (PL-007).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The only skills of the task (PL-008).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// The tasks that must be done first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The steps between the first and the last, with both.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PlanStep>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<Severity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation: Option<Mutation>,
    /// Commands that must pass before the task is done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verification: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What else must hold before the task is done, in place of what the plan says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<Contract>,
}

/// A numbered step of a task: 0 is always first, 99 always last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanStep {
    pub step: u32,
    pub text: String,
}

impl Plan {
    /// Every task with its phase, in the order of the file.
    pub fn tasks(&self) -> impl Iterator<Item = (&Phase, &Task)> {
        self.phases.iter().flat_map(|phase| phase.tasks.iter().map(move |task| (phase, task)))
    }

    /// The task of this name.
    pub fn task(&self, id: &str) -> Option<&Task> {
        self.tasks().map(|(_, task)| task).find(|task| task.id == id)
    }

    /// The agent of a task: its own, else its phase's, else the plan's, else the only one of the roster.
    pub fn agent_of<'p>(&'p self, phase: &'p Phase, task: &'p Task) -> Option<&'p str> {
        let only = match self.assigned_agents.as_slice() {
            [only] => Some(&only.name),
            _ => None,
        };
        let named = [&task.assigned_agent, &phase.assigned_agent, &self.assigned_agent];
        named.into_iter().find_map(Option::as_ref).or(only).map(String::as_str)
    }
}

impl Task {
    /// What its file says, where the manifest does not say it.
    pub fn filled_by(self, file: Self) -> Self {
        let or = |own: Vec<String>, other: Vec<String>| if own.is_empty() { other } else { own };
        let title = if self.title == self.id { file.title } else { self.title };
        let prompt = match self.best_pattern_prompt.is_empty() {
            true => file.best_pattern_prompt,
            false => self.best_pattern_prompt,
        };
        Self {
            title,
            best_pattern_prompt: prompt,
            assigned_agent: self.assigned_agent.or(file.assigned_agent),
            tools: self.tools.or(file.tools),
            skills: self.skills.or(file.skills),
            depends_on: or(self.depends_on, file.depends_on),
            risk: self.risk.or(file.risk),
            mutation: self.mutation.or(file.mutation),
            verification: or(self.verification, file.verification),
            approval: self.approval.or(file.approval),
            completion: self.completion.or(file.completion),
            ..self
        }
    }

    /// Whether a person agrees before it starts: as it says, else where much can go wrong (MS-216).
    pub fn needs_approval(&self) -> bool {
        let is_risky = self.risk.is_some_and(|risk| risk >= Severity::High);
        let is_production = self.mutation == Some(Mutation::ProductionMutation);
        self.approval.map_or(is_risky || is_production, |approval| approval == Approval::Required)
    }
}
