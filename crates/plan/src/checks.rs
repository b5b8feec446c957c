//! What a manifest may not say although each of its values is of the right kind.

use std::collections::BTreeSet;

use windlass_core::planning::{Approval, Mutation};

use crate::document::{item_path, key_path};
use crate::manifest::{Plan, Task};
use crate::order::{cycle, dependencies};
use crate::problem::{list_names, nearest};
use crate::template::bookend_problem;
use crate::{Document, Problem, Problems};

/// Checks a plan as a whole; the document knows the line of each problem.
pub fn check(plan: &Plan, document: &Document) -> Result<(), Problems> {
    let mut checks = Checks { plan, document, found: Vec::new() };
    checks.names();
    checks.roster();
    checks.skills();
    checks.servers();
    checks.order();
    for (path, task) in tasks(plan) {
        checks.task(&path, task);
    }
    checks.found.sort_by_key(|problem| problem.line);
    match checks.found.is_empty() {
        true => Ok(()),
        false => Err(Problems(checks.found)),
    }
}

/// Every task with its place in the document.
fn tasks(plan: &Plan) -> impl Iterator<Item = (String, &Task)> {
    plan.phases.iter().enumerate().flat_map(|(number, phase)| {
        let phase_path = item_path("phases", number);
        let tasks = key_path(&phase_path, "tasks");
        phase.tasks.iter().enumerate().map(move |(index, task)| (item_path(&tasks, index), task))
    })
}

struct Checks<'p> {
    plan: &'p Plan,
    document: &'p Document,
    found: Vec<Problem>,
}

impl Checks<'_> {
    fn blame(&mut self, path: &str, message: impl Into<String>) {
        self.found.push(self.document.problem(path, message));
    }

    /// Names of phases, tasks and agents stand for one thing each.
    fn names(&mut self) {
        let plan = self.plan;
        let mut phases = BTreeSet::new();
        for (index, phase) in plan.phases.iter().enumerate() {
            if !phases.insert(&phase.id) {
                let path = key_path(&item_path("phases", index), "id");
                self.blame(&path, format!("there are two phases `{}`", phase.id));
            }
        }
        let mut known = BTreeSet::new();
        for (path, task) in tasks(plan) {
            if !known.insert(&task.id) {
                let message = format!("there are two tasks `{}`", task.id);
                self.blame(&key_path(&path, "id"), message);
            }
        }
        let mut agents = BTreeSet::new();
        for (index, agent) in plan.assigned_agents.iter().enumerate() {
            if !agents.insert(&agent.name) {
                let path = item_path("assignedAgents", index);
                self.blame(&path, format!("`{}` appears twice in the roster", agent.name));
            }
        }
    }

    /// Whoever is assigned is in the roster (PL-009).
    fn roster(&mut self) {
        let plan = self.plan;
        let mut assigned = vec![("assignedAgent".to_owned(), &plan.assigned_agent)];
        for (index, phase) in plan.phases.iter().enumerate() {
            let path = key_path(&item_path("phases", index), "assignedAgent");
            assigned.push((path, &phase.assigned_agent));
        }
        let of_tasks = tasks(plan)
            .map(|(path, task)| (key_path(&path, "assignedAgent"), &task.assigned_agent));
        assigned.extend(of_tasks);
        let roster = || plan.assigned_agents.iter().map(|agent| agent.name.as_str());
        for (path, agent) in assigned {
            let Some(agent) = agent.as_ref().filter(|agent| roster().all(|one| one != *agent))
            else {
                continue;
            };
            let near = nearest(agent, roster());
            let message = format!(
                "agent `{agent}` is not in the roster{near} (`assignedAgents`: {})",
                list_names(roster())
            );
            self.blame(&path, message);
        }
    }

    /// A task narrows the manifest, and never widens it (O-01).
    fn skills(&mut self) {
        let plan = self.plan;
        let Some(required) = &plan.required_skills else { return };
        let of_tasks = tasks(plan).map(|(path, task)| (key_path(&path, "skills"), &task.skills));
        let of_agents = plan.assigned_agents.iter().enumerate().map(|(index, agent)| {
            (key_path(&item_path("assignedAgents", index), "skills"), &agent.skills)
        });
        for (path, skills) in of_tasks.chain(of_agents) {
            for (index, skill) in skills.iter().flatten().enumerate() {
                if !required.contains(skill) {
                    let near = nearest(skill, required.iter().map(String::as_str));
                    let message =
                        format!("skill `{skill}` is not in the plan's `requiredSkills`{near}");
                    self.blame(&item_path(&path, index), message);
                }
            }
        }
    }

    /// The same for MCP servers, which tools and agents may name.
    fn servers(&mut self) {
        let plan = self.plan;
        let Some(required) = &plan.required_mcp_tools else { return };
        let server = |tool: &String| {
            let rest = tool.strip_prefix("mcp:")?;
            rest.split(':').next().map(str::to_owned)
        };
        let mut named = Vec::new();
        for (path, task) in tasks(plan) {
            let path = key_path(&path, "tools");
            let tools = task.tools.iter().flatten().enumerate();
            named.extend(
                tools.filter_map(|(index, tool)| Some((item_path(&path, index), server(tool)?))),
            );
        }
        for (index, agent) in plan.assigned_agents.iter().enumerate() {
            let path = key_path(&item_path("assignedAgents", index), "mcpTools");
            let servers = agent.mcp_tools.iter().flatten().enumerate();
            named.extend(servers.map(|(index, name)| (item_path(&path, index), name.clone())));
        }
        for (path, server) in named {
            if !required.contains(&server) {
                let near = nearest(&server, required.iter().map(String::as_str));
                let message =
                    format!("MCP server `{server}` is not in the plan's `requiredMcpTools`{near}");
                self.blame(&path, message);
            }
        }
    }

    /// Whatever is waited for exists, and nothing waits for itself.
    fn order(&mut self) {
        let plan = self.plan;
        let before = self.found.len();
        for (path, task) in tasks(plan) {
            let path = key_path(&path, "dependsOn");
            for (index, name) in task.depends_on.iter().enumerate() {
                let known = || plan.tasks().map(|(_, task)| task.id.as_str());
                if known().all(|task| task != name) {
                    let near = nearest(name, known());
                    self.blame(
                        &item_path(&path, index),
                        format!("there is no task `{name}`{near}"),
                    );
                }
            }
        }
        for (number, phase) in plan.phases.iter().enumerate() {
            let path = key_path(&item_path("phases", number), "dependsOn");
            for (index, name) in phase.depends_on.iter().flatten().enumerate() {
                let known = || plan.phases.iter().map(|phase| phase.id.as_str());
                if known().all(|phase| phase != name) {
                    let near = nearest(name, known());
                    let message = format!("there is no phase `{name}`{near}");
                    self.blame(&item_path(&path, index), message);
                }
            }
        }
        if self.found.len() > before {
            return;
        }
        if let Some(cycle) = cycle(&dependencies(plan)) {
            let path = tasks(plan)
                .find(|(_, task)| Some(&task.id) == cycle.first())
                .map(|(path, _)| key_path(&path, "dependsOn"));
            let message = format!("these tasks wait for each other: {}", cycle.join(" → "));
            self.blame(&path.unwrap_or_default(), message);
        }
    }

    fn task(&mut self, path: &str, task: &Task) {
        if !task.steps.is_empty()
            && let Some(problem) = bookend_problem(&task.steps)
        {
            self.blame(&key_path(path, "steps"), problem);
        }
        let is_production = task.mutation == Some(Mutation::ProductionMutation);
        if is_production && task.approval == Some(Approval::None) {
            let message = "a `production-mutation` needs `approval: required`";
            self.blame(&key_path(path, "approval"), message);
        }
        let leaves = |file: &str| {
            let path = std::path::Path::new(file);
            let is_plain = |part| matches!(part, std::path::Component::Normal(_));
            !path.components().all(is_plain)
        };
        if task.file.as_deref().is_some_and(leaves) {
            self.blame(&key_path(path, "file"), "must be a path below the plan's own directory");
        }
        for (index, command) in task.verification.iter().enumerate() {
            if command.contains('\0') {
                let path = item_path(&key_path(path, "verification"), index);
                self.blame(&path, "a command cannot hold a null character");
            }
        }
    }
}
