//! Who executes an agent step: our own loop, Claude Code, codex, or any command.
//!
//! A runner is started with a [`Job`] in the sandbox of its task. It reports what happens as it happens, takes
//! orders, and ends with one [`RunnerResult`]. What it reports is journaled by whoever started it.
//!
//! Invariants:
//! - A runner never answers its own questions: an answer is an [`Order`], or was given before a restart.
//! - While a question waits, no clock runs.
//! - When `run` returns, nothing that the runner started is left.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use windlass_core::string_enum;
use windlass_sandbox::{BoxFuture, Sandbox};

mod acts;
mod session;
mod watchdog;
mod lines;
mod install;
mod permission;
mod claude;
mod codex;
mod command;
mod reading;
mod screen;

pub use claude::Claude;
pub use codex::Codex;
pub use command::Command;
pub use install::how_to_install;
pub use reading::{Question as ScreenQuestion, ScreenState, read_screen};
pub use screen::Screen;

/// Reports that may wait for their reader; a runner that is ahead waits.
pub const REPORTS: usize = 256;

/// A program that does an agent step.
pub trait Runner: Send + Sync {
    /// Its name in workflow files and in the inbox.
    fn name(&self) -> &str;

    /// The program and its arguments, for people.
    fn command_line(&self) -> String;

    /// Does the job; returns when it has ended and everything it started is gone.
    fn run<'a>(
        &'a self,
        job: Job,
        sandbox: &'a dyn Sandbox,
        link: Link,
    ) -> BoxFuture<'a, RunnerResult>;
}

/// A program and its arguments in a line.
fn in_a_line(program: &str, arguments: &[String]) -> String {
    let arguments = arguments.iter().map(String::as_str);
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// What a runner is to do.
#[derive(Clone, Debug)]
pub struct Job {
    /// Names it in logs and errors.
    pub id: String,
    /// The rendered prompt, with the system prompt around it.
    pub prompt: String,
    /// Its worktree, as the sandbox names it.
    pub directory: PathBuf,
    /// Where the program keeps its own sessions, as the sandbox names it. It lasts as long as the task.
    pub state: PathBuf,
    /// Added to the sandbox's environment: its own credentials, where the user's configuration names them.
    pub environment: Vec<(String, String)>,
    /// MCP servers by name, as `.mcp.json` describes them (WF-031).
    pub mcp_servers: serde_json::Map<String, serde_json::Value>,
    /// What the project says to agents. The program is given it by us: it reads no settings of a project by itself.
    pub instructions: Option<String>,
    /// The common git directory of the repository that the worktree belongs to.
    pub git_directory: Option<PathBuf>,
    /// The model, where one was chosen.
    pub model: Option<String>,
    /// The program's own session to resume, after a restart.
    pub resume: Option<String>,
    /// Answers given while nothing ran. The same question asked again gets its answer at once.
    pub answers: Vec<GivenAnswer>,
    pub limits: RunnerLimits,
}

/// What a program reads about the project's own instructions.
const PROJECT_PROMPT: &str = include_str!("prompts/project.md");

impl Job {
    /// The project's own instructions, as a program reads them.
    fn project_prompt(&self) -> Option<String> {
        let instructions = self.instructions.as_deref()?;
        Some(PROJECT_PROMPT.replace("{{instructions}}", instructions))
    }
}

/// An answer that was given to a question of an earlier run of the same job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenAnswer {
    /// [`RunnerQuestion::fingerprint`] of the question.
    pub fingerprint: String,
    pub text: String,
}

/// What bounds a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunnerLimits {
    /// Ended after this time without a byte of output (O-38).
    pub stall: Duration,
    /// Ended after this time in all; time in which a question waits is not counted.
    pub timeout: Option<Duration>,
    /// Ended when it is silent for so long after a tool's result: a known way in which programs hang.
    pub silence_after_tool: Duration,
    /// How long a program may stay after its result.
    pub linger: Duration,
    /// Between the program's own interrupt and SIGTERM.
    pub interrupt: Duration,
    /// Between SIGTERM and SIGKILL (WF-020).
    pub grace: Duration,
    /// The most it may print in all.
    pub output_bytes: u64,
}

impl RunnerLimits {
    pub const DEFAULT: Self = Self {
        stall: Duration::from_secs(300),
        timeout: None,
        // A model that thinks sends something well before this: partial messages are asked for.
        silence_after_tool: Duration::from_secs(180),
        linger: Duration::from_secs(10),
        interrupt: Duration::from_secs(3),
        grace: Duration::from_secs(10),
        output_bytes: 64 * 1024 * 1024,
    };
}

/// How a runner and whoever started it speak while it runs.
pub struct Link {
    pub reports: mpsc::Sender<Report>,
    pub orders: mpsc::Receiver<Order>,
}

/// What happens in a runner.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The program's own session id, by which it can be resumed.
    Session(String),
    /// What it does now (WF-009).
    Activity(Activity),
    /// What it wrote, for people (WF-008).
    Output(String),
    /// It waits for a person (WF-011…014).
    Question(RunnerQuestion),
    /// A question that needs no answer any more.
    Withdrawn(String),
    /// It has asked the question with this fingerprint again, and got the answer that was given before a restart.
    Replayed(String),
    /// What it used so far.
    Usage(Usage),
}

/// What a runner is to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// A person's answer (WF-015).
    Answer {
        /// The question it answers, by [`RunnerQuestion::id`].
        question: String,
        text: String,
    },
    /// End: first by the program's own interrupt, then by SIGTERM, then by SIGKILL.
    Stop,
}

string_enum! {
    Activity ("activity") {
        Thinking = "thinking",
        Writing = "writing",
        RunningCommand = "running_command",
        Waiting = "waiting",
        Merging = "merging",
        Ended = "ended",
    }
}

string_enum! {
    Asks ("kind of question") {
        /// May it do something: `Allow`, `Deny`, `Allow All`.
        Permission = "permission",
        /// One of several options.
        Choice = "choice",
        /// Yes or no.
        Confirm = "confirm",
        /// The answer may be any text.
        Text = "text",
    }
}

/// A question of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerQuestion {
    /// Its id in this run.
    pub id: String,
    /// The same for the same question after a restart.
    pub fingerprint: String,
    pub asks: Asks,
    pub question: String,
    /// Answers to choose from; free text when empty (WF-013).
    pub options: Vec<String>,
    /// Everything that an answer would approve, whole.
    pub context: Option<String>,
    /// What it would edit, where the program says so.
    pub edits: Vec<Edit>,
}

/// An edit that a program asks to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The file, as the program names it.
    pub path: String,
    /// The text that it replaces; without, the whole file counts.
    pub old: Option<String>,
}

/// What a runner used, as far as it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost_usd: Option<f64>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerResult {
    pub how: RunnerEnding,
    /// Its last words, in which the output contract is looked for.
    pub text: String,
    pub usage: Usage,
    /// The program's own session.
    pub session: Option<String>,
    /// What a person should know: a program that had to be ended after its result.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
/// How a runner ended.
pub enum RunnerEnding {
    /// It gave its result.
    Finished,
    /// It was silent too long or took too long: the task is blocked (timeout) (WF-023, WF-024).
    TimedOut(String),
    /// It was asked to end.
    Stopped,
    /// It could not be started, or ended without a result: the step failed, with the reason.
    Failed(String),
}
