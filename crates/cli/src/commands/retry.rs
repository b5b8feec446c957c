//! `retry`: run a failed task again.

use clap::Args;

use super::drive::drive;
use super::{AppContext, Execute, Start};
use crate::args::ResumeArgs;
use crate::failure::Failure;

/// Run a failed task again
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Retry {
    /// Which task, where and how to print
    #[command(flatten)]
    pub options: ResumeArgs,
}

const EXAMPLES: &str = "\
Examples:
  windlass retry 7K2M                 a failed task, from where it failed";

impl Execute for Retry {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        retry(&start.sandbox(&self.options.sandbox).app()?, &self.options)
    }
}

pub(super) fn retry(app: &AppContext, args: &ResumeArgs) -> Result<u8, Failure> {
    let task = app.coordinator.tasks().find(&args.task)?;
    app.runtime.block_on(async {
        app.coordinator.tasks().retry(task).await?;
        drive(app, task, &args.printing).await
    })
}
