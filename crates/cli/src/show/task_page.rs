//! Lists and pages: tasks, one task, events, questions.

use serde_json::json;
use windlass_coordinator::views::{OpenQuestion, QuestionRow, TaskDetails, TaskView};
use windlass_core::axes::Axes;
use windlass_core::compaction::Level;
use windlass_core::shown::{shown, shown_line};
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_core::text::one_line;
use windlass_term::question::{Call, Canvas};
use windlass_term::wrap::wrap;
use windlass_term::{TerminalStyle, markdown, numbers, question, strip_controls};

use crate::next_action;

use super::answer_with;

/// How much of a goal a page shows.
const WIDTH: usize = 300;

/// How wide a goal gets beside an id.
const GOAL_WIDTH: usize = 60;

/// How a status reads for a person: running without a driver is not running (§15.5), and a conversation that has
/// answered is not stuck.
pub fn status_words(task: &TaskView) -> &'static str {
    match task.is_interrupted() {
        true => "interrupted",
        false if task.waits_for_message() => "waiting for you",
        false => task.row.status.as_str(),
    }
}

/// One task as JSON.
pub fn task_json(task: &TaskView) -> serde_json::Value {
    let row = &task.row;
    json!({
        "task_id": row.id,
        "session_id": row.session_id,
        "goal": row.goal,
        "status": row.status,
        "status_reason": row.reason,
        "interrupted": task.is_interrupted(),
        "driven_by": task.driven_by,
        "workspace": row.workspace,
        "model": row.model,
        "usage": row.usage,
        "cost_usd": task.cost_usd,
        "created_at": row.created_at,
    })
}

/// What was spent, for a list: an unknown price is not zero.
pub fn spending(dollars: Option<f64>) -> String {
    dollars.map_or_else(|| "-".to_owned(), numbers::dollars)
}

/// One task on a page, in `show`: labels in front, and beside them texts that are broken between words.
pub fn task_page(details: &TaskDetails, cost: &str, style: TerminalStyle) -> String {
    let TaskDetails { view, state, gauge, .. } = details;
    let mut page = Page { lines: vec![state.id().to_string()], width: style.line_width() };
    page.add("goal", &one_line(&shown(state.command().goal.trim()), WIDTH));
    page.add("status", &status_text(view, state));
    page.add("settings", &settings(&state.axes));
    page.add("directory", &shown_line(&state.created.workspace));
    page.add("used", &usage_words(details, cost));
    if let Some(gauge) = gauge {
        let advice = match gauge.level {
            Level::Ok => String::new(),
            level @ (Level::Warning | Level::Critical) => {
                format!(", {level}: {}", gauge.recommendation)
            }
        };
        page.add("context", &format!("{:.0} % full{advice}", gauge.percent.floor()));
    }
    if let Some(error) = &state.error {
        page.add("error", &shown(&error.message));
        page.add("hint", &shown(&next_action::hint(error).unwrap_or_default()));
    }
    if let Some(command) = next_action::command(&view.next_action(), state.id()) {
        page.add("next", &command);
    }
    let own = |path: &&String| {
        [".plan", ".memo/", ".windlass/tasks/"].iter().any(|own| path.starts_with(own))
    };
    let changed: Vec<_> = state.files.changed.iter().filter(|path| !own(path)).cloned().collect();
    page.add("changed", &shown_line(&changed.join(", ")));
    page.add("checkpoint", &shown_line(view.row.checkpoint_ref.as_deref().unwrap_or_default()));
    for file in state.files.deliverables.values() {
        page.add("delivers", &shown_line(&format!("{}: {}", file.filepath, file.description)));
    }
    if let Some(plan) = &state.plan {
        page.add("plan", &format!("{} of {} done", plan.done(), plan.steps.len()));
        for step in &plan.steps {
            let step = format!("{} {}", step.status.icon(), shown(&step.description));
            page.add("", &step);
        }
    }
    let mut page = page.lines.join("\n");
    if let Some(text) = details.result.as_ref().and_then(|result| result.final_message.as_ref()) {
        page += &format!("\n\n{}", answer(text, style));
    }
    page.trim_end().to_owned()
}

/// The final answer: rendered on a terminal, elsewhere as it is.
pub fn answer(text: &str, style: TerminalStyle) -> String {
    let text = strip_controls(text);
    match style.is_stdout_terminal {
        true => markdown::render(&text, style.results, style.results_width()),
        false => text.trim_end().to_owned(),
    }
}

/// Columns of a label on a page.
const LABEL: usize = 11;

struct Page {
    lines: Vec<String>,
    width: usize,
}

impl Page {
    fn add(&mut self, label: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let room = self.width.saturating_sub(LABEL + 2).max(20);
        for (number, line) in wrap(text, room).lines().enumerate() {
            let label = if number == 0 { label } else { "" };
            self.lines.push(format!("  {label:<LABEL$}{line}"));
        }
    }
}

/// Where a task stands, and why where the status alone does not say it.
fn status_text(view: &TaskView, state: &TaskState) -> String {
    let until = state.until.map(|until| {
        let clock = until.to_zoned(jiff::tz::TimeZone::system()).strftime("%F %H:%M:%S");
        format!(", until {clock}")
    });
    let until = until.unwrap_or_default();
    if view.is_interrupted() {
        return "interrupted (its process ended; resume to continue)".to_owned();
    }
    let why = match (state.status, state.reason) {
        _ if view.is_answered() => "answered; resume to continue",
        (TaskStatus::Blocked, StatusReason::Question) => "waiting for your answer",
        (TaskStatus::Blocked, StatusReason::Budget) => "budget used up; waiting for your answer",
        (TaskStatus::Done, StatusReason::Deadline) => "deadline passed: a partial result",
        (TaskStatus::Paused, StatusReason::User) => "by you",
        (TaskStatus::Paused, StatusReason::Shutdown) => "windlass was stopped",
        (TaskStatus::Paused, StatusReason::AwaitingMessage) if state.created.conversation => {
            "waiting for your next message"
        }
        (TaskStatus::Paused, StatusReason::AwaitingMessage) => "waiting for you to look at it",
        (TaskStatus::Paused, StatusReason::ContextFull) => "its context is full",
        (TaskStatus::Paused, StatusReason::Schedule) => "until its next check",
        (TaskStatus::Paused, StatusReason::RateLimited) => "the model server asked to wait",
        (TaskStatus::Paused, StatusReason::ModelOutage) => "the model server does not answer",
        (TaskStatus::Paused, StatusReason::DiskFull) => {
            "no space is left on the disk of its journal"
        }
        (TaskStatus::Cancelled, _) => view.row.detail.as_deref().unwrap_or_default(),
        (_, StatusReason::Deadline) => "deadline passed",
        (_, StatusReason::Timeout) => "time limit reached",
        (_, StatusReason::Dependency) => "a task that it needs did not finish",
        (_, StatusReason::MergeConflict) => "merge conflict",
        (_, _) => "",
    };
    match why {
        "" => format!("{}{until}", state.status),
        why => format!("{} ({}{until})", state.status, shown(why)),
    }
}

/// The axes, each after its name.
fn settings(axes: &Axes) -> String {
    let Axes { work_mode, run_control, permission_profile, model_mode, surface: _ } = axes;
    format!(
        "mode {work_mode}, control {run_control}, profile {permission_profile}, model {model_mode}"
    )
}

fn usage_words(details: &TaskDetails, cost: &str) -> String {
    let usage = &details.state.spending.usage;
    let calls = match details.refused_calls {
        0 => numbers::plural(usage.tool_calls, "call"),
        refused => {
            let all = numbers::plural(usage.tool_calls + refused, "call");
            format!("{all} ({refused} refused)")
        }
    };
    let steps = numbers::plural(usage.iterations, "step");
    let cost = if cost == "unknown" { "cost unknown" } else { cost };
    let tokens = match details.state.spending.own_turns {
        0 if usage.total_tokens == 0 => "no tokens yet".to_owned(),
        _ => numbers::tokens(usage.total_tokens),
    };
    format!("{steps}, {calls}, {tokens}, {cost}")
}

/// One open question, in `inbox` and `show`: what is asked, everything that it approves, and how to answer.
pub fn question_page(asked: &OpenQuestion, age: &str, place: Canvas) -> String {
    let by = sub_agent(asked).unwrap_or_else(|| match &asked.asker {
        Some(task) => format!("{} ({})", task.id, one_line(&shown(&task.goal), GOAL_WIDTH)),
        None => asked.row.task.to_string(),
    });
    let mut lines = question_lines(asked, place);
    lines.push(format!("  asked {age} ago by {by}"));
    lines.extend(answer_with(&asked.row.question).iter().map(|line| format!("  {line}")));
    lines.join("\n")
}

/// A question with everything that it approves.
pub fn question_lines(asked: &OpenQuestion, place: Canvas) -> Vec<String> {
    let call = asked.call.as_ref();
    let call = call.map(|call| Call { tool: &call.tool, arguments: &call.arguments });
    question::lines(&asked.row.question, call, place)
}

/// The sub-agent that asks and whom it works for, where it is not the task that a person has started.
pub fn sub_agent(asked: &OpenQuestion) -> Option<String> {
    let task = asked.sub_agent()?;
    let goal = || one_line(&shown(&task.goal), GOAL_WIDTH);
    let name =
        asked.label.as_deref().map_or_else(goal, |label| one_line(&shown(label), GOAL_WIDTH));
    Some(format!("sub-agent `{name}` of {}", task.root_id))
}

/// One open question as JSON.
pub fn question_json(row: &QuestionRow) -> String {
    json!({ "task_id": row.task, "question": row.question }).to_string()
}
