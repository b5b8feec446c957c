//! From what a file says to a workflow that cannot be wrong. Everything that is wrong is found, not only the first of it.

mod step;
mod worktree;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;

use serde_saphyr::Spanned;
use windlass_core::axes::UnknownValue;

use super::raw::{RawFile, RawInput, RawRunner, Text, nearest};
use super::{
    Checkout, DefinitionError, DefinitionErrors, Input, KNOWN_RUNNERS, MAX_STEPS, Maker, MergeWork,
    OWN_RUNNER, ParallelWork, Step, Work, Workflow, WorktreeSpec,
};
use crate::template::RESERVED;

/// How long a name may be: that of a worktree has those of the workflow and of some steps.
const MAX_NAME: usize = 60;

type Checked<T> = Result<T, DefinitionError>;

/// Reads what the file says into a workflow.
pub(super) fn checked(
    raw: RawFile,
    text: &str,
    stem: &str,
    mut check: Check<'_>,
) -> Result<Workflow, DefinitionErrors> {
    let name = raw.name.as_ref().map_or(stem, |name| name.value.0.trim()).to_owned();
    check.note(check_file_name(&name, raw.name.as_ref().map_or(1, line)));
    let mut workflow = Workflow {
        name,
        description: raw.description.map(|text| text.0).unwrap_or_default(),
        inputs: check.inputs(raw.inputs, text),
        runner: OWN_RUNNER.to_owned(),
        runners: check.runners(raw.runners),
        place: Checkout::Worktree(WorktreeSpec::default()),
        target: raw.target.map(|text| text.0),
        steps: Vec::new(),
    };
    if let Some(place) = raw.worktree.and_then(|given| check.note(worktree::place(given))) {
        workflow.place = place;
    }
    if let Some(runner) = raw.runner.and_then(|given| check.runner(&workflow, &given)) {
        workflow.runner = runner;
    }
    match raw.steps.filter(|steps| !steps.is_empty()) {
        Some(steps) => workflow.steps = check.steps(&workflow, steps, 1),
        None => check.add(line_of(text, "steps"), "there are no `steps`"),
    }
    check.names_of(&workflow);
    check.merges_of(&workflow);
    check.picks_of(&workflow);
    check.branches_of(&workflow);
    match check.errors.is_empty() {
        true => Ok(workflow),
        false => Err(DefinitionErrors::new(check.errors)),
    }
}

/// Everything that is wrong so far.
pub(super) struct Check<'a> {
    errors: Vec<DefinitionError>,
    /// The runners that a person has configured; `None` where any may be named.
    configured: Option<&'a [String]>,
    /// Every step that has a name, the outer before the inner, with its line; also those that are wrong otherwise.
    names: Vec<(String, u64)>,
}

impl<'a> Check<'a> {
    /// `errors` is what is already known to be wrong.
    pub(super) fn new(errors: Vec<DefinitionError>, configured: Option<&'a [String]>) -> Self {
        Self { errors, configured, names: Vec::new() }
    }

    fn add(&mut self, line: u64, reason: impl Into<String>) {
        self.errors.push(DefinitionError::at(line, reason));
    }

    /// Keeps what is wrong, and continues with the rest.
    fn note<T>(&mut self, checked: Checked<T>) -> Option<T> {
        checked.map_err(|error| self.errors.push(error)).ok()
    }

    fn inputs(
        &mut self,
        raw: BTreeMap<String, Option<RawInput>>,
        text: &str,
    ) -> BTreeMap<String, Input> {
        let mut inputs = BTreeMap::new();
        for (name, given) in raw {
            self.note(check_name(&name, line_of(text, &name), "an input"));
            let (description, default) =
                given.map_or((None, None), |one| (one.description, one.default));
            let description = description.map(|text| text.0).unwrap_or_default();
            inputs.insert(name, Input { description, default: default.map(|text| text.0) });
        }
        inputs
    }

    fn runners(
        &mut self,
        raw: BTreeMap<String, Spanned<RawRunner>>,
    ) -> BTreeMap<String, Vec<String>> {
        let mut runners = BTreeMap::new();
        for (name, given) in raw {
            let command: Vec<_> = given.value.command.iter().map(|word| word.0.clone()).collect();
            if command.first().is_none_or(|program| program.trim().is_empty()) {
                let reason = format!("runner `{name}` has no program in `command`");
                self.add(line(&given), reason);
            }
            if KNOWN_RUNNERS.contains(&name.as_str()) {
                let reason = format!("`{name}` is built in and cannot be another program here");
                self.add(line(&given), reason);
            }
            runners.insert(name, command);
        }
        runners
    }

    /// A runner that the file, the person or we have under this name.
    fn runner(&mut self, file: &Workflow, given: &Spanned<Text>) -> Option<String> {
        let name = given.value.0.trim();
        let Some(configured) = self.configured else { return Some(name.to_owned()) };
        let own = file.runners.keys().chain(configured).map(String::as_str);
        let known: BTreeSet<_> = KNOWN_RUNNERS.into_iter().chain(own).collect();
        if known.contains(name) {
            return Some(name.to_owned());
        }
        let known: Vec<_> = known.into_iter().collect();
        let reason = match nearest(name, &known) {
            Some(near) => format!("there is no runner `{name}`; did you mean `{near}`?"),
            None => format!("there is no runner `{name}`; known are {}", known.join(", ")),
        };
        self.add(line(given), reason);
        None
    }

    /// One name, one thing: a template could not tell two apart.
    fn names_of(&mut self, workflow: &Workflow) {
        let names = std::mem::take(&mut self.names);
        if let Some((_, line)) = names.get(MAX_STEPS) {
            self.add(*line, format!("there are {} steps; {MAX_STEPS} is the limit", names.len()));
        }
        let mut seen: BTreeMap<&str, &str> =
            workflow.inputs.keys().map(|name| (name.as_str(), "an input")).collect();
        for (name, line) in &names {
            if let Some(other) = seen.insert(name, "a step") {
                self.add(*line, format!("`{name}` is already the name of {other}"));
            }
        }
        let steps = workflow.all_steps();
        for step in &steps {
            // A step may name its output as it is named itself, and two steps may have one name for theirs.
            let output = step.output.as_ref().filter(|output| **output != step.name);
            if let Some(output) = output
                && let Some(other) =
                    seen.insert(output, "an output").filter(|other| *other != "an output")
            {
                self.add(step.line, format!("`{output}` is already the name of {other}"));
            }
        }
        let known: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        for step in &steps {
            self.needs_of(step, &steps, &known);
        }
    }

    fn needs_of(&mut self, step: &Step, steps: &[&Step], known: &[&str]) {
        let place = |name: &str| known.iter().position(|one| *one == name);
        for need in &step.needs {
            match place(need) {
                None => {
                    let hint = nearest(need, known)
                        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                    let reason =
                        format!("step `{}` needs `{need}`, which is not a step{hint}", step.name);
                    self.add(step.line, reason);
                }
                _ if *need == step.name => {
                    self.add(step.line, format!("step `{need}` needs itself"));
                }
                _ if is_around(steps, need, &step.name) => {
                    let reason = format!("step `{}` needs `{need}`, which is around it", step.name);
                    self.add(step.line, reason);
                }
                needed if needed >= place(&step.name) => {
                    let reason =
                        format!("step `{}` needs `{need}`, which comes after it", step.name);
                    self.add(step.line, reason);
                }
                Some(_) => {}
            }
        }
    }

    /// What a person picks from must be tries.
    fn picks_of(&mut self, workflow: &Workflow) {
        let steps = workflow.all_steps();
        for step in &steps {
            let Work::Ask { from: Some(from), .. } = &step.work else { continue };
            let is_it = |other: &&&Step| {
                other.name == *from && matches!(&other.work, Work::Parallel(work) if work.tries)
            };
            if steps.iter().find(is_it).is_none() {
                let name = &step.name;
                let reason =
                    format!("step `{name}` takes `from` `{from}`, which has no `tries: true`");
                self.add(step.line, reason);
            }
        }
    }

    /// What a merge takes from elsewhere must be the work of a step of a parallel step. A template is known later.
    fn branches_of(&mut self, workflow: &Workflow) {
        let mut known = Vec::new();
        worktrees_of(&workflow.steps, "", &mut known);
        for step in workflow.all_steps() {
            let Work::Merge(MergeWork { from: Some(from), .. }) = &step.work else { continue };
            if from.contains("{{") || known.contains(from) {
                continue;
            }
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let hint = nearest(from, &names)
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let reason = format!(
                "step `{}` takes `from` `{from}`, which is not a step of a parallel step{hint}",
                step.name
            );
            self.add(step.line, reason);
        }
    }

    /// Without a worktree of git there is nothing to merge.
    fn merges_of(&mut self, workflow: &Workflow) {
        let why = match &workflow.place {
            Checkout::Here => "needs a worktree, and `worktree` is `false`",
            Checkout::Worktree(WorktreeSpec { maker: Maker::Command { .. }, .. }) => {
                "needs git, and `worktree` has a `create` command in its place"
            }
            Checkout::Worktree(WorktreeSpec { maker: Maker::Git(_), .. }) => return,
        };
        for step in workflow.all_steps() {
            let needs_git = match &step.work {
                Work::Merge(_) | Work::PullRequest(_) => true,
                // Side by side in workspaces of their own, without being joined, needs no git.
                Work::Parallel(ParallelWork { join, .. }) => {
                    *join || workflow.place == Checkout::Here
                }
                Work::Agent(_) | Work::Script { .. } | Work::Loop(_) | Work::Ask { .. } => false,
            };
            if needs_git {
                let (name, kind) = (&step.name, step.work.kind());
                self.add(step.line, format!("step `{name}` of type `{kind}` {why}"));
            }
        }
    }
}

/// Whether a step is around another one.
fn is_around(steps: &[&Step], outer: &str, inner: &str) -> bool {
    let outer = steps.iter().find(|step| step.name == outer);
    outer.is_some_and(|outer| outer.has_inside(inner))
}

/// The names of the worktrees that parallel steps make, below the one of this name.
fn worktrees_of(steps: &[Step], around: &str, names: &mut Vec<String>) {
    for step in steps {
        let Work::Parallel(work) = &step.work else {
            worktrees_of(step.work.steps(), around, names);
            continue;
        };
        for inner in &work.steps {
            let name = match around {
                "" => inner.name.clone(),
                outer => format!("{outer}-{}", inner.name),
            };
            worktrees_of(std::slice::from_ref(inner), &name, names);
            names.push(name);
        }
    }
}

/// Branches and directories of runs are named after their workflow.
fn check_file_name(name: &str, line: u64) -> Checked<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if !begins || name.contains("..") || !name.chars().all(is_plain) {
        let reason = format!(
            "`{name}` is not a name: letters, digits, `-`, `_` and single `.` make one, after a letter or digit"
        );
        return Err(DefinitionError::at(line, reason));
    }
    check_length(name, line)
}

fn check_length(name: &str, line: u64) -> Checked<()> {
    match name.len() <= MAX_NAME {
        true => Ok(()),
        false => {
            let reason =
                format!("a name of {} letters is too long; {MAX_NAME} is the limit", name.len());
            Err(DefinitionError::at(line, reason))
        }
    }
}

fn line<T>(value: &Spanned<T>) -> u64 {
    value.referenced.line()
}

/// The first line that begins with a key, for values that carry no place.
fn line_of(text: &str, key: &str) -> u64 {
    let found = text.lines().position(|line| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.starts_with(':'))
    });
    found.map_or(0, |index| index as u64 + 1)
}

fn word<T>(key: &str, text: &str, line: u64) -> Checked<T>
where
    T: FromStr<Err = UnknownValue> + Display,
{
    text.trim().parse().map_err(|error: UnknownValue| {
        let reason = format!("`{key}` may not be `{}`; allowed: {}", error.given, error.allowed);
        DefinitionError::at(line, reason)
    })
}

/// A name that templates can reach: `{{.name}}`.
fn check_name(name: &str, at: u64, what: &str) -> Checked<()> {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_plain =
        name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
    if !is_plain {
        let reason =
            format!("`{name}` cannot be the name of {what}: letters, digits and `_` make one");
        return Err(DefinitionError::at(at, reason));
    }
    check_length(name, at)?;
    match RESERVED.contains(&name) {
        true => {
            let reason = format!(
                "`{name}` cannot be the name of {what}: templates have it for something else"
            );
            Err(DefinitionError::at(at, reason))
        }
        false => Ok(()),
    }
}
