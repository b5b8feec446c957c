//! Templates of plans. Every task of one has step 0 (load the snapshot) and step 99 (save state), or the template
//! is refused (PL-053, PL-054).

use windlass_core::planning::{STEP_0, STEP_99};

use crate::document::{item_path, key_path};
use crate::manifest::PlanStep;
use crate::{Document, Plan, Problem, Problems, check, read_plan};

/// A plan to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    pub name: &'static str,
    pub about: &'static str,
    /// The manifest that a new plan begins with.
    pub text: &'static str,
}

/// The templates that come with the program.
pub const TEMPLATES: &[Template] = &[
    Template {
        name: "feature",
        about: "Explore, build and check a feature.",
        text: include_str!("templates/feature.json"),
    },
    Template {
        name: "bugfix",
        about: "Reproduce a bug, fix it, and keep it fixed.",
        text: include_str!("templates/bugfix.json"),
    },
    Template {
        name: "migration",
        about: "Move code or data in small steps that can be taken back.",
        text: include_str!("templates/migration.json"),
    },
];

/// Reads a template; one with a task without both steps is refused.
pub fn check_bookends(file: &str, text: &str) -> Result<Plan, Problems> {
    let document = Document::parse(file, text)?;
    let plan = read_plan(&document, "template")?;
    check(&plan, &document)?;
    let found = missing_bookends(&plan, &document);
    match found.is_empty() {
        true => Ok(plan),
        false => Err(Problems(found)),
    }
}

fn missing_bookends(plan: &Plan, document: &Document) -> Vec<Problem> {
    let mut found = Vec::new();
    for (number, phase) in plan.phases.iter().enumerate() {
        let tasks = key_path(&item_path("phases", number), "tasks");
        for (index, task) in phase.tasks.iter().enumerate() {
            if let Some(problem) = bookend_problem(&task.steps) {
                let path = key_path(&item_path(&tasks, index), "steps");
                let message = format!("task `{}`: {problem}", task.id);
                found.push(document.problem(&path, message));
            }
        }
    }
    if plan.tasks().next().is_none() {
        found.push(document.problem("phases", "a template needs a task"));
    }
    found
}

/// What is wrong with the first and the last of some steps.
pub(crate) fn bookend_problem(steps: &[PlanStep]) -> Option<String> {
    let is = |step: Option<&PlanStep>, number: u32, text: &str| {
        let begins = text.split(':').next().unwrap_or_default();
        step.is_some_and(|step| step.step == number && step.text.starts_with(begins))
    };
    if !is(steps.first(), 0, STEP_0) {
        return Some("step 0 (`LOAD CONTEXT: …`) must be the first step".to_owned());
    }
    if !is(steps.last(), 99, STEP_99) {
        return Some("step 99 (`SAVE STATE: …`) must be the last step".to_owned());
    }
    let rises = |pair: &[PlanStep]| pair[0].step < pair[1].step;
    (!steps.windows(2).all(rises)).then(|| "the numbers of the steps must increase".to_owned())
}
