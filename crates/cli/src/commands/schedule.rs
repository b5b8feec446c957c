//! `schedule`: what happens by itself, and when.

use jiff::tz::TimeZone;
use jiff::{Zoned, civil};
use windlass_coordinator::SubmitOptions;
use windlass_coordinator::views::ScheduleRow;
use windlass_core::command::{ExecutionConfig, TaskCommand};
use windlass_core::event::Driver;
use windlass_core::id::{CommandId, ScheduleId, SessionId, TaskId};
use windlass_core::schedule::{Rhythm, Schedule, ScheduleAction, TimeoutAction, time_zone};
use windlass_core::text::one_line;
use windlass_term::{Table, strip_controls};

use super::AppContext;
use crate::args::{self, ScheduleAdd, ScheduleWhat};
use crate::failure::Failure;
use crate::show::{self, out};
use crate::times;

/// How wide the words of a schedule get in a list.
const WORDS_WIDTH: usize = 60;

pub(super) fn schedule(app: &AppContext, args: args::Schedule) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let find = |text: &str| coordinator.schedules().find(text);
    match args.what {
        ScheduleWhat::Add(add) => self::add(app, &add)?,
        ScheduleWhat::List { json } => list(app, json)?,
        ScheduleWhat::Pause { schedule } => {
            let id = find(&schedule)?;
            app.runtime.block_on(coordinator.schedules().pause(id))?;
            show::note(&format!("{id} is paused; go on with `windlass schedule resume {id}`"));
        }
        ScheduleWhat::Resume { schedule } => {
            let id = find(&schedule)?;
            let next = app.runtime.block_on(coordinator.schedules().resume(id))?;
            show::note(&format!("{id} goes on{}", next_words(next.as_ref())));
        }
        ScheduleWhat::Remove { schedule } => {
            let id = find(&schedule)?;
            app.runtime.block_on(coordinator.schedules().remove(id))?;
            show::note(&format!("{id} is removed"));
        }
    }
    Ok(0)
}

fn add(app: &AppContext, args: &ScheduleAdd) -> Result<(), Failure> {
    let coordinator = &app.coordinator;
    let now = coordinator.now();
    let wrong = |error: windlass_core::schedule::RhythmError| {
        Failure::usage(error.to_string(), "see `windlass schedule add --help`")
    };
    let zone = match &args.zone {
        Some(name) => time_zone(name).map_err(wrong)?,
        // One without a name could not be written down.
        None => Some(TimeZone::system())
            .filter(|zone| zone.iana_name().is_some())
            .unwrap_or(TimeZone::UTC),
    };
    let rhythm = rhythm(&args.rhythm)?;
    // Refused here rather than after a task was made for it.
    rhythm.check(&zone).map_err(wrong)?;
    let action = &args.action;
    let (kind, prompt) = match (&action.check, &action.message) {
        (Some(check), _) => (ScheduleAction::Check, Some(check.clone())),
        (None, Some(message)) => (ScheduleAction::Message, Some(message.clone())),
        (None, None) => (ScheduleAction::Start, None),
    };
    let timeout_at = match &args.until {
        Some(until) => Some(times::moment(until, now, &zone)?),
        None => None,
    };
    let workspace = args.workspace.as_ref();
    let workspace = workspace.map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
    let task = match (&args.task, &args.monitor) {
        (Some(task), _) => Some(coordinator.tasks().find(task)?),
        (None, Some(goal)) => Some(watched(app, goal, workspace.clone())?),
        (None, None) => None,
    };
    let schedule = Schedule {
        id: ScheduleId::new(now),
        action: kind,
        task_id: task,
        session_id: args.session.as_deref().map(|text| session(app, text)).transpose()?,
        user_id: Some(app.environment.user()),
        goal: action.start.clone(),
        workspace: workspace.map(|path| path.display().to_string()),
        check_prompt: prompt,
        rhythm,
        time_zone: zone.iana_name().unwrap_or("UTC").to_owned(),
        timeout_at,
        timeout_action: timeout_at.map(|_| args.then.unwrap_or(TimeoutAction::Fail)),
        missed_runs: args.missed,
        created_at: now,
    };
    let id = schedule.id;
    let next = app.runtime.block_on(coordinator.schedules().add(schedule))?;
    if args.json {
        let row = coordinator.schedules().get(id)?;
        row.iter().for_each(|row| out(&json(row).to_string()));
    } else {
        show::note(&format!("{id} is added{}", next_words(next.as_ref())));
        if let Some(task) = task {
            tell_who_drives(app, task)?;
        }
    }
    Ok(())
}

/// A schedule speaks in `windlass serve`, which drives the tasks that were handed to it and no others.
fn tell_who_drives(app: &AppContext, task: TaskId) -> Result<(), Failure> {
    let row = app.coordinator.tasks().get(task)?;
    let words = match row.map(|row| row.driver) {
        Some(Driver::Foreground) => format!("goes on with `windlass resume {task}` only"),
        Some(Driver::Service) | None => "goes on in `windlass serve`".to_owned(),
    };
    show::note(&format!("{task} {words}"));
    Ok(())
}

/// A new task for the service, to be checked on.
fn watched(
    app: &AppContext,
    goal: &str,
    workspace: Option<std::path::PathBuf>,
) -> Result<TaskId, Failure> {
    let now = app.coordinator.now();
    let command = TaskCommand {
        command_id: CommandId::new(now),
        session_id: SessionId::new(now),
        task_id: TaskId::new(now),
        goal: goal.to_owned(),
        constraints: Vec::new(),
        execution_config: ExecutionConfig::default(),
        resume_context: None,
    };
    let user_id = Some(app.environment.user());
    let coordinator = app.service()?;
    let options = SubmitOptions { user_id, workspace, ..coordinator.tasks().default_options() };
    Ok(app.runtime.block_on(coordinator.tasks().submit_command(command, options))?.task)
}

fn rhythm(args: &args::Rhythm) -> Result<Rhythm, Failure> {
    let wrong = |text: &str, form: &str| {
        Failure::usage(format!("`{text}` cannot be read"), format!("write it like `{form}`"))
    };
    match (&args.every, &args.cron, &args.daily, &args.at) {
        (Some(every), ..) => {
            let interval_seconds = times::duration(every)?.as_secs().unsigned_abs();
            Ok(Rhythm::Every { interval_seconds })
        }
        (_, Some(cron), ..) => Ok(Rhythm::Cron { cron: cron.clone() }),
        (_, _, Some(daily), _) => {
            let daily_at = daily.parse().map_err(|_| wrong(daily, "09:30"))?;
            Ok(Rhythm::Daily { daily_at })
        }
        (_, _, _, at) => {
            let at = at.as_deref().unwrap_or_default();
            let once: civil::DateTime = at.parse().map_err(|_| wrong(at, "2026-12-24 18:00"))?;
            Ok(Rhythm::Once { date: once.date(), time: once.time() })
        }
    }
}

fn session(app: &AppContext, text: &str) -> Result<SessionId, Failure> {
    let found = app.coordinator.sessions().find(text)?;
    found.ok_or_else(|| {
        Failure::usage(
            format!("there is no session `{text}`"),
            "list them with `windlass sessions`",
        )
    })
}

fn list(app: &AppContext, as_json: bool) -> Result<(), Failure> {
    let rows = app.coordinator.schedules().list()?;
    if as_json {
        rows.iter().for_each(|row| out(&json(row).to_string()));
    } else if rows.is_empty() {
        show::note("no schedules; add one with `windlass schedule add`");
    } else {
        let mut table = Table::new(&["SCHEDULE", "STATE", "WHEN", "NEXT", "RUNS", "WHAT"], &[4]);
        for row in &rows {
            table.row(vec![
                row.schedule.id.to_string(),
                row.state.to_string(),
                when(&row.schedule),
                row.next_at.as_ref().map(clock).unwrap_or_default(),
                row.runs.to_string(),
                what(row),
            ]);
        }
        table.lines().iter().for_each(|line| out(line));
    }
    Ok(())
}

/// One schedule as JSON: what it is, and where it stands. What starts tasks also has its second name
/// (MS-194).
pub(super) fn json(row: &ScheduleRow) -> serde_json::Value {
    let mut shown = serde_json::json!(row.schedule);
    shown["schedule_id"] = shown["id"].take();
    if let Some(fields) = shown.as_object_mut() {
        fields.remove("id");
    }
    if row.schedule.action == ScheduleAction::Start {
        shown["dispatch"] = "autonomous_dispatch".into();
    }
    shown["state"] = serde_json::json!(row.state);
    shown["next_at"] = serde_json::json!(row.next_at);
    shown["last_at"] = serde_json::json!(row.last_at);
    shown["runs"] = row.runs.into();
    shown["missed"] = row.missed.into();
    if let Some(reason) = &row.ended_reason {
        shown["ended_reason"] = reason.clone().into();
    }
    shown
}

/// What a schedule does, in a few words.
pub(super) fn what(row: &ScheduleRow) -> String {
    let schedule = &row.schedule;
    let words = schedule.goal.as_ref().or(schedule.check_prompt.as_ref());
    let words =
        words.map(|words| one_line(&strip_controls(words), WORDS_WIDTH)).unwrap_or_default();
    match schedule.task_id {
        Some(task) => format!("{} {task}: {words}", schedule.action),
        None => format!("{}: {words}", schedule.action),
    }
}

/// When a schedule does it, in a few words.
pub(super) fn when(schedule: &Schedule) -> String {
    match &schedule.rhythm {
        Rhythm::Every { interval_seconds } => {
            let length = jiff::SignedDuration::from_secs(*interval_seconds as i64);
            format!("every {length:#}")
        }
        Rhythm::Cron { cron } => format!("{cron} {}", schedule.time_zone),
        Rhythm::Daily { daily_at } => {
            format!("daily {} {}", daily_at.strftime("%H:%M"), schedule.time_zone)
        }
        Rhythm::Once { date, .. } => format!("once on {date}"),
    }
}

/// A time by its own clock, as a list shows it.
pub(super) fn clock(at: &Zoned) -> String {
    at.strftime("%F %H:%M:%S %Z").to_string()
}

fn next_words(next: Option<&Zoned>) -> String {
    next.map(|next| format!("; next at {}", clock(next))).unwrap_or_default()
}
