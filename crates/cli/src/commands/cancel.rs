//! `cancel`: a task stops for good.

use clap::Args;
use windlass_core::injection::Control;

use super::{Execute, Start, mail};
use crate::failure::Failure;

/// Stop a task for good
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Cancel {
    /// The task: its id or any unique suffix of it
    pub task: String,
    /// The reason, kept in the task's journal
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  windlass cancel 7K2M --reason \"not needed any more\"";

impl Execute for Cancel {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let control = Control::Cancel { reason: self.reason };
        mail::control(&start.app()?, &self.task, control)
    }
}
