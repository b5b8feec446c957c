//! Which variables templates will find when their step runs.

use serde_json::{Map, Value};

use crate::definition::{Step, WorkKind, Workflow, nearest};

/// What every step leaves, whatever it is.
const ALWAYS: [&str; 4] = ["success", "failed", "skipped", "error"];

/// What a step of this type leaves besides.
const fn fields_of(kind: WorkKind) -> &'static [&'static str] {
    match kind {
        WorkKind::Agent => &["summary", "outputs", "changed_files", "text"],
        WorkKind::Script => &["output", "exit_code"],
        WorkKind::Loop => &["rounds"],
        WorkKind::Parallel => &["commits", "left_out", "not_joined"],
        WorkKind::Merge => &["commit", "target", "branch", "left_out"],
        WorkKind::PullRequest => &["output", "exit_code", "url", "left_out"],
        WorkKind::Ask => &["answer"],
    }
}

/// Whether what is under the name of an `output` has fields. Of other steps it is one value.
const fn output_has_fields(kind: WorkKind) -> bool {
    match kind {
        WorkKind::Agent | WorkKind::Loop | WorkKind::Parallel => true,
        WorkKind::Script | WorkKind::Merge | WorkKind::PullRequest | WorkKind::Ask => false,
    }
}

/// Whether a variable is there when the step runs: a step leaves it, a person gives it, or the worktree has it.
pub(super) fn comes_later(workflow: &Workflow, name: &str) -> bool {
    let mut parts = name.split('.');
    let first = parts.next().unwrap_or_default();
    let field = parts.next();
    let is_left_by = |step: &Step| {
        let fields = ALWAYS.iter().chain(fields_of(step.work.kind()));
        field.is_none_or(|field| fields.into_iter().any(|one| *one == field))
    };
    let steps = workflow.all_steps();
    let is_left = steps.iter().any(|step| {
        let is_output = step.output.as_deref() == Some(first);
        is_output && (field.is_none() || output_has_fields(step.work.kind())) && is_left_by(step)
            || (step.name == first || first == "previous") && is_left_by(step)
    });
    let is_input = |name: &str| workflow.inputs.contains_key(name);
    is_left
        || matches!(first, "loop" | "request" | "worktree")
        || is_input(first)
        || first == "inputs" && field.is_some_and(is_input)
}

/// The step that leaves a variable, where it runs only after the one that uses it. In a loop, a later step has left
/// something in the round before.
pub(super) fn leaver_after<'w>(workflow: &'w Workflow, user: &Step, name: &str) -> Option<&'w str> {
    let first = name.split('.').next().unwrap_or_default();
    let steps = workflow.all_steps();
    let is_left_by = |step: &&&Step| step.name == first || step.output.as_deref() == Some(first);
    let place = |name: &str| steps.iter().position(|step| step.name == name);
    let is_before =
        |leaver: &Step| place(&leaver.name) < place(&user.name) && !leaver.has_inside(&user.name);
    let repeats_both = |outer: &Step, leaver: &Step| {
        outer.work.kind() == WorkKind::Loop
            && (outer.name == user.name || outer.has_inside(&user.name))
            && outer.has_inside(&leaver.name)
    };
    let is_there = |leaver: &&Step| {
        is_before(leaver)
            || user.has_inside(&leaver.name)
            || steps.iter().any(|outer| repeats_both(outer, leaver))
    };
    let last = steps.iter().rfind(is_left_by)?;
    let known = steps.iter().filter(is_left_by).any(is_there);
    (!known).then_some(last.name.as_str())
}

/// The name that was probably meant.
pub(super) fn nearest_to(
    workflow: &Workflow,
    known: &Map<String, Value>,
    name: &str,
) -> Option<String> {
    let (first, rest) = match name.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (name, None),
    };
    let steps = workflow.all_steps();
    let with_rest = |first: &str| rest.map_or(first.to_owned(), |rest| format!("{first}.{rest}"));
    if first == "inputs" {
        let inputs: Vec<&str> = workflow.inputs.keys().map(String::as_str).collect();
        return nearest(rest?, &inputs).map(|near| format!("inputs.{near}"));
    }
    if let Some(step) = steps.iter().find(|step| step.name == first) {
        let (field, more) = rest?.split_once('.').map_or((rest?, None), |(a, b)| (a, Some(b)));
        let fields: Vec<&str> = ALWAYS.iter().chain(fields_of(step.work.kind())).copied().collect();
        let near = nearest(field, &fields)?;
        let more = more.map(|more| format!(".{more}")).unwrap_or_default();
        return Some(format!("{first}.{near}{more}"));
    }
    if let (Some(step), Some(rest)) =
        (steps.iter().find(|step| step.output.as_deref() == Some(first)), rest)
    {
        return Some(format!("{}.{rest}", step.name));
    }
    if let (Some(Value::Object(fields)), Some(rest)) = (known.get(first), rest) {
        let fields: Vec<&str> = fields.keys().map(String::as_str).collect();
        return nearest(rest, &fields).map(|near| format!("{first}.{near}"));
    }
    let outputs = steps.iter().filter_map(|step| step.output.as_deref());
    let all = steps.iter().map(|step| step.name.as_str()).chain(outputs);
    let all: Vec<&str> = all
        .chain(workflow.inputs.keys().map(String::as_str))
        .chain(known.keys().map(String::as_str))
        .chain(["loop", "worktree"])
        .collect();
    nearest(first, &all).filter(|near| *near != first).map(with_rest)
}
