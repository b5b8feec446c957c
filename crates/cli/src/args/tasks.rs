//! Arguments of the commands that look at tasks and talk to them.

use clap::Args as ClapArgs;
use windlass_coordinator::outputs::Stream;
use windlass_core::status::TaskStatus;

use super::Printing;
use super::words::{at_least_one, one_of, whole};

/// One task, perhaps as JSON.
#[derive(Debug, ClapArgs)]
pub struct One {
    /// The task: its id or any unique suffix of it
    pub task: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `show`.
#[derive(Debug, ClapArgs)]
pub struct Show {
    /// The task: its id or any unique suffix of it
    pub task: String,
    /// Show what was dropped from its context, when, and where it can be read
    #[arg(long)]
    pub compactions: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A list, perhaps as JSON.
#[derive(Debug, ClapArgs)]
pub struct Listing {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tasks`.
#[derive(Debug, ClapArgs)]
pub struct Tasks {
    /// Only tasks with this status: todo, running, verifying, reviewing, blocked, paused, retrying,
    /// done, failed or cancelled; may be given several times
    #[arg(long, value_name = "STATUS", value_parser = one_of(TaskStatus::ALL, TaskStatus::as_str), hide_possible_values = true)]
    pub status: Vec<TaskStatus>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    pub limit: usize,
    /// However many there are
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `events`.
#[derive(Debug, ClapArgs)]
pub struct Events {
    /// The task: its id or any unique suffix of it
    pub task: String,
    /// Keep printing as they come, until the task ends
    #[arg(long, short)]
    pub follow: bool,
    /// Begin behind this event of the task
    #[arg(long, value_name = "SEQ", default_value_t = 0, value_parser = whole::<u64>)]
    pub after: u64,
    /// Print JSON lines
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `trace`.
#[derive(Debug, ClapArgs)]
pub struct Trace {
    /// The task: its id or any unique suffix of it
    pub task: String,
    /// Print where the trace file is instead
    #[arg(long)]
    pub path: bool,
}

/// Arguments of `cost`.
#[derive(Debug, ClapArgs)]
pub struct Cost {
    /// The task: its id or any unique suffix of it; all tasks without one
    pub task: Option<String>,
    /// One line for each reply too
    #[arg(long, requires = "task")]
    pub turns: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `outputs`.
#[derive(Debug, ClapArgs)]
pub struct Outputs {
    /// The call, as `logs` names it
    pub id: String,
    /// Only this stream: stdout or stderr
    #[arg(long, value_name = "STREAM", value_parser = one_of(Stream::ALL, Stream::as_str), hide_possible_values = true)]
    pub stream: Option<Stream>,
}

/// Arguments of `answer`.
#[derive(Debug, ClapArgs)]
pub struct Answer {
    /// The question or its task: the id or any unique suffix of it
    pub question: String,
    /// The answer
    pub text: String,
    /// Go on with the task here and now
    #[arg(long)]
    pub resume: bool,
    /// How to print, with `--resume`
    #[command(flatten)]
    pub printing: Printing,
}

/// Arguments of `send`.
#[derive(Debug, ClapArgs)]
pub struct Send {
    /// The task, its id or any unique suffix of it; or a session, whose router decides what is meant
    pub task: String,
    /// What to tell it
    pub text: String,
}

/// Arguments of `pause`.
#[derive(Debug, ClapArgs)]
pub struct Pause {
    /// The task: its id or any unique suffix of it
    pub task: String,
}

/// Arguments of `cancel`.
#[derive(Debug, ClapArgs)]
pub struct Cancel {
    /// The task: its id or any unique suffix of it
    pub task: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}
