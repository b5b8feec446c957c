//! `trace`: the journal as the trace file has it.

use clap::Args;
use windlass_core::shown::shown_path;

use super::{AppContext, Execute, Start, named_task};
use crate::failure::Failure;
use crate::show::{out, out_json};

/// Print a task's trace: its events as JSON, one per line
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Trace {
    /// The task: its id or any unique suffix of it; without, the last one of this directory
    pub task: Option<String>,
    /// Print the path of the trace file instead
    #[arg(long)]
    pub path: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass trace --path               of the last task of this directory
  windlass trace 7K2M | jq .event_type
  windlass trace 7K2M --path          where the file is";

impl Execute for Trace {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        trace(&start.app()?, &self)
    }
}

/// Prints the journal as the trace file has it, or where that file is.
pub(super) fn trace(app: &AppContext, args: &Trace) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let task = named_task::find_or_last(app, args.task.as_deref())?;
    if args.path {
        out(&shown_path(&coordinator.storage().trace_file(task)?));
        return Ok(0);
    }
    for record in coordinator.journals().of(task)? {
        out_json(&windlass_coordinator::trace::entry(&record));
    }
    Ok(0)
}
