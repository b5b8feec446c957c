//! What a person reads: progress and notes on stderr, results on stdout.

use std::io::{self, Write as _};

use serde_json::json;
use windlass_agent::Preview;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::outcome::Ending;
use windlass_core::state::TaskState;
use windlass_core::status::TaskStatus;
use windlass_core::text::one_line;
use windlass_store::{QuestionRow, TaskRow};

use crate::args::Printing;
use crate::failure::Failure;

/// How wide a line of progress gets.
const WIDTH: usize = 100;

/// Prints a result. A reader that has gone away is no error of ours.
pub fn out(text: &str) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Whether results may be coloured: a terminal that wants it.
pub fn colours_stdout() -> bool {
    use std::io::IsTerminal as _;
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    io::stdout().is_terminal() && !refused && !dumb
}

/// Prints a remark.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints an error with its causes and what to do next.
pub fn error(failure: &Failure) {
    note(&format!("error: {}", failure.error));
    for cause in failure.error.chain().skip(1) {
        note(&format!("  caused by: {cause}"));
    }
    if let Some(hint) = failure.hint.as_ref().filter(|hint| !hint.is_empty()) {
        note(&format!("\nhint: {hint}"));
    }
}

/// A run as it goes on.
pub struct Screen {
    printing: Printing,
}

impl Screen {
    /// A screen for one run.
    pub fn new(printing: &Printing) -> Self {
        Self { printing: printing.clone() }
    }

    /// Says which task it is.
    pub fn begin(&self, task: TaskId) {
        if self.shows_progress() {
            note(&format!("{task}"));
        }
    }

    /// Shows one event.
    pub fn event(&mut self, record: &Record) {
        if self.printing.json {
            out(&windlass_agent::trace::entry(record));
        } else if self.shows_progress()
            && let Some(line) = progress_line(record)
        {
            note(&line);
        }
    }

    /// Shows something that is not journaled yet.
    pub fn preview(&mut self, preview: &Preview) {
        if !self.shows_progress() {
            return;
        }
        if let windlass_model::Live::Retrying { after, reason, .. }
        | windlass_model::Live::Waiting { after, reason, .. } = &preview.live
        {
            note(&format!("  … {reason}; trying again in {:.1} s", after.as_secs_f64()));
        }
    }

    /// Shows how it ended.
    pub fn end(&mut self, result: &TaskResult) {
        if self.printing.json {
            return;
        }
        if let Some(text) = &result.final_message {
            out(text.trim_end());
        }
        if self.printing.print && result.status == ResultStatus::Completed {
            return;
        }
        for line in ending_lines(result) {
            note(&line);
        }
    }

    fn shows_progress(&self) -> bool {
        !(self.printing.json || self.printing.quiet || self.printing.print)
    }
}

fn ending_lines(result: &TaskResult) -> Vec<String> {
    let task = result.task_id;
    let mut lines: Vec<String> = result
        .deliverables
        .iter()
        .map(|file| format!("deliverable {}: {}", file.filepath, file.description))
        .collect();
    match result.status {
        ResultStatus::Completed => {}
        ResultStatus::Failed => {
            if let Some(error) = &result.error_details {
                lines.push(format!("failed: {}", error.message));
                lines.extend(error.diagnostic.iter().map(|seen| format!("  seen: {seen}")));
                lines.extend(error.hint.iter().map(|hint| format!("\nhint: {hint}")));
            }
        }
        ResultStatus::BlockedUser => {
            if let Some(asked) = &result.hitl_request {
                lines.push(format!("question: {}", asked.question));
                lines.extend(asked.context.iter().map(|context| format!("  {context}")));
                lines.extend(asked.options.iter().map(|option| format!("  - {option}")));
                let id = asked.request_id;
                lines.push(format!("\nanswer with: windlass answer {id} \"…\" --resume"));
            }
        }
        ResultStatus::Paused => lines.push(format!("paused; go on with: windlass resume {task}")),
        ResultStatus::Cancelled => lines.push("cancelled".to_owned()),
    }
    lines
}

/// One line for an event that a person wants to see while it goes on.
fn progress_line(record: &Record) -> Option<String> {
    let line = match &record.event {
        Event::LlmResponse(response) if !response.calls.is_empty() && !response.text.is_empty() => {
            format!("  {}", one_line(&response.text, WIDTH))
        }
        Event::ToolCall(call) => {
            format!("• {} {}", call.tool, one_line(&call.arguments.to_string(), WIDTH))
        }
        Event::ToolResult(result) if result.outcome.ending != Ending::Ok => {
            format!("  {}: {}", result.outcome.ending, one_line(&result.outcome.text, WIDTH))
        }
        Event::InjectionReceived(injection) => {
            format!("← {}", one_line(&injection.content, WIDTH))
        }
        Event::DoomLoopDetected(detected) => format!("! repeating itself: {}", detected.pattern),
        _ => return None,
    };
    Some(line)
}

/// One line for an event, in `events`.
pub fn event_line(record: &Record) -> String {
    let (kind, data) = record.event.parts();
    format!("{:>5}  {:<20} {}", record.seq, kind, one_line(&data, WIDTH))
}

/// How a status reads for a person: running without a driver is not running (§15.5).
pub fn status_words(status: TaskStatus, driven: Option<u32>) -> &'static str {
    match (status, driven) {
        (TaskStatus::Running | TaskStatus::Verifying | TaskStatus::Retrying, None) => "interrupted",
        (status, _) => status.as_str(),
    }
}

/// One line for a task, in `tasks`.
pub fn task_line(row: &TaskRow, driven: Option<u32>) -> String {
    let status = status_words(row.status, driven);
    format!("{}  {status:<12} {}", row.id, one_line(&row.goal, 60))
}

/// One task as JSON.
pub fn task_json(row: &TaskRow, driven: Option<u32>) -> String {
    json!({
        "task_id": row.id,
        "session_id": row.session_id,
        "goal": row.goal,
        "status": row.status,
        "status_reason": row.reason,
        "interrupted": status_words(row.status, driven) == "interrupted",
        "driven_by": driven,
        "workspace": row.workspace,
        "created_at": row.created_at,
    })
    .to_string()
}

/// One task on a page, in `show`.
pub fn task_page(state: &TaskState, driven: Option<u32>) -> String {
    let mut page = format!(
        "{}\n  goal       {}\n  status     {} ({})\n  axes       {}\n  workspace  {}\n",
        state.id(),
        one_line(&state.command().goal, WIDTH),
        status_words(state.status, driven),
        state.reason,
        state.axes,
        state.created.workspace,
    );
    let usage = &state.usage;
    page += &format!(
        "  usage      {} rounds, {} calls, {} tokens\n",
        usage.iterations, usage.tool_calls, usage.total_tokens
    );
    if let Some(error) = &state.error {
        page += &format!("  error      {}: {}\n", error.error_type, error.message);
    }
    for question in state.open_questions.values() {
        page +=
            &format!("  question   {} ({})\n", one_line(&question.question, WIDTH), question.id);
    }
    for file in state.deliverables.values() {
        page += &format!("  delivers   {}: {}\n", file.filepath, file.description);
    }
    if let Some(plan) = &state.plan {
        page += &format!("\n{}", plan.markdown());
    }
    page.trim_end().to_owned()
}

/// One open question, in `inbox`.
pub fn question_page(row: &QuestionRow) -> String {
    let question = &row.question;
    let mut page = format!("{}  {}\n  of {}", question.id, question.question, row.task);
    for option in &question.options {
        page += &format!("\n  - {option}");
    }
    page
}

/// One open question as JSON.
pub fn question_json(row: &QuestionRow) -> String {
    json!({ "task_id": row.task, "question": row.question }).to_string()
}
