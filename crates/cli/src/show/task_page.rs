//! Lists and pages: tasks, one task, events, questions.

use serde_json::json;
use windlass_coordinator::views::{OpenQuestion, QuestionRow, TaskDetails, TaskView};
use windlass_core::compaction::Level;
use windlass_core::shown::{shown, shown_line};
use windlass_core::state::TaskState;
use windlass_core::status::TaskStatus;
use windlass_core::text::one_line;

use crate::next_action;
use windlass_term::question::{Call, Place};
use windlass_term::usage_line::gauge_text;
use windlass_term::{Paint, numbers, question};

use super::answer_with;

/// How wide a line of a page gets.
const WIDTH: usize = 100;

/// How wide a goal gets behind an id.
const GOAL_WIDTH: usize = 60;

/// How a status reads for a person: running without a driver is not running (§15.5).
pub fn status_words(task: &TaskView) -> &'static str {
    match task.is_interrupted() {
        true => "interrupted",
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

/// What was spent, for a list: a price that nobody knows is not zero.
pub fn spent(dollars: Option<f64>, tokens: u64) -> String {
    match dollars {
        None if tokens > 0 => "-".to_owned(),
        dollars => numbers::dollars(dollars.unwrap_or(0.0)),
    }
}

/// One task on a page, in `show`.
pub fn task_page(details: &TaskDetails, cost: &str) -> String {
    let TaskDetails { view, state, gauge, .. } = details;
    let mut page = format!(
        "{}\n  goal       {}\n  status     {}{}\n  axes       {}\n  workspace  {}\n",
        state.id(),
        one_line(&shown(&state.command().goal), WIDTH),
        status_words(view),
        why(state),
        state.axes,
        shown_line(&state.created.workspace),
    );
    let usage = &state.spending.usage;
    page += &format!(
        "  usage      {}, {}, {} tokens, {cost}\n",
        numbers::plural(usage.iterations, "step"),
        numbers::plural(usage.tool_calls, "call"),
        usage.total_tokens,
    );
    if let Some(gauge) = gauge {
        let words = gauge_text(gauge, Paint { on: false });
        let advice = match gauge.level {
            Level::Ok => String::new(),
            level @ (Level::Warning | Level::Critical) => {
                format!(", {level}: {}", gauge.recommendation)
            }
        };
        page += &format!("  context    {}{advice}\n", &words["context ".len()..]);
    }
    if let Some(error) = &state.error {
        page += &format!("  error      {}: {}\n", error.error_type, shown(&error.message));
    }
    if let Some(command) = next_action::command(&view.next_action(), state.id()) {
        page += &format!("  next       {command}\n");
    }
    for file in state.files.deliverables.values() {
        page += &format!(
            "  delivers   {}: {}\n",
            shown_line(&file.filepath),
            shown_line(&file.description)
        );
    }
    if let Some(plan) = &state.plan {
        page += &format!("\n{}", shown(&plan.markdown()));
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

/// What the agent has put down for itself: its plan and its memos (ES-106).
pub fn working_memory(state: &TaskState) -> serde_json::Value {
    let memos: Vec<_> =
        state.files.known.keys().filter(|path| path.starts_with(".memo/")).collect();
    json!({ "plan": state.plan, "memos": memos })
}

/// One open question, in `inbox` and `show`: what is asked, everything that it approves, and how to answer.
pub fn question_page(asked: &OpenQuestion, age: &str, place: Place) -> String {
    let by = sub_agent(asked).unwrap_or_else(|| match &asked.asker {
        Some(task) => format!("{} ({})", task.id, one_line(&shown(&task.goal), GOAL_WIDTH)),
        None => asked.row.task.to_string(),
    });
    let mut lines = question_lines(asked, place);
    lines.push(format!("  asked {age} ago by {by}"));
    lines.push(format!("  {}", answer_with(&asked.row.question)));
    lines.join("\n")
}

/// A question with everything that it approves.
pub fn question_lines(asked: &OpenQuestion, place: Place) -> Vec<String> {
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
