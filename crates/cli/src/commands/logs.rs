//! `logs`: a task's commands with what they printed.

use clap::Args;
use serde_json::json;
use windlass_coordinator::outputs::{CallOutput, ProgramOutput, Stream, TruncatedOutput};
use windlass_core::outcome::{AbortCause, CallEnding};
use windlass_core::shown::shown_line;
use windlass_term::{strip_controls, tool_lines};

use super::{AppContext, Execute, Start, named_task};
use crate::failure::Failure;
use crate::show::{note, out, out_json};

/// Print the output of a task's commands
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Logs {
    /// The task: its id or any unique suffix of it; without, the last one of this directory
    pub task: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass logs                       of the last task of this directory
  windlass logs 7K2M                  every command and what it printed
  windlass outputs CALL               the whole of one that was cut";

impl Execute for Logs {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        logs(&start.app()?, &self)
    }
}

/// Prints every command of a task, of a run of a workflow those of all its steps, and every program that worked on it,
/// with what the store keeps of its output.
pub(super) fn logs(app: &AppContext, args: &Logs) -> Result<u8, Failure> {
    let task = named_task::find_or_last(app, args.task.as_deref())?;
    let mut has_run_commands = false;
    for one in app.coordinator.artifacts().outputs().tasks_of(task)? {
        for call in &app.coordinator.artifacts().outputs().of(one)? {
            has_run_commands = true;
            match args.json {
                true => log_lines(call).iter().for_each(|line| out_json(line)),
                false => log_page(app, call),
            }
        }
    }
    let programs = app.coordinator.artifacts().outputs().of_programs(task)?;
    for program in &programs {
        match args.json {
            true => out_json(&program_line(program)),
            false => program_page(app, program),
        }
    }
    if !has_run_commands && programs.is_empty() && !args.json {
        note(&format!("`{task}` ran no commands; see `windlass events {task}`"));
    }
    Ok(0)
}

/// One line of JSON for a program that worked on a step.
fn program_line(output: &ProgramOutput) -> String {
    let ProgramOutput { task, step, runner, text } = output;
    json!({ "task": task, "step": step, "runner": runner, "content": text }).to_string()
}

/// The same for people.
fn program_page(app: &AppContext, output: &ProgramOutput) {
    let paint = app.style.results;
    let title = shown_line(&format!("{} ({})", output.step, output.runner));
    out(&format!("{}  {}", paint.bold(&title), paint.dim(&output.task.to_string())));
    out(strip_controls(&output.text).trim_end());
    out("");
}

/// One line of JSON for each stream of a call.
fn log_lines(output: &CallOutput) -> Vec<String> {
    let CallOutput { at, call, outcome, background_exit, kept } = output;
    let outcome = outcome.as_ref();
    let line = |(stream, kept): &(Stream, TruncatedOutput)| {
        let line = json!({
            "call": call.call,
            "tool": call.tool,
            "arguments": call.arguments,
            "at": at,
            "ending": outcome.map(|outcome| outcome.ending),
            "exit_code": outcome.and_then(|outcome| outcome.exit_code),
            "aborted_by": outcome.and_then(|outcome| outcome.aborted_by),
            "background_exit": background_exit,
            "stream": stream,
            "content": kept.content,
            "truncated": kept.truncated,
            "original_size": kept.original_size,
        });
        line.to_string()
    };
    kept.iter().map(line).collect()
}

/// One command with how it ended and what it printed; a stream that stayed silent is left out.
fn log_page(app: &AppContext, output: &CallOutput) {
    let (paint, call) = (app.style.results, &output.call);
    let what = tool_lines::whole_call(&call.tool, &call.arguments);
    let (first, rest) = what.split_first().map_or(("", [].as_slice()), |(one, all)| (one, all));
    let end = end_words(output).map(|words| format!("  {}", paint.red(&words)));
    let end = end.unwrap_or_default();
    out(&format!("{}  {}{end}", paint.bold(first), paint.dim(&call.call.to_string())));
    rest.iter().for_each(|line| out(&paint.bold(line)));
    for (stream, kept) in output.kept.iter().filter(|(_, kept)| kept.original_size > 0) {
        if *stream == Stream::Stderr {
            out(&paint.dim("stderr:"));
        }
        out(strip_controls(&kept.content).trim_end());
        if kept.truncated {
            let whole = format!("View full output: windlass outputs {}", call.call);
            out(&paint.dim(&format!("[Output truncated]  {whole}")));
        }
    }
    out("");
}

/// How a call ended, where it did not end well, and how a background command ended in any case.
fn end_words(output: &CallOutput) -> Option<String> {
    if let Some(exit) = &output.background_exit {
        return Some(format!("ended in the background: {exit}"));
    }
    let Some(outcome) = &output.outcome else { return Some("no result yet".to_owned()) };
    let words = match (outcome.exit_code, outcome.aborted_by, outcome.ending) {
        (Some(0), _, _) | (None, None, CallEnding::Ok) => return None,
        (Some(code), _, _) => format!("exit {code}"),
        (None, Some(AbortCause::Timeout), _) => "killed: it took too long".to_owned(),
        (None, Some(AbortCause::OutOfMemory), _) => "killed: it used up its memory".to_owned(),
        (None, Some(AbortCause::Signal(signal)), _) => format!("killed by signal {signal}"),
        (None, None, CallEnding::Cancelled) => "stopped with its task".to_owned(),
        (None, None, CallEnding::Unknown) => "outcome unknown".to_owned(),
        (None, None, CallEnding::Denied) => "denied".to_owned(),
        (None, None, CallEnding::Error) => "failed".to_owned(),
    };
    Some(words)
}
