//! Arguments of the commands that deal with time, events and sessions.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use windlass_core::schedule::{DeadlineAction, Missed, TimeoutAction};

use super::words::{one_of, whole};

/// Arguments of `schedule`.
#[derive(Debug, ClapArgs)]
pub struct Schedule {
    /// What to do
    #[command(subcommand)]
    pub what: ScheduleWhat,
}

/// What to do with schedules.
#[derive(Debug, Subcommand)]
pub enum ScheduleWhat {
    /// Add one; a running `windlass serve` keeps its time
    Add(Box<ScheduleAdd>),
    /// List them, those that have ended last
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop one for now
    Pause {
        /// The schedule: its id or any unique suffix of it
        schedule: String,
    },
    /// Let one go on with its next run
    Resume {
        /// The schedule: its id or any unique suffix of it
        schedule: String,
    },
    /// End one for good
    Remove {
        /// The schedule: its id or any unique suffix of it
        schedule: String,
    },
}

/// Arguments of `schedule add`.
#[derive(Debug, ClapArgs)]
pub struct ScheduleAdd {
    /// What it does
    #[command(flatten)]
    pub action: Action,
    /// When it does it
    #[command(flatten)]
    pub rhythm: Rhythm,
    /// The task that is checked on or told something
    #[arg(long, value_name = "TASK", required_unless_present_any = ["start", "session", "monitor"])]
    pub task: Option<String>,
    /// A new task with this goal, to be checked on
    #[arg(long, value_name = "GOAL", requires = "check", conflicts_with_all = ["task", "session"])]
    pub monitor: Option<String>,
    /// The session whose active task is told something, or that started tasks belong to
    #[arg(long, value_name = "SESSION", conflicts_with = "check")]
    pub session: Option<String>,
    /// The directory that new tasks work in; without, each has its own
    #[arg(long, value_name = "DIR", conflicts_with = "task")]
    pub workspace: Option<PathBuf>,
    /// The time zone of its clock [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// When it has waited long enough: a time, or how long from now
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// What becomes of the task then: complete or fail
    #[arg(long, value_name = "ACTION", requires = "until", value_parser = one_of(TimeoutAction::ALL, TimeoutAction::as_str), hide_possible_values = true)]
    pub then: Option<TimeoutAction>,
    /// What happens with runs that nobody was there to start: skip or run_once
    #[arg(long, value_name = "POLICY", default_value = "run_once", value_parser = one_of(Missed::ALL, Missed::as_str), hide_possible_values = true)]
    pub missed: Missed,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What a schedule does.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub struct Action {
    /// Ask a task to look whether what it waits for has happened; it is parked in between
    #[arg(long, value_name = "PROMPT")]
    pub check: Option<String>,
    /// Say something to a task
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Start a task with this goal
    #[arg(long, value_name = "GOAL")]
    pub start: Option<String>,
}

/// When a schedule does it.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub struct Rhythm {
    /// Every so often: `90s`, `10m`, `PT1H`
    #[arg(long, value_name = "DURATION")]
    pub every: Option<String>,
    /// By a cron line of five fields; a time that clocks skip in spring is skipped
    #[arg(long, value_name = "LINE")]
    pub cron: Option<String>,
    /// Every day at a time by the clock on the wall
    #[arg(long, value_name = "HH:MM")]
    pub daily: Option<String>,
    /// Once, at a date and time by the clock on the wall
    #[arg(long, value_name = "DATE TIME")]
    pub at: Option<String>,
}

/// Arguments of `event`.
#[derive(Debug, ClapArgs)]
pub struct ExternalEvent {
    /// The task, or the session whose active task is meant: its id or any unique suffix of it
    pub to: String,
    /// What happened: text or JSON, passed on as it is; `-` reads it from standard input
    pub payload: String,
    /// Where it comes from
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub source: String,
    /// Names it, so that the same event sent again counts once
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

/// Arguments of `sessions`.
#[derive(Debug, ClapArgs)]
pub struct Sessions {
    /// One session with its tasks: its id or any unique suffix of it; without, the newest
    pub session: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<u32>)]
    pub limit: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// When a task must be finished.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct Until {
    /// When it must be finished: a time, or how long from now
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<String>,
    /// What happens then: fail, complete_partial or pause_and_notify
    #[arg(long, value_name = "ACTION", requires = "deadline", value_parser = one_of(DeadlineAction::ALL, DeadlineAction::as_str), hide_possible_values = true)]
    pub deadline_action: Option<DeadlineAction>,
}
