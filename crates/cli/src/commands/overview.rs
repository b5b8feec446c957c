//! `tasks` and `status`: one view of everything that goes on, waits or is scheduled (MS-120…128).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;
use windlass_core::command::UsageMetrics;
use windlass_core::event::Driver;
use windlass_core::id::{CallId, TaskId};
use windlass_core::schedule::ScheduleState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_core::text::{one_line, suffix};
use windlass_store::{Filter, QuestionRow, RuntimeRow, ScheduleRow, SchedulerRow, TaskRow};
use windlass_term::{Table, numbers, strip_controls};

use super::{Setting, schedule};
use crate::args::{Listing, Tasks};
use crate::failure::Failure;
use crate::show::{self, out, task_page};

/// How wide a goal gets in the list, where there is room.
const GOAL_WIDTH: usize = 60;
/// How narrow it gets.
const LEAST_GOAL_WIDTH: usize = 12;
/// Characters of an id on a terminal: its end names a task well enough, and leaves room.
const SHORT_ID: usize = 7;

/// How wide a question gets below the list.
const QUESTION_WIDTH: usize = 80;

/// A task and everything that is known of it right now.
struct Row {
    task: TaskRow,
    /// What it has cost, where anything is known of that.
    cost: Option<f64>,
    driven: Option<u32>,
    place: Option<usize>,
    scheduler: Option<SchedulerRow>,
    runtime: Option<RuntimeRow>,
    questions: Vec<QuestionRow>,
    /// Whether an agent below it waits for an answer.
    asked_below: bool,
    background: BTreeMap<CallId, String>,
}

pub(super) fn tasks(setting: &Setting, args: &Tasks) -> Result<u8, Failure> {
    let filter = Filter {
        statuses: args.status.clone(),
        limit: (!args.all).then_some(args.limit),
        ..Filter::default()
    };
    let rows = rows(setting, &filter)?;
    let schedules: Vec<_> = match args.status.is_empty() {
        true => setting.coordinator.store().schedules().list()?,
        // Who asks for certain tasks wants nothing else.
        false => Vec::new(),
    };
    let schedules: Vec<_> =
        schedules.into_iter().filter(|row| row.state != ScheduleState::Ended).collect();
    if args.json {
        rows.iter().for_each(|row| out(&row.json().to_string()));
        schedules.iter().for_each(|row| out(&schedule::json(row).to_string()));
    } else if rows.is_empty() && !args.status.is_empty() {
        show::note("no such tasks; see all with `windlass tasks`");
    } else if rows.is_empty() && schedules.is_empty() {
        show::note("no tasks; start one with `windlass run \"…\"`");
    } else {
        print(setting, &rows, &schedules);
    }
    Ok(0)
}

fn rows(setting: &Setting, filter: &Filter) -> Result<Vec<Row>, Failure> {
    let coordinator = &setting.service()?;
    let store = coordinator.store();
    let questions = store.questions().open()?;
    let mut ask_below = BTreeSet::new();
    for asks in questions.iter().map(|one| one.task).collect::<BTreeSet<_>>() {
        ask_below
            .extend(store.tasks().get(asks)?.map(|task| task.root_id).filter(|root| *root != asks));
    }
    let mut rows = Vec::new();
    for mut task in store.tasks().list(filter)? {
        let id = task.id;
        let driven = store.driving_process(id)?;
        let mut background = BTreeMap::new();
        if task.status == TaskStatus::Running {
            let state = coordinator.state(id)?;
            // The list learns the rest of these figures when the segment ends.
            let duration_ms = match driven {
                Some(_) => state.active_ms(coordinator.now()),
                None => state.usage.duration_ms,
            };
            task.usage = UsageMetrics { duration_ms, ..state.usage };
            // They end with whoever drives the task (MS-124).
            background = driven.map(|_| state.background).unwrap_or_default();
        }
        let nothing = task.usage.total_tokens == 0;
        let priced = nothing || task.cost_spent > 0.0 || store.tasks().is_priced(id)?;
        rows.push(Row {
            cost: priced.then_some(task.cost_spent),
            driven,
            place: coordinator.place(id)?,
            scheduler: store.scheduler().get(id)?,
            runtime: store.runtime().get(id)?,
            questions: questions.iter().filter(|one| one.task == id).cloned().collect(),
            asked_below: task.status == TaskStatus::Blocked && ask_below.contains(&id),
            background,
            task,
        });
    }
    Ok(rows)
}

fn print(setting: &Setting, rows: &[Row], schedules: &[ScheduleRow]) {
    let now = setting.coordinator.now();
    let headings = ["TASK", "STATUS", "AGE", "TOKENS", "COST", "LAST", "NEXT"];
    let mut table = Table::new(&headings, &[2, 3, 4]);
    let mut goals = vec!["GOAL".to_owned()];
    for row in rows {
        let task = &row.task;
        table.row(vec![
            id(setting, &task.id),
            row.status_words(),
            numbers::age(task.created_at, now),
            numbers::count(task.usage.total_tokens),
            row.cost(),
            format!("#{} {}", task.last_seq, numbers::age(task.updated_at, now)),
            row.next_action(),
        ]);
        goals.push(strip_controls(&task.goal));
    }
    let mut lines = if rows.is_empty() { Vec::new() } else { with_goals(setting, &table, &goals) };
    if let Some(headings) = lines.first_mut() {
        *headings = setting.style.results.dim(headings);
    }
    lines.iter().for_each(|line| out(line));
    for row in rows {
        let below = row.below(&id(setting, &row.task.id));
        below.iter().for_each(|line| out(&cut(line, setting.style.line_width())));
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
fn id(setting: &Setting, task: &TaskId) -> String {
    let id = task.to_string();
    match setting.style.is_stdout_terminal {
        true => suffix(&id, SHORT_ID).to_owned(),
        false => id,
    }
}

/// The lines of the table, each with as much of its goal as fits behind it.
fn with_goals(setting: &Setting, table: &Table, goals: &[String]) -> Vec<String> {
    let lines = table.lines();
    let before = lines.iter().map(|line| line.width()).max().unwrap_or(0) + 2;
    let room = setting.style.line_width().saturating_sub(before);
    let room = room.clamp(LEAST_GOAL_WIDTH, GOAL_WIDTH);
    let joined = lines.iter().zip(goals).map(|(line, goal)| {
        let space = " ".repeat(before - line.width());
        format!("{line}{space}{}", one_line(goal, room)).trim_end().to_owned()
    });
    joined.collect()
}

impl Row {
    /// Where it stands: a task in line says so, and one that nobody drives is not running.
    fn status_words(&self) -> String {
        match self.place {
            Some(place) => format!("queued {place}"),
            None => task_page::status_words(self.task.status, self.driven).to_owned(),
        }
    }

    /// What it has cost, and what it may (MS-127).
    fn cost(&self) -> String {
        let spent = task_page::spent(self.cost, self.task.usage.total_tokens);
        match self.task.cost_budget {
            Some(budget) => format!("{spent} of {}", numbers::dollars(budget)),
            None => spent,
        }
    }

    /// What comes next, or what a person can do (MS-125, MS-128).
    fn next_action(&self) -> String {
        let task = &self.task;
        if !self.questions.is_empty() || self.asked_below {
            return "answer".to_owned();
        }
        match (task.status, task.reason) {
            (TaskStatus::Todo, _) if !task.dependency_blockers.is_empty() => {
                format!("after {} others", task.dependency_blockers.len())
            }
            (TaskStatus::Todo, _) if task.driver == Driver::Service => "start".to_owned(),
            (TaskStatus::Paused, StatusReason::Schedule) => match &task.next_action_at {
                Some(next) => format!("check {}", next.strftime("%H:%M:%S")),
                None => "resume".to_owned(),
            },
            (TaskStatus::Paused, StatusReason::RateLimited) => match &task.next_action_at {
                Some(next) => {
                    let next = next.with_time_zone(jiff::tz::TimeZone::system());
                    format!("waits until {}", next.strftime("%F %H:%M"))
                }
                None => "resume".to_owned(),
            },
            (TaskStatus::Paused, StatusReason::AwaitingMessage) => "send".to_owned(),
            (TaskStatus::Todo | TaskStatus::Paused | TaskStatus::Blocked, _) => "resume".to_owned(),
            (TaskStatus::Failed, _) if task.retry_count < task.max_retries => "retry".to_owned(),
            (TaskStatus::Done | TaskStatus::Failed | TaskStatus::Cancelled, _) => String::new(),
            (TaskStatus::Running | TaskStatus::Verifying | TaskStatus::Retrying, _)
                if self.driven.is_none() =>
            {
                "resume".to_owned()
            }
            (TaskStatus::Reviewing, _) => "review".to_owned(),
            (TaskStatus::Running | TaskStatus::Verifying | TaskStatus::Retrying, _) => {
                match &task.deadline {
                    Some(deadline) => format!("due {deadline:.0}"),
                    None => "works".to_owned(),
                }
            }
        }
    }

    /// What it has open: background commands, questions, who works on it.
    fn below(&self, task: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for (call, command) in &self.background {
            lines.push(format!(
                "  in the background of {task}: {} ({call})",
                strip_controls(command)
            ));
        }
        for row in &self.questions {
            let text = one_line(&strip_controls(&row.question.question), QUESTION_WIDTH);
            lines.push(format!("  {task} asks: {text}"));
        }
        if let (Some(pid), Some(runtime)) = (self.driven, &self.runtime) {
            let place = runtime.worktree_path.as_deref().unwrap_or(&self.task.workspace);
            let context =
                runtime.context_usage_percent.map(|full| format!(", context {full:.0} %"));
            let model = runtime.current_model.as_deref().unwrap_or("-");
            lines.push(format!(
                "  worker {pid} on {task}: {} in {}{}",
                strip_controls(model),
                strip_controls(place),
                context.unwrap_or_default(),
            ));
        }
        lines
    }

    fn json(&self) -> Value {
        let task = &self.task;
        let mut shown = task_page::task_json(task, self.driven, self.cost);
        let also = json!({
            "parent_id": task.parent_id,
            "root_id": task.root_id,
            "driver": task.driver,
            "turns": task.turns,
            "queue_place": self.place,
            "scheduler": self.scheduler.as_ref().map(|row| json!({
                "status": row.status,
                "due_at": row.due_at,
                "claimed_by": row.claimed_by,
                "dispatched_at": row.dispatched_at,
                "consumed_at": row.consumed_at,
                "expires_at": row.expires_at,
            })),
            "worker": self.runtime.as_ref().map(|runtime| json!({
                "process_pid": runtime.process_pid,
                "worktree_path": runtime.worktree_path,
                "current_model": runtime.current_model,
                "context_usage_percent": runtime.context_usage_percent,
                "last_heartbeat_at": runtime.last_heartbeat_at,
            })),
            "background": self.background,
            "questions": self.questions.iter().map(|row| &row.question).collect::<Vec<_>>(),
            "cost_budget": task.cost_budget,
            "last_checkpoint": {
                "event": task.last_seq,
                "at": task.updated_at,
                "checkpoint_ref": task.checkpoint_ref,
            },
            "next_action": self.next_action(),
            "next_action_at": task.next_action_at,
            "deadline": task.deadline,
            "deadline_action": task.deadline.map(|_| task.deadline_action),
            "resumable": self.is_resumable(),
        });
        if let (Some(shown), Value::Object(also)) = (shown.as_object_mut(), also) {
            shown.extend(also);
        }
        shown
    }

    /// Whether it stands still until a person goes on with it (MS-125).
    fn is_resumable(&self) -> bool {
        let live = !self.task.status.is_terminal();
        live && self.driven.is_none() && self.place.is_none() && !self.goes_on_by_itself()
    }

    /// Whether it is parked until a certain time.
    fn goes_on_by_itself(&self) -> bool {
        let by_time = matches!(
            (self.task.status, self.task.reason),
            (TaskStatus::Paused, StatusReason::Schedule | StatusReason::RateLimited)
        );
        by_time && self.task.next_action_at.is_some()
    }
}

/// How much goes on and how much may (MS-207).
pub(super) fn status(setting: &Setting, args: &Listing) -> Result<u8, Failure> {
    let store = setting.coordinator.store();
    let config = setting.surroundings.config(std::path::Path::new("."))?;
    let live = rows(setting, &Filter { live: true, ..Filter::default() })?;
    let driven = live.iter().filter(|row| row.driven.is_some()).count();
    let queued = live.iter().filter(|row| row.place.is_some()).count();
    let resumable = live.iter().filter(|row| row.is_resumable()).count();
    let questions = store.questions().open()?.len();
    let schedules = store.schedules().list()?;
    let active = schedules.iter().filter(|row| row.state == ScheduleState::Active).count();
    // Where nothing is known of any, nothing is known.
    let known = live.iter().filter_map(|row| row.cost);
    let cost = known.reduce(|sum, cost| sum + cost).or_else(|| live.is_empty().then_some(0.0));
    let tokens: u64 = live.iter().map(|row| row.task.usage.total_tokens).sum();
    let hours = config.agent.autonomous_max_hours.as_secs_f64() / 3600.0;
    let shown = json!({
        "live_tasks": live.len(),
        "running": driven,
        "queued": queued,
        "resumable": resumable,
        "questions": questions,
        "schedules": active,
        "next_scheduled_at": store.schedules().next_due()?,
        "cost_usd": cost,
        "limits": {
            "autonomous_max_tasks": config.agent.autonomous_max_tasks,
            "autonomous_max_hours": hours,
            "max_concurrent_tasks": config.coordinator.max_concurrent_tasks,
            "max_sessions": config.coordinator.max_sessions,
            "budget_usd": config.agent.budget_usd,
        },
    });
    if args.json {
        out(&shown.to_string());
        return Ok(0);
    }
    out(&format!("tasks       {} live, {driven} running, {queued} queued", live.len()));
    out(&format!("waiting     {resumable} to be resumed, {questions} questions"));
    let next = store.schedules().next_due()?.map(|next| format!(", next at {next:.0}"));
    out(&format!("schedules   {active} active{}", next.unwrap_or_default()));
    let spent = match task_page::spent(cost, tokens).as_str() {
        "-" => "of live tasks unknown".to_owned(),
        spent => format!("{spent} of live tasks"),
    };
    out(&format!("cost        {spent}"));
    out(&format!(
        "autonomous  at most {} tasks and {hours} hours",
        config.agent.autonomous_max_tasks
    ));
    out(&format!(
        "service     at most {} tasks a session and {} sessions a user",
        config.coordinator.max_concurrent_tasks, config.coordinator.max_sessions
    ));
    Ok(0)
}
