//! `status`: how much runs, waits and is scheduled, and the limits.

use clap::Args;
use serde_json::json;
use windlass_coordinator::views::Totals;
use windlass_term::numbers;

use super::{AppContext, Execute, Start};
use crate::failure::Failure;
use crate::show::{out, out_json, task_page};

/// Show activity and limits
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Status {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass status
  windlass status --json | jq .limits";

impl Execute for Status {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        status(&start.app()?, &self)
    }
}

/// How much runs and how much may (MS-207).
pub(super) fn status(app: &AppContext, args: &Status) -> Result<u8, Failure> {
    let config = app.environment.config(std::path::Path::new("."))?;
    let totals = Totals::read(&app.service()?)?;
    let Totals { live, running, queued, resumable, questions, active_schedules, .. } = totals;
    let hours = config.agent.autonomous_max_hours.as_secs_f64() / 3600.0;
    let shown = json!({
        "live_tasks": live,
        "running": running,
        "queued": queued,
        "resumable": resumable,
        "questions": questions,
        "schedules": active_schedules,
        "next_scheduled_at": totals.next_scheduled_at,
        "cost_usd": totals.cost_usd,
        "limits": {
            "autonomous_max_tasks": config.agent.autonomous_max_tasks,
            "autonomous_max_hours": hours,
            "max_concurrent_tasks": config.coordinator.max_concurrent_tasks,
            "max_sessions": config.coordinator.max_sessions,
            "budget_usd": config.agent.budget_usd,
        },
    });
    if args.json {
        out_json(&shown.to_string());
        return Ok(0);
    }
    out(&format!("tasks       {live} live, {running} running, {queued} queued"));
    out(&format!(
        "waiting     {resumable} to be resumed, {}",
        numbers::plural(questions, "question")
    ));
    let next = totals.next_scheduled_at.map(|next| format!(", next at {next:.0}"));
    out(&format!("schedules   {active_schedules} active{}", next.unwrap_or_default()));
    let spent = match task_page::spent(totals.cost_usd, totals.tokens).as_str() {
        "-" => "of live tasks unknown".to_owned(),
        spent => format!("{spent} of live tasks"),
    };
    out(&format!("cost        {spent}"));
    out(&format!(
        "autonomous  at most {} tasks and {hours} hours",
        config.agent.autonomous_max_tasks
    ));
    out(&format!(
        "service     at most {} tasks a session and {} sessions a user",
        config.coordinator.max_concurrent_tasks, config.coordinator.max_sessions
    ));
    Ok(0)
}
