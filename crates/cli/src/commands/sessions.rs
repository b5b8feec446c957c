//! `sessions`: sessions and their tasks.

use clap::Args;
use windlass_core::shown::{shown, shown_line};
use windlass_term::{Table, numbers};

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
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<u32>)]
    pub limit: u32,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass sessions                   the newest, with their active tasks
  windlass sessions 7K2M --json       one with all of its tasks";

impl Execute for Sessions {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        sessions(&start.app()?, &self)
    }
}

pub(super) fn sessions(app: &AppContext, args: &Sessions) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let sessions = coordinator.sessions();
    if let Some(text) = &args.session {
        let none =
            || Failure::usage(format!("there is no session `{text}`"), "see `windlass sessions`");
        let state = sessions.view(sessions.find(text)?.ok_or_else(none)?)?;
        match args.json {
            true => out_json(&serde_json::to_string(&state).unwrap_or_default()),
            false => out(&shown(&state.to_string())),
        }
        return Ok(0);
    }
    let rows = sessions.newest(args.limit)?;
    if args.json {
        for row in rows {
            let state = sessions.view(row.id)?;
            out_json(&serde_json::to_string(&state).unwrap_or_default());
        }
        return Ok(0);
    }
    if rows.is_empty() {
        show::note("no sessions; start a task with `windlass run \"…\"`");
        return Ok(0);
    }
    let mut table = Table::new(&["SESSION", "USER", "TASKS", "AGE", "ACTIVE"], &[2, 3]);
    for row in rows {
        table.row(vec![
            row.id.to_string(),
            shown_line(row.user_id.as_deref().unwrap_or("-")),
            row.tasks.len().to_string(),
            numbers::age(row.updated_at, coordinator.now()),
            row.active_task_id.map(|task| task.to_string()).unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    show::print_table(&table);
    Ok(0)
}
