//! What each step would be given, without running anything.

use serde::Serialize;
use serde_json::{Map, Value};
use windlass_core::event::WorkflowSource;
use windlass_core::id::TaskId;

use super::title;
use crate::definition::{MergeWork, OnFail, Step, Work, Workflow};
use crate::next::{Leaf, Next, Run};
use crate::state::RunState;
use crate::{spell, template};

/// How many values of steps that have not run a text may name.
const MAX_PLACEHOLDERS: usize = 200;

/// What a step would be given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rendered {
    pub step: String,
    /// The loop or the parallel step that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What else decides how it runs, as the file has it or as it is without.
    pub settings: Vec<Setting>,
    /// The prompt, the command, the question or the message of a merge.
    pub text: String,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One line of what decides how a step runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its key in workflow files.
    pub name: &'static str,
    pub value: String,
}

/// Renders every step, the outer before the inner. What a step would find of steps before it stands as `<name.field>`.
pub fn render(workflow: &Workflow, source: &WorkflowSource) -> Vec<Rendered> {
    let state = RunState::default();
    let id = TaskId::derived("preview", &workflow.name);
    let run = Run { id, workflow, source, state: &state };
    // Nothing has run, so the first step finds everything that is known beforehand.
    let known = match run.next() {
        Next::Work(leaves) => leaves.into_iter().next().map(|leaf: Leaf| leaf.variables),
        Next::End(_) | Next::Decide(_) | Next::Stop(_) | Next::Finished => None,
    };
    let known = known.unwrap_or_default();
    let mut all = Vec::new();
    let preview = Preview { workflow, source, known: &known };
    preview.add(&workflow.steps, None, &mut all);
    all
}

/// What texts are made of.
struct Preview<'a> {
    workflow: &'a Workflow,
    source: &'a WorkflowSource,
    known: &'a Map<String, Value>,
}

impl Preview<'_> {
    fn add(&self, steps: &[Step], within: Option<&str>, all: &mut Vec<Rendered>) {
        for step in steps {
            let (text, error) = match text(self.workflow, self.source, step, self.known) {
                Ok(text) => (text, None),
                Err(error) => (String::new(), Some(error)),
            };
            all.push(Rendered {
                step: step.name.clone(),
                within: within.map(str::to_owned),
                kind: step.work.kind(),
                settings: settings(self.workflow, step),
                text,
                error,
            });
            self.add(step.work.steps(), Some(&step.name), all);
        }
    }
}

/// What decides how a step runs, besides its text. Conditions are not rendered: they need what happens before them.
fn settings(workflow: &Workflow, step: &Step) -> Vec<Setting> {
    let mut found = Vec::new();
    let mut add = |name: &'static str, value: Option<String>| {
        found.extend(value.map(|value| Setting { name, value }));
    };
    let names = |steps: &[Step]| {
        let names: Vec<_> = steps.iter().map(|step| step.name.as_str()).collect();
        Some(names.join(", "))
    };
    let condition = |text: &str| template::short_condition(text).to_owned();
    let listed = |all: &[String]| (!all.is_empty()).then(|| all.join(", "));
    let target = |own: &Option<String>| {
        let named = own.clone().or_else(|| workflow.target.clone());
        Some(named.unwrap_or_else(|| "the branch that is checked out".to_owned()))
    };
    match &step.work {
        Work::Agent(work) => {
            add("runner", Some(work.runner.as_ref().unwrap_or(&workflow.runner).clone()));
            add("model", work.model.clone());
            add("profile", work.profile.map(|profile| profile.to_string()));
        }
        Work::Script { rerun, .. } => add("rerun", rerun.then(|| "true".to_owned())),
        Work::Loop(work) => {
            add("max", Some(work.max.to_string()));
            add("until", work.until.as_deref().map(condition));
            add("steps", names(&work.steps));
        }
        Work::Parallel(work) => {
            add("workers", work.workers.map(|count| count.to_string()));
            add("join", Some(work.join.to_string()));
            add("steps", names(&work.steps));
        }
        Work::Merge(work) => {
            add("from", work.from.clone());
            add("target", target(&work.target));
            add("strategy", Some(work.strategy.to_string()));
            for gate in &work.gates {
                add("gate", Some(gate.clone()));
            }
            add("conflicts", Some(work.conflicts.to_string()));
        }
        Work::PullRequest(work) => {
            add("remote", Some(work.remote.clone().unwrap_or_else(|| "origin".to_owned())));
            add("target", target(&work.target));
            add("title", work.title.clone());
            add("body", work.body.clone());
        }
        Work::Ask { options, .. } => add("options", listed(options)),
    }
    add("when", step.when.as_deref().map(condition));
    add("needs", listed(&step.needs));
    add("timeout", step.timeout.map(|timeout| format!("{}s", timeout.as_secs())));
    add("on_fail", (step.on_fail != OnFail::Stop).then(|| step.on_fail.to_string()));
    found
}

/// The text of a step, or why there is none.
fn text(
    workflow: &Workflow,
    source: &WorkflowSource,
    step: &Step,
    known: &Map<String, Value>,
) -> Result<String, String> {
    match &step.work {
        Work::Agent(work) => with_placeholders(workflow, known, |variables| {
            spell::prompt(source, &work.spell, variables).map_err(unknown_in)
        }),
        Work::Script { command, .. } => with_placeholders(workflow, known, |variables| {
            template::render(command, variables).map_err(Failed::from)
        }),
        Work::Ask { question, .. } => with_placeholders(workflow, known, |variables| {
            template::render(question, variables).map_err(Failed::from)
        }),
        Work::Merge(MergeWork { message: Some(message), .. }) => {
            with_placeholders(workflow, known, |variables| {
                template::render(message, variables).map_err(Failed::from)
            })
        }
        Work::Merge(MergeWork { message: None, .. }) => Ok(title(workflow, source)),
        Work::PullRequest(work) => with_placeholders(workflow, known, |variables| {
            template::render(&work.script(), variables).map_err(Failed::from)
        }),
        Work::Loop(_) | Work::Parallel(_) => Ok(String::new()),
    }
}

/// Why a text was not made, and which variable is missing.
struct Failed {
    unknown: Option<String>,
    error: String,
}

impl From<template::Error> for Failed {
    fn from(error: template::Error) -> Self {
        let text = error.to_string();
        match error {
            template::Error::Unknown(name) => Self { unknown: Some(name), error: text },
            template::Error::Syntax(_) | template::Error::Render(_) => {
                Self { unknown: None, error: text }
            }
        }
    }
}

fn unknown_in(error: spell::PromptError) -> Failed {
    let text = error.to_string();
    let source = match error {
        spell::PromptError::Spell { source, .. } => source,
        spell::PromptError::Inline(source) | spell::PromptError::System(source) => source,
        spell::PromptError::Missing(_) => return Failed { unknown: None, error: text },
    };
    Failed { error: text, ..Failed::from(source) }
}

/// Makes a text; a value of a step that has not run is named instead.
fn with_placeholders(
    workflow: &Workflow,
    known: &Map<String, Value>,
    make: impl Fn(&Map<String, Value>) -> Result<String, Failed>,
) -> Result<String, String> {
    let mut variables = known.clone();
    for _ in 0..MAX_PLACEHOLDERS {
        let failed = match make(&variables) {
            Ok(text) => return Ok(text),
            Err(failed) => failed,
        };
        let Some(name) = failed.unknown.filter(|name| comes_later(workflow, name)) else {
            return Err(failed.error);
        };
        let path: Vec<&str> = name.split('.').collect();
        set(&mut variables, &path, Value::from(format!("<{name}>")));
    }
    Err("it names too many values".to_owned())
}

/// Whether a variable is there when the step runs: it belongs to a step, or to the run's worktree.
fn comes_later(workflow: &Workflow, name: &str) -> bool {
    let first = name.split('.').next().unwrap_or_default();
    let is_it = |step: &&Step| step.name == first || step.output.as_deref() == Some(first);
    matches!(first, "loop" | "request" | "worktree")
        || workflow.all_steps().iter().any(is_it)
        || workflow.inputs.contains_key(first)
}

fn set(variables: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [last] => drop(variables.insert((*last).to_owned(), value)),
        [first, rest @ ..] => {
            let inner = variables.entry(*first).or_insert_with(|| Value::Object(Map::new()));
            match inner.as_object_mut() {
                Some(inner) => set(inner, rest, value),
                None => *inner = Value::Object(Map::new()),
            }
        }
    }
}
