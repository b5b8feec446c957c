//! What a person is asked about a call, and what they answered.

use windlass_core::event::RiskCheck;
use windlass_core::id::QuestionId;
use windlass_core::policy::allow::{self, AllowRule};
use windlass_core::policy::decide::{can_be_session_allowed, effective_class};
use windlass_core::question::{Binding, PERMISSION_OPTIONS, Permission, Question, QuestionKind};
use windlass_core::state::{OpenCall, Stage, TaskState};
use windlass_tools::Prepared;

/// What a person said to this call, if they were asked about exactly this one (MS-068).
pub(super) fn permission_given(state: &TaskState, open: &OpenCall) -> Option<Permission> {
    let Stage::Answered(question, answer) = &open.stage else { return None };
    let fits = question.binding.as_ref() == Some(&binding(state, open));
    question
        .permission(&answer.text)
        .filter(|given| fits || matches!(given, Permission::Deny { .. }))
}

/// Asks whether a call may run.
pub(super) fn permission_question(
    state: &TaskState,
    open: &OpenCall,
    check: &RiskCheck,
    prepared: &Prepared,
) -> Question {
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
        binding: Some(binding(state, open)),
        grants,
    }
}

fn binding(state: &TaskState, open: &OpenCall) -> Binding {
    Binding {
        arguments_hash: allow::arguments_hash(&open.request.arguments),
        cwd: state.sandbox.working_directory.clone().unwrap_or_default(),
    }
}
