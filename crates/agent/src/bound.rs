//! Which skills bind an agent: whose tools are its only ones (AX-034), and whose hooks are asked.
//!
//! - A skill that is an agent's whole work, or that of an agent above it, binds it with both.
//! - One that it reads or is given on the way to something larger binds it with its hooks alone. Nothing
//!   says where such a use ends, and the goal may need more than the skill's tools; the agent is told
//!   which they are, and a skill that forks gets an agent of its own, which is held to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_core::state::{OpenCall, TaskState};
use windlass_skills::{Skill, When, followed};

use crate::Agent;
use crate::journal::Journal;

impl Agent {
    /// The skills that are this agent's whole work, and that of those above it.
    pub(crate) fn followed_skills(&self, state: &TaskState) -> Vec<String> {
        let own = followed(&state.command().goal).map(str::to_owned);
        self.parts.settings.bound_by.iter().cloned().chain(own).collect()
    }

    /// Why a tool is not one of the skill that this agent follows, if it is none.
    pub(crate) fn outside_its_skills(&self, state: &TaskState, tool: &str) -> Option<String> {
        let tool = self.parts.registry.get(tool)?;
        if tool.is_always_allowed() {
            return None;
        }
        let skills = self.parts.world.skills.current();
        let followed = self.followed_skills(state);
        let mut followed = followed.iter().filter_map(|name| skills.get(name));
        let skill = followed.find(|skill| !skill.allows(&tool.names()))?;
        let tools = skill.meta.allowed_tools.as_deref().unwrap_or_default().join("`, `");
        Some(format!("the skill `{}` uses only `{tools}`", skill.meta.name))
    }

    /// The skills whose hooks are to be asked or told about one of these calls.
    pub(crate) fn hooked<'a>(
        &self,
        task: &Journal,
        calls: impl IntoIterator<Item = &'a OpenCall>,
    ) -> Vec<Arc<Skill>> {
        let skills = self.parts.world.skills.current();
        let followed = self.followed_skills(task.state());
        let names: BTreeSet<_> = followed.iter().chain(task.context().skills()).collect();
        let all = names.into_iter().filter_map(|name| skills.shared(name));
        let mut bound: Vec<_> = all.filter(|skill| skill.has_hooks()).collect();
        if bound.is_empty() {
            return bound;
        }
        let tools: BTreeSet<_> =
            calls.into_iter().map(|open| self.tool_names(&open.request.name)).collect();
        let concerned =
            |skill: &Skill, when| tools.iter().any(|tool| !skill.hooks(when, tool).is_empty());
        bound.retain(|skill| {
            let any = concerned(skill, When::BeforeTool) || concerned(skill, When::AfterTool);
            any && (self.parts.trusted)(skill)
        });
        bound
    }

    /// All names that a skill may call a tool by.
    pub(crate) fn tool_names<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        self.parts.registry.get(name).map_or_else(|| vec![name], |tool| tool.names())
    }
}
