//! `doctor heal`: an agent in mode `repair` works on what could not be fixed without one (MS-036).

use windlass_coordinator::health::{Check, report};
use windlass_coordinator::{Share, TaskDraft};
use windlass_core::axes::Axes;
use windlass_core::command::ExecutionConfig;
use windlass_core::event::Driver;

use super::{AppContext, Doctor, check, fix};
use crate::args::PrintOptions;
use crate::commands::drive::drive;
use crate::failure::Failure;
use crate::next_action;
use crate::show::note;
use crate::wiring;

/// Checks without which no agent can work.
const NEEDED: [&str; 5] = ["store", "schema", "config", "model", "disk"];

/// Fixes what needs no model, and has an agent repair the rest. Says whether it ended clean, blocked or at a limit.
pub(super) fn heal(app: &AppContext, args: &Doctor) -> Result<u8, Failure> {
    if fix(app, args) == 0 {
        return Ok(0);
    }
    let problems: Vec<_> = check(app, args).into_iter().filter(Check::is_problem).collect();
    if let Some(missing) = problems.iter().find(|check| NEEDED.contains(&check.name)) {
        let hint = next_action::check_hint(missing).or_else(|| missing.details.first().cloned());
        let message =
            format!("no agent can work while `{}` is wrong: {}", missing.name, missing.message);
        return Err(Failure::usage(
            message,
            hint.unwrap_or_else(|| "see `windlass doctor`".into()),
        ));
    }
    note(&format!("an agent works on {} problems in mode `repair`", problems.len()));
    let draft = draft(app, args, &problems)?;
    let limits = wiring::limits(&app.environment.config(&args.workspace)?);
    let printing = PrintOptions { json: args.json, ..PrintOptions::default() };
    let code = app.runtime.block_on(async {
        let task = app.coordinator.clone().with_limits(limits).tasks().submit(draft).await?;
        drive(app, task, &printing).await
    })?;
    let left = check(app, args).into_iter().filter(Check::is_problem).collect::<Vec<_>>();
    let ended = match (left.is_empty(), code) {
        (true, _) => "clean",
        (false, crate::failure::BUDGET | 1 | 4) => "limit hit",
        (false, _) => "blocked",
    };
    note(&format!("repair ended {ended}"));
    args.print(&left);
    Ok(if left.is_empty() { 0 } else { code.max(1) })
}

fn draft(app: &AppContext, args: &Doctor, problems: &[Check]) -> Result<TaskDraft, Failure> {
    let config = app.environment.config(&args.workspace)?;
    let axes = Axes::headless().for_repair();
    let choice = config.models.for_mode(axes.model_mode)?;
    Ok(TaskDraft {
        user_id: Some(app.environment.user()),
        goal: report(problems),
        constraints: Vec::new(),
        pictures: Vec::new(),
        workspace: args.workspace.clone(),
        added: Vec::new(),
        share: Share::Allowed,
        axes,
        execution_config: ExecutionConfig {
            model: Some(choice.model.to_string()),
            effort: choice.effort,
            ..ExecutionConfig::default()
        },
        resume_context: None,
        driver: Driver::Foreground,
        cost_budget: config.agent.budget_usd,
        deadline: None,
        dependency_blockers: Vec::new(),
    })
}
