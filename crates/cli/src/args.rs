//! The command line, as types.

use std::path::PathBuf;

use crate::config::types::SandboxMode;
use clap::{Args as ClapArgs, Parser, Subcommand};
use windlass_core::axes::{PermissionProfile, RunControl, WorkMode};

/// Runs AI agents on long tasks: durable, sandboxed, steerable.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  windlass run \"fix the flaky test\"          work on a goal in this directory
  windlass run @goal.md --json               read the goal from a file, print events as JSON lines
  windlass inbox                             what waits for you
  windlass answer ANY_ID_SUFFIX Allow        answer it
  windlass resume ANY_ID_SUFFIX              go on with a task")]
pub struct Args {
    /// Where tasks and their journals are kept [default: $XDG_DATA_HOME/windlass]
    #[arg(long, global = true, value_name = "DIR", env = "WINDLASS_DATA")]
    pub data: Option<PathBuf>,

    /// How log lines on stderr look; RUST_LOG says which
    #[arg(long, global = true, value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text")]
    pub log_format: String,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Work on a goal until it is done
    Run(Run),
    /// Go on with a task that was paused, blocked or interrupted
    Resume(Resume),
    /// List tasks, newest first
    Tasks(Tasks),
    /// Show one task: where it stands, its plan, deliverables and questions
    Show(One),
    /// Print a task's events
    Events(Events),
    /// Print a task's result as JSON
    Result(One),
    /// List what waits for a person
    Inbox(Listing),
    /// Answer a question
    Answer(Answer),
    /// Tell a running task something
    Send(Send),
    /// Park a task at its next boundary
    Pause(One),
    /// Stop a task for good
    Cancel(Cancel),
    /// Run a failed task again
    Retry(Resume),
}

/// Arguments of `run`.
#[derive(Debug, ClapArgs)]
pub struct Run {
    /// The goal; `-` reads it from standard input, `@FILE` from a file
    pub goal: String,
    /// The directory to work in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// The model, as `provider/model` or `script:FILE`
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Something that must hold on the way; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub constraint: Vec<String>,
    /// Limit of active time, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Limit of tool rounds
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<u32>,
    /// The model's context window, in tokens
    #[arg(long, value_name = "N")]
    pub context_window: Option<u64>,
    /// What kind of work it is
    #[arg(long, value_name = "MODE", value_parser = windlass_core::axes::parse::<WorkMode>)]
    pub mode: Option<WorkMode>,
    /// How far it goes before a person looks
    #[arg(long, value_name = "CONTROL", value_parser = windlass_core::axes::parse::<RunControl>)]
    pub control: Option<RunControl>,
    /// How much may happen without asking
    #[arg(long, value_name = "PROFILE", value_parser = windlass_core::axes::parse::<PermissionProfile>)]
    pub permission_profile: Option<PermissionProfile>,
    /// Work in a directory where another task is at work
    #[arg(long)]
    pub share: bool,
    /// Where effects happen
    #[command(flatten)]
    pub place: Place,
    /// How to print
    #[command(flatten)]
    pub printing: Printing,
}

/// How a run is printed.
#[derive(Debug, Clone, ClapArgs)]
pub struct Printing {
    /// Print every event as one JSON object a line, the result last
    #[arg(long, conflicts_with_all = ["print", "quiet"])]
    pub json: bool,
    /// Print the final answer and nothing else
    #[arg(long, short)]
    pub print: bool,
    /// Print no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Where effects happen.
#[derive(Debug, Clone, ClapArgs)]
pub struct Place {
    /// Where commands run: docker, local, or host (no isolation)
    #[arg(long, value_name = "SANDBOX", value_parser = windlass_core::axes::parse::<SandboxMode>)]
    pub sandbox: Option<SandboxMode>,
}

impl Command {
    /// The `--sandbox` flag of commands that have it.
    pub fn sandbox(&self) -> Option<SandboxMode> {
        match self {
            Self::Run(run) => run.place.sandbox,
            Self::Resume(resume) | Self::Retry(resume) => resume.place.sandbox,
            _ => None,
        }
    }
}

/// Arguments of `resume` and `retry`.
#[derive(Debug, ClapArgs)]
pub struct Resume {
    /// The task: its id or any unique suffix of it
    pub task: String,
    /// Where effects happen
    #[command(flatten)]
    pub place: Place,
    /// How to print
    #[command(flatten)]
    pub printing: Printing,
}

/// One task, perhaps as JSON.
#[derive(Debug, ClapArgs)]
pub struct One {
    /// The task: its id or any unique suffix of it
    pub task: String,
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
    /// Only tasks with this status
    #[arg(long, value_name = "STATUS", value_parser = windlass_core::axes::parse::<windlass_core::status::TaskStatus>)]
    pub status: Option<windlass_core::status::TaskStatus>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
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
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub after: u64,
    /// Print JSON lines
    #[arg(long)]
    pub json: bool,
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
    /// The task: its id or any unique suffix of it
    pub task: String,
    /// What to tell it
    pub text: String,
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
