//! `schedule`: checks, messages and tasks at set times.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use jiff::{Zoned, civil};
use windlass_coordinator::SubmitOptions;
use windlass_coordinator::views::ScheduleRow;
use windlass_core::command::{Outage, TaskCommand};
use windlass_core::event::Driver;
use windlass_core::id::{ScheduleId, SessionId, TaskId};
use windlass_core::schedule::{Missed, Rhythm, Schedule, ScheduleAction, TimeoutAction, time_zone};
use windlass_core::shown::shown;
use windlass_core::text::one_line;
use windlass_term::Table;

use super::{AppContext, Execute, Start, follow_up, mail};
use crate::args::values::{self, one_of};
use crate::failure::Failure;
use crate::show::{self, out, out_json};
use crate::times;
use crate::wiring::place;

/// Schedule checks, messages and tasks
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Schedules {
    /// What to do
    #[command(subcommand)]
    pub action: SchedulesAction,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule add --monitor \"watch the build\" --check \"green?\" --every 10m
  windlass schedule add --task 7K2M --check \"green?\" --every 10m --until 8h
  windlass schedule add --start \"write a report\" --cron \"30 9 * * 1\" --zone UTC
  windlass schedule add --task 7K2M --message \"wrap up\" --at \"2026-12-24 18:00\"
  windlass schedule list
  windlass schedule pause 9QX4        and `resume`, and `remove`

A running `windlass serve` carries schedules out. A task is paused between its
checks and costs nothing. If clocks skip an hour in spring, `--cron` skips times
within it and `--daily` takes the moment after it.";

impl Execute for Schedules {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        schedule(&start.app_for_work()?, self)
    }
}

/// What to do with schedules.
#[derive(Debug, Subcommand)]
pub enum SchedulesAction {
    /// Add a schedule; a running `windlass serve` carries it out
    Add(Box<ScheduleAdd>),
    /// List schedules; those that have ended come last
    List {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Pause a schedule
    Pause {
        /// The schedule: its id or any unique suffix of it
        schedule: String,
    },
    /// Resume a schedule with its next run
    Resume {
        /// The schedule: its id or any unique suffix of it
        schedule: String,
    },
    /// Remove a schedule for good
    Remove {
        /// The schedule: its id or any unique suffix of it
        schedule: String,
    },
}

/// Arguments of `schedule add`.
#[derive(Debug, Args)]
#[command(override_usage = ADD_USAGE)]
pub struct ScheduleAdd {
    /// What it does
    #[command(flatten)]
    pub action: ActionArgs,
    /// When it does it
    #[command(flatten)]
    pub rhythm: RhythmArgs,
    /// The task that is checked or gets the message
    #[arg(long, value_name = "TASK", required_unless_present_any = ["start", "session", "monitor"])]
    pub task: Option<String>,
    /// A new task with this goal, to be checked
    #[arg(long, value_name = "GOAL", requires = "check", conflicts_with_all = ["task", "session"])]
    pub monitor: Option<String>,
    /// The session whose active task gets the message, or that started tasks belong to
    #[arg(long, value_name = "SESSION", conflicts_with = "check")]
    pub session: Option<String>,
    /// The directory that new tasks work in [default: this one]
    #[arg(long, value_name = "DIR", conflicts_with = "task", value_parser = values::directory())]
    pub workspace: Option<PathBuf>,
    /// The time zone of its times [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// When the checks end: a time, or how long from now
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// What happens to the task then: complete or fail
    #[arg(long, value_name = "ACTION", requires = "until", value_parser = one_of(TimeoutAction::ALL, TimeoutAction::as_str), hide_possible_values = true)]
    pub then: Option<TimeoutAction>,
    /// What happens to runs that were missed while no service ran: skip or run_once
    #[arg(long, value_name = "POLICY", default_value = "run_once", value_parser = one_of(Missed::ALL, Missed::as_str), hide_possible_values = true)]
    pub missed: Missed,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Which options need which is more than a parser's own line says.
const ADD_USAGE: &str = "\
windlass schedule add --start <GOAL> <WHEN>
       windlass schedule add --task <TASK> --check <PROMPT> <WHEN>
       windlass schedule add --task <TASK> --message <TEXT> <WHEN>
       windlass schedule add --monitor <GOAL> --check <PROMPT> <WHEN>
       windlass schedule add --session <SESSION> --message <TEXT> <WHEN>

WHEN is one of --every, --cron, --daily and --at";

/// What a schedule does.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct ActionArgs {
    /// Ask a task to check whether what it waits for has happened; it is paused in between
    #[arg(long, value_name = "PROMPT")]
    pub check: Option<String>,
    /// Send a message to a task
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Start a task with this goal
    #[arg(long, value_name = "GOAL")]
    pub start: Option<String>,
}

/// When a schedule does it.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct RhythmArgs {
    /// At an interval: `90s`, `10m`, `PT1H`
    #[arg(long, value_name = "DURATION")]
    pub every: Option<String>,
    /// By a cron line of five fields; a time that clocks skip in spring is skipped
    #[arg(long, value_name = "LINE")]
    pub cron: Option<String>,
    /// Every day at a local time
    #[arg(long, value_name = "HH:MM")]
    pub daily: Option<String>,
    /// Once, at a local date and time
    #[arg(long, value_name = "DATE TIME")]
    pub at: Option<String>,
}

/// How wide the words of a schedule get in a list.
const WORDS_WIDTH: usize = 60;

pub(super) fn schedule(app: &AppContext, args: Schedules) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let find = |text: &str| coordinator.schedules().find(text);
    match args.action {
        SchedulesAction::Add(add) => self::add(app, &add)?,
        SchedulesAction::List { json } => list(app, json)?,
        SchedulesAction::Pause { schedule } => {
            let id = find(&schedule)?;
            app.runtime.block_on(coordinator.schedules().pause(id))?;
            show::note(&format!("{id} is paused; resume it with `windlass schedule resume {id}`"));
        }
        SchedulesAction::Resume { schedule } => {
            let id = find(&schedule)?;
            let next = app.runtime.block_on(coordinator.schedules().resume(id))?;
            show::note(&format!("{id} is resumed{}", next_words(next.as_ref())));
        }
        SchedulesAction::Remove { schedule } => {
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
    let starts_tasks = action.start.is_some() || args.monitor.is_some();
    let workspace = args.workspace.as_deref().unwrap_or(Path::new("."));
    let workspace = starts_tasks.then(|| follow_up::real_directory(workspace));
    if let Some(directory) = &workspace {
        place::check(&app.environment, directory, false)?;
    }
    let task = match (&args.task, &args.monitor) {
        (Some(task), _) => Some(coordinator.tasks().find(task)?),
        (None, Some(goal)) => Some(submit_watched_task(app, goal, workspace.clone())?),
        (None, None) => None,
    };
    let place = workspace.map(|path| path.display().to_string());
    let schedule = Schedule {
        id: ScheduleId::new(now),
        action: kind,
        task_id: task,
        session_id: args.session.as_deref().map(|text| session(app, text)).transpose()?,
        user_id: Some(app.environment.user()),
        goal: action.start.clone(),
        workspace: place.clone(),
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
        row.iter().for_each(|row| out_json(&json(row).to_string()));
    } else {
        show::note(&format!("{id} is added{}", next_words(next.as_ref())));
        if let Some(place) = &place {
            show::note(&format!("its tasks work in {}", shown(place)));
        }
        if let Some(task) = task {
            print_driver(app, task)?;
        }
        mail::warn_without_service(app)?;
    }
    Ok(())
}

/// A schedule speaks in `windlass serve`, which drives the tasks that were handed to it and no others.
fn print_driver(app: &AppContext, task: TaskId) -> Result<(), Failure> {
    let row = app.coordinator.tasks().get(task)?;
    let words = match row.map(|row| row.driver) {
        Some(Driver::Foreground) => format!("resumes only with `windlass resume {task}`"),
        Some(Driver::Service) | None => "resumes in `windlass serve`".to_owned(),
    };
    show::note(&format!("{task} {words}"));
    Ok(())
}

/// A new task for the service, to be checked on.
fn submit_watched_task(
    app: &AppContext,
    goal: &str,
    workspace: Option<std::path::PathBuf>,
) -> Result<TaskId, Failure> {
    let now = app.coordinator.now();
    let command = TaskCommand::new(now, SessionId::new(now), goal);
    let user_id = Some(app.environment.user());
    let coordinator = app.service()?;
    let options = SubmitOptions {
        user_id,
        workspace,
        outage: Outage::Park,
        ..coordinator.tasks().default_options()
    };
    Ok(app.runtime.block_on(coordinator.tasks().submit_command(command, options))?.task)
}

fn rhythm(args: &RhythmArgs) -> Result<Rhythm, Failure> {
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
        rows.iter().for_each(|row| out_json(&json(row).to_string()));
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
                describe(row),
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
pub(super) fn describe(row: &ScheduleRow) -> String {
    let schedule = &row.schedule;
    let words = schedule.goal.as_ref().or(schedule.check_prompt.as_ref());
    let words = words.map(|words| one_line(&shown(words), WORDS_WIDTH)).unwrap_or_default();
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
