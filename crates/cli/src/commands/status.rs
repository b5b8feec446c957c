//! `status`: how much runs, waits and is scheduled, and the limits.

use clap::Args;
use serde_json::json;
use windlass_coordinator::views::Totals;
use windlass_term::numbers;
use windlass_term::wrap::wrap;

use super::{AppContext, Execute, Start};
use crate::failure::Failure;
use crate::show::{out, out_json, task_page};

/// Show activity and limits
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Status {
    /// Print the result as JSON
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
    let Totals { live, running, queued, asking, resumable, questions, active_schedules, .. } =
        totals;
    let hours = config.agent.autonomous_max_hours.as_secs_f64() / 3600.0;
    let shown = json!({
        "live_tasks": live,
        "running": running,
        "queued": queued,
        "waiting_for_answer": asking,
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
    let waiting = [
        (running, "running"),
        (queued, "waiting to start"),
        (asking, "waiting for an answer"),
        (resumable, "to be resumed"),
    ];
    let waiting = waiting.iter().filter(|(count, _)| *count > 0);
    let waiting: Vec<_> = waiting.map(|(count, words)| format!("{count} {words}")).collect();
    let open = match waiting.is_empty() {
        true => format!("{live} open"),
        false => format!("{live} open: {}", waiting.join(", ")),
    };
    out(&format!("tasks      {open}"));
    let inbox = if questions > 0 { " (`windlass inbox`)" } else { "" };
    out(&format!("questions  {questions}{inbox}"));
    let next = totals.next_scheduled_at.map(|next| {
        let next = next.to_zoned(jiff::tz::TimeZone::system());
        format!(", next at {}", next.strftime("%F %H:%M:%S"))
    });
    out(&format!("schedules  {active_schedules} active{}", next.unwrap_or_default()));
    let spent = match task_page::spent(totals.cost_usd, totals.tokens).as_str() {
        "-" => "unknown".to_owned(),
        spent => spent.to_owned(),
    };
    out(&format!("cost       {spent} for the open tasks"));
    out("");
    let (agent, service) = (&config.agent, &config.coordinator);
    out("limits");
    let budget = agent.budget_usd.map(numbers::dollars);
    for line in [
        format!(
            "a schedule starts at most {} within {hours} hours",
            numbers::plural(agent.autonomous_max_tasks, "task")
        ),
        format!("an autonomous task works at most {hours} hours before it asks"),
        format!(
            "`windlass serve` runs at most {} of a session at once, for {} per user",
            numbers::plural(service.max_concurrent_tasks, "task"),
            numbers::plural(service.max_sessions, "session"),
        ),
        match budget {
            Some(budget) => format!("a task that costs {budget} asks before it costs more"),
            None => "a task has no budget, unless `--budget` gives it one".to_owned(),
        },
    ] {
        let line = wrap(&line, app.style.line_width().saturating_sub(2));
        line.lines().for_each(|line| out(&format!("  {line}")));
    }
    Ok(0)
}
