//! `retry`: run a failed task again.

use std::path::Path;

use clap::Args;
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;

use super::drive::drive;
use super::{AppContext, Execute, Start, follow_up};
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
  windlass retry                      the last task of this directory
  windlass retry 7K2M                 a failed task, from where it failed
  windlass retry 7K2M --model openai/gpt-4.1
                                      with another model";

impl Execute for Retry {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        retry(&start.sandbox(&self.options.sandbox).app()?, &self.options)
    }
}

pub(super) fn retry(app: &AppContext, args: &ResumeArgs) -> Result<u8, Failure> {
    let task = match &args.task {
        Some(text) => app.coordinator.tasks().find(text)?,
        None => last_here(app)?,
    };
    if let Some(model) = &args.model {
        follow_up::check_named_model(app, task, model)?;
    }
    app.runtime.block_on(async {
        app.coordinator.tasks().retry(task).await?;
        follow_up::change_model(app, task, args.model.as_deref()).await?;
        drive(app, task, &args.printing).await
    })
}

/// The last task of this directory, where that has failed.
fn last_here(app: &AppContext) -> Result<TaskId, Failure> {
    let last = app.coordinator.tasks().in_directory(&follow_up::here(Path::new("."))).newest()?;
    let failed = last.filter(|last| last.row.status == TaskStatus::Failed);
    failed.map(|last| last.row.id).ok_or_else(|| {
        let hint = "name the task: `windlass retry TASK`; see `windlass tasks`";
        Failure::usage("the last task of this directory has not failed", hint)
    })
}
