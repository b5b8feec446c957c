//! `sessions`: sessions and their tasks.

use clap::Args;
use windlass_coordinator::views::SessionSummary;
use windlass_core::shown::{shown, shown_line};
use windlass_term::numbers;

use super::tasks::{self, Columns};
use super::{AppContext, Execute, Start};
use crate::args::values::whole;
use crate::failure::Failure;
use crate::show::{self, out, out_json};

/// List sessions, or show one with its tasks
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Sessions {
    /// Show only this session, with its tasks: its id or any unique suffix of it
    pub session: Option<String>,
    /// List at most this many sessions
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<u32>, allow_hyphen_values = true)]
    pub limit: u32,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass sessions                   the newest, each with its first goal
  windlass sessions 7K2M --json       one with all of its tasks";

/// Columns that a narrow terminal does without, in this order.
const OPTIONAL: [&str; 4] = ["USER", "TASKS", "ACTIVE", "DIRECTORY"];

impl Execute for Sessions {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        sessions(&start.app()?, &self)
    }
}

pub(super) fn sessions(app: &AppContext, args: &Sessions) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let sessions = coordinator.sessions();
    if let Some(text) = &args.session {
        let none = || {
            Failure::usage(
                format!("there is no session `{text}`"),
                "list them with `windlass sessions`",
            )
        };
        let state = sessions.view(sessions.find(text)?.ok_or_else(none)?)?;
        match args.json {
            true => out_json(&serde_json::to_string(&state).unwrap_or_default()),
            false => out(&shown(&state.to_string())),
        }
        return Ok(0);
    }
    if args.json {
        for row in sessions.newest(args.limit)? {
            let state = sessions.view(row.id)?;
            out_json(&serde_json::to_string(&state).unwrap_or_default());
        }
        return Ok(0);
    }
    let found = sessions.summaries(args.limit)?;
    if found.is_empty() {
        show::note("no sessions; start a task with `windlass run \"…\"`");
        return Ok(0);
    }
    tasks::print_lines(app, table(app, &found));
    Ok(0)
}

/// A line for each session, headings first: who used it when and where, and what was wanted first.
fn table(app: &AppContext, found: &[SessionSummary]) -> Vec<String> {
    let now = app.coordinator.now();
    let home = app.environment.variables.get("HOME").map_or("", String::as_str);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let column = |cell: &dyn Fn(&SessionSummary) -> String| found.iter().map(cell).collect();
    let columns: Columns = vec![
        ("SESSION", column(&|one| tasks::id(app, &one.row.id))),
        ("USER", column(&|one| or_dash(one.row.user_id.as_deref().map(shown_line)))),
        ("TASKS", column(&|one| one.row.tasks.len().to_string())),
        ("LAST", column(&|one| format!("{} ago", numbers::age(one.row.updated_at, now)))),
        (
            "ACTIVE",
            column(&|one| or_dash(one.row.active_task_id.map(|task| tasks::id(app, &task)))),
        ),
        (
            "DIRECTORY",
            column(&|one| or_dash(one.directory.as_ref().map(|at| tasks::directory(at, home)))),
        ),
    ];
    let goals = found.iter().map(|one| one.goal.as_deref().unwrap_or("-")).collect();
    tasks::with_goals(app, columns, &OPTIONAL, goals)
}
