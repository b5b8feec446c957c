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

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use windlass_core::event::RiskCheck;
use windlass_core::id::TaskId;
use windlass_core::message::ToolSpec;
use windlass_core::outcome::Outcome;
use windlass_core::planning::PlanTask;
use windlass_core::policy::allow::AllowRule;
use windlass_core::policy::decide::{effective_class, is_usable_in};
use windlass_core::policy::denial::{Denial, DeniedCall};
use windlass_core::policy::{Class, Decision, PermissionRequest, RuleSet, Rules, Verdict, decide};
use windlass_core::question::{Permission, Question};
use windlass_core::role::Role;
use windlass_core::state::{OpenCall, TaskState};
use windlass_skills::Skill;
use windlass_tools::registry::reachable_under;
use windlass_tools::{Executor, Prepared, Registry, Tool};

use crate::parts::Parts;
use crate::prompt;
pub use hooks::HookTrust;
use hooks::Hooks;
use permission::{CallAnswer, permission_question};
use skill_limits::SkillLimits;

/// Decides about calls.
pub(crate) struct Gate {
    registry: Arc<Registry>,
    /// What people decided in advance.
    rule_set: RuleSet,
    /// How deep agents nest; the main agent is 0.
    max_depth: u32,
    /// Whether an agent without a role is shown the tools for commitments; it can use them either way.
    shows_ledger: bool,
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
            rule_set: settings.rules.clone(),
            max_depth: settings.sub_agents.max_depth,
            shows_ledger: settings.shows_ledger,
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
        self.registry.specs(&state.created.layout(), |tool| self.is_shown(state, tool))
    }

    /// Whether the agent is shown the tools of these names, and no others.
    pub fn shows_exactly(&self, state: &TaskState, tools: Option<&[ToolSpec]>) -> bool {
        let shown = self.registry.iter().filter(|tool| self.is_shown(state, tool.as_ref()));
        tools.is_some_and(|tools| shown.map(|tool| tool.name()).eq(tools.iter().map(|t| &*t.name)))
    }

    fn is_shown(&self, state: &TaskState, tool: &dyn Tool) -> bool {
        self.offers(state, tool) && self.is_worth_showing(state, tool)
    }

    /// Whether the agent may start others (ES-241, O-16).
    pub fn can_spawn(&self, state: &TaskState) -> bool {
        state.created.depth < self.max_depth
    }

    /// Whether the agent is shown a tool that starts others.
    pub fn shows_spawning(&self, state: &TaskState) -> bool {
        let mut tools = self.registry.iter().filter(|tool| tool.executor() == Executor::SubAgent);
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
        let call = denied_call(prepared);
        let mut answered = CallAnswer::of_call(state, open, prepared);
        let permission = answered.permission.take();
        let rules = self.rules(state, open, prepared, permission.as_ref());
        let verdict = decide(&prepared.assessment, &state.axes, &rules);
        let check = risk_check(state, open, prepared, &verdict);
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
                let asked = PermissionRequest::new(tool, call, analysis, &state.axes, verdict.by);
                let question = permission_question(state, open, prepared, answered, asked);
                Ruling::Ask(check, question)
            }
            (Decision::Allow, _) => Ruling::Allowed(check),
        }
    }

    /// Decides about a command of the completion contract, which a person has let run (§15.13): the decision, and
    /// its outcome where it is denied.
    pub fn decide_check(
        &self,
        state: &TaskState,
        open: &OpenCall,
        prepared: &Prepared,
    ) -> (RiskCheck, Option<Outcome>) {
        let (tool, analysis) = (&open.request.name, prepared.analysis.as_deref());
        let rules = self.rule_set.rules_for(tool, &prepared.assessment, analysis, &state.axes);
        let rules = Rules { approved: true, ..rules };
        let verdict = decide(&prepared.assessment, &state.axes, &rules);
        let check = risk_check(state, open, prepared, &verdict);
        let denied = || Outcome::denied(Denial::new(tool, denied_call(prepared), &verdict));
        let denied = (verdict.decision != Decision::Allow).then(denied);
        (check, denied)
    }

    /// The skills that this agent, or an agent above it, was started to follow.
    pub fn followed_skills(&self, state: &TaskState) -> Vec<String> {
        self.skills.active_skills(state)
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

    /// Whether a tool is worth its place in the prompt.
    fn is_worth_showing(&self, state: &TaskState, tool: &dyn Tool) -> bool {
        let is_ledger = tool.min_class().0 == Class::Ledger;
        !is_ledger || self.shows_ledger || state.role.is_some()
    }

    fn offers(&self, state: &TaskState, tool: &dyn Tool) -> bool {
        let reachable = reachable_under(state.axes.permission_profile);
        reachable(tool)
            && outside_plan(state, tool).is_none()
            && state.role.is_none_or(|role| role.has_tool(tool.name(), tool.min_class().0))
            && is_usable_in(state.axes.work_mode, tool.min_class().0)
            && (self.can_spawn(state) || tool.executor() != Executor::SubAgent)
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
        let scopes = self.skills.scopes(state);
        let unknown = scopes.iter().find(|(_, scope)| !self.rule_set.scopes.contains_key(scope));
        let informs = matches!(class, Class::Read | Class::Note | Class::Ledger);
        let unscoped =
            unknown.filter(|_| !informs).map(|(skill, scope)| prompt::unknown_scope(skill, scope));
        let rule_set = match scopes.is_empty() {
            true => Cow::Borrowed(&self.rule_set),
            false => Cow::Owned(
                self.rule_set.with_scopes(scopes.iter().map(|(_, scope)| scope.as_str())),
            ),
        };
        Rules {
            filtered: self
                .not_offered(state, tool)
                .or_else(|| {
                    let (role, command) = state.role.zip(analysis)?;
                    role.command_violation(command)
                })
                .or(unscoped),
            auditor: state.role == Some(Role::Auditor),
            session_rule: state.allow_rules.iter().any(covered),
            approved: matches!(permission, Some(Permission::Allow | Permission::AllowAll)),
            ..rule_set.rules_for(tool, &prepared.assessment, analysis, &state.axes)
        }
    }

    /// Why a call of this tool is refused although the model made one: it is not shown the tool, or may
    /// not use it now.
    fn not_offered(&self, state: &TaskState, name: &str) -> Option<String> {
        let tool = self.registry.get(name);
        let kind = tool.map_or(Executor::Plain, |tool| tool.executor());
        if state.compaction.is_flushing() && !tool.is_some_and(|tool| tool.is_note()) {
            let tools = self.registry.iter().filter(|tool| tool.is_note());
            let names: Vec<_> = tools.map(|tool| tool.name()).collect();
            return Some(prompt::only_notes(&names));
        }
        if kind == Executor::SubAgent && !self.can_spawn(state) {
            return Some(prompt::too_deep(state.created.depth));
        }
        if let Some(reason) = tool.and_then(|tool| self.skills.violation(state, tool.as_ref())) {
            return Some(reason);
        }
        if let Some(plan) = tool.and_then(|tool| outside_plan(state, tool.as_ref())) {
            return Some(prompt::outside_plan(plan));
        }
        let class = tool.map_or(Class::Read, |tool| tool.min_class().0);
        if let Some(role) = state.role.filter(|role| !role.has_tool(name, class)) {
            return Some(role.tool_violation(name));
        }
        let offered = tool.is_some_and(|tool| self.offers(state, tool.as_ref()));
        (!offered).then(|| prompt::out_of_profile(name, state.axes.permission_profile))
    }
}

/// The task of a plan whose list of tools leaves this one out (PL-007).
fn outside_plan<'s>(state: &'s TaskState, tool: &dyn Tool) -> Option<&'s PlanTask> {
    let plan = state.created.plan.as_deref()?;
    let is_allowed = tool.is_always_allowed() || plan.allows(&tool.names());
    (!is_allowed).then_some(plan)
}

/// What is denied, for the suggestions.
fn denied_call(prepared: &Prepared) -> DeniedCall<'_> {
    match &prepared.analysis {
        Some(analysis) => DeniedCall::Command(analysis),
        None => DeniedCall::Other(prepared.assessment.class),
    }
}

/// What is journaled of a decision.
fn risk_check(
    state: &TaskState,
    open: &OpenCall,
    prepared: &Prepared,
    verdict: &Verdict,
) -> RiskCheck {
    RiskCheck {
        call: open.request.id,
        tool: open.request.name.clone(),
        class: prepared.assessment.class,
        risk: prepared.assessment.risk,
        decision: verdict.decision,
        reason: verdict.reason.clone(),
        axes: state.axes,
    }
}
