//! `resume`: continue a task here.

use std::path::Path;

use clap::Args;
use windlass_core::id::TaskId;

use super::drive::drive;
use super::{AppContext, Execute, Start, ask, follow_up, named_task};
use crate::args::ResumeArgs;
use crate::failure::Failure;
use crate::next_action;
use crate::show;

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
  windlass resume                     the last one of this directory
  windlass resume 7K2M                any unique end of the task's id will do
  windlass resume 7K2M --model openai/gpt-4.1
                                      with another model from now on
  windlass resume 7K2M --json         print events as JSON lines";

impl Execute for Resume {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        resume(&start.sandbox(&self.options.sandbox).app()?, &self.options)
    }
}

pub(super) fn resume(app: &AppContext, args: &ResumeArgs) -> Result<u8, Failure> {
    let task = match &args.task {
        Some(text) => app.coordinator.tasks().find(text)?,
        None => match last_here(app)? {
            Some(task) => task,
            None => return Ok(0),
        },
    };
    app.runtime.block_on(async {
        follow_up::change_model(app, task, args.model.as_deref()).await?;
        app.coordinator.control().resume(task, &app.environment.user()).await?;
        drive(app, task, &args.printing).await
    })
}

/// The last task of this directory that can be resumed: a person is asked, a script reads on stderr which it is.
/// Nothing, where they decline.
fn last_here(app: &AppContext) -> Result<Option<TaskId>, Failure> {
    let here = follow_up::real_directory(Path::new("."));
    let Some(last) = app.coordinator.tasks().in_directory(&here).resumable()? else {
        let hint = "see `windlass tasks`; a finished task is continued with `windlass run --continue \"…\"`";
        return Err(Failure::usage("no task of this directory can be resumed", hint));
    };
    let (task, what) = (last.row.id, named_task::describe(app, &last));
    let command = next_action::command(&last.next_action(), task);
    let command = command.unwrap_or_else(|| format!("windlass resume {task}"));
    if !app.style.can_ask {
        show::note(
            &app.style.wrap_note(&format!("the last task of this directory: {task} {what}")),
        );
        return Ok(Some(task));
    }
    if ask::confirm(&format!("Resume {what}?")) {
        return Ok(Some(task));
    }
    show::note(&format!("not resumed; later with: {command}"));
    Ok(None)
}
