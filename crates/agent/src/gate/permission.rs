//! What a person is asked about a call, and what they answered.
//!
//! Invariant: an answer holds for the call as it was shown. If its arguments, its directory or a file that it changes
//! or runs have changed before it runs, the person is asked again and reads what changed.

use windlass_core::id::QuestionId;
use windlass_core::outcome::Recovery;
use windlass_core::policy::PermissionRequest;
use windlass_core::policy::allow::{self, AllowRule};
use windlass_core::policy::decide::{can_be_session_allowed, effective_class};
use windlass_core::question::{
    Binding, BoundFile, PERMISSION_OPTIONS, Permission, Question, QuestionKind,
};
use windlass_core::state::{OpenCall, Stage, TaskState};
use windlass_tools::Prepared;

/// What a person said to this call, if they were asked about exactly this one (MS-068).
pub(super) fn permission_given(
    state: &TaskState,
    open: &OpenCall,
    prepared: &Prepared,
) -> Option<Permission> {
    let Stage::Answered(question, answer) = &open.stage else { return None };
    let fits = question.binding.as_ref() == Some(&binding(state, open, prepared));
    question
        .permission(&answer.text)
        .filter(|given| fits || matches!(given, Permission::Deny { .. }))
}

/// Asks whether a call may run.
pub(super) fn permission_question(
    state: &TaskState,
    open: &OpenCall,
    prepared: &Prepared,
    mut asked: PermissionRequest,
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
    let binding = binding(state, open, prepared);
    // One answer for each question: what is asked again has an id of its own.
    let id = match &open.stage {
        Stage::Answered(before, _) => {
            let changes = before.binding.as_ref().map(|then| then.changes(&binding));
            asked.changed = changes.unwrap_or_default();
            QuestionId::derived(&before.id.to_string(), "permission again")
        }
        Stage::Waiting | Stage::Asked(_) | Stage::Started(_) => {
            QuestionId::derived(&open.request.id.to_string(), "permission")
        }
    };
    Question {
        id,
        kind: QuestionKind::Permission,
        call: Some(open.request.id),
        question: asked.headline(),
        options,
        context: Some(context),
        binding: Some(binding),
        diff: prepared.diff.clone(),
        grants,
        asked: Some(Box::new(asked)),
        plan: None,
    }
}

fn binding(state: &TaskState, open: &OpenCall, prepared: &Prepared) -> Binding {
    Binding {
        arguments_hash: allow::arguments_hash(&open.request.arguments),
        cwd: state.sandbox.working_directory.clone().unwrap_or_default(),
        files: bound_files(prepared),
    }
}

/// The files that a call changes or runs, as they are now.
fn bound_files(prepared: &Prepared) -> Vec<BoundFile> {
    let changed = match &prepared.recovery {
        Recovery::Verify { change, .. } => {
            Some(BoundFile { path: change.path.clone(), hash: change.before.clone() })
        }
        Recovery::Rerun | Recovery::Reattach { .. } | Recovery::Unknown => None,
    };
    let bound = prepared.bound.iter().cloned();
    let scripts = prepared.analysis.iter().flat_map(|analysis| &analysis.scripts);
    let scripts =
        scripts.map(|file| BoundFile { path: file.path.clone(), hash: file.hash.clone() });
    let mut files: Vec<_> = changed.into_iter().chain(scripts).chain(bound).collect();
    let named = prepared.bind.as_ref().map(|bind| bind(prepared.analysis.as_deref()));
    for file in named.unwrap_or_default() {
        if files.iter().all(|known| known.path != file.path) {
            files.push(file);
        }
    }
    files
}
