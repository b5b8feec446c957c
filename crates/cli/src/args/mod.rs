//! The command line, as types. Every command's help teaches with examples (`examples.rs`).

pub mod examples;
mod words;
mod tasks;
mod clock;
mod tools;
mod gate;
mod reach;
mod serve;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use windlass_core::axes::{ModelMode, PermissionProfile, RunControl, WorkMode};

use crate::config::types::SandboxMode;

pub use clock::{
    Action, ExternalEvent, Rhythm, Schedule, ScheduleAdd, ScheduleWhat, Sessions, Until,
};
pub use gate::{Explain, Permissions};
pub use reach::{Eval, Mcp, McpWhat, Skills, SkillsWhat};
pub use serve::Serve;
pub use tasks::{
    Answer, Cancel, Cost, Events, Listing, One, Outputs, Pause, Send, Show, Tasks, Trace,
};
pub use tools::{Completions, ConfigArgs, Demo, Doctor, Exec, Image, ImageWhat, Models, Trust};

/// Runs AI agents on long tasks: durable, sandboxed, steerable.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = examples::PROGRAM)]
pub struct Args {
    /// Where tasks and their journals are kept [default: $XDG_DATA_HOME/windlass]
    #[arg(long, global = true, value_name = "DIR", env = "WINDLASS_DATA", hide_env_values = true)]
    #[arg(help_heading = "Everywhere")]
    pub data: Option<PathBuf>,

    /// How log lines on stderr look; RUST_LOG says which
    #[arg(long, global = true, value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text")]
    #[arg(help_heading = "Everywhere")]
    pub log_format: String,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Work on a goal until it is done
    #[command(after_help = examples::RUN)]
    Run(Run),
    /// The same as `run`, as other tools spell it
    #[command(after_help = examples::HEADLESS)]
    Headless(Headless),
    /// Watch the whole loop on a built-in script: no key, no network, no Docker
    #[command(after_help = examples::DEMO)]
    Demo(Demo),
    /// Go on with a task that was paused, blocked or interrupted
    #[command(after_help = examples::RESUME)]
    Resume(Resume),
    /// Run tasks as a service: everything that arrives on the bus, until stopped
    #[command(after_help = examples::SERVE)]
    Serve(Serve),
    /// Run tasks beside a service, or beside other workers
    #[command(after_help = examples::WORKER)]
    Worker(Serve),
    /// List tasks, newest first
    #[command(after_help = examples::TASKS)]
    Tasks(Tasks),
    /// Show how much goes on, and how much may
    #[command(after_help = examples::STATUS)]
    Status(Listing),
    /// List sessions, or one with its tasks
    #[command(after_help = examples::SESSIONS)]
    Sessions(Sessions),
    /// Let things happen by themselves: checks, messages, tasks
    #[command(after_help = examples::SCHEDULE)]
    Schedule(Schedule),
    /// Tell a task what happened elsewhere
    #[command(after_help = examples::EVENT)]
    Event(ExternalEvent),
    /// Show one task: where it stands, its plan, deliverables and questions
    #[command(after_help = examples::SHOW)]
    Show(Show),
    /// Print a task's events
    #[command(after_help = examples::EVENTS)]
    Events(Events),
    /// Print a task's result as JSON
    #[command(after_help = examples::RESULT)]
    Result(One),
    /// Print what a task's commands printed
    #[command(after_help = examples::LOGS)]
    Logs(One),
    /// Print a task's trace: every event as one JSON object a line
    #[command(after_help = examples::TRACE)]
    Trace(Trace),
    /// Show tokens and cost of a task, or of all
    #[command(after_help = examples::COST)]
    Cost(Cost),
    /// Print counters and histograms of all tasks, as Prometheus reads them
    #[command(after_help = examples::METRICS)]
    Metrics,
    /// Print the whole of one command's output
    #[command(after_help = examples::OUTPUTS)]
    Outputs(Outputs),
    /// List what waits for a person
    #[command(after_help = examples::INBOX)]
    Inbox(Listing),
    /// Answer a question
    #[command(after_help = examples::ANSWER)]
    Answer(Answer),
    /// Tell a running task something
    #[command(after_help = examples::SEND)]
    Send(Send),
    /// Park a task at its next boundary
    #[command(after_help = examples::PAUSE)]
    Pause(Pause),
    /// Stop a task for good
    #[command(after_help = examples::CANCEL)]
    Cancel(Cancel),
    /// Run a failed task again
    #[command(after_help = examples::RETRY)]
    Retry(Resume),
    /// Run one command in the sandbox, its output kept as a tool's would be
    #[command(after_help = examples::EXEC)]
    Exec(Exec),
    /// List, show, make, check and examine skills
    #[command(after_help = examples::SKILLS)]
    Skills(Skills),
    /// List and test MCP servers
    #[command(after_help = examples::MCP)]
    Mcp(Mcp),
    /// Make the image that containers are of, and see whether it will do
    #[command(after_help = examples::IMAGE)]
    Image(Image),
    /// Say what a command would do and whether it would be allowed
    #[command(after_help = examples::EXPLAIN)]
    Explain(Explain),
    /// List what people have allowed, and take it back
    #[command(after_help = examples::PERMISSIONS)]
    Permissions(Permissions),
    /// Show every setting, its value and where that came from
    #[command(after_help = examples::CONFIG)]
    Config(ConfigArgs),
    /// Show the configured models, and test that they answer
    #[command(after_help = examples::MODELS)]
    Models(Models),
    /// Approve the settings of this project's file, as it is now
    #[command(after_help = examples::TRUST)]
    Trust(Trust),
    /// Check the store, the sandbox and the configuration
    #[command(after_help = examples::DOCTOR)]
    Doctor(Doctor),
    /// Print a script that completes command lines in your shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions(Completions),
    /// Print the manual page
    #[command(after_help = examples::MAN)]
    Man,
}

/// Arguments of `run`.
#[derive(Debug, ClapArgs)]
pub struct Run {
    /// The goal; `-` reads it from standard input, `@FILE` from a file
    pub goal: String,
    /// How it is run
    #[command(flatten)]
    pub how: How,
}

/// Arguments of `headless`: those of `run`, with autonomy spelled as a word or a flag (MS-177, MS-178).
#[derive(Debug, ClapArgs)]
pub struct Headless {
    /// The goal, perhaps behind the word `autonomous`
    #[arg(value_name = "[autonomous] GOAL", required = true, num_args = 1..=2)]
    pub words: Vec<String>,
    /// Run until done or stopped by a limit; the same as `--control autonomous`
    #[arg(long, conflicts_with = "control")]
    pub autonomous: bool,
    /// How it is run
    #[command(flatten)]
    pub how: How,
}

/// How a goal is run.
#[derive(Debug, ClapArgs)]
pub struct How {
    /// The directory to work in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// The model, as `provider/model` or `script:FILE`; wins over `--model-mode`
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Which of the configured models: fast, smart or deep
    #[arg(long, value_name = "MODE", value_parser = words::one_of(ModelMode::ALL, ModelMode::as_str), hide_possible_values = true)]
    pub model_mode: Option<ModelMode>,
    /// Write a script of the model's replies, to be played with `--model script:FILE`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Something that must hold on the way; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub constraint: Vec<String>,
    /// Limit of active time: seconds, or such as `30m`
    #[arg(long, value_name = "TIME", value_parser = words::seconds, allow_hyphen_values = true)]
    pub timeout: Option<u64>,
    /// Limit of tool rounds
    #[arg(long, value_name = "N", value_parser = words::whole::<u32>, allow_hyphen_values = true)]
    pub max_iterations: Option<u32>,
    /// What the task and its sub-agents may cost, in US dollars; at the limit you are asked
    #[arg(long, value_name = "USD", value_parser = words::dollars, allow_hyphen_values = true)]
    pub budget: Option<f64>,
    /// The model's context window, in tokens
    #[arg(long, value_name = "N", value_parser = words::whole::<u64>, allow_hyphen_values = true)]
    pub context_window: Option<u64>,
    /// What kind of work it is: chat, plan, build, review, repair or research
    #[arg(long, value_name = "MODE", value_parser = words::one_of(WorkMode::ALL, WorkMode::as_str), hide_possible_values = true)]
    pub mode: Option<WorkMode>,
    /// How far it goes before a person looks: manual, assisted or autonomous
    #[arg(long, value_name = "CONTROL", value_parser = words::one_of(RunControl::ALL, RunControl::as_str), hide_possible_values = true)]
    pub control: Option<RunControl>,
    /// How much may happen without asking: restricted, normal, trusted or unrestricted
    #[arg(long, value_name = "PROFILE", value_parser = words::one_of(PermissionProfile::ALL, PermissionProfile::as_str), hide_possible_values = true)]
    pub permission_profile: Option<PermissionProfile>,
    /// Work in a directory where another task is at work
    #[arg(long)]
    pub share: bool,
    /// MCP servers of this task, as in `.mcp.json`; they win over others of the same name
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
    /// Leave it to `windlass serve` and return at once; prints the task's id
    #[arg(long, conflicts_with_all = ["record", "share", "sandbox"])]
    pub detach: bool,
    /// The session it belongs to, with `--detach`: its id or any unique suffix of it; without, a new one
    #[arg(long, value_name = "SESSION", requires = "detach")]
    pub session: Option<String>,
    /// When it must be finished
    #[command(flatten)]
    pub until: Until,
    /// Where effects happen
    #[command(flatten)]
    pub place: Place,
    /// How to print
    #[command(flatten)]
    pub printing: Printing,
}

/// How a run is printed.
#[derive(Debug, Clone, Default, ClapArgs)]
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

impl Printing {
    /// Whether a person is told what happens on the way.
    pub fn shows_progress(&self) -> bool {
        !(self.json || self.quiet || self.print)
    }
}

/// Where effects happen.
#[derive(Debug, Clone, ClapArgs)]
pub struct Place {
    /// Where commands run: docker, local, or host (no isolation)
    #[arg(long, value_name = "SANDBOX", value_parser = words::one_of(SandboxMode::ALL, SandboxMode::as_str), hide_possible_values = true)]
    pub sandbox: Option<SandboxMode>,
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

impl Command {
    /// The `--sandbox` flag of commands that have it.
    pub fn sandbox(&self) -> Option<SandboxMode> {
        match self {
            Self::Run(run) => run.how.place.sandbox,
            Self::Headless(run) => run.how.place.sandbox,
            Self::Resume(resume) | Self::Retry(resume) => resume.place.sandbox,
            Self::Serve(serve) | Self::Worker(serve) => serve.place.sandbox,
            Self::Exec(exec) => exec.place.sandbox,
            Self::Doctor(doctor) => doctor.place.sandbox,
            Self::Skills(Skills { what: SkillsWhat::Eval(eval), .. }) => eval.place.sandbox,
            Self::Mcp(Mcp { what: McpWhat::Test { place, .. }, .. }) => place.sandbox,
            _ => None,
        }
    }
}

impl Command {
    /// The `--record` flag of commands that have it.
    pub fn record(&self) -> Option<PathBuf> {
        match self {
            Self::Run(run) => run.how.record.clone(),
            Self::Headless(run) => run.how.record.clone(),
            _ => None,
        }
    }
}
