//! What a plan may load in a directory, and what a task of one gets to work with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use windlass_coordinator::plans::Capabilities;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::TaskCreated;
use windlass_core::planning::PlanTask;
use windlass_plan::tools::{PlanLog, all};
use windlass_skills::SkillRegistry;
use windlass_store::Store;
use windlass_tools::Tool;

use super::mcp::McpServers;
use super::{Environment, Project, skills};
use crate::config::read::nearest;

/// What there is to load.
pub(super) fn capabilities(
    environment: &Environment,
    project: &Project,
) -> Result<Capabilities, ErrorDetails> {
    let found = project.servers()?.startable(environment, None);
    let names = |servers: &[windlass_tools::mcp::Definition]| {
        servers.iter().map(|server| server.name.clone()).collect()
    };
    let skills = project.skills()?.current();
    Ok(Capabilities {
        skills: skills.list().map(|skill| skill.meta.name.clone()).collect(),
        servers: names(&found.definitions),
        waiting_servers: names(&found.waiting),
    })
}

/// These skills alone. One that was there when the plan was activated and is gone stops the task: working without
/// it would not be what was planned.
pub(super) fn skills(
    environment: &Environment,
    directory: &Path,
    only: &[String],
) -> Result<SkillRegistry, ErrorDetails> {
    let registry = skills::registry(environment, directory, Some(only))?;
    let there = registry.current();
    match only.iter().find(|name| there.get(name).is_none()) {
        None => Ok(registry),
        Some(gone) => {
            let message = format!("the plan needs the skill `{gone}`, which no longer exists");
            Err(ErrorDetails::new(ErrorType::InvalidCommand, message)
                .with_hint("bring it back, or change the plan and activate it again"))
        }
    }
}

/// Leaves the servers that a task of a plan may reach.
pub(super) fn narrow(found: &mut McpServers, plan: &PlanTask) {
    let Some(only) = &plan.servers else { return };
    found.definitions.retain(|server| only.contains(&server.name));
    found.waiting.retain(|server| only.contains(&server.name));
    // What is wrong with the others does not concern it.
    found.notices.retain(|notice| only.iter().any(|name| notice.contains(&format!("`{name}`"))));
}

/// The tools of a plan's task: issues, decisions, its snapshot.
pub(super) fn tools(store: &Store, created: &TaskCreated, plan: &PlanTask) -> Vec<Arc<dyn Tool>> {
    let project = PathBuf::from(created.boundary());
    all(&PlanLog { store: store.clone(), project, place: plan.clone(), now: Timestamp::now })
}

/// The files of plans and of their agents that count only when a person has approved them.
pub fn files(workspace: &Path) -> Vec<PathBuf> {
    let own = nearest(workspace, ".windlass");
    let list = |directory: PathBuf, end: &'static str| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let mut found: Vec<PathBuf> = paths
            .map(|path| if path.is_dir() { path.join("plan.json") } else { path })
            .filter(|path| path.extension().is_some_and(|found| found == end) && path.is_file())
            .collect();
        found.sort();
        found
    };
    let usual = [nearest(workspace, "plan.json"), own.join("plan.json")];
    let plans = usual.into_iter().filter(|path| path.is_file());
    plans.chain(list(own.join("plans"), "json")).chain(list(own.join("agents"), "md")).collect()
}
