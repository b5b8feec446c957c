//! Which skills bind an agent: whose tools are its only ones (AX-034), and whose hooks are asked.
//!
//! - A skill that is an agent's whole work, or that of an agent above it, binds it with both.
//! - One that it reads or is given during other work binds it with its hooks only. Nothing says where such a use
//!   ends, and the goal may need more than the skill's tools. The agent reads which
//!   tools they are; a skill that forks gets an agent of its own, which may use only those.

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_core::state::TaskState;
use windlass_skills::{HookTime, Skill, SkillRegistry, skill_of_goal};
use windlass_tools::Tool;

use super::HookTrust;
use crate::prompt;

/// The skills of one agent.
pub(super) struct SkillLimits {
    /// All there are, as they are now.
    pub skills: SkillRegistry,
    /// Skills that the agents above it follow: it may do no more than they (C-12).
    pub bound_by: Vec<String>,
    /// Whose hooks may run.
    pub trusted: HookTrust,
}

impl SkillLimits {
    /// The skills that are this agent's whole work, and that of those above it.
    pub fn active_skills(&self, state: &TaskState) -> Vec<String> {
        let own = skill_of_goal(&state.command().goal).map(str::to_owned);
        self.bound_by.iter().cloned().chain(own).collect()
    }

    /// Why a tool is outside the skills that this agent follows; `None` when it is not.
    pub fn violation(&self, state: &TaskState, tool: &dyn Tool) -> Option<String> {
        if tool.is_always_allowed() {
            return None;
        }
        let skills = self.skills.current();
        let followed = self.active_skills(state);
        let mut followed = followed.iter().filter_map(|name| skills.get(name));
        let skill = followed.find(|skill| !skill.allows(&tool.names()))?;
        let tools = skill.meta.allowed_tools.as_deref().unwrap_or_default();
        Some(prompt::outside_skill(&skill.meta.name, tools))
    }

    /// The policy scopes that the skills which this agent follows run under, each with the skill that names it.
    pub fn scopes(&self, state: &TaskState) -> Vec<(String, String)> {
        let skills = self.skills.current();
        let followed = self.active_skills(state);
        let followed = followed.iter().filter_map(|name| skills.get(name));
        let scope =
            |skill: &Skill| Some((skill.meta.name.clone(), skill.meta.genesis_scope.clone()?));
        followed.filter_map(scope).collect()
    }

    /// The trusted skills that have a hook for a call of one of these tools, given by all their names.
    pub fn matching_hooks<'a>(
        &self,
        state: &TaskState,
        read: impl IntoIterator<Item = &'a String>,
        calls: impl IntoIterator<Item = Vec<&'a str>>,
    ) -> Vec<Arc<Skill>> {
        let skills = self.skills.current();
        let followed = self.active_skills(state);
        let read = read.into_iter().map(|name| name.as_str());
        let names: BTreeSet<&str> = followed.iter().map(String::as_str).chain(read).collect();
        let all = names.into_iter().filter_map(|name| skills.shared(name));
        let mut bound: Vec<_> = all.filter(|skill| skill.has_hooks()).collect();
        if bound.is_empty() {
            return bound;
        }
        let tools: BTreeSet<_> = calls.into_iter().collect();
        let matches =
            |skill: &Skill, when| tools.iter().any(|tool| !skill.hooks(when, tool).is_empty());
        bound.retain(|skill| {
            let any = matches(skill, HookTime::BeforeTool) || matches(skill, HookTime::AfterTool);
            any && (self.trusted)(skill)
        });
        bound
    }
}
