//! The interface between tools and the places where commands run.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use crate::{Error, Running};

/// A future of a trait that is used as an object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Between SIGTERM and SIGKILL for a process tree: commands of tools get one second.
pub const KILL_GRACE: Duration = Duration::from_secs(1);

/// A place where commands run. One per task; its agents share it.
pub trait Sandbox: Send + Sync {
    /// Starts a command, and the sandbox itself when this is the first effect.
    fn start(&self, command: Command) -> BoxFuture<'_, Result<Running, Error>>;

    /// What isolates commands from the machine, and where the agent finds its workspace.
    fn isolation(&self) -> IsolationReport;

    /// Ends everything that runs here; returns when nothing is left.
    fn stop(&self) -> BoxFuture<'_, ()>;

    /// What happened to the sandbox itself since the last call, in order. There are few: one for each time it
    /// was made or lost.
    fn drain_events(&self) -> Vec<SandboxEvent> {
        Vec::new()
    }
}

/// Why a task cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatalCause {
    /// The whole sandbox was killed for its use of memory.
    Memory,
    /// Whatever makes the sandbox is gone, out of disk, or refuses.
    Engine,
}

/// What happened to a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxEvent {
    /// It is ready for commands.
    Started {
        /// What it is, in a sentence.
        what: String,
        /// The container's id, where it is one.
        container: Option<String>,
    },
    /// It was lost, and with it everything that ran in it.
    Lost {
        /// Why, in a sentence.
        why: String,
    },
    /// It cannot be made again: no command will run, and the task cannot continue.
    Failed {
        /// What is missing.
        cause: FatalCause,
        /// Why, in a sentence.
        why: String,
    },
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The caller's own name for it, for logs and errors.
    pub id: String,
    /// Run by `bash -c`, or by `sh` where there is no bash. Ignored when `argv` is given.
    pub script: String,
    /// A program with its arguments, instead of a script.
    pub argv: Option<Vec<String>>,
    /// Where it starts, as the agent names it.
    pub cwd: PathBuf,
    /// Added to the sandbox's environment, winning over it.
    pub env: Vec<(String, String)>,
    /// After this its tree is ended; `None` for never.
    pub timeout: Option<Duration>,
    /// Between SIGTERM and SIGKILL when it times out or is dropped; [`KILL_GRACE`] for tools.
    pub grace: Duration,
    /// A foreground command ends with its main process: what that left behind is killed too, and so is all
    /// of it when its [`Running`] is dropped. A background command lives until it ends or is killed.
    pub background: bool,
    /// What it finds at its standard input.
    pub stdin: Stdin,
}

impl Command {
    /// A foreground script without a timeout, in the given directory.
    pub fn script(
        id: impl Into<String>,
        script: impl Into<String>,
        cwd: impl Into<PathBuf>,
    ) -> Self {
        Self {
            id: id.into(),
            script: script.into(),
            argv: None,
            cwd: cwd.into(),
            env: Vec::new(),
            timeout: None,
            grace: KILL_GRACE,
            background: false,
            stdin: Stdin::Closed,
        }
    }
}

/// What a command finds at its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// Its end, at once.
    Closed,
    /// What is written to [`Running::take_input`].
    Piped,
}

/// Which stream a chunk was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// The standard output.
    Out,
    /// The standard error.
    Err,
}

/// A part of the output. Chunks of both streams come in the order they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Which stream it was written to.
    pub stream: Stream,
    /// What was written; any bytes at all.
    pub bytes: Vec<u8>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// A signal that windlass did not send killed it.
    Signal(i32),
    /// Its time was up.
    TimedOut,
    /// Windlass was asked to kill it.
    Killed,
    /// The kernel killed it because the sandbox's memory was used up.
    OutOfMemory,
    /// The sandbox died under it; how far it came is unknown.
    Lost,
}

/// What is known once a command and all it started are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    /// How the main process ended.
    pub exit: Exit,
    /// The last working directory of its main process, as the agent names it; `None` when it no longer exists.
    pub cwd: Option<PathBuf>,
    /// Connections that windlass refused while it ran, a sentence each.
    pub refused: Vec<String>,
}

/// Which kind of sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxKind {
    /// A container of a docker or podman engine.
    Docker,
    /// Kernel namespaces, or Landlock alone.
    Local,
    /// No isolation at all.
    Host,
}

impl SandboxKind {
    /// The word for it in settings, events and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Local => "local",
            Self::Host => "host",
        }
    }
}

impl fmt::Display for SandboxKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What isolates and bounds commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsolationReport {
    /// Which kind of sandbox.
    pub kind: SandboxKind,
    /// The workspace as the agent sees it.
    pub workspace: PathBuf,
    /// What all commands together may use of memory, where that is bounded.
    pub memory_bytes: Option<u64>,
    /// Whether commands can make sockets and shared memory of their own, as browsers and databases need.
    pub has_own_sockets: bool,
    /// What isolates and bounds commands, one sentence each.
    pub facts: Vec<String>,
    /// What is missing that one would expect of this kind, for the person to see at start.
    pub warnings: Vec<String>,
}
