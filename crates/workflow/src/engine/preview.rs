//! What each step would be given, without running anything.

use serde::Serialize;
use serde_json::{Map, Value};
use windlass_core::event::WorkflowSource;
use windlass_core::id::TaskId;

use crate::definition::{Step, Work, Workflow};
use crate::next::{Leaf, Next, Run};
use crate::state::RunState;
use crate::{spell, template};

/// How many values of steps that have not run a text may name.
const MAX_PLACEHOLDERS: usize = 200;

/// What a step would be given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rendered {
    pub step: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The prompt, the command or the question.
    pub text: String,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Renders every step. What a step would find of steps before it stands as `<name.field>`.
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
    workflow.all_steps().into_iter().map(|step| rendered(workflow, source, step, &known)).collect()
}

fn rendered(
    workflow: &Workflow,
    source: &WorkflowSource,
    step: &Step,
    known: &Map<String, Value>,
) -> Rendered {
    let made = match &step.work {
        Work::Agent(work) => with_placeholders(workflow, known, |variables| {
            spell::prompt(source, &work.spell, variables).map_err(unknown_in)
        }),
        Work::Script { command, .. } => with_placeholders(workflow, known, |variables| {
            template::render(command, variables).map_err(Failed::from)
        }),
        Work::Ask { question, .. } => with_placeholders(workflow, known, |variables| {
            template::render(question, variables).map_err(Failed::from)
        }),
        Work::Merge(work) => with_placeholders(workflow, known, |variables| {
            template::render(work.message.as_deref().unwrap_or_default(), variables)
                .map_err(Failed::from)
        }),
        Work::PullRequest(work) => with_placeholders(workflow, known, |variables| {
            template::render(&work.script(), variables).map_err(Failed::from)
        }),
        Work::Loop(_) | Work::Parallel(_) => Ok(String::new()),
    };
    let (text, error) = match made {
        Ok(text) => (text, None),
        Err(error) => (String::new(), Some(error)),
    };
    Rendered { step: step.name.clone(), kind: step.work.kind(), text, error }
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
