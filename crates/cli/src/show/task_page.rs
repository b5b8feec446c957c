//! Lists and pages: tasks, one task, events, questions.

use serde_json::json;
use windlass_core::command::HitlRequest;
use windlass_core::compaction::{Gauge, Level};
use windlass_core::event::{Driver, Event, Record};
use windlass_core::state::TaskState;
use windlass_core::status::TaskStatus;
use windlass_core::text::one_line;
use windlass_store::{QuestionRow, TaskRow};

use windlass_term::usage_line::{context_limits, gauge_text};
use windlass_term::{Paint, numbers, question, strip_controls};

use super::answer_with;

/// How wide a line of a page gets.
const WIDTH: usize = 100;

/// How wide a goal gets behind an id.
const GOAL_WIDTH: usize = 60;

/// How a status reads for a person: running without a driver is not running (§15.5).
pub fn status_words(status: TaskStatus, driven: Option<u32>) -> &'static str {
    match (status, driven) {
        (TaskStatus::Running | TaskStatus::Verifying | TaskStatus::Retrying, None) => "interrupted",
        (status, _) => status.as_str(),
    }
}

/// One task as JSON.
pub fn task_json(row: &TaskRow, driven: Option<u32>, cost: Option<f64>) -> serde_json::Value {
    json!({
        "task_id": row.id,
        "session_id": row.session_id,
        "goal": row.goal,
        "status": row.status,
        "status_reason": row.reason,
        "interrupted": status_words(row.status, driven) == "interrupted",
        "driven_by": driven,
        "workspace": row.workspace,
        "model": row.model,
        "usage": row.usage,
        "cost_usd": cost,
        "created_at": row.created_at,
    })
}

/// What was spent, for a list: a price that nobody knows is not zero.
pub fn spent(dollars: Option<f64>, tokens: u64) -> String {
    match dollars {
        None if tokens > 0 => "-".to_owned(),
        dollars => numbers::dollars(dollars.unwrap_or(0.0)),
    }
}

/// One task on a page, in `show`.
pub fn task_page(
    state: &TaskState,
    driven: Option<u32>,
    gauge: Option<Gauge>,
    cost: &str,
    open: &[QuestionRow],
) -> String {
    let mut page = format!(
        "{}\n  goal       {}\n  status     {}{}\n  axes       {}\n  workspace  {}\n",
        state.id(),
        one_line(&strip_controls(&state.command().goal), WIDTH),
        status_words(state.status, driven),
        why(state),
        state.axes,
        strip_controls(&state.created.workspace),
    );
    let usage = &state.usage;
    page += &format!(
        "  usage      {} rounds, {} calls, {} tokens, {cost}\n",
        usage.iterations, usage.tool_calls, usage.total_tokens,
    );
    if let Some(gauge) = gauge {
        let words = gauge_text(&gauge, Paint { on: false });
        let advice = match gauge.level {
            Level::Ok => String::new(),
            level @ (Level::Warning | Level::Critical) => {
                format!(", {level}: {}", gauge.recommendation)
            }
        };
        page += &format!("  context    {}{advice}\n", &words["context ".len()..]);
    }
    if let Some(error) = &state.error {
        page += &format!("  error      {}: {}\n", error.error_type, strip_controls(&error.message));
    }
    for row in open {
        let text = one_line(&strip_controls(&row.question.question), WIDTH);
        let by = match row.task == state.id() {
            true => String::new(),
            false => format!(", asked by sub-agent {}", row.task),
        };
        page += &format!("  question   {text} ({}{by})\n", row.question.id);
    }
    if let Some(command) = next_command(state, driven, open) {
        page += &format!("  next       {command}\n");
    }
    for file in state.deliverables.values() {
        page += &strip_controls(&format!("  delivers   {}: {}\n", file.filepath, file.description));
    }
    if let Some(plan) = &state.plan {
        page += &format!("\n{}", strip_controls(&plan.markdown()));
    }
    page.trim_end().to_owned()
}

/// Why it stands there; at work it needs no reason.
fn why(state: &TaskState) -> String {
    let until = state.until.map(|until| {
        let clock = until.to_zoned(jiff::tz::TimeZone::system()).strftime("%F %H:%M:%S");
        format!(", until {clock}")
    });
    match state.status {
        TaskStatus::Running => String::new(),
        _ => format!(" ({}{})", state.reason, until.unwrap_or_default()),
    }
}

/// The command with which a person goes on with a task that stands still.
fn next_command(state: &TaskState, driven: Option<u32>, open: &[QuestionRow]) -> Option<String> {
    let task = state.id();
    if let Some(row) = open.first() {
        return Some(format!("windlass answer {} \"…\" --resume", row.question.id));
    }
    match state.status {
        _ if driven.is_some() => Some(format!("windlass events {task} --follow")),
        TaskStatus::Done | TaskStatus::Cancelled => None,
        TaskStatus::Failed => {
            let possible = state.retries < state.created.max_retries;
            possible.then(|| format!("windlass retry {task}"))
        }
        // A service starts it.
        TaskStatus::Todo if state.created.driver == Driver::Service => None,
        TaskStatus::Todo
        | TaskStatus::Running
        | TaskStatus::Verifying
        | TaskStatus::Reviewing
        | TaskStatus::Blocked
        | TaskStatus::Paused
        | TaskStatus::Retrying => Some(format!("windlass resume {task}")),
    }
}

/// What the agent has put down for itself: its plan and its memos (ES-106).
pub fn working_memory(state: &TaskState) -> serde_json::Value {
    let memos: Vec<_> =
        state.known_files.keys().filter(|path| path.starts_with(".memo/")).collect();
    json!({ "plan": state.plan, "memos": memos })
}

/// How full the context of a task is, by its journal (PL-034).
pub fn gauge(records: &[Record], state: &TaskState) -> Option<Gauge> {
    let limits = records.iter().rev().find_map(|record| match &record.event {
        Event::AgentStart(start) => context_limits(start),
        _ => None,
    })?;
    Some(limits.gauge(state.last_tokens))
}

/// One open question, in `inbox`: what is asked, about what, and how to answer.
pub fn question_page(row: &QuestionRow, asks: Option<&TaskRow>, age: &str) -> String {
    let asked = &row.question;
    let by = match asks {
        Some(task) if task.parent_id.is_some() => sub_agent(task),
        Some(task) => {
            format!("{} ({})", task.id, one_line(&strip_controls(&task.goal), GOAL_WIDTH))
        }
        None => row.task.to_string(),
    };
    let mut lines = vec![format!("{}  {}", asked.id, strip_controls(&asked.question))];
    lines.extend(question::details(asked.context.as_deref(), &asked.options));
    lines.push(format!("  asked {age} ago by {by}"));
    lines.push(format!("  {}", answer_with(&HitlRequest::from(asked))));
    lines.join("\n")
}

/// A sub-agent, and whom it works for.
pub fn sub_agent(task: &TaskRow) -> String {
    let goal = one_line(&strip_controls(&task.goal), GOAL_WIDTH);
    format!("sub-agent {} ({goal}) of {}", task.id, task.root_id)
}

/// One open question as JSON.
pub fn question_json(row: &QuestionRow) -> String {
    json!({ "task_id": row.task, "question": row.question }).to_string()
}
