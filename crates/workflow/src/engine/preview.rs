//! What each step would be given, without running anything.

mod names;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};
use windlass_core::event::WorkflowSource;
use windlass_core::id::TaskId;

use super::title;
use crate::definition::{MergeWork, OnFail, Step, Work, Workflow};
use crate::next::Run;
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
    /// What is wrong with it.
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
    let (state, overdue) = (RunState::default(), BTreeSet::new());
    let id = TaskId::derived("preview", &workflow.name);
    let run = Run { id, workflow, source, state: &state, overdue: &overdue };
    let mut known = run.opening_variables();
    if source.title.trim().is_empty() {
        // A run is given one, as it is given its inputs.
        set(&mut known, &["bead", "title"], named("title"));
    }
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
            let (text, wrong) = match self.text(step) {
                Ok(text) => (text, None),
                Err(error) => (String::new(), Some(error)),
            };
            let wrong: Vec<String> = wrong.into_iter().chain(self.wrong_templates(step)).collect();
            all.push(Rendered {
                step: step.name.clone(),
                within: within.map(str::to_owned),
                kind: step.work.kind().as_str(),
                settings: self.settings(step),
                text,
                error: (!wrong.is_empty()).then(|| wrong.join("; ")),
            });
            self.add(step.work.steps(), Some(&step.name), all);
        }
    }

    /// What is wrong with the other templates of a step.
    fn wrong_templates(&self, step: &Step) -> Vec<String> {
        let own = match &step.work {
            Work::Loop(work) => vec![("until", work.until.as_deref())],
            Work::Merge(work) => vec![("from", work.from.as_deref())],
            Work::PullRequest(work) => {
                vec![("title", work.title.as_deref()), ("body", work.body.as_deref())]
            }
            Work::Agent(_) | Work::Script { .. } | Work::Parallel(_) | Work::Ask { .. } => {
                Vec::new()
            }
        };
        let all = std::iter::once(("when", step.when.as_deref())).chain(own);
        let wrong = all.filter_map(|(key, text)| {
            Some(format!("`{key}`: {}", self.rendered(step, text?).err()?))
        });
        wrong.collect()
    }

    fn rendered(&self, step: &Step, text: &str) -> Result<String, String> {
        self.with_placeholders(step, text, |variables| {
            template::render(text, variables).map_err(Failed::from)
        })
    }

    /// What else decides how a step runs. Titles are shown with their values; conditions need what happens before them.
    fn settings(&self, step: &Step) -> Vec<Setting> {
        let mut settings = settings(self.workflow, step);
        for setting in settings.iter_mut().filter(|one| matches!(one.name, "title" | "body")) {
            if let Ok(text) = self.rendered(step, &setting.value) {
                setting.value = text;
            }
        }
        settings
    }

    /// The text of a step, or why there is none.
    fn text(&self, step: &Step) -> Result<String, String> {
        let render = |text: &str| self.rendered(step, text);
        let command = |text: &str| {
            self.with_placeholders(step, text, |variables| {
                template::render_command(text, variables).map_err(Failed::from)
            })
        };
        match &step.work {
            Work::Agent(work) => {
                self.with_placeholders(step, spell::text(self.source, &work.spell), |variables| {
                    spell::prompt(self.source, &work.spell, variables).map_err(unknown_in)
                })
            }
            Work::Script { command: text, .. } => command(text),
            Work::Ask { question, .. } => render(question),
            Work::Merge(MergeWork { message: Some(message), .. }) => render(message),
            Work::Merge(MergeWork { message: None, .. }) => Ok(title(self.workflow, self.source)),
            Work::PullRequest(work) => command(&work.script()),
            Work::Loop(_) | Work::Parallel(_) => Ok(String::new()),
        }
    }

    /// Makes a text; a value of a step that has not run is named instead. Where a template cannot do with names what it
    /// does with values, it stands as it is written.
    fn with_placeholders(
        &self,
        step: &Step,
        written: &str,
        make: impl Fn(&Map<String, Value>) -> Result<String, Failed>,
    ) -> Result<String, String> {
        for stand_in in [named, typed] {
            match self.with_stand_ins(step, stand_in, &make)? {
                Some(text) => return Ok(text),
                None => continue,
            }
        }
        Ok(written.to_owned())
    }

    /// Makes a text with something in the place of each value that comes later; `None` where it does not fit. All
    /// that nobody will set is named, not only the first of it.
    fn with_stand_ins(
        &self,
        step: &Step,
        stand_in: fn(&str) -> Value,
        make: impl Fn(&Map<String, Value>) -> Result<String, Failed>,
    ) -> Result<Option<String>, String> {
        let mut variables = self.known.clone();
        let mut has_any = false;
        let mut wrong: Vec<String> = Vec::new();
        for _ in 0..MAX_PLACEHOLDERS {
            let failed = match make(&variables) {
                Ok(text) if wrong.is_empty() => return Ok(Some(text)),
                Ok(_) => return Err(wrong.join("; ")),
                Err(failed) => failed,
            };
            match failed.unknown {
                Some(name) => {
                    if !names::comes_later(self.workflow, &name) {
                        let hint = names::nearest_to(self.workflow, self.known, &name);
                        let hint = hint.map(|near| format!(", did you mean `{near}`?"));
                        let error = format!("{}{}", failed.error, hint.unwrap_or_default());
                        if wrong.contains(&error) {
                            return Err(wrong.join("; "));
                        }
                        wrong.push(error);
                    } else if let Some(later) = names::leaver_after(self.workflow, step, &name) {
                        let error = format!("{}: step `{later}` runs later", failed.error);
                        if wrong.contains(&error) {
                            return Err(wrong.join("; "));
                        }
                        wrong.push(error);
                    }
                    let path: Vec<&str> = name.split('.').collect();
                    set(&mut variables, &path, stand_in(&name));
                    has_any = true;
                }
                None if !wrong.is_empty() => return Err(wrong.join("; ")),
                None if has_any => return Ok(None),
                None => return Err(failed.error),
            }
        }
        Err("it names too many values".to_owned())
    }
}

/// The name of a value in its place.
fn named(name: &str) -> Value {
    Value::from(format!("<{name}>"))
}

/// The same, but of the type that the value will have, where that is known: templates compare and count it.
fn typed(name: &str) -> Value {
    match name.rsplit('.').next().unwrap_or_default() {
        "exit_code" | "rounds" | "port" => Value::from(0),
        "round" | "max" if name.starts_with("loop.") => Value::from(1),
        "changed_files" | "left_out" | "not_joined" | "commits" => Value::from(vec![named(name)]),
        "success" => Value::from(true),
        "failed" | "skipped" => Value::from(false),
        _ => named(name),
    }
}

/// What decides how a step runs besides its text, as the file has it.
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
        Some(named.unwrap_or_else(|| "the branch on which the run is started".to_owned()))
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
            add("tries", work.tries.then(|| "true".to_owned()));
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
        Work::Ask { options, from, .. } => {
            add("options", listed(options));
            add("from", from.clone());
        }
    }
    add("when", step.when.as_deref().map(condition));
    add("needs", listed(&step.needs));
    add("timeout", step.timeout.map(|timeout| format!("{}s", timeout.as_secs())));
    add("on_fail", (step.on_fail != OnFail::Stop).then(|| step.on_fail.to_string()));
    found
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
