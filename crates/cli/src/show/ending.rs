//! How a run ended, and what a person can do next.

use std::time::Duration;

use windlass_coordinator::views::ChangedFile;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::id::TaskId;
use windlass_core::question::Question;
use windlass_core::shown::{shown, shown_line};
use windlass_core::status::StatusReason;
use windlass_term::{Paint, TerminalStyle, numbers};

use crate::next_action;

/// Whether a failed task may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    Possible,
    /// It was tried as often as it may be.
    UsedUp,
}

/// How it ended: what it delivers, what went wrong or what it waits for, and the command that resumes it.
pub fn lines(
    result: &TaskResult,
    style: TerminalStyle,
    retry: Retry,
    pause_reason: Option<StatusReason>,
) -> Vec<String> {
    let (task, paint) = (result.task_id, style.notes);
    let mut lines: Vec<String> = result
        .deliverables
        .iter()
        .map(|file| shown_line(&format!("deliverable {}: {}", file.filepath, file.description)))
        .collect();
    match result.status {
        ResultStatus::Completed if result.partial => {
            let words = "deadline passed: this is a partial result";
            lines.push(paint.yellow(words));
        }
        ResultStatus::Completed => {}
        ResultStatus::Failed => {
            if let Some(error) = &result.error_details {
                let failed = format!("{} {}", paint.red("failed:"), shown(&error.message));
                lines.push(style.wrap_note(&failed));
                let seen = error.diagnostic.iter();
                lines.extend(seen.map(|seen| style.wrap_note(&format!("  seen: {}", shown(seen)))));
                let hint = next_action::hint(error);
                lines
                    .extend(hint.map(|hint| style.wrap_note(&format!("\nhint: {}", shown(&hint)))));
            }
            lines.push(match retry {
                Retry::Possible => next_action::retry_words(result.error_details.as_ref(), task),
                Retry::UsedUp => "it has no retries left".to_owned(),
            });
        }
        // What it asks is shown by whoever can look it up.
        ResultStatus::BlockedUser => {}
        ResultStatus::Paused => {
            let why = pause_reason.and_then(why).map(|why| format!(": {why}")).unwrap_or_default();
            lines.push(format!("paused{why}; resume with: windlass resume {task}"));
            if pause_reason == Some(StatusReason::AwaitingMessage) {
                lines.push(format!("or ask for more first: windlass send {task} \"…\""));
            }
        }
        ResultStatus::Cancelled => lines.push("cancelled".to_owned()),
    }
    lines
}

/// The same for the work on a message, which is tried again by the next one.
pub fn ending_lines(
    result: &TaskResult,
    style: TerminalStyle,
    reason: Option<StatusReason>,
) -> Vec<String> {
    match result.status {
        ResultStatus::Paused => {
            let why = reason.and_then(why).map(|why| format!(": {why}")).unwrap_or_default();
            vec![format!("paused{why}; the next message continues it")]
        }
        ResultStatus::Completed
        | ResultStatus::Failed
        | ResultStatus::BlockedUser
        | ResultStatus::Cancelled => lines(result, style, Retry::Possible, reason),
    }
}

/// Why a task is paused, where that is not its person's doing.
fn why(reason: StatusReason) -> Option<&'static str> {
    match reason {
        StatusReason::AwaitingMessage => Some("it waits for you to look at what it did"),
        StatusReason::ContextFull => Some("its context is full, and its notes are saved"),
        StatusReason::Deadline => Some("its deadline has passed"),
        StatusReason::Schedule => Some("it waits for its next check"),
        StatusReason::RateLimited => Some("its model's server asked it to wait"),
        StatusReason::DiskFull => Some("no space is left on the disk of its journal"),
        StatusReason::ModelOutage => Some("its model's server does not answer"),
        StatusReason::User
        | StatusReason::Shutdown
        | StatusReason::Finished
        | StatusReason::Question
        | StatusReason::Budget
        | StatusReason::Timeout
        | StatusReason::Error
        | StatusReason::Dependency
        | StatusReason::MergeConflict => None,
    }
}

/// Files that are named at the end of a run; `windlass diff` has all.
const NAMED_FILES: usize = 8;

/// The files that a run changed, and how to see what changed in them.
pub fn changes(task: TaskId, changed: &[ChangedFile], paint: Paint) -> Vec<String> {
    if changed.is_empty() {
        return Vec::new();
    }
    let count = numbers::plural(changed.len(), "file");
    let heading = paint.dim(&format!("{count} changed; see: windlass diff {task}"));
    let named = change_lines(&changed[..changed.len().min(NAMED_FILES)], paint);
    let hidden = changed.len().saturating_sub(NAMED_FILES);
    let more =
        (hidden > 0).then(|| paint.dim(&format!("  … {}", numbers::plural(hidden, "more file"))));
    std::iter::once(heading).chain(named).chain(more).collect()
}

/// One line for each changed file: its path, and how many lines came and went.
pub fn change_lines(changed: &[ChangedFile], paint: Paint) -> Vec<String> {
    let line = |file: &ChangedFile| {
        let path = shown_line(&file.path);
        let new = if file.is_new { " (new)" } else { "" };
        match file.lines {
            Some((added, removed)) => {
                let (added, removed) = (format!("+{added}"), format!("-{removed}"));
                format!("  {path} {} {}{new}", paint.green(&added), paint.red(&removed))
            }
            None => format!("  {path}{new}"),
        }
    };
    changed.iter().map(line).collect()
}

/// What it took, in one line: the task and its sub-agents.
pub fn summary(result: &TaskResult, has_unpriced_replies: bool) -> String {
    let usage = &result.usage;
    let done = if result.partial { "stopped at its deadline after" } else { "done in" };
    let steps = numbers::plural(usage.iterations, "step");
    let took = numbers::took(Duration::from_millis(usage.duration_ms));
    let more = if has_unpriced_replies { "+" } else { "" };
    let cost = result.cost_usd.filter(|_| usage.total_tokens > 0);
    let cost = cost.map(|cost| format!(" · {}{more}", numbers::dollars(cost))).unwrap_or_default();
    match (usage.iterations, usage.total_tokens) {
        // No model worked on it: a run of a workflow.
        (0, 0) if usage.duration_ms == 0 && !result.partial => "done".to_owned(),
        (0, 0) => format!("{done} {took}"),
        (_, tokens) => format!("{done} {took} · {steps} · {}{cost}", numbers::tokens(tokens)),
    }
}

/// The command that answers a question. It is alone on its line, so that it can be pasted.
pub fn answer_with(asked: &Question) -> Vec<String> {
    let command = next_action::answer_command(asked.id, &asked.options);
    let others = next_action::other_answers(&asked.options);
    let others = others.map(|others| format!("         or: {others}"));
    std::iter::once(format!("Answer with: {command}")).chain(others).collect()
}
