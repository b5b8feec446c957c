//! `result`: what a task's last segment handed back.

use clap::Args;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::shown::shown_line;
use windlass_term::TerminalStyle;

use super::{AppContext, Execute, Start, named_task};
use crate::failure::Failure;
use crate::next_action;
use crate::show::{out, out_json, task_page};

/// Print a task's result: text on a terminal, JSON in a pipe
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PrintResult {
    /// The task: its id or any unique suffix of it; without, the last one of this directory
    pub task: Option<String>,
    /// Print the result as JSON, even on a terminal
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass result                     of the last task of this directory
  windlass result 7K2M
  windlass result 7K2M | jq -r .final_message";

impl Execute for PrintResult {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        result(&start.app()?, &self)
    }
}

pub(super) fn result(app: &AppContext, args: &PrintResult) -> Result<u8, Failure> {
    let tasks = app.coordinator.tasks();
    let task = named_task::find_or_last(app, args.task.as_deref())?;
    let Some(result) = tasks.last_result(task)? else {
        return Err(Failure::usage(
            format!("`{task}` has no result yet"),
            format!("follow it with `windlass events --follow {task}`"),
        ));
    };
    match args.json || !app.style.is_stdout_terminal {
        true => out_json(&serde_json::to_string_pretty(&result).unwrap_or_default()),
        false => out(&page(&result, app.style)),
    }
    Ok(0)
}

/// The answer first; below it what became of the task, what it delivers and where the proof is.
fn page(result: &TaskResult, style: TerminalStyle) -> String {
    let mut lines = Vec::new();
    if let Some(text) = &result.final_message {
        lines.extend([task_page::answer(text, style), String::new()]);
    }
    lines.push(format!("status       {}", status(result)));
    if let Some(error) = &result.error_details {
        lines.push(format!("error        {}", shown_line(&error.message)));
        lines.extend(next_action::hint(error).map(|hint| format!("hint         {hint}")));
    }
    if let Some(asked) = &result.hitl_request {
        lines.push(format!("question     {}", shown_line(&asked.question)));
        let command = next_action::answer_command(asked.request_id, &asked.options);
        lines.push(format!("answer with  {command}"));
    }
    for file in &result.deliverables {
        let file = format!("{}: {}", file.filepath, file.description);
        lines.push(format!("deliverable  {}", shown_line(&file)));
    }
    for proof in &result.evidence_refs {
        let place = proof.uri.strip_prefix("file://").unwrap_or(&proof.uri);
        lines.push(format!("evidence     {}", shown_line(place)));
    }
    lines.join("\n")
}

/// The status in the words of every list.
const fn status(result: &TaskResult) -> &'static str {
    match result.status {
        ResultStatus::Completed if result.partial => "done (deadline passed: a partial result)",
        ResultStatus::Completed => "done",
        ResultStatus::Failed => "failed",
        ResultStatus::BlockedUser => "blocked (waiting for your answer)",
        ResultStatus::Paused => "paused",
        ResultStatus::Cancelled => "cancelled",
    }
}
