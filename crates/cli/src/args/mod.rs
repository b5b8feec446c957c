//! The command line, as types: what the whole program takes, and the groups of arguments that several
//! commands share. The arguments of one command are in its own file.

pub(crate) mod values;

use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _, Parser};
use windlass_core::axes::{ModelMode, PermissionProfile, RunControl, WorkMode};
use windlass_core::schedule::DeadlineAction;

use crate::commands::{Command, GROUPS};
use crate::config::types::SandboxMode;

/// Runs AI agents on long tasks: durable, sandboxed, steerable.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where tasks and their journals are kept [default: $XDG_DATA_HOME/windlass]
    #[arg(long, global = true, value_name = "DIR", env = "WINDLASS_DATA", hide_env_values = true)]
    #[arg(help_heading = GLOBAL)]
    pub data: Option<PathBuf>,

    /// The format of log lines on stderr; RUST_LOG chooses the lines
    #[arg(long, global = true, value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text")]
    #[arg(help_heading = GLOBAL)]
    pub log_format: String,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

const GLOBAL: &str = "Global options";

const EXAMPLES: &str = "\
Examples:
  windlass demo                           watch it work, without a key
  windlass run \"fix the flaky test\"       work on a goal in this directory
  windlass -p \"what does this crate do?\"  print the answer and nothing else
  windlass run @goal.md --json            a goal from a file, events as JSON
  windlass inbox                          what waits for you
  windlass answer ANY_ID_SUFFIX Allow     answer it
  windlass resume ANY_ID_SUFFIX           resume a task

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 blocked on a question,
4 paused, 5 cancelled, 6 budget hit, 130 interrupted by Ctrl-C (resumable).";

impl Args {
    /// Parses a command line.
    pub fn parse_words(words: &[std::ffi::OsString]) -> Result<Self, clap::Error> {
        let mut parser = parser();
        let matches = parser.try_get_matches_from_mut(words)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut parser))
    }
}

/// The parser of the command line. The program's help lists the commands in groups.
pub fn parser() -> clap::Command {
    let parser = Args::command();
    let heading = *parser.get_styles().get_header();
    let width = parser.get_subcommands().map(|command| command.get_name().len()).max();
    let width = width.unwrap_or_default();
    let line = |name: &str, about: &str| format!("  {name:<width$}  {about}\n");
    let mut groups = String::new();
    for (title, names) in GROUPS {
        groups += &format!("{heading}{title}:{heading:#}\n");
        for name in *names {
            let about = parser.find_subcommand(name).and_then(clap::Command::get_about);
            groups += &line(name, &about.map(ToString::to_string).unwrap_or_default());
        }
        groups.push('\n');
    }
    groups += &format!("{heading}{GLOBAL}:{heading:#}");
    parser.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\n{{options}}{{after-help}}"
    ))
}

/// How a goal is run.
#[derive(Debug, ClapArgs)]
pub struct RunArgs {
    /// The directory to work in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// The model, as `provider/model` or `script:FILE`; wins over `--model-mode`
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Which of the configured models: fast, smart or deep
    #[arg(long, value_name = "MODE", value_parser = values::one_of(ModelMode::ALL, ModelMode::as_str), hide_possible_values = true)]
    pub model_mode: Option<ModelMode>,
    /// Record the model's replies as a script, to be played with `--model script:FILE`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// A constraint that must hold; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub constraint: Vec<String>,
    /// Limit of active time: seconds, or such as `30m`
    #[arg(long, value_name = "TIME", value_parser = values::seconds, allow_hyphen_values = true)]
    pub timeout: Option<u64>,
    /// Limit of steps: model replies with tool calls
    #[arg(long, value_name = "N", value_parser = values::whole::<u32>, allow_hyphen_values = true)]
    pub max_iterations: Option<u32>,
    /// What the task and its sub-agents may cost, in US dollars; at the limit you are asked
    #[arg(long, value_name = "USD", value_parser = values::dollars, allow_hyphen_values = true)]
    pub budget: Option<f64>,
    /// The model's context window, in tokens
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>, allow_hyphen_values = true)]
    pub context_window: Option<u64>,
    /// What kind of work it is: chat, plan, build, review, repair or research
    #[arg(long, value_name = "MODE", value_parser = values::one_of(WorkMode::ALL, WorkMode::as_str), hide_possible_values = true)]
    pub mode: Option<WorkMode>,
    /// How much it does before a person looks: manual, assisted or autonomous
    #[arg(long, value_name = "CONTROL", value_parser = values::one_of(RunControl::ALL, RunControl::as_str), hide_possible_values = true)]
    pub control: Option<RunControl>,
    /// How much may happen without asking: restricted, normal, trusted or unrestricted
    #[arg(long, value_name = "PROFILE", value_parser = values::one_of(PermissionProfile::ALL, PermissionProfile::as_str), hide_possible_values = true)]
    pub permission_profile: Option<PermissionProfile>,
    /// Work in a directory that another task works in
    #[arg(long)]
    pub share: bool,
    /// MCP servers of this task, as in `.mcp.json`; they win over others of the same name
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
    /// Queue it for `windlass serve` and return at once; prints the task's id
    #[arg(long, conflicts_with_all = ["record", "share", "sandbox"])]
    pub detach: bool,
    /// The session it belongs to, with `--detach`: its id or any unique suffix of it; without, a new one
    #[arg(long, value_name = "SESSION", requires = "detach")]
    pub session: Option<String>,
    /// When it must be finished
    #[command(flatten)]
    pub deadline: DeadlineArgs,
    /// Where effects happen
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// How to print
    #[command(flatten)]
    pub printing: Printing,
}

/// When a task must be finished.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct DeadlineArgs {
    /// When it must be finished: a time, or how long from now
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<String>,
    /// What happens then: fail, complete_partial or pause_and_notify
    #[arg(long, value_name = "ACTION", requires = "deadline", value_parser = values::one_of(DeadlineAction::ALL, DeadlineAction::as_str), hide_possible_values = true)]
    pub deadline_action: Option<DeadlineAction>,
}

/// Where effects happen.
#[derive(Debug, Clone, ClapArgs)]
pub struct SandboxArgs {
    /// Where commands run: docker, local, or host (no isolation)
    #[arg(long, value_name = "SANDBOX", value_parser = values::one_of(SandboxMode::ALL, SandboxMode::as_str), hide_possible_values = true)]
    pub sandbox: Option<SandboxMode>,
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
    /// Whether progress is printed.
    pub fn shows_progress(&self) -> bool {
        !(self.json || self.quiet || self.print)
    }
}

/// Arguments of `resume` and `retry`.
#[derive(Debug, ClapArgs)]
pub struct ResumeArgs {
    /// The task: its id or any unique suffix of it
    pub task: String,
    /// Where effects happen
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// How to print
    #[command(flatten)]
    pub printing: Printing,
}

/// Arguments of `serve` and `worker`.
#[derive(Debug, ClapArgs)]
pub struct ServeArgs {
    /// How many tasks run at once [default: `coordinator.worker_tasks`]
    #[arg(long, value_name = "N", value_parser = values::whole::<usize>)]
    pub tasks: Option<usize>,
    /// Where effects happen
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}
