//! `status`: how much runs, waits and is scheduled, and the limits.

use clap::Args;
use serde_json::{Value, json};
use windlass_coordinator::views::Totals;
use windlass_term::numbers;
use windlass_term::wrap::wrap;

use super::{AppContext, Execute, Start};
use crate::config::Config;
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
    let coordinator = app.service()?;
    let (totals, has_service) = (Totals::read(&coordinator)?, coordinator.queue().has_service()?);
    if args.json {
        out_json(&as_json(&config, &totals, has_service).to_string());
        return Ok(0);
    }
    print_activity(&totals, has_service);
    out("\nlimits");
    for line in limits(&config) {
        let line = wrap(&line, app.style.line_width().saturating_sub(2));
        line.lines().for_each(|line| out(&format!("  {line}")));
    }
    Ok(0)
}

fn as_json(config: &Config, totals: &Totals, has_service: bool) -> Value {
    json!({
        "live_tasks": totals.live,
        "running": totals.running,
        "queued": totals.queued,
        "waiting_for_answer": totals.asking,
        "resumable": totals.resumable,
        "conversations": totals.conversations,
        "questions": totals.questions,
        "service_running": has_service,
        "schedules": totals.active_schedules,
        "next_scheduled_at": totals.next_scheduled_at,
        "cost_usd": totals.cost_usd,
        "limits": {
            "autonomous_max_tasks": config.agent.autonomous_max_tasks,
            "autonomous_max_hours": hours(config),
            "max_concurrent_tasks": config.coordinator.max_concurrent_tasks,
            "max_sessions": config.coordinator.max_sessions,
            "budget_usd": config.agent.budget_usd,
        },
    })
}

/// Each open task is counted once.
fn print_activity(totals: &Totals, has_service: bool) {
    let parts = [
        (totals.running, "running"),
        (totals.queued, "waiting to start"),
        (totals.asking, "waiting for an answer"),
        (totals.conversations, "waiting for a message"),
        (totals.resumable.saturating_sub(totals.conversations), "to be resumed"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts.map(|(count, words)| format!("{count} {words}")).collect();
    let colon = if parts.is_empty() { "" } else { ": " };
    out(&format!("tasks      {} open{colon}{}", totals.live, parts.join(", ")));
    let service = match has_service {
        true => "running",
        false => "not running (`windlass serve` starts one)",
    };
    out(&format!("service    {service}"));
    let inbox = if totals.questions > 0 { " (`windlass inbox`)" } else { "" };
    out(&format!("questions  {}{inbox}", totals.questions));
    let next = totals.next_scheduled_at.map(|next| {
        let next = next.to_zoned(jiff::tz::TimeZone::system());
        format!(", next at {}", next.strftime("%F %H:%M:%S"))
    });
    out(&format!("schedules  {} active{}", totals.active_schedules, next.unwrap_or_default()));
    let spent = match task_page::spending(totals.cost_usd).as_str() {
        "-" => "unknown".to_owned(),
        spent => spent.to_owned(),
    };
    out(&format!("cost       {spent} for the open tasks"));
}

fn limits(config: &Config) -> [String; 4] {
    let (agent, service) = (&config.agent, &config.coordinator);
    let hours = hours(config);
    [
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
        match agent.budget_usd.map(numbers::dollars) {
            Some(budget) => format!("a task that costs {budget} asks before it costs more"),
            None => "a task has no budget, unless `--budget` gives it one".to_owned(),
        },
    ]
}

fn hours(config: &Config) -> f64 {
    config.agent.autonomous_max_hours.as_secs_f64() / 3600.0
}
