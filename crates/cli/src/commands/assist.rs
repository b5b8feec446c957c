//! `assist`: the prompt for the next decision of a task.

use clap::Args;
use windlass_core::shown::shown;

use super::{Execute, Start, named_task};
use crate::failure::Failure;
use crate::show::{out, out_json};

/// Prepare the prompt for a task's next hard decision
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Assist {
    /// The task: its id or any unique suffix of it; without, the last one of this directory
    pub task: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass assist                      for the last task of this directory
  windlass assist 7K2P                 the prompt, to read or to paste
  windlass assist 7K2P --json

No model is asked. With `agent.reasoning_assist = true` in your own
configuration the fast model answers the prompt.";

impl Execute for Assist {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let app = start.app()?;
        let task = named_task::find_or_last(&app, self.task.as_deref())?;
        let assistance = app.runtime.block_on(app.coordinator.assist().assist(task))?;
        if self.json {
            out_json(&serde_json::to_string(&assistance).unwrap_or_default());
            return Ok(0);
        }
        out(&shown(assistance.prompt.trim_end()));
        if let (Some(model), Some(answer)) = (&assistance.model, &assistance.answer) {
            out(&format!("\n# What {model} says\n\n{}", shown(answer.trim_end())));
        }
        Ok(0)
    }
}
