//! `resume`: continue a task here.

use clap::Args;

use super::drive::drive;
use super::{AppContext, Execute, Start};
use crate::args::ResumeArgs;
use crate::failure::Failure;

/// Resume a task that was paused, blocked or interrupted
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Resume {
    /// Which task, where and how to print
    #[command(flatten)]
    pub options: ResumeArgs,
}

const EXAMPLES: &str = "\
Examples:
  windlass resume 7K2M                any unique end of the task's id will do
  windlass resume 7K2M --json         print events as JSON lines";

impl Execute for Resume {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        resume(&start.sandbox(&self.options.sandbox).app()?, &self.options)
    }
}

pub(super) fn resume(app: &AppContext, args: &ResumeArgs) -> Result<u8, Failure> {
    let task = app.coordinator.tasks().find(&args.task)?;
    app.runtime.block_on(async {
        app.coordinator.control().resume(task, &app.environment.user()).await?;
        drive(app, task, &args.printing).await
    })
}
