//! The job that owns a channel: it obeys requests, and applies what the helper reports.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use windlass_helper::protocol::{
    Cause, MAX_CHUNK_BYTES, MAX_CONNECTIONS, Order, Ready, Report, Setup, Start, VERSION, WINDOW,
    cost,
};
use windlass_helper::wire;

use super::{Request, SetupFailure};
use crate::api::{Chunk, Command, CommandEnd, Exit, KILL_GRACE, Stdin, Stream};
use crate::network::Egress;
use crate::running::{Carrier, KillHandle, OnDrop, Running};
use crate::{Error, proxy};

/// Commands at once in one sandbox: far more than agents use, few enough for one process to carry.
const MAX_COMMANDS: usize = 256;

/// Refused connections that are noted for one command; more would say the same.
const MAX_REFUSALS: usize = 5;

/// Signs of life within one lease.
const BEATS_PER_LEASE: u32 = 6;

/// The timer's period where there is no lease to renew.
const NO_LEASE: Duration = Duration::from_secs(3600);

/// A command as the owner of the channel sees it.
struct CommandState {
    name: String,
    starting: Option<(oneshot::Sender<Result<Running, Error>>, Running)>,
    output: mpsc::UnboundedSender<Chunk>,
    ended: oneshot::Sender<CommandEnd>,
    input: Arc<Semaphore>,
    under_way: i64,
    refused: Vec<String>,
}

impl CommandState {
    fn note_refusal(&mut self, text: &str) {
        if self.refused.len() < MAX_REFUSALS && !self.refused.iter().any(|known| known == text) {
            self.refused.push(text.to_owned());
        }
    }

    /// Tells the caller that the command runs.
    fn report_start(&mut self) {
        // A caller that no longer waits cannot kill it, background or not.
        if let Some((answer, running)) = self.starting.take()
            && let Err(Ok(mut unwanted)) = answer.send(Ok(running))
        {
            unwanted.on_drop = OnDrop::Kill(KILL_GRACE);
        }
    }
}

/// A proxy connection as the owner of the channel sees it.
struct Tunnel {
    /// `None` once the connection inside is gone; what it sent may still be on its way out.
    requests: Option<mpsc::UnboundedSender<Vec<u8>>>,
    credit: Arc<Semaphore>,
    under_way: i64,
}

impl Tunnel {
    fn is_open(&self) -> bool {
        self.requests.is_some()
    }

    fn close(&mut self) {
        self.requests = None;
        self.credit.close();
    }
}

/// The job that owns both streams and the state of every running command.
pub(super) struct Owner<R, W> {
    from: R,
    to: W,
    received: Vec<u8>,
    out: Vec<u8>,
    sent: usize,
    inbox: mpsc::UnboundedReceiver<Request>,
    requests: mpsc::UnboundedSender<Request>,
    egress: Option<Arc<Egress>>,
    commands: HashMap<u32, CommandState>,
    connections: HashMap<u32, Tunnel>,
    jobs: JoinSet<()>,
    next_id: u32,
    /// How long the helper waits for a heartbeat.
    lease: Option<Duration>,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin> Owner<R, W> {
    pub fn new(
        (from, to): (R, W),
        (requests, inbox): (mpsc::UnboundedSender<Request>, mpsc::UnboundedReceiver<Request>),
        egress: Option<Egress>,
        lease: Option<Duration>,
    ) -> Self {
        Self {
            from,
            to,
            received: Vec::new(),
            out: Vec::new(),
            sent: 0,
            inbox,
            requests,
            egress: egress.map(Arc::new),
            commands: HashMap::new(),
            connections: HashMap::new(),
            jobs: JoinSet::new(),
            next_id: 1,
            lease,
        }
    }

    /// Sends the sandbox's description and waits for the helper's answer.
    pub async fn handshake(&mut self, setup: Setup) -> Result<Ready, SetupFailure> {
        let broken = |source| SetupFailure::Broken(Error::Protocol { expected: VERSION, source });
        Order::Setup(setup).write(&mut self.out);
        self.to.write_all(&self.out).await.map_err(broken)?;
        self.out.clear();
        loop {
            match wire::next_frame(&self.received).map_err(broken)? {
                Some((frame, length)) => {
                    let report = Report::read(frame).map_err(broken)?;
                    self.received.drain(..length);
                    return match report {
                        Report::Ready(ready) => Ok(ready),
                        Report::Failed { stage, errno } => Err(SetupFailure::Failed {
                            stage,
                            source: io::Error::from_raw_os_error(errno),
                        }),
                        Report::Started { .. }
                        | Report::Refused { .. }
                        | Report::Output { .. }
                        | Report::InputCredit { .. }
                        | Report::Ended { .. }
                        | Report::Connected { .. }
                        | Report::Request { .. }
                        | Report::ConnectionCredit { .. }
                        | Report::Closed { .. } => Err(broken(io::ErrorKind::InvalidData.into())),
                    };
                }
                None => {
                    if self.from.read_buf(&mut self.received).await.map_err(broken)? == 0 {
                        return Err(broken(io::ErrorKind::UnexpectedEof.into()));
                    }
                }
            }
        }
    }

    /// Runs until the streams end. Callers then see that their commands are lost.
    pub async fn run(mut self) {
        let mut beat = interval(self.lease.map_or(NO_LEASE, |lease| lease / BEATS_PER_LEASE));
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let unsent = self.sent < self.out.len();
            self.received.reserve(MAX_CHUNK_BYTES);
            tokio::select! {
                Some(request) = self.inbox.recv() => self.obey(request),
                result = self.from.read_buf(&mut self.received) => match result {
                    Ok(count) if count > 0 && self.read_reports().is_ok() => {}
                    _ => break,
                },
                result = self.to.write(&self.out[self.sent..]), if unsent => match result {
                    Ok(count) if count > 0 => self.wrote(count),
                    _ => break,
                },
                _ = beat.tick(), if self.lease.is_some() => self.renew_lease(),
                // What a connection had to report came as a request.
                Some(_) = self.jobs.join_next() => {}
            }
        }
        self.jobs.shutdown().await;
    }

    /// Says that we live, and for how long that is to count.
    fn renew_lease(&mut self) {
        if let Some(lease) = self.lease {
            self.order(&Order::Lease { milliseconds: lease.as_millis() as u64 });
        }
    }

    fn wrote(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.out.len() {
            self.out.clear();
            self.out.shrink_to(MAX_CHUNK_BYTES);
            self.sent = 0;
        }
    }

    fn obey(&mut self, request: Request) {
        match request {
            Request::Start { command, env, hidden, answer } => {
                self.start(*command, (env, hidden), answer);
            }
            Request::Kill { id, grace } => {
                if self.commands.contains_key(&id) {
                    self.order(&Order::Kill { id, grace_ms: grace.as_millis() as u64 });
                }
            }
            Request::OutputCredit { id, credit } => self.return_credit(id, credit),
            Request::Input { id, bytes } => {
                if self.commands.contains_key(&id) {
                    self.order(&Order::Input { id, bytes });
                }
            }
            Request::Reply { connection, bytes } => {
                if self.connections.get(&connection).is_some_and(Tunnel::is_open) {
                    self.order(&Order::Reply { connection, bytes });
                }
            }
            Request::ConnectionCredit { connection, credit } => {
                if let Some(tunnel) = self.connections.get_mut(&connection)
                    && tunnel.is_open()
                {
                    tunnel.under_way -= credit;
                    self.order(&Order::ConnectionCredit { connection, credit });
                }
            }
            Request::NoteRefusal { text } => {
                self.commands.values_mut().for_each(|command| command.note_refusal(&text));
            }
            Request::AskIdle { answer } => {
                let _ = answer.send(self.commands.is_empty());
            }
            Request::Hangup { connection } => {
                if self.connections.remove(&connection).is_some_and(|tunnel| tunnel.is_open()) {
                    self.order(&Order::Hangup { connection });
                }
            }
        }
    }

    fn order(&mut self, order: &Order) {
        order.write(&mut self.out);
    }

    fn start(
        &mut self,
        command: Command,
        (env, hidden): (Vec<String>, Vec<String>),
        answer: oneshot::Sender<Result<Running, Error>>,
    ) {
        if self.commands.len() >= MAX_COMMANDS {
            let _ = answer.send(Err(Error::TooMany { limit: MAX_COMMANDS }));
            return;
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let killer = KillHandle { id, requests: self.requests.clone() };
        let (running, Carrier { output, ended, credit }) = Running::new(killer, &command);
        self.order(&Order::Start(Start {
            id,
            argv: command.argv.unwrap_or_default(),
            script: command.script,
            cwd: command.cwd.to_string_lossy().into_owned(),
            env,
            stdin: command.stdin == Stdin::Piped,
            background: command.background,
            timeout_ms: command.timeout.map_or(0, |timeout| timeout.as_millis().max(1) as u64),
            grace_ms: command.grace.as_millis() as u64,
            hidden,
        }));
        let starting = Some((answer, running));
        let name = command.id;
        let command = CommandState {
            name,
            starting,
            output,
            ended,
            input: credit,
            under_way: 0,
            refused: Vec::new(),
        };
        self.commands.insert(id, command);
    }

    fn return_credit(&mut self, id: u32, credit: i64) {
        if let Some(command) = self.commands.get_mut(&id) {
            command.under_way -= credit;
            self.order(&Order::OutputCredit { id, credit });
        }
    }

    /// Applies the whole frames received. An error means that the helper cannot be trusted.
    fn read_reports(&mut self) -> io::Result<()> {
        let received = std::mem::take(&mut self.received);
        let mut rest = received.as_slice();
        while let Some((frame, length)) = wire::next_frame(rest)? {
            self.apply(Report::read(frame)?)?;
            rest = &rest[length..];
        }
        self.received = rest.to_vec();
        Ok(())
    }

    fn apply(&mut self, report: Report) -> io::Result<()> {
        match report {
            Report::Ready(_) | Report::Failed { .. } => {
                return Err(io::ErrorKind::InvalidData.into());
            }
            Report::Started { id } => {
                if let Some(command) = self.commands.get_mut(&id) {
                    command.report_start();
                }
            }
            Report::Refused { id, stage, errno } => {
                if let Some(command) = self.commands.remove(&id)
                    && let Some((answer, mut running)) = command.starting
                {
                    running.on_drop = OnDrop::LetRun;
                    let source = io::Error::from_raw_os_error(errno);
                    let _ = answer.send(Err(Error::Start { id: command.name, stage, source }));
                }
            }
            Report::Output { id, stream, bytes } => self.output(id, stream, bytes)?,
            Report::InputCredit { id, credit } => {
                if let Some(command) = self.commands.get(&id) {
                    command.input.add_permits(credit.clamp(0, WINDOW) as usize);
                }
            }
            Report::Ended { id, cause, value, cwd } => {
                if let Some(mut command) = self.commands.remove(&id) {
                    // A supervisor that was killed at once did not report the start.
                    command.report_start();
                    command.input.close();
                    let cwd = (!cwd.is_empty()).then(|| PathBuf::from(cwd));
                    let refused = command.refused;
                    let exit = exit(cause, value);
                    let _ = command.ended.send(CommandEnd { exit, cwd, refused });
                }
            }
            Report::Connected { connection } => self.connect(connection)?,
            Report::Request { connection, bytes } => {
                if let Some(tunnel) = self.connections.get_mut(&connection)
                    && let Some(requests) = &tunnel.requests
                {
                    tunnel.under_way += cost(bytes.len());
                    within_window(tunnel.under_way)?;
                    let _ = requests.send(bytes);
                }
            }
            Report::ConnectionCredit { connection, credit } => {
                if let Some(tunnel) = self.connections.get(&connection) {
                    tunnel.credit.add_permits(credit.clamp(0, WINDOW) as usize);
                }
            }
            Report::Closed { connection } => {
                if let Some(tunnel) = self.connections.get_mut(&connection) {
                    // What it sent is still carried to its end; the job says when that is done.
                    tunnel.close();
                }
            }
        }
        Ok(())
    }

    fn output(&mut self, id: u32, stream: u8, bytes: Vec<u8>) -> io::Result<()> {
        let Some(command) = self.commands.get_mut(&id) else { return Ok(()) };
        let credit = cost(bytes.len());
        command.under_way += credit;
        within_window(command.under_way)?;
        let stream = if stream == 1 { Stream::Out } else { Stream::Err };
        if command.output.send(Chunk { stream, bytes }).is_err() {
            // Nobody reads it any more, and the command must not stall for that.
            self.return_credit(id, credit);
        }
        Ok(())
    }

    fn connect(&mut self, connection: u32) -> io::Result<()> {
        let Some(egress) = &self.egress else { return Err(io::ErrorKind::InvalidData.into()) };
        if self.connections.len() >= MAX_CONNECTIONS {
            self.order(&Order::Hangup { connection });
            return Ok(());
        }
        // Bounded by the credit that the helper has for this connection: one window.
        let (requests, inbox) = mpsc::unbounded_channel();
        let credit = Arc::new(Semaphore::new(WINDOW as usize));
        let end = proxy::End {
            connection,
            inbox,
            credit: credit.clone(),
            requests: self.requests.clone(),
        };
        self.jobs.spawn(proxy::serve(end, egress.clone()));
        let tunnel = Tunnel { requests: Some(requests), credit, under_way: 0 };
        self.connections.insert(connection, tunnel);
        Ok(())
    }
}

/// One chunk more than the window may be under way: the one that used the last of it.
fn within_window(under_way: i64) -> io::Result<()> {
    if under_way > WINDOW + cost(MAX_CHUNK_BYTES) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "more than the window"));
    }
    Ok(())
}

fn exit(cause: Cause, value: i32) -> Exit {
    match cause {
        Cause::Code => Exit::Code(value),
        Cause::Signal => Exit::Signal(value),
        Cause::TimedOut => Exit::TimedOut,
        Cause::Killed => Exit::Killed,
        Cause::OutOfMemory => Exit::OutOfMemory,
    }
}
