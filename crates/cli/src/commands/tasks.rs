//! `tasks`: the list of tasks and schedules (MS-120…128).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;
use windlass_coordinator::views::{
    Filter, OpenQuestion, Overview, ScheduleRow, TaskLine, TaskView, in_families,
};
use windlass_core::id::CallId;
use windlass_core::question::QuestionKind;
use windlass_core::shown::{shown, shown_line};
use windlass_core::status::TaskStatus;
use windlass_core::text::{one_line, suffix};
use windlass_skills::skill_of_goal;
use windlass_term::{Table, numbers, tool_lines};

use super::{AppContext, Execute, Start, schedule};
use crate::args::values::{at_least_one, one_of};
use crate::failure::Failure;
use crate::next_action;
use crate::show::{self, SHORT_ID, out, out_json, task_page};

/// List tasks, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Tasks {
    /// Only tasks with this status; may be repeated: todo, running, verifying, reviewing, blocked, paused,
    /// retrying, done, failed or cancelled
    #[arg(long, value_name = "STATUS", value_parser = one_of(TaskStatus::ALL, TaskStatus::as_str), hide_possible_values = true)]
    pub status: Vec<TaskStatus>,
    /// Only tasks that work in this directory, or in one above or below it
    #[arg(long)]
    pub here: bool,
    /// List at most this many tasks
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one, allow_hyphen_values = true)]
    pub limit: usize,
    /// List all tasks, however many
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass tasks                      the newest 50
  windlass tasks --here               those of this directory
  windlass tasks --status blocked     what is stuck
  windlass tasks --all --json         everything, for programs";

impl Execute for Tasks {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        tasks(&start.app()?, &self)
    }
}

/// How wide a goal gets in the list, where there is room.
const GOAL_WIDTH: usize = 60;

/// How narrow it gets before other columns are left out.
const LEAST_GOAL_WIDTH: usize = 16;

/// How much of a call is shown that waits for an answer.
const CALL_WIDTH: usize = 60;

/// How much of a directory is shown, from its end.
const DIRECTORY_WIDTH: usize = 24;

/// Columns that a narrow terminal does without, in this order.
const OPTIONAL: [&str; 5] = ["LAST", "TOKENS", "COST", "DIRECTORY", "AGE"];

pub(super) fn tasks(app: &AppContext, args: &Tasks) -> Result<u8, Failure> {
    let filter = Filter {
        statuses: args.status.clone(),
        limit: (!args.all).then_some(args.limit),
        ..Filter::default()
    };
    let Overview { mut tasks, mut schedules } = Overview::read(&app.service()?, &filter)?;
    if args.here {
        tasks = tasks_here(app, &filter)?;
        let directory = std::env::current_dir().context("the current directory cannot be read")?;
        let is_here = |place: &String| Path::new(place).starts_with(&directory);
        schedules.retain(|row| row.schedule.workspace.as_ref().is_some_and(is_here));
    }
    if args.json {
        tasks.iter().for_each(|task| out_json(&json(task).to_string()));
        schedules.iter().for_each(|row| out_json(&schedule::json(row).to_string()));
    } else if tasks.is_empty() && (args.here || !args.status.is_empty()) {
        show::note("no such tasks; see all with `windlass tasks`");
    } else if tasks.is_empty() && schedules.is_empty() {
        show::note("no tasks; start one with `windlass run \"…\"`");
    } else {
        let tasks = in_families(tasks);
        print(app, &tasks, questions(app, &tasks)?, &schedules);
    }
    Ok(0)
}

/// The tasks of this directory, of those above it within the home directory, and of those below it.
fn tasks_here(app: &AppContext, filter: &Filter) -> Result<Vec<TaskView>, Failure> {
    let directory = std::env::current_dir().context("the current directory cannot be read")?;
    let home = app.environment.variables.get("HOME").map(PathBuf::from);
    let above = |place: &Path| {
        place == directory || (directory.starts_with(place) && Some(place) != home.as_deref())
    };
    let all = Filter { limit: None, ..filter.clone() };
    let service = app.service()?;
    let mut places: Vec<_> =
        service.tasks().rows(&all)?.into_iter().map(|row| row.workspace).collect();
    places.sort();
    places.dedup();
    let mut found = Vec::new();
    for place in places {
        let path = Path::new(&place);
        if path != Path::new("/") && (above(path) || path.starts_with(&directory)) {
            let there = Filter { workspace: Some(place), ..filter.clone() };
            found.extend(service.tasks().list(&there)?);
        }
    }
    found.sort_by_key(|task| std::cmp::Reverse(task.row.created_at));
    found.truncate(filter.limit.unwrap_or(usize::MAX));
    Ok(found)
}

fn print(app: &AppContext, tasks: &[TaskLine], questions: Vec<String>, schedules: &[ScheduleRow]) {
    if !tasks.is_empty() {
        print_lines(app, table(app, tasks));
    }
    let all = |each: fn(&TaskView, &str) -> Vec<String>| -> Vec<String> {
        tasks.iter().flat_map(|one| each(&one.task, &id(app, &one.task.row.id))).collect()
    };
    section(app, "Questions", questions);
    section(app, "Workers", all(workers));
    section(app, "Background commands", all(background));
    section(app, "Schedules", schedules.iter().map(schedule_line).collect());
}

/// Prints the lines of a table, its headings dimmed.
pub(super) fn print_lines(app: &AppContext, lines: Vec<String>) {
    for (number, line) in lines.iter().enumerate() {
        out(&if number == 0 { app.style.results.dim(line) } else { line.clone() });
    }
}

/// Lines under a heading, cut at the edge of the terminal.
fn section(app: &AppContext, title: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    out(&format!("\n{}", app.style.results.bold(title)));
    for line in lines {
        out(&format!("  {}", one_line(&line, app.style.line_width().saturating_sub(2))));
    }
}

/// The lines of the table, headings first.
fn table(app: &AppContext, tasks: &[TaskLine]) -> Vec<String> {
    let now = app.coordinator.now();
    let home = app.environment.variables.get("HOME").map_or("", String::as_str);
    let columns: Columns = vec![
        (
            "TASK",
            column(tasks, |one| format!("{}{}", "  ".repeat(one.depth), id(app, &one.task.row.id))),
        ),
        ("STATUS", column(tasks, |one| status_words(&one.task))),
        ("AGE", column(tasks, |one| numbers::age(one.task.row.created_at, now))),
        (
            "TOKENS",
            column(tasks, |one| match one.task.row.usage.total_tokens {
                0 => "-".to_owned(),
                tokens => numbers::count(tokens),
            }),
        ),
        ("COST", column(tasks, |one| cost_words(&one.task))),
        (
            "LAST",
            column(tasks, |one| format!("{} ago", numbers::age(one.task.row.updated_at, now))),
        ),
        ("DIRECTORY", column(tasks, |one| directory(&one.task.row.workspace, home))),
        ("NEXT", column(tasks, |one| next_action::list_words(&one.task.next_action()))),
    ];
    let goals = tasks.iter().map(|one| one.task.row.goal.as_str()).collect();
    with_goals(app, columns, &OPTIONAL, goals)
}

/// Columns by their headings.
pub(super) type Columns = Vec<(&'static str, Vec<String>)>;

/// The lines of a table, headings first, each with as much of its goal as fits beside it. A terminal that is too narrow for
/// all columns does without the optional ones, in their order.
pub(super) fn with_goals(
    app: &AppContext,
    mut columns: Columns,
    optional: &[&str],
    goals: Vec<&str>,
) -> Vec<String> {
    let room = app.style.line_width();
    let mut left_out = optional.iter();
    let (lines, before) = loop {
        let lines = laid_out(&columns);
        let before = lines.iter().map(|line| line.width()).max().unwrap_or(0) + 2;
        match left_out.next() {
            Some(name) if app.style.is_stdout_terminal && before + LEAST_GOAL_WIDTH > room => {
                columns.retain(|(heading, _)| heading != name);
            }
            _ => break (lines, before),
        }
    };
    let width = room.saturating_sub(before).clamp(LEAST_GOAL_WIDTH, GOAL_WIDTH);
    let goals = std::iter::once("GOAL".to_owned()).chain(goals.into_iter().map(goal_line));
    let joined = lines.iter().zip(goals).map(|(line, goal)| {
        let space = " ".repeat(before - line.width());
        format!("{line}{space}{}", one_line(&goal, width)).trim_end().to_owned()
    });
    joined.collect()
}

/// A goal in a list: its first line, or the skill that it follows, as a person calls it.
fn goal_line(goal: &str) -> String {
    match skill_of_goal(goal) {
        Some(skill) => shown_line(&format!("/{skill}")),
        None => shown(goal.trim()),
    }
}

fn column(tasks: &[TaskLine], cell: impl Fn(&TaskLine) -> String) -> Vec<String> {
    tasks.iter().map(cell).collect()
}

fn laid_out(columns: &[(&str, Vec<String>)]) -> Vec<String> {
    let headings: Vec<_> = columns.iter().map(|(heading, _)| *heading).collect();
    let is_number = |heading: &str| matches!(heading, "AGE" | "TOKENS" | "COST" | "LAST" | "TASKS");
    let right: Vec<_> = (0..headings.len()).filter(|&at| is_number(headings[at])).collect();
    let mut table = Table::new(&headings, &right);
    for row in 0..columns.first().map_or(0, |(_, cells)| cells.len()) {
        table.row(columns.iter().map(|(_, cells)| cells[row].clone()).collect());
    }
    table.lines()
}

/// The end of a directory's path, the home directory as `~`.
pub(super) fn directory(workspace: &str, home: &str) -> String {
    let path = shown_line(workspace);
    let below = path.strip_prefix(home).filter(|rest| !home.is_empty() && rest.starts_with('/'));
    let path = below.map(|rest| format!("~{rest}")).unwrap_or(path);
    match path.chars().count() {
        0..=DIRECTORY_WIDTH => path,
        _ => format!("…{}", suffix(&path, DIRECTORY_WIDTH - 1)),
    }
}

/// The id of a task or a session: whole for programs, its end for people.
pub(super) fn id(app: &AppContext, id: &impl ToString) -> String {
    let id = id.to_string();
    match app.style.is_stdout_terminal {
        true => suffix(&id, SHORT_ID).to_owned(),
        false => id,
    }
}

/// Where a task stands: one in line says so, and one that nobody drives is not running.
fn status_words(task: &TaskView) -> String {
    match task.queue_place {
        Some(place) => format!("queued {place}"),
        None if task.is_answered() => "answered".to_owned(),
        None => task_page::status_words(task).to_owned(),
    }
}

/// What a task has cost, and what it may (MS-127).
fn cost_words(task: &TaskView) -> String {
    let spent = task_page::spending(task.cost_usd);
    match task.row.cost_budget {
        Some(budget) => format!("{spent} of {}", numbers::dollars(budget)),
        None => spent,
    }
}

/// What the listed tasks ask, and about which command or file.
fn questions(app: &AppContext, tasks: &[TaskLine]) -> Result<Vec<String>, Failure> {
    let listed: BTreeSet<_> = tasks.iter().map(|one| one.task.row.id).collect();
    let open = app.coordinator.inbox().open()?.into_iter();
    let line = |asked: OpenQuestion| {
        let is_permission = asked.row.question.kind == QuestionKind::Permission;
        let call = asked.call.filter(|_| is_permission);
        let call = call.map(|call| tool_lines::call(&call.tool, &call.arguments, CALL_WIDTH));
        // What is asked about comes first: the reason may be cut at the edge of the terminal.
        let about = call.map(|call| format!("{call}  ")).unwrap_or_default();
        format!("{}  {about}{}", id(app, &asked.row.task), shown_line(&asked.row.question.question))
    };
    Ok(open.filter(|asked| listed.contains(&asked.row.task)).map(line).collect())
}

/// Who works on a task, with which model.
fn workers(task: &TaskView, id: &str) -> Vec<String> {
    let (Some(pid), Some(worker)) = (task.driven_by, &task.worker) else { return Vec::new() };
    let place = worker.worktree_path.as_deref().unwrap_or(&task.row.workspace);
    let context = worker.context_usage_percent.map(|full| format!(", context {full:.0} % full"));
    let model = worker.current_model.as_deref().unwrap_or("no model yet");
    vec![format!(
        "{id}  process {pid}: {} in {}{}",
        shown_line(model),
        shown_line(place),
        context.unwrap_or_default(),
    )]
}

/// The commands that run in a task's background.
fn background(task: &TaskView, id: &str) -> Vec<String> {
    let line =
        |(call, command): (&CallId, &String)| format!("{id}  {} ({call})", shown_line(command));
    task.background.iter().map(line).collect()
}

fn schedule_line(row: &ScheduleRow) -> String {
    let next = row.next_at.as_ref().map(|next| format!(", next {}", schedule::clock(next)));
    format!(
        "{} {} {}{}: {}",
        row.schedule.id,
        row.state,
        schedule::when(&row.schedule),
        next.unwrap_or_default(),
        schedule::describe(row),
    )
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
        "answered": task.is_answered(),
    });
    if let (Some(shown), Value::Object(also)) = (shown.as_object_mut(), also) {
        shown.extend(also);
    }
    shown
}
