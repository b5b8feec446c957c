//! What a person is asked about a call, and what they answered.
//!
//! Invariants:
//! - An answer holds for the call as it was shown. If its arguments, its directory or a file that it changes or runs
//!   have changed before it runs, the person is asked again and reads what changed.
//! - Where nobody can name the files that a call depends on, that holds for every file of the workspace. Files that
//!   keep changing raise two more questions and no third: from then on only the files with names count.

use windlass_core::id::QuestionId;
use windlass_core::outcome::Recovery;
use windlass_core::policy::allow::{self, AllowRule};
use windlass_core::policy::decide::{can_be_session_allowed, effective_class};
use windlass_core::policy::{PermissionRequest, RuleScope};
use windlass_core::question::{
    AcceptedAnswers, Binding, BoundFile, ChangeMark, PERMISSION_OPTIONS, Permission, Question,
    QuestionKind,
};
use windlass_core::shown::shown_line;
use windlass_core::state::{OpenCall, Stage, TaskState};
use windlass_tools::Prepared;

/// How often a person is asked again because files changed that the call does not name.
const MAX_ASKED_AGAIN: u8 = 2;

/// What a person reads before files without names no longer count.
const LAST_TIME: &str =
    "files that keep changing, which is not asked about again unless the command names them";

/// What is known of the answer to a call's question.
#[derive(Default)]
pub(super) struct CallAnswer {
    /// What the person said, if they were asked about exactly this call (MS-068).
    pub permission: Option<Permission>,
    /// What is different from what they were shown, in words.
    changed: Vec<String>,
    /// How often files without names have raised the question again.
    asked_again: u8,
}

impl CallAnswer {
    /// Looks at what was answered, and at what is different by now.
    pub fn of_call(state: &TaskState, open: &OpenCall, prepared: &Prepared) -> Self {
        let Stage::Answered(question, answer) = &open.stage else { return Self::default() };
        let said = question.permission(&answer.text);
        if matches!(said, Some(Permission::Deny { .. })) {
            return Self { permission: said, ..Self::default() };
        }
        let Some(before) = &question.binding else { return Self::default() };
        let now = binding(state, open, prepared);
        let mut changed = before.changes(&now);
        let fits = before.holds(&now);
        let mark = before.mark.as_ref();
        let mut asked_again = mark.map_or(0, |mark| mark.asked_again);
        let others = mark
            .filter(|mark| mark.asked_again < MAX_ASKED_AGAIN)
            .map_or_else(Vec::new, |mark| other_changes(state, prepared, mark, &now.files));
        asked_again += u8::from(!others.is_empty());
        let fits = fits && others.is_empty();
        changed.extend(others);
        Self { permission: said.filter(|_| fits), changed, asked_again }
    }
}

/// What has changed in the workspace since it was asked, beside the files that an approval names.
fn other_changes(
    state: &TaskState,
    prepared: &Prepared,
    since: &ChangeMark,
    named: &[BoundFile],
) -> Vec<String> {
    let Some(workspace) = &prepared.depends_on else { return Vec::new() };
    let layout = state.created.layout();
    let is_named = |path: &str| named.iter().any(|file| layout.in_full(&file.path) == path);
    let found = workspace.changes().since(&since.trees, &is_named);
    let top = format!("{}/", layout.top().trim_end_matches('/'));
    let name = |path: &String| match path.strip_prefix(&top).unwrap_or(path) {
        path if path.ends_with('/') => format!("what is in `{}`", shown_line(path)),
        path => format!("`{}`", shown_line(path)),
    };
    let mut words: Vec<String> = found.changed.iter().map(name).collect();
    if found.more > 0 {
        words.push(format!("{} more", found.more));
    }
    // Said once: the next time would not see more.
    if found.gave_up && (since.asked_again == 0 || !words.is_empty()) {
        words.push("perhaps files that could not all be looked at".to_owned());
    }
    if !words.is_empty() && since.asked_again + 1 == MAX_ASKED_AGAIN {
        words.push(LAST_TIME.to_owned());
    }
    words
}

/// Asks whether a call may run.
pub(super) fn permission_question(
    state: &TaskState,
    open: &OpenCall,
    prepared: &Prepared,
    answered: CallAnswer,
    mut asked: PermissionRequest,
) -> Question {
    // Before the files are looked at, so that no change falls between.
    let trees = prepared.depends_on.as_ref().map(|workspace| workspace.changes().marks());
    let mark = trees.map(|trees| ChangeMark { trees, asked_again: answered.asked_again });
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
    asked.rule_scope = match state.created.parent {
        Some(_) => RuleScope::Child,
        None => RuleScope::Session,
    };
    if let Some(rule) = &grants {
        options.push(allow_all);
        context += &format!("\n`Allow All` allows {}.", rule.describe(asked.rule_scope));
    }
    let binding = Binding { mark, ..binding(state, open, prepared) };
    // One answer for each question: what is asked again has an id of its own.
    let id = match &open.stage {
        Stage::Answered(before, _) => {
            asked.changed = answered.changed;
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
        accepts: AcceptedAnswers::Words,
        asked: Some(Box::new(asked)),
        plan: None,
    }
}

fn binding(state: &TaskState, open: &OpenCall, prepared: &Prepared) -> Binding {
    Binding {
        arguments_hash: allow::arguments_hash(&open.request.arguments),
        cwd: state.sandbox.working_directory.clone().unwrap_or_default(),
        files: bound_files(prepared),
        mark: None,
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
