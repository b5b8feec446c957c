//! Commands by the engine's own exec, where the helper cannot run. Slower and weaker; a warning says so.
//!
//! Each command is a job that owns its exec: it carries the output while the reader has room for it, ends the
//! command's process group when asked or when its time is up, and asks the engine how it ended.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bollard::container::LogOutput;
use futures_util::StreamExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::engine::{Engine, Output, To};
use crate::Error;
use crate::api::{Chunk, Command, CommandEnd, Exit, Stdin, Stream};
use crate::channel::Request;
use crate::running::{Carrier, KillHandle, Running};
use windlass_helper::protocol::{WINDOW, cost};

/// What a person reads when the task starts.
pub(super) const WARNING: &str = "the helper does not run in this container: commands go through the \
    engine, each takes far longer, there is no proxy, processes that leave their group are not ended with \
    their command, the working directory is not carried from one to the next, and files in the workspace can \
    be made set-user and set-group";

/// Notes its process number, which is that of its group, and becomes the program.
const PROGRAM: &str = r#"echo $$ >"$1"; shift; exec "$@""#;

/// The same for a script, by the best shell there is.
const SCRIPT: &str = r#"echo $$ >"$1"; if command -v bash >/dev/null 2>&1; then exec bash -c "$2"; fi; exec sh -c "$2""#;

/// Sends a signal to a noted group.
const SIGNAL: &str = r#"kill -s "$1" -- "-$(cat "$2")""#;

/// How often the engine is asked whether a command ended whose output somebody holds open.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long the last output may take once the command ended.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// Starts commands by the engine's exec.
#[derive(Debug)]
pub(super) struct ExecFallback {
    engine: Engine,
    container: String,
    count: AtomicU32,
    jobs: std::sync::Mutex<JoinSet<()>>,
}

impl ExecFallback {
    pub(super) fn new(engine: Engine, container: String) -> Self {
        let jobs = std::sync::Mutex::default();
        Self { engine, container, count: AtomicU32::new(1), jobs }
    }

    /// Starts a command. One that cannot be started ends as a shell says it: 126 or 127.
    pub(super) fn start(&self, command: Command, env: Vec<String>) -> Running {
        let id = self.count.fetch_add(1, Ordering::Relaxed);
        // Bounded by the caller: input waits for credit, and a command is signalled a few times at most.
        let (requests, inbox) = mpsc::unbounded_channel();
        let (running, Carrier { output, ended, credit }) =
            Running::new(KillHandle { id, requests }, &command);
        let job = Job {
            engine: self.engine.clone(),
            container: self.container.clone(),
            note: format!("/tmp/.windlass-{id}"),
            inbox,
            output: Some(output),
            credit,
            under_way: 0,
            force_at: None,
            ended_by_us: None,
        };
        let mut jobs = self.jobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while jobs.try_join_next().is_some() {}
        jobs.spawn(async move {
            let cwd = command.cwd.clone();
            let exit = job.run(command, env).await.unwrap_or(Exit::Lost);
            let _ = ended.send(CommandEnd { exit, cwd: Some(cwd), refused: Vec::new() });
        });
        running
    }

    pub(super) fn is_idle(&self) -> bool {
        let mut jobs = self.jobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while jobs.try_join_next().is_some() {}
        jobs.is_empty()
    }

    pub(super) async fn close(self) {
        let mut jobs = self.jobs.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        jobs.shutdown().await;
    }
}

/// One command under way.
struct Job {
    engine: Engine,
    container: String,
    /// Where the command's process number is noted in the container.
    note: String,
    inbox: mpsc::UnboundedReceiver<Request>,
    output: Option<mpsc::UnboundedSender<Chunk>>,
    credit: Arc<Semaphore>,
    under_way: i64,
    force_at: Option<Instant>,
    ended_by_us: Option<Exit>,
}

impl Job {
    async fn run(mut self, command: Command, env: Vec<String>) -> Result<Exit, Error> {
        let words = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let mut program = words(&["sh", "-c"]);
        match &command.argv {
            Some(argv) => {
                program.extend(words(&[PROGRAM, "sh", &self.note]));
                program.extend(argv.iter().cloned());
            }
            None => program.extend(words(&[SCRIPT, "sh", &self.note, &command.script])),
        }
        let cwd = text(&command.cwd);
        let (exec, mut from, to) = self.engine.exec(&self.container, program, cwd, env).await?;
        let mut to = (command.stdin == Stdin::Piped).then_some(to);
        let deadline = command.timeout.map(|timeout| Instant::now() + timeout);
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        let mut open = true;
        let code = loop {
            let room = self.under_way < WINDOW;
            tokio::select! {
                item = from.next(), if open && room => match item {
                    Some(Ok(item)) => self.pass(item),
                    Some(Err(_)) | None => open = false,
                },
                request = self.inbox.recv() => self.obey(request, &mut to).await,
                () = until(deadline), if self.ended_by_us.is_none() => {
                    self.end(Exit::TimedOut, command.grace).await;
                }
                () = until(self.force_at) => {
                    self.force_at = None;
                    self.signal("KILL").await;
                }
                _ = poll.tick() => {
                    if let Some(code) = self.engine.exit_code(&exec).await? {
                        break code;
                    }
                }
            }
        };
        if !command.background {
            self.signal("KILL").await;
        }
        if open {
            let _ = timeout(LAST_OUTPUT_TIMEOUT, self.drain(&mut from)).await;
        }
        self.output = None;
        Ok(self.ended_by_us.unwrap_or(Exit::Code(code.try_into().unwrap_or(-1))))
    }

    fn pass(&mut self, item: LogOutput) {
        let (stream, bytes) = match item {
            LogOutput::StdErr { message } => (Stream::Err, message),
            LogOutput::StdOut { message }
            | LogOutput::StdIn { message }
            | LogOutput::Console { message } => (Stream::Out, message),
        };
        let credit = cost(bytes.len());
        let sent = self.output.as_ref().map(|to| to.send(Chunk { stream, bytes: bytes.to_vec() }));
        // Nobody reads it any more, and the command must not stall for that.
        if matches!(sent, Some(Ok(()))) {
            self.under_way += credit;
        }
    }

    async fn drain(&mut self, from: &mut Output) {
        while let Some(Ok(item)) = from.next().await {
            self.pass(item);
        }
    }

    async fn obey(&mut self, request: Option<Request>, to: &mut Option<To>) {
        match request {
            Some(Request::Kill { grace, .. }) => self.end(Exit::Killed, grace).await,
            Some(Request::OutputCredit { credit, .. }) => self.under_way -= credit,
            Some(Request::Input { bytes, .. }) if bytes.is_empty() => {
                if let Some(mut to) = to.take() {
                    let _ = to.shutdown().await;
                }
            }
            Some(Request::Input { bytes, .. }) => {
                if let Some(to) = to {
                    let _ = to.write_all(&bytes).await;
                    let _ = to.flush().await;
                }
                self.credit.add_permits(cost(bytes.len()) as usize);
            }
            // What only concerns a helper's channel. Without any asker left there is nothing to wait for.
            Some(
                Request::Start { .. }
                | Request::Reply { .. }
                | Request::ConnectionCredit { .. }
                | Request::Hangup { .. }
                | Request::AskIdle { .. }
                | Request::NoteRefusal { .. },
            ) => {}
            None => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }

    async fn end(&mut self, why: Exit, grace: Duration) {
        self.ended_by_us.get_or_insert(why);
        let at = Instant::now() + grace;
        self.force_at = Some(self.force_at.map_or(at, |earlier| earlier.min(at)));
        self.signal("TERM").await;
    }

    async fn signal(&self, name: &str) {
        let program = ["sh", "-c", SIGNAL, "sh", name, &self.note].map(str::to_owned).to_vec();
        if let Ok((_, mut said, _)) =
            self.engine.exec(&self.container, program, None, Vec::new()).await
        {
            while said.next().await.is_some() {}
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn text(path: &Path) -> Option<String> {
    path.to_str().map(str::to_owned)
}
