//! What an agent may call, and why: the tools it is shown, the decision about each call, what a person is
//! asked about it, and the hooks of the skills that bind it.
//!
//! Invariant: one gate. Every call that runs has passed `decide` and the hooks; what was decided is journaled
//! as a `risk_check`.

mod hooks;
mod permission;
mod skill_limits;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;
use windlass_core::event::RiskCheck;
use windlass_core::id::TaskId;
use windlass_core::message::ToolSpec;
use windlass_core::outcome::Outcome;
use windlass_core::policy::allow::AllowRule;
use windlass_core::policy::decide::{effective_class, is_usable_in};
use windlass_core::policy::denial::{Call as DeniedCall, Denial};
use windlass_core::policy::{Asked, Decision, GivenRules, Rules, decide};
use windlass_core::question::{Permission, Question};
use windlass_core::state::{OpenCall, TaskState};
use windlass_skills::Skill;
use windlass_tools::registry::reachable_under;
use windlass_tools::{Kind, Prepared, Registry, Tool};

use crate::parts::Parts;
use crate::prompt;
use hooks::Hooks;
pub use hooks::Trusted;
use permission::{permission_given, permission_question};
use skill_limits::SkillLimits;

/// Decides about calls.
pub(crate) struct Gate {
    registry: Arc<Registry>,
    /// What people decided beforehand.
    given: GivenRules,
    /// How deep agents nest; the main agent is 0.
    max_depth: u32,
    skills: SkillLimits,
    hooks: Hooks,
}

/// What is decided about a call.
#[derive(Debug)]
pub(crate) enum Ruling {
    /// It may run.
    Allowed(RiskCheck),
    /// A person has to be asked first.
    Ask(RiskCheck, Question),
    /// It does not run; the model reads the outcome.
    Denied(RiskCheck, Outcome),
}

impl Gate {
    /// The gate of an agent with these parts.
    pub fn new(parts: &Parts) -> Self {
        let settings = &parts.settings;
        Self {
            registry: parts.registry.clone(),
            given: settings.rules.clone(),
            max_depth: settings.sub_agents.max_depth,
            skills: SkillLimits {
                skills: parts.world.skills.clone(),
                bound_by: settings.bound_by.clone(),
                trusted: parts.trusted.clone(),
            },
            hooks: Hooks { sandbox: parts.world.shell.sandbox().clone() },
        }
    }

    /// The tools that the agent is shown.
    pub fn specs(&self, state: &TaskState) -> Vec<ToolSpec> {
        self.registry.specs(&state.created.layout(), |tool| self.offers(state, tool))
    }

    /// Whether the agent may start others (ES-241, O-16).
    pub fn can_spawn(&self, state: &TaskState) -> bool {
        state.created.depth < self.max_depth
    }

    /// Whether the agent is shown a tool that starts others.
    pub fn shows_spawning(&self, state: &TaskState) -> bool {
        let mut tools = self.registry.iter().filter(|tool| tool.kind() == Kind::SubAgent);
        tools.any(|tool| self.offers(state, tool.as_ref()))
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.registry.get(name)
    }

    /// The arguments of a call as its tool takes them, or what the model should do differently.
    pub fn arguments(&self, open: &OpenCall) -> Result<Value, Outcome> {
        self.registry.check(&open.request.name, &open.request.arguments)
    }

    /// Decides about a prepared call.
    pub fn decide(&self, state: &TaskState, open: &OpenCall, prepared: &Prepared) -> Ruling {
        let tool = &open.request.name;
        let call = match &prepared.analysis {
            Some(analysis) => DeniedCall::Command(analysis),
            None => DeniedCall::Other(prepared.assessment.class),
        };
        let permission = permission_given(state, open, prepared);
        let rules = self.rules(state, open, prepared, permission.as_ref());
        let verdict = decide(&prepared.assessment, &state.axes, &rules);
        let check = RiskCheck {
            call: open.request.id,
            tool: tool.clone(),
            class: prepared.assessment.class,
            risk: prepared.assessment.risk,
            decision: verdict.decision,
            reason: verdict.reason.clone(),
            axes: state.axes,
        };
        match (verdict.decision, permission) {
            (Decision::Deny, _) => {
                Ruling::Denied(check, Outcome::denied(Denial::new(tool, call, &verdict)))
            }
            (Decision::Ask, Some(Permission::Deny { comment })) => {
                let denial = Denial::by_person(tool, call, Some(&comment));
                Ruling::Denied(check, Outcome::denied(denial))
            }
            // The approval was for another form of this call: ask again.
            (Decision::Ask, Some(Permission::Allow | Permission::AllowAll) | None) => {
                let (call, analysis) = (&prepared.assessment, prepared.analysis.as_deref());
                let asked = Asked::new(tool, call, analysis, &state.axes, verdict.by);
                let question = permission_question(state, open, prepared, asked);
                Ruling::Ask(check, question)
            }
            (Decision::Allow, _) => Ruling::Allowed(check),
        }
    }

    /// The skills that this agent, or an agent above it, was started to follow.
    pub fn followed_skills(&self, state: &TaskState) -> Vec<String> {
        self.skills.followed(state)
    }

    /// The skills with hooks for one of these calls. `read` are skills that the agent was given on the way.
    pub fn matching_hooks<'a>(
        &'a self,
        state: &TaskState,
        read: impl IntoIterator<Item = &'a String>,
        calls: impl IntoIterator<Item = &'a OpenCall>,
    ) -> Vec<Arc<Skill>> {
        let tools = calls.into_iter().map(|open| self.tool_names(&open.request.name));
        self.skills.matching_hooks(state, read, tools)
    }

    /// Asks the hooks about a call that everything else allows. Returns the denial if a hook refuses.
    pub async fn run_before(
        &self,
        skills: &[Arc<Skill>],
        task: TaskId,
        open: &OpenCall,
        check: &RiskCheck,
    ) -> Option<(RiskCheck, Outcome)> {
        let names = self.tool_names(&open.request.name);
        let reason = self.hooks.run_before(skills, &names, task, open).await?;
        let denial = Denial {
            tool: check.tool.clone(),
            reason: reason.clone(),
            suggestions: vec![prompt::HOOK_SUGGESTION.trim_end().to_owned()],
            can_retry: true,
        };
        let check = RiskCheck { decision: Decision::Deny, reason, ..check.clone() };
        Some((check, Outcome::denied(denial)))
    }

    /// Reports to the hooks how a call went; what they say against it, if anything.
    pub async fn run_after(
        &self,
        skills: &[Arc<Skill>],
        task: TaskId,
        open: &OpenCall,
        outcome: &Outcome,
    ) -> Vec<String> {
        let names = self.tool_names(&open.request.name);
        self.hooks.run_after(skills, &names, task, open, outcome).await
    }

    /// All names that a skill may call a tool by.
    fn tool_names<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        self.registry.get(name).map_or_else(|| vec![name], |tool| tool.names())
    }

    fn offers(&self, state: &TaskState, tool: &dyn Tool) -> bool {
        let reachable = reachable_under(state.axes.permission_profile);
        reachable(tool)
            && is_usable_in(state.axes.work_mode, tool.min_class().0)
            && (self.can_spawn(state) || tool.kind() != Kind::SubAgent)
    }

    /// The rules that apply to this very call, besides the profile's table.
    fn rules(
        &self,
        state: &TaskState,
        open: &OpenCall,
        prepared: &Prepared,
        permission: Option<&Permission>,
    ) -> Rules {
        let (tool, analysis) = (&open.request.name, prepared.analysis.as_deref());
        let class = effective_class(&prepared.assessment);
        let covered = |rule: &AllowRule| match analysis {
            Some(analysis) => rule.covers(analysis),
            None => rule.covers_tool(tool, class),
        };
        Rules {
            filtered: self.not_offered(state, tool),
            session_rule: state.allow_rules.iter().any(covered),
            approved: matches!(permission, Some(Permission::Allow | Permission::AllowAll)),
            ..self.given.rules_for(tool, &prepared.assessment, analysis, &state.axes)
        }
    }

    /// Why a call of this tool is refused although the model made one: it is not shown the tool, or may
    /// not use it now.
    fn not_offered(&self, state: &TaskState, name: &str) -> Option<String> {
        let tool = self.registry.get(name);
        let kind = tool.map_or(Kind::Plain, |tool| tool.kind());
        if state.compaction.is_flushing() && !tool.is_some_and(|tool| tool.is_note()) {
            let tools = self.registry.iter().filter(|tool| tool.is_note());
            let names: Vec<_> = tools.map(|tool| tool.name()).collect();
            return Some(prompt::only_notes(&names));
        }
        if kind == Kind::SubAgent && !self.can_spawn(state) {
            return Some(prompt::too_deep(state.created.depth));
        }
        if let Some(reason) = tool.and_then(|tool| self.skills.violation(state, tool.as_ref())) {
            return Some(reason);
        }
        let offered = tool.is_some_and(|tool| self.offers(state, tool.as_ref()));
        (!offered).then(|| prompt::out_of_profile(name, state.axes.permission_profile))
    }
}
