//! The gate at work: what becomes of a checked and prepared call, and what a person is asked about it.

use windlass_core::event::{RiskCheck, ToolCall};
use windlass_core::id::QuestionId;
use windlass_core::outcome::Outcome;
use windlass_core::policy::allow::{self, AllowRule};
use windlass_core::policy::decide::{can_be_session_allowed, effective_class};
use windlass_core::policy::denial::{Call as Denied, Denial};
use windlass_core::policy::{Assessment, Decision, Rules, Verdict, decide};
use windlass_core::question::{Binding, PERMISSION_OPTIONS, Permission, Question, QuestionKind};
use windlass_core::state::{OpenCall, Stage};
use windlass_tools::{Kind, Prepared};

use super::Plan;
use crate::Agent;
use crate::journal::Journal;

impl Agent {
    pub(super) fn decided(
        &self,
        task: &Journal,
        open: &OpenCall,
        arguments: serde_json::Value,
        prepared: Prepared,
    ) -> Plan {
        let state = task.state();
        let call = match &prepared.analysis {
            Some(analysis) => Denied::Command(analysis),
            None => Denied::Other(prepared.assessment.class),
        };
        let permission = permission_given(task, open);
        let rules = self.rules(task, open, &prepared, permission.as_ref());
        let verdict = decide(&prepared.assessment, &state.axes, &rules);
        let check = self.risk_check(task, open, &prepared.assessment, &verdict);
        let tool = &open.request.name;
        match (verdict.decision, permission) {
            (Decision::Deny, _) => {
                let outcome = Outcome::denied(Denial::new(tool, call, &verdict));
                Plan::Settled { check: Some(check), outcome }
            }
            (Decision::Ask, Some(Permission::Deny { comment })) => {
                let outcome = Outcome::denied(Denial::by_person(tool, call, Some(&comment)));
                Plan::Settled { check: Some(check), outcome }
            }
            // An approval that does not fit this call any more is asked for again.
            (Decision::Ask, Some(Permission::Allow | Permission::AllowAll) | None) => {
                let question = ask_leave(task, open, &check, &prepared);
                Plan::Ask { check, question }
            }
            (Decision::Allow, _) => {
                let (tool, recovery) = (tool.clone(), prepared.recovery.clone());
                let call = ToolCall { call: open.request.id, tool, arguments, recovery };
                match self.kind(&open.request.name) {
                    Kind::SubAgent => self.plan_spawn(task, check, call),
                    Kind::Question => {
                        let question = asked(open, &call.arguments);
                        Plan::AskUser { check, call, question }
                    }
                    Kind::Plain => Plan::Run { check: Some(check), call, prepared },
                }
            }
        }
    }

    /// What is laid over the table for this very call.
    fn rules(
        &self,
        task: &Journal,
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
            denylisted: allow::denied(&self.parts.settings.deny, tool, analysis),
            allowlisted: analysis
                .is_some_and(|analysis| allow::allowlisted(&self.parts.settings.allow, analysis)),
            filtered: self.not_offered(task, tool),
            auditor: false,
            session_rule: task.state().allow_rules.iter().any(covered),
            approved: matches!(permission, Some(Permission::Allow | Permission::AllowAll)),
        }
    }

    /// A tool that the profile does not reach is not shown; a forged call to it is refused here.
    fn not_offered(&self, task: &Journal, name: &str) -> Option<String> {
        let tool = self.parts.registry.get(name);
        if task.state().cycle.is_flushing() && !tool.is_some_and(|tool| tool.is_note()) {
            let notes = self.parts.registry.iter().filter(|tool| tool.is_note());
            let tools = notes.map(|tool| tool.name()).collect::<Vec<_>>().join("`, `");
            return Some(format!("notes are being saved: only `{tools}` can be used right now"));
        }
        let state = task.state();
        if self.kind(name) == Kind::SubAgent && !self.may_spawn(state) {
            let depth = state.created.depth;
            return Some(format!(
                "sub-agents may not be nested deeper than this: depth {depth} is the limit \
                 (`subagents.max_depth`)"
            ));
        }
        if let Some(reason) = self.outside_its_skills(state, name) {
            return Some(reason);
        }
        let profile = state.axes.permission_profile;
        let offered = self.offered(state);
        (!tool.is_some_and(|tool| offered(tool.as_ref())))
            .then(|| format!("`{name}` is not available under profile `{profile}`"))
    }

    fn risk_check(
        &self,
        task: &Journal,
        open: &OpenCall,
        assessment: &Assessment,
        verdict: &Verdict,
    ) -> RiskCheck {
        RiskCheck {
            call: open.request.id,
            tool: open.request.name.clone(),
            class: assessment.class,
            risk: assessment.risk,
            decision: verdict.decision,
            reason: verdict.reason.clone(),
            axes: task.state().axes,
        }
    }
}

/// What a person said to this call, if they were asked about exactly this one (MS-068).
fn permission_given(task: &Journal, open: &OpenCall) -> Option<Permission> {
    let Stage::Answered(question, answer) = &open.stage else { return None };
    let fits = question.binding.as_ref() == Some(&binding(task, open));
    question
        .permission(&answer.text)
        .filter(|given| fits || matches!(given, Permission::Deny { .. }))
}

fn binding(task: &Journal, open: &OpenCall) -> Binding {
    Binding {
        arguments_hash: allow::arguments_hash(&open.request.arguments),
        cwd: task.state().working_directory.clone().unwrap_or_default(),
    }
}

fn asked(open: &OpenCall, arguments: &serde_json::Value) -> Question {
    let text = |key: &str| arguments[key].as_str().map(str::to_owned);
    let options = arguments["options"].as_array().into_iter().flatten();
    Question {
        id: QuestionId::derived(&open.request.id.to_string(), "ask_user"),
        kind: QuestionKind::AskUser,
        call: Some(open.request.id),
        question: text("question").unwrap_or_default(),
        options: options.filter_map(|option| option.as_str().map(str::to_owned)).collect(),
        context: text("context"),
        binding: None,
        grants: None,
    }
}

fn ask_leave(task: &Journal, open: &OpenCall, check: &RiskCheck, prepared: &Prepared) -> Question {
    let grants = match &prepared.analysis {
        Some(analysis) => AllowRule::for_analysis(analysis),
        None => {
            let class = effective_class(&prepared.assessment);
            let tool = open.request.name.clone();
            can_be_session_allowed(class).then_some(AllowRule::Tool { tool, class })
        }
    };
    let [allow, deny, allow_all] = PERMISSION_OPTIONS.map(str::to_owned);
    let mut options = vec![allow, deny];
    let mut context = open.request.arguments.clone();
    if let Some(rule) = &grants {
        options.push(allow_all);
        context += &format!("\n`Allow All` allows {rule}.");
    }
    Question {
        id: QuestionId::derived(&open.request.id.to_string(), "permission"),
        kind: QuestionKind::Permission,
        call: Some(open.request.id),
        question: format!("Allow `{}`? {}", check.tool, check.reason),
        options,
        context: Some(context),
        binding: Some(binding(task, open)),
        grants,
    }
}
