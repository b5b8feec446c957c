//! The parts of `plan` that deal with a plan's files: making, checking, showing and activating them.

use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::json;
use windlass_coordinator::plans::{
    NewActivation, Problem, TEMPLATES, check_bookends, check_prompts, plan_blocks,
};
use windlass_coordinator::slash::{Block, Reach};
use windlass_core::shown::{shown, shown_path};
use windlass_skills::{inside, regular};

use super::PlanContext;
use crate::failure::Failure;
use crate::show::{note, out_json};

/// A template is a plan, and a plan is read by people.
const MAX_TEMPLATE_BYTES: u64 = 1 << 20;

/// Creates a plan from a template, which has both bookends or is refused.
pub(super) fn new(context: &PlanContext<'_>, name: &str, template: &str) -> Result<u8, Failure> {
    let plans = context.app.coordinator.plans();
    let own = plans
        .project(context.directory)
        .join(".windlass/templates")
        .join(format!("{template}.json"));
    let text = match TEMPLATES.iter().find(|one| one.name == template) {
        Some(found) => found.text.to_owned(),
        None => regular::read_text(&own, MAX_TEMPLATE_BYTES).map_err(|_| {
            let known: Vec<_> = TEMPLATES.iter().map(|one| one.name).collect();
            Failure::usage(
                format!("there is no template `{template}`"),
                format!(
                    "templates: {}; your own are `.windlass/templates/NAME.json`",
                    known.join(", ")
                ),
            )
        })?,
    };
    check_bookends(template, &text).map_err(windlass_coordinator::Error::from)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(is_plain) || name.starts_with(['.', '-']) {
        let hint = "use letters, digits, `-`, `_` and `.`, and begin with a letter or a digit";
        return Err(Failure::usage(format!("`{name}` cannot be the name of a plan"), hint));
    }
    let (project, inner) = plans.new_place(context.directory, name);
    let path = project.join(&inner);
    if path.exists() {
        return Err(Failure::usage(
            format!("`{}` already exists", shown_path(&path)),
            "name another plan, or edit this one",
        ));
    }
    let mut manifest: serde_json::Value =
        serde_json::from_str(&text).context("the template is not JSON")?;
    manifest["id"] = name.into();
    manifest["$schema"] = "./plan.schema.json".into();
    let written = || -> std::io::Result<()> {
        let schema = windlass_coordinator::plans::SCHEMA;
        inside::replace(&project, &inner.with_file_name("plan.schema.json"), schema.as_bytes())?;
        inside::write_new(&project, &inner, format!("{manifest:#}\n").as_bytes())
    };
    written().with_context(|| format!("`{}` cannot be written", shown_path(&path)))?;
    context.print(&json!({ "name": name, "path": path, "template": template }), || {
        vec![Block::Words { text: format!("{} is a new plan", path.display()) }]
    });
    context.note(&format!("edit it, then load what it names: windlass plan activate {name}"));
    Ok(0)
}

/// Lists the plans of the project.
pub(super) fn list(context: &PlanContext<'_>) -> Result<u8, Failure> {
    let plans = context.app.coordinator.plans();
    let active = plans.active(context.directory)?.map(|row| PathBuf::from(row.path));
    let mut found = Vec::new();
    let mut rows = Vec::new();
    for path in plans.files(context.directory) {
        let is_active = active.as_ref() == Some(&path);
        let read = plans.read(context.directory, path.to_str());
        let (name, title, problem) = match read {
            Ok(file) => (file.plan.id, file.plan.title, None),
            Err(error) => (String::new(), String::new(), Some(error.to_string())),
        };
        let state = match (&problem, is_active) {
            (Some(_), _) => "not valid",
            (None, true) => "active",
            (None, false) => "",
        };
        rows.push(vec![name.clone(), state.to_owned(), path.display().to_string(), title.clone()]);
        found.push(json!({
            "name": name, "title": title, "path": path, "active": is_active, "problem": problem,
        }));
    }
    if found.is_empty() {
        context.note("no plans; begin one with `windlass plan new NAME`");
    }
    if !found.is_empty() || context.json {
        context
            .print(&found, || vec![Block::table(&["PLAN", "STATE", "FILE", "TITLE"], &[], rows)]);
    }
    Ok(0)
}

/// Checks a plan: every wrong place is named.
pub(super) fn validate(context: &PlanContext<'_>, plan: Option<&str>) -> Result<u8, Failure> {
    let file = context.app.coordinator.plans().read(context.directory, plan)?;
    let tasks = file.plan.tasks().count();
    let data = json!({ "valid": true, "plan": file.plan.id, "path": file.path, "tasks": tasks });
    context.print(&data, || {
        vec![Block::Words { text: format!("{} is valid: {tasks} tasks", file.path.display()) }]
    });
    Ok(0)
}

/// Shows a plan as it is understood: also with the names that it leaves out.
pub(super) fn show(context: &PlanContext<'_>, plan: Option<&str>) -> Result<u8, Failure> {
    let file = context.app.coordinator.plans().read(context.directory, plan)?;
    context.print(&file.plan, || plan_blocks(&file.plan));
    Ok(0)
}

/// Makes a plan the active one and shows exactly what it loads.
pub(super) fn activate(
    context: &PlanContext<'_>,
    plan: Option<&str>,
    again: bool,
) -> Result<u8, Failure> {
    let by = context.app.environment.user();
    let plans = context.app.coordinator.plans();
    let new = NewActivation {
        directory: context.directory,
        named: plan,
        by: &by,
        reach: Reach::Everything,
        again,
    };
    let activation = context.app.runtime.block_on(plans.activate(new))?;
    context.print(&activation, || activation.blocks());
    context.note("work through it with: windlass plan run");
    Ok(0)
}

/// Checks the prompts of a plan, or of all plans and templates (O-02).
pub(super) fn validate_prompts(
    context: &PlanContext<'_>,
    plan: Option<&str>,
    all: bool,
    strict: bool,
) -> Result<u8, Failure> {
    let plans = context.app.coordinator.plans();
    let (mut errors, mut warnings): (Vec<Problem>, Vec<Problem>) = Default::default();
    if all {
        for path in plans.files(context.directory) {
            let file = plans.read(context.directory, path.to_str())?;
            warnings.extend(check_prompts(&file.plan, &file.document));
        }
    } else {
        let file = plans.read(context.directory, plan)?;
        errors.extend(check_prompts(&file.plan, &file.document));
    }
    if strict {
        errors.append(&mut warnings);
    }
    if context.json {
        out_json(&json!({ "errors": errors, "warnings": warnings }).to_string());
    } else {
        errors.iter().for_each(|problem| note(&format!("error: {}", shown(&problem.to_string()))));
        let warnings = warnings.iter();
        warnings.for_each(|problem| note(&format!("warning: {}", shown(&problem.to_string()))));
        note(&format!("{} errors", errors.len()));
    }
    Ok(u8::from(!errors.is_empty()))
}

/// Lists templates; each has both bookends, and one that is checked and has not is refused (PL-053, PL-054, PL-068).
pub(super) fn templates(context: &PlanContext<'_>, own: &[PathBuf]) -> Result<u8, Failure> {
    for path in own {
        let text = regular::read_text(path, MAX_TEMPLATE_BYTES).map_err(|error| {
            let message = format!("`{}` cannot be read: {error}", shown_path(path));
            Failure::usage(message, "name a plan's file")
        })?;
        check_bookends(&path.display().to_string(), &text)
            .map_err(windlass_coordinator::Error::from)?;
        context.note(&format!("{} has step 0 and step 99 in every task", shown_path(path)));
    }
    let mut data = Vec::new();
    let mut rows = Vec::new();
    for template in TEMPLATES {
        let plan = check_bookends(template.name, template.text)
            .map_err(windlass_coordinator::Error::from)?;
        let (phases, tasks) = (plan.phases.len(), plan.tasks().count());
        data.push(json!({
            "name": template.name, "about": template.about, "phases": phases, "tasks": tasks,
        }));
        let about = template.about.to_owned();
        rows.push(vec![template.name.to_owned(), phases.to_string(), tasks.to_string(), about]);
    }
    context.print(&data, || {
        vec![Block::table(&["TEMPLATE", "PHASES", "TASKS", "ABOUT"], &[1, 2], rows)]
    });
    Ok(0)
}
