//! Windlass's end of the channel to one helper, over any pair of byte streams.
//!
//! One job owns both streams and the state of every running command; callers send it requests. The queue of requests
//! needs no limit because the protocol bounds its contents: starts by callers that wait for them, output and input by
//! credit, kills by the number of commands.
//!
//! Invariants:
//! - When the streams end, for whatever cause, every command is `Lost` and every caller gets an answer.
//! - A helper that sends more than its credit cannot be trusted: the channel ends.

mod owner;

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use windlass_helper::protocol::{KEEPS_SHELL, Ready, Setup};

use crate::Error;
use crate::api::Command;
use crate::network::Egress;
use crate::running::Running;
use owner::Owner;

/// A single argument of a program may have 128 KiB on Linux; the script is one, with its end.
const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;

/// The longest script: it is one argument of a shell, with a few words before it.
pub const MAX_SCRIPT_BYTES: usize = MAX_ARGUMENT_BYTES - KEEPS_SHELL.len();

/// A command's whole frame; arguments and environment together stay under a quarter of the stack limit.
const MAX_COMMAND_BYTES: usize = 768 * 1024;

/// What callers ask of the job that owns the channel.
#[derive(Debug)]
pub(crate) enum Request {
    Start {
        command: Box<Command>,
        env: Vec<String>,
        hidden: Vec<String>,
        answer: oneshot::Sender<Result<Running, Error>>,
    },
    Kill {
        id: u32,
        grace: Duration,
    },
    OutputCredit {
        id: u32,
        credit: i64,
    },
    Input {
        id: u32,
        bytes: Vec<u8>,
    },
    Reply {
        connection: u32,
        bytes: Vec<u8>,
    },
    ConnectionCredit {
        connection: u32,
        credit: i64,
    },
    Hangup {
        connection: u32,
    },
    /// Whether no command runs.
    AskIdle {
        answer: oneshot::Sender<bool>,
    },
    /// A connection was refused; the commands that run now may have asked for it.
    NoteRefusal {
        text: String,
    },
}

/// Why the helper could not make the sandbox.
pub(crate) enum SetupFailure {
    /// The helper said so.
    Failed { stage: String, source: io::Error },
    /// The helper said nothing, or nothing we understand.
    Broken(Error),
}

impl From<SetupFailure> for Error {
    fn from(refused: SetupFailure) -> Self {
        match refused {
            SetupFailure::Failed { stage, source } => Self::Setup { stage, source },
            SetupFailure::Broken(error) => error,
        }
    }
}

/// A channel to a helper whose sandbox is ready.
#[derive(Debug)]
pub(crate) struct Channel {
    requests: mpsc::UnboundedSender<Request>,
    jobs: JoinSet<()>,
    /// What the helper could arrange.
    pub(crate) ready: Ready,
}

impl Channel {
    /// Sends the helper the sandbox's description and waits until it is ready.
    pub(crate) async fn open(
        from: impl AsyncRead + Send + Unpin + 'static,
        to: impl AsyncWrite + Send + Unpin + 'static,
        setup: Setup,
        egress: Option<Egress>,
        lease: Option<Duration>,
    ) -> Result<Self, SetupFailure> {
        // Bounded by the callers: each start waits for its answer, and input waits for credit. A signal must never wait.
        let (requests, inbox) = mpsc::unbounded_channel();
        let mut owner = Owner::new((from, to), (requests.clone(), inbox), egress, lease);
        let ready = owner.handshake(setup).await?;
        let mut jobs = JoinSet::new();
        jobs.spawn(owner.run());
        Ok(Self { requests, jobs, ready })
    }

    /// Whether the other side is still there.
    pub(crate) fn is_open(&self) -> bool {
        !self.requests.is_closed()
    }

    /// Whether nothing runs on the other side.
    pub(crate) async fn is_idle(&self) -> bool {
        let (answer, is_idle) = oneshot::channel();
        // Where the channel has ended, everything has.
        self.requests.send(Request::AskIdle { answer }).is_err() || is_idle.await.unwrap_or(true)
    }

    /// A way to start commands that does not keep the channel borrowed.
    pub(crate) fn starter(&self) -> Starter {
        Starter { requests: self.requests.clone() }
    }

    /// Hangs up and waits until nothing here is left running.
    pub(crate) async fn close(mut self) {
        self.jobs.shutdown().await;
    }
}

/// Starts commands on a channel.
#[derive(Clone, Debug)]
pub(crate) struct Starter {
    requests: mpsc::UnboundedSender<Request>,
}

impl Starter {
    /// Starts a command with this environment, after these sockets were covered.
    pub(crate) async fn start(
        &self,
        command: Command,
        env: Vec<String>,
        hidden: Vec<String>,
    ) -> Result<Running, Error> {
        check_size(&command, &env)?;
        let (answer, running) = oneshot::channel();
        let command = Box::new(command);
        self.requests
            .send(Request::Start { command, env, hidden, answer })
            .map_err(|_| Error::Lost)?;
        running.await.map_err(|_| Error::Lost)?
    }
}

fn check_size(command: &Command, env: &[String]) -> Result<(), Error> {
    let too_long = |bytes, limit| Err(Error::TooLong { id: command.id.clone(), bytes, limit });
    let arguments = command.argv.iter().flatten().chain([&command.script]).chain(env);
    let longest = arguments.clone().map(String::len).max().unwrap_or(0);
    let total =
        arguments.map(|argument| argument.len() + 8).sum::<usize>() + command.cwd.as_os_str().len();
    if command.script.len() > MAX_SCRIPT_BYTES {
        too_long(command.script.len(), MAX_SCRIPT_BYTES)
    } else if longest > MAX_ARGUMENT_BYTES {
        too_long(longest, MAX_ARGUMENT_BYTES)
    } else if total > MAX_COMMAND_BYTES {
        too_long(total, MAX_COMMAND_BYTES)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
