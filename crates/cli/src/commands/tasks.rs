//! `tasks`: the list of tasks and schedules (MS-120…128).

use clap::Args;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;
use windlass_coordinator::views::{Filter, Overview, ScheduleRow, TaskView};
use windlass_core::id::TaskId;
use windlass_core::shown::{shown, shown_line};
use windlass_core::status::TaskStatus;
use windlass_core::text::{one_line, suffix};
use windlass_term::{Table, numbers};

use super::{AppContext, Execute, Start, schedule};
use crate::args::values::{at_least_one, one_of};
use crate::failure::Failure;
use crate::next_action;
use crate::show::{self, out, out_json, task_page};

/// List tasks, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Tasks {
    /// Only tasks with this status: todo, running, verifying, reviewing, blocked, paused, retrying,
    /// done, failed or cancelled; may be given several times
    #[arg(long, value_name = "STATUS", value_parser = one_of(TaskStatus::ALL, TaskStatus::as_str), hide_possible_values = true)]
    pub status: Vec<TaskStatus>,
    /// List at most this many tasks
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    pub limit: usize,
    /// List all tasks, however many
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass tasks                      the newest 50
  windlass tasks --status blocked     what is stuck
  windlass tasks --all --json         everything, for programs";

impl Execute for Tasks {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        tasks(&start.app()?, &self)
    }
}

/// How wide a goal gets in the list, where there is room.
const GOAL_WIDTH: usize = 60;

/// How narrow it gets.
const LEAST_GOAL_WIDTH: usize = 12;

/// Characters of an id on a terminal: its end names a task well enough, and leaves room.
const SHORT_ID: usize = 7;

/// How wide a question gets below the list.
const QUESTION_WIDTH: usize = 80;

pub(super) fn tasks(app: &AppContext, args: &Tasks) -> Result<u8, Failure> {
    let filter = Filter {
        statuses: args.status.clone(),
        limit: (!args.all).then_some(args.limit),
        ..Filter::default()
    };
    let Overview { tasks, schedules } = Overview::read(&app.service()?, &filter)?;
    if args.json {
        tasks.iter().for_each(|task| out_json(&json(task).to_string()));
        schedules.iter().for_each(|row| out_json(&schedule::json(row).to_string()));
    } else if tasks.is_empty() && !args.status.is_empty() {
        show::note("no such tasks; see all with `windlass tasks`");
    } else if tasks.is_empty() && schedules.is_empty() {
        show::note("no tasks; start one with `windlass run \"…\"`");
    } else {
        print(app, &tasks, &schedules);
    }
    Ok(0)
}

fn print(app: &AppContext, tasks: &[TaskView], schedules: &[ScheduleRow]) {
    let now = app.coordinator.now();
    let headings = ["TASK", "STATUS", "AGE", "TOKENS", "COST", "LAST", "NEXT"];
    let mut table = Table::new(&headings, &[2, 3, 4]);
    let mut goals = vec!["GOAL".to_owned()];
    for task in tasks {
        let row = &task.row;
        table.row(vec![
            id(app, &row.id),
            status_words(task),
            numbers::age(row.created_at, now),
            numbers::count(row.usage.total_tokens),
            cost_words(task),
            format!("#{} {}", row.last_seq, numbers::age(row.updated_at, now)),
            next_action::list_words(&task.next_action()),
        ]);
        goals.push(shown(&row.goal));
    }
    let mut lines = if tasks.is_empty() { Vec::new() } else { with_goals(app, &table, &goals) };
    if let Some(headings) = lines.first_mut() {
        *headings = app.style.results.dim(headings);
    }
    lines.iter().for_each(|line| out(line));
    for task in tasks {
        let below = lines_below(task, &id(app, &task.row.id));
        below.iter().for_each(|line| out(&cut(line, app.style.line_width())));
    }
    for row in schedules {
        let next = row.next_at.as_ref().map(|next| format!(", next {}", schedule::clock(next)));
        out(&format!(
            "  {} {} {}{}: {}",
            row.schedule.id,
            row.state,
            schedule::when(&row.schedule),
            next.unwrap_or_default(),
            schedule::what(row),
        ));
    }
}

/// A line that does not run over the edge of the terminal.
fn cut(line: &str, width: usize) -> String {
    let indent = line.len() - line.trim_start().len();
    format!("{}{}", &line[..indent], one_line(line, width.saturating_sub(indent)))
}

/// A task's id: whole for programs, its end for people.
fn id(app: &AppContext, task: &TaskId) -> String {
    let id = task.to_string();
    match app.style.is_stdout_terminal {
        true => suffix(&id, SHORT_ID).to_owned(),
        false => id,
    }
}

/// The lines of the table, each with as much of its goal as fits behind it.
fn with_goals(app: &AppContext, table: &Table, goals: &[String]) -> Vec<String> {
    let lines = table.lines();
    let before = lines.iter().map(|line| line.width()).max().unwrap_or(0) + 2;
    let room = app.style.line_width().saturating_sub(before);
    let room = room.clamp(LEAST_GOAL_WIDTH, GOAL_WIDTH);
    let joined = lines.iter().zip(goals).map(|(line, goal)| {
        let space = " ".repeat(before - line.width());
        format!("{line}{space}{}", one_line(goal, room)).trim_end().to_owned()
    });
    joined.collect()
}

/// Where a task stands: one in line says so, and one that nobody drives is not running.
fn status_words(task: &TaskView) -> String {
    match task.queue_place {
        Some(place) => format!("queued {place}"),
        None => task_page::status_words(task).to_owned(),
    }
}

/// What a task has cost, and what it may (MS-127).
fn cost_words(task: &TaskView) -> String {
    let spent = task_page::spent(task.cost_usd, task.row.usage.total_tokens);
    match task.row.cost_budget {
        Some(budget) => format!("{spent} of {}", numbers::dollars(budget)),
        None => spent,
    }
}

/// What a task has open: background commands, questions, who works on it.
fn lines_below(task: &TaskView, id: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for (call, command) in &task.background {
        lines.push(format!("  in the background of {id}: {} ({call})", shown_line(command)));
    }
    for row in task.own_questions() {
        let text = one_line(&shown(&row.question.question), QUESTION_WIDTH);
        lines.push(format!("  {id} asks: {text}"));
    }
    if let (Some(pid), Some(worker)) = (task.driven_by, &task.worker) {
        let place = worker.worktree_path.as_deref().unwrap_or(&task.row.workspace);
        let context = worker.context_usage_percent.map(|full| format!(", context {full:.0} %"));
        let model = worker.current_model.as_deref().unwrap_or("-");
        lines.push(format!(
            "  worker {pid} on {id}: {} in {}{}",
            shown_line(model),
            shown_line(place),
            context.unwrap_or_default(),
        ));
    }
    lines
}

fn json(task: &TaskView) -> Value {
    let row = &task.row;
    let mut shown = task_page::task_json(task);
    let also = json!({
        "parent_id": row.parent_id,
        "root_id": row.root_id,
        "driver": row.driver,
        "turns": row.turns,
        "queue_place": task.queue_place,
        "scheduler": task.scheduler.as_ref().map(|scheduler| json!({
            "status": scheduler.status,
            "due_at": scheduler.due_at,
            "claimed_by": scheduler.claimed_by,
            "dispatched_at": scheduler.dispatched_at,
            "consumed_at": scheduler.consumed_at,
            "expires_at": scheduler.expires_at,
        })),
        "worker": task.worker.as_ref().map(|worker| json!({
            "process_pid": worker.process_pid,
            "worktree_path": worker.worktree_path,
            "current_model": worker.current_model,
            "context_usage_percent": worker.context_usage_percent,
            "last_heartbeat_at": worker.last_heartbeat_at,
        })),
        "background": task.background,
        "questions": task.own_questions().map(|row| &row.question).collect::<Vec<_>>(),
        "cost_budget": row.cost_budget,
        "last_checkpoint": {
            "event": row.last_seq,
            "at": row.updated_at,
            "checkpoint_ref": row.checkpoint_ref,
        },
        "next_action": next_action::list_words(&task.next_action()),
        "next_action_at": row.next_action_at,
        "deadline": row.deadline,
        "deadline_action": row.deadline.map(|_| row.deadline_action),
        "resumable": task.is_resumable(),
    });
    if let (Some(shown), Value::Object(also)) = (shown.as_object_mut(), also) {
        shown.extend(also);
    }
    shown
}
