//! How a run ended, and what a person can do next.

use std::time::Duration;

use serde_json::Value;
use windlass_core::command::{HitlRequest, ResultStatus, TaskResult};
use windlass_core::status::StatusReason;

use super::meter::{clock, count};
use super::{Look, plain};

/// Lines of what a question is about; `windlass events` has the rest.
const CONTEXT_LINES: usize = 20;

/// Whether a failed task may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It may.
    Possible,
    /// It was tried as often as it may be.
    UsedUp,
}

/// How it ended: what it delivers, what went wrong or what it waits for, and the command that goes on.
pub fn lines(
    result: &TaskResult,
    look: Look,
    retry: Retry,
    parked: Option<StatusReason>,
) -> Vec<String> {
    let (task, paint) = (result.task_id, look.notes);
    let mut lines: Vec<String> = result
        .deliverables
        .iter()
        .map(|file| plain(&format!("deliverable {}: {}", file.filepath, file.description)))
        .collect();
    match result.status {
        ResultStatus::Completed => {}
        ResultStatus::Failed => {
            if let Some(error) = &result.error_details {
                let failed = format!("{} {}", paint.red("failed:"), plain(&error.message));
                lines.push(look.prose(&failed));
                let seen = error.diagnostic.iter();
                lines.extend(seen.map(|seen| look.prose(&format!("  seen: {}", plain(seen)))));
                let hint = crate::next_action::hint(error);
                lines.extend(hint.map(|hint| look.prose(&format!("\nhint: {}", plain(&hint)))));
            }
            lines.push(match retry {
                Retry::Possible => format!("try again with: windlass retry {task}"),
                Retry::UsedUp => "it was tried as often as it may be".to_owned(),
            });
        }
        ResultStatus::BlockedUser => {
            if let Some(asked) = &result.hitl_request {
                lines.extend(question_lines(asked, look));
                lines.push(format!("\n{}", answer_with(asked)));
            }
        }
        ResultStatus::Paused => {
            let why = parked.and_then(why).map(|why| format!(": {why}")).unwrap_or_default();
            lines.push(format!("paused{why}; go on with: windlass resume {task}"));
            if parked == Some(StatusReason::AwaitingMessage) {
                lines.push(format!("or ask for more first: windlass send {task} \"…\""));
            }
        }
        ResultStatus::Cancelled => lines.push("cancelled".to_owned()),
    }
    lines
}

/// Why a task is parked, where that is not its person's doing.
fn why(reason: StatusReason) -> Option<&'static str> {
    match reason {
        StatusReason::AwaitingMessage => Some("it waits for you to look at what it did"),
        StatusReason::ContextFull => Some("its context is full, and its notes are saved"),
        StatusReason::Deadline => Some("its deadline has passed"),
        StatusReason::Schedule => Some("it waits for its next check"),
        StatusReason::RateLimited => Some("its model's server wants to be left alone"),
        StatusReason::Storage => Some("the disk would not take more"),
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

/// What it took, in one line.
pub fn summary(result: &TaskResult, cost: Option<String>) -> String {
    let usage = &result.usage;
    let rounds = match usage.iterations {
        1 => "1 round".to_owned(),
        many => format!("{many} rounds"),
    };
    let took = clock(Duration::from_millis(usage.duration_ms));
    let cost = cost.map(|cost| format!(" · {cost}")).unwrap_or_default();
    format!("done in {took} · {rounds} · {} tokens{cost}", count(usage.total_tokens))
}

/// A question as a person reads it, its options numbered.
pub fn question_lines(asked: &HitlRequest, look: Look) -> Vec<String> {
    let asks = format!("{} {}", look.notes.yellow("question:"), plain(&asked.question));
    let mut lines = vec![look.prose(&asks)];
    lines.extend(about(asked.context.as_deref(), &asked.options));
    lines
}

/// What a question is about and its numbered options, indented.
pub fn about(context: Option<&str>, options: &[String]) -> Vec<String> {
    let context = context.map(readable).unwrap_or_default();
    let all: Vec<&str> = context.lines().collect();
    let mut lines: Vec<String> =
        all.iter().take(CONTEXT_LINES).map(|line| format!("  {line}")).collect();
    if all.len() > CONTEXT_LINES {
        lines.push(format!("  … {} more lines", all.len() - CONTEXT_LINES));
    }
    let numbered = (1..).zip(options);
    lines.extend(numbered.map(|(number, option)| format!("  {number}. {}", plain(option))));
    lines
}

/// The arguments of a call as lines, a command as one types it; any other text as it is.
fn readable(context: &str) -> String {
    let (first, more) = context.split_once('\n').unwrap_or((context, ""));
    let Ok(Value::Object(arguments)) = serde_json::from_str::<Value>(first) else {
        return plain(context);
    };
    let line = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("command", Value::String(text)) => format!("$ {text}"),
        (_, Value::String(text)) => format!("{name}: {}", text.trim_end()),
        (_, value) => format!("{name}: {value}"),
    };
    let lines: Vec<_> = arguments.iter().map(line).chain([more.to_owned()]).collect();
    plain(lines.join("\n").trim_end())
}

/// The command that answers it.
pub fn answer_with(asked: &HitlRequest) -> String {
    format!("answer with: windlass answer {} \"…\" --resume", asked.request_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_allowed_reads_as_it_would_be_typed() {
        let context = "{\"command\":\"git add .\\ngit push\",\"timeout\":5}\nAllow All: `git`";
        let shown = ["  $ git add .", "  git push", "  timeout: 5", "  Allow All: `git`"];
        assert_eq!(about(Some(context), &[]), shown);
        assert_eq!(about(Some("for the door"), &["red".into()]), ["  for the door", "  1. red"]);
        assert_eq!(about(Some("\u{1b}[2Jx"), &[]), ["  x"]);
        let long = "line\n".repeat(50);
        assert_eq!(about(Some(&long), &[]).last().unwrap(), "  … 30 more lines");
    }
}
