//! What a plan loads: exactly what it names, and an error for a name that does not exist (PL-020…022, PL-050).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_core::axes::PermissionProfile;
use windlass_core::contract::Contract;
use windlass_core::id::TaskId;
use windlass_core::model_text::neutralize;
use windlass_core::planning::{Approval, Mutation, Severity};

use crate::document::{item_path, key_path};
use crate::manifest::{Phase, Plan, Task};
use crate::order::dependencies;
use crate::problem::{list_names, nearest};
use crate::{AgentDefinition, Document, Problem, Problems};

/// What there is to load in a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub skills: Vec<String>,
    /// MCP servers that may start.
    pub servers: Vec<String>,
    /// MCP servers that wait until a person has approved the file that names them.
    pub waiting_servers: Vec<String>,
}

/// What a plan names, and exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// The only skills of the plan; all of the project where it names none.
    pub skills: Option<Vec<String>>,
    pub servers: Option<Vec<String>>,
}

/// A task with everything that its manifest, its agent and its phase say of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolvedTask {
    pub id: String,
    pub phase: String,
    pub title: String,
    pub prompt: String,
    #[serde(default)]
    pub steps: Vec<(u32, String)>,
    pub depends_on: Vec<String>,
    pub agent: Option<String>,
    pub agent_prompt: Option<String>,
    pub model: Option<String>,
    pub permission_profile: Option<PermissionProfile>,
    pub skills: Option<Vec<String>>,
    pub servers: Option<Vec<String>>,
    pub tools: Option<Vec<String>>,
    pub risk: Option<Severity>,
    pub mutation: Mutation,
    pub approval: Approval,
    #[serde(default)]
    pub verification: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Contract>,
    /// The task of an earlier run that has finished it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_by: Option<TaskId>,
    /// How many runs of the plan came before this one.
    #[serde(default)]
    pub round: u32,
}

/// Finds what a plan names. A name that does not exist is an error, and never means all.
pub fn resolve(
    plan: &Plan,
    document: &Document,
    agents: &BTreeMap<String, AgentDefinition>,
    there: &Capabilities,
) -> Result<(Needs, Vec<ResolvedTask>), Problems> {
    let mut found =
        missing(document, "requiredSkills", "skill", &plan.required_skills, &there.skills);
    for (index, name) in plan.required_mcp_tools.iter().flatten().enumerate() {
        let path = item_path("requiredMcpTools", index);
        if there.waiting_servers.contains(name) && !there.servers.contains(name) {
            let message =
                format!("MCP server `{name}` waits until you approve the file that names it");
            found.push(document.problem(&path, message));
        } else if !there.servers.contains(name) {
            found.push(document.problem(&path, unknown("MCP server", name, &there.servers)));
        }
    }
    // Without a list of the plan, a task may name any skill of the project, and only those.
    if plan.required_skills.is_none() {
        for (number, phase) in plan.phases.iter().enumerate() {
            let tasks = key_path(&item_path("phases", number), "tasks");
            for (index, task) in phase.tasks.iter().enumerate() {
                let path = key_path(&item_path(&tasks, index), "skills");
                found.extend(missing(document, &path, "skill", &task.skills, &there.skills));
            }
        }
    }
    if !found.is_empty() {
        return Err(Problems(found));
    }
    let needs =
        Needs { skills: plan.required_skills.clone(), servers: plan.required_mcp_tools.clone() };
    let order = dependencies(plan);
    let tasks = plan.tasks().map(|(phase, task)| {
        let agent = plan.agent_of(phase, task).and_then(|name| agents.get(name));
        let waits = order.get(&task.id).into_iter().flatten().cloned().collect();
        resolved(plan, phase, task, agent, waits)
    });
    let tasks = tasks.collect();
    Ok((needs, tasks))
}

fn resolved(
    plan: &Plan,
    phase: &Phase,
    task: &Task,
    agent: Option<&AgentDefinition>,
    depends_on: Vec<String>,
) -> ResolvedTask {
    let of_agent = |list: fn(&AgentDefinition) -> &Option<Vec<String>>| {
        agent.and_then(|agent| list(agent).as_deref())
    };
    let skills =
        [plan.required_skills.as_deref(), of_agent(|agent| &agent.skills), task.skills.as_deref()];
    let servers = [plan.required_mcp_tools.as_deref(), of_agent(|agent| &agent.mcp_tools), None];
    let tools = [of_agent(|agent| &agent.tools), task.tools.as_deref(), None];
    let prompt = agent.map(|agent| neutralize(&agent.prompt)).filter(|prompt| !prompt.is_empty());
    ResolvedTask {
        id: task.id.clone(),
        phase: phase.id.clone(),
        title: task.title.clone(),
        prompt: task.best_pattern_prompt.clone(),
        steps: task.steps.iter().map(|step| (step.step, step.text.clone())).collect(),
        depends_on,
        agent: plan.agent_of(phase, task).map(str::to_owned),
        agent_prompt: prompt,
        model: agent.and_then(|agent| agent.model.clone()),
        permission_profile: agent.and_then(|agent| agent.permission_profile),
        skills: intersect(&skills),
        servers: intersect(&servers),
        tools: intersect(&tools),
        risk: task.risk,
        mutation: task.mutation.unwrap_or_default(),
        approval: match task.needs_approval() {
            true => Approval::Required,
            false => Approval::None,
        },
        verification: task.verification.clone(),
        completion: task.completion.as_ref().or(plan.completion.as_ref()).cloned(),
        done_by: None,
        round: 0,
    }
}

/// What all lists that are given have in common; `None` where none is given.
fn intersect(lists: &[Option<&[String]>]) -> Option<Vec<String>> {
    let mut lists = lists.iter().copied().flatten();
    let first = lists.next()?.to_vec();
    Some(lists.fold(first, |kept, list| {
        kept.into_iter()
            .filter(|name| list.iter().any(|one| one.eq_ignore_ascii_case(name)))
            .collect()
    }))
}

fn missing(
    document: &Document,
    path: &str,
    what: &str,
    named: &Option<Vec<String>>,
    there: &[String],
) -> Vec<Problem> {
    let named = named.iter().flatten().enumerate();
    named
        .filter(|(_, name)| !there.contains(name))
        .map(|(index, name)| document.problem(&item_path(path, index), unknown(what, name, there)))
        .collect()
}

fn unknown(what: &str, name: &str, there: &[String]) -> String {
    let near = nearest(name, there.iter().map(String::as_str));
    format!(
        "there is no {what} `{name}`{near} (there are: {})",
        list_names(there.iter().map(String::as_str))
    )
}
