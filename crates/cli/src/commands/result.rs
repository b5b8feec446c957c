//! `result`: what a task's last segment handed back.

use clap::Args;

use super::{AppContext, Execute, Start};
use crate::failure::Failure;
use crate::show::out_json;

/// Print a task's result as JSON
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PrintResult {
    /// The task: its id or any unique suffix of it
    pub task: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass result 7K2M
  windlass result 7K2M | jq -r .final_message";

impl Execute for PrintResult {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        result(&start.app()?, &self)
    }
}

pub(super) fn result(app: &AppContext, args: &PrintResult) -> Result<u8, Failure> {
    let tasks = app.coordinator.tasks();
    let task = tasks.find(&args.task)?;
    match tasks.last_result(task)? {
        Some(result) => {
            out_json(&serde_json::to_string_pretty(&result).unwrap_or_default());
            Ok(0)
        }
        None => Err(Failure::usage(
            format!("`{task}` has no result yet"),
            format!("follow it with `windlass events --follow {task}`"),
        )),
    }
}
