//! The command line, as types: what the whole program takes, and the groups of arguments that several
//! commands share. The arguments of one command are in its own file.

pub(crate) mod values;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, Args as ClapArgs, CommandFactory as _, FromArgMatches as _, Parser};
use windlass_core::axes::{ModelMode, PermissionProfile, RunControl, WorkMode};
use windlass_core::reasoning::Effort;
use windlass_core::role::Role;
use windlass_core::schedule::DeadlineAction;
use windlass_term::TerminalStyle;
use windlass_term::wrap::wrap;

use crate::commands::{Command, GROUPS};
use crate::config::types::SandboxMode;

/// Runs AI agents on long tasks: durable, sandboxed, steerable.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, max_term_width = WIDEST)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Data directory [default: ~/.local/share/windlass]
    #[arg(long, global = true, value_name = "DIR", env = "WINDLASS_DATA", hide_env_values = true)]
    #[arg(help_heading = GLOBAL)]
    pub data: Option<PathBuf>,

    /// Format of log lines on stderr; RUST_LOG selects the lines
    #[arg(long, global = true, value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text")]
    #[arg(help_heading = GLOBAL)]
    pub log_format: String,

    /// The conversation that the terminal opens
    #[command(flatten)]
    pub conversation: ConversationArgs,

    /// What to do; without it a conversation is opened at this terminal
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Which conversation is opened, and how.
#[derive(Clone, Debug, ClapArgs)]
pub struct ConversationArgs {
    /// Continue the last conversation of this directory
    #[arg(long = "continue", short = 'c', conflicts_with = "session")]
    pub continues: bool,
    /// Continue this session: its id or any unique suffix of it
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
    /// Directory to work in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// What belongs to the workspace beyond it
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Ask before the conversation and its sub-agents cost more than this [default: no limit]
    #[arg(long, value_name = "USD", value_parser = values::dollars, allow_hyphen_values = true)]
    pub budget: Option<f64>,
    /// Model to use: PROVIDER/NAME or script:FILE; overrides --model-mode
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Which configured model to use: fast, smart or deep [default: smart]
    #[arg(long, value_name = "MODE", value_parser = values::one_of(ModelMode::ALL, ModelMode::as_str), hide_possible_values = true)]
    pub model_mode: Option<ModelMode>,
    /// Kind of work: chat, plan, build, review, repair or research [default: chat]
    #[arg(long, value_name = "MODE", value_parser = values::one_of(WorkMode::ALL, WorkMode::as_str), hide_possible_values = true)]
    pub mode: Option<WorkMode>,
    /// How much it does on its own: manual, assisted or autonomous [default: manual]
    #[arg(long, value_name = "CONTROL", value_parser = values::one_of(RunControl::ALL, RunControl::as_str), hide_possible_values = true)]
    pub control: Option<RunControl>,
    /// What it may do without asking: restricted, normal, trusted or unrestricted
    /// [default: normal]
    #[arg(long, value_name = "PROFILE", value_parser = values::one_of(PermissionProfile::ALL, PermissionProfile::as_str), hide_possible_values = true)]
    pub permission_profile: Option<PermissionProfile>,
    /// Work in a directory where another task is working
    #[arg(long)]
    pub share: bool,
    /// Where effects happen
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// How wide help gets.
const WIDEST: usize = 100;

const GLOBAL: &str = "Global options";

const EXAMPLES: &str = "\
Examples:
  windlass                                a conversation in this directory
  windlass --continue --mode build        the last one, to build
  windlass demo                           watch it work, without a key
  windlass run \"fix the flaky test\"       work on a goal in this directory
  windlass -p \"what does this crate do?\"  print the answer and nothing else
  windlass run @goal.md --json            a goal from a file, events as JSON
  windlass inbox                          what waits for you
  windlass answer ANY_ID_SUFFIX Allow     answer it
  windlass run -c \"now add a test\"        continue the last task here
  windlass resume ANY_ID_SUFFIX           resume a task

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 blocked on a question,
4 paused, 5 cancelled, 6 budget hit, 7 partial result (deadline),
130 interrupted by Ctrl-C (resumable).";

impl Args {
    /// Parses a command line.
    pub fn parse_words(words: &[OsString]) -> Result<Self, clap::Error> {
        let mut parser = parser();
        let matches = parser.try_get_matches_from_mut(words)?;
        if let Some((command, _)) = matches.subcommand()
            && let Some(option) = conversation_option(&parser, words)
        {
            let words = format!(
                "`--{option}` before a command is for the conversation that `windlass` opens\n\n\
                 hint: write it after the command, as `windlass {command} --{option}`, or leave `{command}` out"
            );
            return Err(parser.error(ErrorKind::ArgumentConflict, words));
        }
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut parser))
    }
}

/// An option of the conversation, given before a command. Some commands have options of the same name.
fn conversation_option(parser: &clap::Command, words: &[OsString]) -> Option<String> {
    let options = ConversationArgs::augment_args(clap::Command::new("windlass"));
    let mut rest = words.get(1..)?;
    while let Some(word) = rest.first() {
        let count = words_of_option(parser, word)?;
        let name = option_name(word.to_str()?);
        let found = options.get_arguments().find(|option| is_named(option, name));
        if let Some(long) = found.and_then(Arg::get_long) {
            return Some(long.to_owned());
        }
        rest = rest.get(count..)?;
    }
    None
}

fn option_name(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// Whether an option is written so: `--long` or `-s`.
fn is_named(option: &Arg, name: &str) -> bool {
    match name.strip_prefix("--") {
        Some(long) => option.get_long() == Some(long),
        None => option.get_short().is_some_and(|short| name == format!("-{short}")),
    }
}

/// How many words an option before a command takes, with its value; `None` where the word is not such an option.
pub fn words_of_option(parser: &clap::Command, word: &OsStr) -> Option<usize> {
    let word = word.to_str()?;
    let name = option_name(word);
    let option = parser.get_arguments().find(|option| is_named(option, name))?;
    let takes_value = option.get_action().takes_values() && name == word;
    (option.get_id() != SHORT).then_some(if takes_value { 2 } else { 1 })
}

/// `-p`, which is short for a command.
const SHORT: &str = "short";

/// The parser of the command line. The program's help lists the commands in groups.
pub fn parser() -> clap::Command {
    // `windlass -p GOAL` is rewritten before it is parsed; here it is only shown.
    let short = Arg::new(SHORT).short('p').long("print").value_name("GOAL");
    let short = short.help("Work on a goal and print only the answer; short for `run -p`");
    let parser = Args::command().arg(short.display_order(0).help_heading(GLOBAL));
    let heading = *parser.get_styles().get_header();
    let width = parser.get_subcommands().map(|command| command.get_name().len()).max();
    let width = width.unwrap_or_default();
    let style = TerminalStyle::detect();
    let columns = if style.is_stdout_terminal { style.results_width() } else { WIDEST };
    let room = columns.saturating_sub(width + 4).max(20);
    let line = |name: &str, about: &str| {
        let about =
            wrap(about, room).replace('\n', &format!("\n{:indent$}", "", indent = width + 4));
        format!("  {name:<width$}  {about}\n")
    };
    let mut groups = String::new();
    for (title, names) in GROUPS {
        groups += &format!("{heading}{title}:{heading:#}\n");
        for name in *names {
            let about = parser.find_subcommand(name).and_then(clap::Command::get_about);
            groups += &line(name, &about.map(ToString::to_string).unwrap_or_default());
        }
        groups.push('\n');
    }
    groups += &format!("{heading}Options:{heading:#}");
    parser.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\n{{options}}{{after-help}}"
    ))
}

/// How a goal is run.
#[derive(Debug, ClapArgs)]
pub struct RunArgs {
    /// Directory to work in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// What belongs to it
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Model to use: PROVIDER/NAME or script:FILE; overrides --model-mode
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// How much the model thinks first: none, minimal, low, medium, high or max [default: as the model mode says]
    #[arg(long, value_name = "EFFORT", value_parser = values::one_of(Effort::ALL, Effort::as_str), hide_possible_values = true)]
    pub effort: Option<Effort>,
    /// Which configured model to use: fast, smart or deep
    /// [default: smart; deep with --mode review]
    #[arg(long, value_name = "MODE", value_parser = values::one_of(ModelMode::ALL, ModelMode::as_str), hide_possible_values = true)]
    pub model_mode: Option<ModelMode>,
    /// Record the model's replies, to replay them with `--model script:FILE`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// A rule that the agent must follow; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub constraint: Vec<String>,
    /// Fail after this much active time: seconds, or a time such as `30m` [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = values::seconds, allow_hyphen_values = true)]
    pub timeout: Option<u64>,
    /// Fail after this many steps (replies with tool calls) [default: 200]
    #[arg(long, value_name = "N", value_parser = values::whole::<u32>, allow_hyphen_values = true)]
    pub max_iterations: Option<u32>,
    /// Ask before the task and its sub-agents cost more than this [default: no limit]
    #[arg(long, value_name = "USD", value_parser = values::dollars, allow_hyphen_values = true)]
    pub budget: Option<f64>,
    /// The model's context window in tokens [default: what is known of the model]
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>, allow_hyphen_values = true)]
    pub context_window: Option<u64>,
    /// Kind of work: chat, plan, build, review, repair or research [default: build]
    #[arg(long, value_name = "MODE", value_parser = values::one_of(WorkMode::ALL, WorkMode::as_str), hide_possible_values = true)]
    pub mode: Option<WorkMode>,
    /// How much it does on its own: manual, assisted or autonomous
    /// [default: autonomous; assisted with --mode plan]
    #[arg(long, value_name = "CONTROL", value_parser = values::one_of(RunControl::ALL, RunControl::as_str), hide_possible_values = true)]
    pub control: Option<RunControl>,
    /// Role: architect, executor (needs a claimed commitment) or auditor
    #[arg(long, value_name = "ROLE", conflicts_with_all = ["mode", "permission_profile"], value_parser = values::one_of(Role::ALL, Role::as_str), hide_possible_values = true)]
    pub role: Option<Role>,
    /// What it may do without asking: restricted, normal, trusted or unrestricted
    /// [default: trusted]
    #[arg(long, value_name = "PROFILE", value_parser = values::one_of(PermissionProfile::ALL, PermissionProfile::as_str), hide_possible_values = true)]
    pub permission_profile: Option<PermissionProfile>,
    /// Work in a directory where another task is working
    #[arg(long)]
    pub share: bool,
    /// File of MCP servers for this task, in the format of .mcp.json
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
    /// Continue the last task of this directory, with its context
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["detach", "record", "mcp_config"])]
    pub continues: bool,
    /// Queue it for `windlass serve`, print its id and return
    #[arg(long, conflicts_with_all = ["record", "share", "sandbox"])]
    pub detach: bool,
    /// With --detach: the session it joins, by id or unique suffix [default: a new one]
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
    pub printing: PrintOptions,
}

/// What belongs to the workspace beyond the directory and its repository.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct PlaceArgs {
    /// Add a directory, DIR:ro to read it only; may be repeated
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<String>,
    /// Work in the home directory or in /; needed once for each
    #[arg(long)]
    pub confirm_workspace: bool,
}

/// When a task must be finished.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct DeadlineArgs {
    /// Finish by this time, such as 2h or "2026-12-24 18:00"
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<String>,
    /// At the deadline: fail, complete_partial or pause_and_notify [default: fail]
    #[arg(long, value_name = "ACTION", requires = "deadline", value_parser = values::one_of(DeadlineAction::ALL, DeadlineAction::as_str), hide_possible_values = true)]
    pub deadline_action: Option<DeadlineAction>,
}

/// Where effects happen.
#[derive(Debug, Clone, ClapArgs)]
pub struct SandboxArgs {
    /// Where commands run: docker, local, or host (no isolation)
    /// [default: docker if available, else local]
    #[arg(long, value_name = "SANDBOX", value_parser = values::one_of(SandboxMode::ALL, SandboxMode::as_str), hide_possible_values = true)]
    pub sandbox: Option<SandboxMode>,
}

/// How a run is printed.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct PrintOptions {
    /// Print events as JSON, one per line, the result last
    #[arg(long, conflicts_with_all = ["print", "quiet"])]
    pub json: bool,
    /// Print only the final answer
    #[arg(long, short)]
    pub print: bool,
    /// Print no progress
    #[arg(long, short)]
    pub quiet: bool,
    /// Print commands, outputs and changes of files whole
    #[arg(long, short, conflicts_with_all = ["json", "print", "quiet"])]
    pub verbose: bool,
}

impl PrintOptions {
    /// Whether progress is printed.
    pub fn shows_progress(&self) -> bool {
        !(self.json || self.quiet || self.print)
    }
}

/// Arguments of `resume` and `retry`.
#[derive(Debug, ClapArgs)]
pub struct ResumeArgs {
    /// The task: its id or any unique suffix of it; without, the last one of this directory
    pub task: Option<String>,
    /// Another model from now on: PROVIDER/NAME or script:FILE
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Where effects happen
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// How to print
    #[command(flatten)]
    pub printing: PrintOptions,
}

/// Arguments of `serve` and `worker`.
#[derive(Debug, ClapArgs)]
pub struct ServeArgs {
    /// How many tasks run at once [default: `coordinator.worker_tasks`]
    #[arg(long, value_name = "N", value_parser = values::at_least_one, allow_hyphen_values = true)]
    pub tasks: Option<usize>,
    /// Where effects happen
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}
