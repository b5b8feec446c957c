//! One running server: the SDK's client over our own byte streams, or over HTTP.

use std::collections::HashMap;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::{NotificationContext, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ServiceExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use windlass_core::layout::WORKSPACE;
use windlass_sandbox::{
    Chunk, Command, IsolationReport, KILL_GRACE, Running, Sandbox, SandboxKind, Stdin, Stream,
};

use super::bound::{BoundedLines, MAX_MESSAGE_BYTES};
use super::definition::{Definition, Transport};
use super::http::WatchedClient;
use super::trouble::{Trouble, Troubles};

/// Bytes on their way between a server and the SDK; a slow side makes the other wait.
const PIPE_BYTES: usize = 64 * 1024;
/// How much of a server's standard error is kept, for the message that it died.
const MAX_STDERR_BYTES: usize = 2 * 1024;
/// How long a server may take to shut down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// A server that runs, and the jobs that carry its bytes. Dropping it ends the server.
pub(super) struct Connection {
    pub service: RunningService<RoleClient, Client>,
    /// Raised when the server says that its tools have changed.
    pub relist: Arc<Notify>,
    /// What goes wrong beneath the SDK.
    pub troubles: Troubles,
    stderr: StderrTail,
    _pump: JoinSet<()>,
}

/// Our side of a connection: it calls tools and offers nothing itself.
pub(super) struct Client {
    relist: Arc<Notify>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let version = env!("CARGO_PKG_VERSION");
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("windlass", version))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.relist.notify_one();
    }
}

/// The end of what a server wrote to its standard error.
#[derive(Clone, Default)]
struct StderrTail(Arc<Mutex<Vec<u8>>>);

impl StderrTail {
    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let over = kept.len().saturating_sub(MAX_STDERR_BYTES);
        kept.drain(..over);
    }

    fn words(&self) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = crate::output::readable(&kept);
        let last = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(windlass_core::text::one_line(last, 300))
    }
}

impl Connection {
    /// Starts a server and greets it; the error is words for the model and the person.
    pub async fn open(definition: &Definition, sandbox: &dyn Sandbox) -> Result<Self, String> {
        let started = tokio::time::timeout(definition.startup, connect(definition, sandbox)).await;
        let late = || format!("it did not start within {} s", definition.startup.as_secs());
        started.unwrap_or_else(|_| Err(late()))
    }

    /// Whether it can still be spoken to.
    pub fn is_alive(&self) -> bool {
        !self.service.is_closed() && !self.service.is_transport_closed()
    }

    /// What it complained about last.
    pub fn stderr(&self) -> Option<String> {
        self.stderr.words()
    }

    /// Takes leave and ends it.
    pub async fn close(mut self) {
        let _ = self.service.close_with_timeout(SHUTDOWN_TIMEOUT).await;
    }
}

async fn connect(definition: &Definition, sandbox: &dyn Sandbox) -> Result<Connection, String> {
    let relist = Arc::new(Notify::new());
    let client = Client { relist: Arc::clone(&relist) };
    let (stderr, troubles) = (StderrTail::default(), Troubles::default());
    let mut pump = JoinSet::new();
    let service = match &definition.transport {
        Transport::Stdio { .. } => {
            let running = sandbox.start(command(definition, sandbox)).await;
            let running = running.map_err(|error| chain(&error))?;
            let (near, far) = tokio::io::duplex(PIPE_BYTES);
            pump.spawn(carry(running, far, stderr.clone(), troubles.clone()));
            let (read, write) = tokio::io::split(near);
            let transport =
                AsyncRwTransport::new(read, write).with_max_line_length(MAX_MESSAGE_BYTES);
            client.serve(transport).await
        }
        Transport::Http { url, headers } => {
            client.serve(http(url, headers, troubles.clone())?).await
        }
    };
    let service = service.map_err(|error| match stderr.words() {
        Some(words) => format!("{}; it said: {words}", chain(&error)),
        None => without_types(&chain(&error)).to_owned(),
    })?;
    Ok(Connection { service, relist, troubles, stderr, _pump: pump })
}

/// The SDK names the types of its transports before what went wrong, and its own step behind it.
fn without_types(text: &str) -> &str {
    let text = text.split_once("] error: ").map_or(text, |(_, words)| words);
    let text = text.strip_prefix("Client error: ").unwrap_or(text);
    text.rsplit_once(", when ").map_or(text, |(words, _)| words)
}

fn command(definition: &Definition, sandbox: &dyn Sandbox) -> Command {
    let IsolationReport { workspace: cwd, kind, .. } = sandbox.isolation();
    let (argv, env) = match &definition.transport {
        Transport::Stdio { command, args, env } => {
            // The host has the workspace at its own path only.
            let at = |arg: &String| match arg.as_str() {
                WORKSPACE if kind == SandboxKind::Host => cwd.display().to_string(),
                _ => arg.clone(),
            };
            let argv = std::iter::once(command.clone()).chain(args.iter().map(at)).collect();
            (Some(argv), env.clone())
        }
        Transport::Http { .. } => (None, Vec::new()),
    };
    let id = format!("mcp-{}", definition.name);
    Command { argv, env, stdin: Stdin::Piped, ..Command::script(id, String::new(), cwd) }
}

/// Carries bytes both ways until one side ends. Owns the process, which ends with this job.
async fn carry(
    mut running: Running,
    far: tokio::io::DuplexStream,
    stderr: StderrTail,
    troubles: Troubles,
) {
    let mut lines = BoundedLines::default();
    let mut input = running.take_input();
    let (mut from_sdk, mut to_sdk) = tokio::io::split(far);
    let mut buffer = vec![0; PIPE_BYTES];
    loop {
        tokio::select! {
            chunk = running.next() => match chunk {
                Some(Chunk { stream: Stream::Out, bytes }) => {
                    let (bytes, passes) = lines.take(&bytes);
                    // The SDK drops such a message, and its caller would wait for it.
                    if passes {
                        troubles.report(Trouble::TooLarge);
                    }
                    if to_sdk.write_all(&bytes).await.is_err() {
                        break;
                    }
                }
                Some(Chunk { stream: Stream::Err, bytes }) => stderr.push(&bytes),
                None => break,
            },
            read = from_sdk.read(&mut buffer), if input.is_some() => match read {
                Ok(0) | Err(_) => {
                    // A server over stdio ends when its input ends.
                    input = None;
                    running.killer().kill(KILL_GRACE);
                }
                Ok(bytes) => if let Some(input) = &mut input {
                    input.write(&buffer[..bytes]).await;
                },
            },
        }
    }
}

fn http(
    url: &str,
    headers: &[(String, String)],
    troubles: Troubles,
) -> Result<StreamableHttpClientTransport<WatchedClient>, String> {
    crate::web::install_tls();
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| chain(&error))?;
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let parsed = HeaderName::from_str(name).ok().zip(HeaderValue::from_str(value).ok());
        let (name, mut value) = parsed.ok_or_else(|| format!("header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        custom.insert(name, value);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.custom_headers = custom;
    config.reinit_on_expired_session = true;
    config.max_sse_event_size = MAX_MESSAGE_BYTES;
    let client = WatchedClient { client, troubles };
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// An error with its causes, in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    windlass_core::text::one_line(&windlass_core::text::with_causes(error), 500)
}
