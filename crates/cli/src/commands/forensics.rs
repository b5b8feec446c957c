//! `forensics`: why a task is in its current state.

use clap::Args;
use windlass_coordinator::slash::forensics;

use super::{Execute, Start, named_task};
use crate::failure::Failure;
use crate::show::{out_json, replies};

/// Show why a task is in its current state
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Forensics {
    /// The task: its id or any unique suffix of it; without, the last one of this directory
    pub task: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass forensics                  of the last task of this directory
  windlass forensics 7K2M             status, error, open questions, last events
  windlass forensics 7K2M --json";

impl Execute for Forensics {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let app = start.app()?;
        let task = named_task::find_or_last(&app, self.task.as_deref())?;
        let blocks = forensics(&app.coordinator, task)?;
        match self.json {
            true => out_json(&serde_json::to_string(&blocks).unwrap_or_default()),
            false => replies::print_blocks(&blocks, app.style),
        }
        Ok(0)
    }
}
