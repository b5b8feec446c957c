//! `pause`: a task stops after its current step and can be resumed.

use clap::Args;
use windlass_core::injection::Control;

use super::{Execute, Start, mail};
use crate::failure::Failure;

/// Pause a task after the current step
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Pause {
    /// The task: its id or any unique suffix of it
    pub task: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass pause 7K2M                 it finishes what it is doing first
  windlass resume 7K2M                and continues from there";

impl Execute for Pause {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        mail::control(&start.app()?, &self.task, Control::Pause)
    }
}
