//! `retry`: run a failed task again.

use clap::Args;
use windlass_core::event::WorkflowPart;
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;

use super::drive::drive;
use super::{AppContext, Execute, Start, follow_up, named_task, workflow};
use crate::args::ResumeArgs;
use crate::failure::Failure;

/// Continue a failed task from where it failed
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
    let state = app.coordinator.tasks().state(task)?;
    let is_run = matches!(state.created.workflow.as_deref(), Some(WorkflowPart::Run(_)));
    if is_run && state.status.is_terminal() && state.status != TaskStatus::Failed {
        return Err(workflow::has_ended(app, task, state.status));
    }
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
    let task = named_task::find_or_last(app, None)?;
    let row = app.coordinator.tasks().get(task)?;
    if row.is_some_and(|row| row.status == TaskStatus::Failed) {
        return Ok(task);
    }
    let hint = "name the task: `windlass retry TASK`; see `windlass tasks`";
    Err(Failure::usage(format!("the last task of this directory, `{task}`, has not failed"), hint))
}
