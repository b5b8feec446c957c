//! One server under supervision: started when needed, started again once when it dies, then given up.

use std::sync::Arc;

use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject, PaginatedRequestParams};
use rmcp::service::ServiceError;
use tokio::sync::Mutex;

use super::connection::{Connection, chain};
use super::definition::{Definition, Transport};
use super::pin::{self, Listing, ToolChange, ToolInfo};
use super::trouble::Trouble;
use super::{MAX_TOOLS, McpHost};

/// Starts that may fail in a row, or end before a call does: the first, and one more.
const MAX_FAILURES: u32 = 2;
/// Pages of a listing; a server that never ends it is cut off.
const MAX_PAGES: usize = 32;

pub struct Server {
    definition: Definition,
    host: McpHost,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// In a row; an answered call sets it to 0.
    failures: u32,
    last_error: String,
    /// The changes that were reported already, so that each is reported once.
    reported: Vec<ToolChange>,
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The server could not be started, or not again; nothing was sent.
    NotStarted(String),
    /// It went away while the call ran; whether it did what it was asked is unknown.
    Died(String),
    /// It did not answer in time; the call was cancelled.
    TooSlow,
    /// It answered with more than one message may have.
    TooLarge,
    /// It answered that the call is wrong, or with something that is not an answer.
    Refused(String),
}

impl Server {
    pub(super) fn new(definition: Definition, host: McpHost) -> Self {
        Self { definition, host, state: Mutex::default() }
    }

    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// How it is spoken to.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// What it offers: as pinned, or as it says now when it is met for the first time.
    pub async fn listing(&self) -> Result<Listing, String> {
        match pin::read(&self.host.pins, &self.definition) {
            Some(pinned) => Ok(pinned),
            None => self.meet().await,
        }
    }

    /// Starts it and pins what it says now, whatever was pinned before.
    pub async fn meet(&self) -> Result<Listing, String> {
        let connection = self.connected().await?;
        let listing = list(&connection, &self.definition).await?;
        if let Err(error) = pin::write(&self.host.pins, &self.definition, &listing) {
            tracing::warn!(
                server = self.name(),
                "What the server offers cannot be pinned: {error}"
            );
        }
        Ok(listing)
    }

    /// What it says now, and how that differs from what is pinned.
    pub async fn compare(&self) -> Result<(Listing, Vec<ToolChange>), String> {
        let connection = self.connected().await?;
        let now = list(&connection, &self.definition).await?;
        let pinned = pin::read(&self.host.pins, &self.definition);
        let changes = pinned.map(|pinned| pinned.changes(&now)).unwrap_or_default();
        Ok((now, changes))
    }

    /// Calls a tool. A call that only reads is sent once more to a server that had to be started again.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        effects: Effects,
    ) -> Result<CallToolResult, CallError> {
        match self.call_once(tool, arguments.clone()).await {
            Err(CallError::Died(_)) if effects == Effects::None => {
                self.call_once(tool, arguments).await
            }
            outcome => outcome,
        }
    }

    async fn call_once(
        &self,
        tool: &str,
        arguments: JsonObject,
    ) -> Result<CallToolResult, CallError> {
        let connection = self.connected().await.map_err(CallError::NotStarted)?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut listener = connection.troubles.listen();
        let calling = connection.service.call_tool(params);
        // A call that is dropped unanswered tells the server to stop.
        let answered = tokio::select! {
            biased;
            answered = calling => answered,
            trouble = listener.trouble() => return Err(self.call_error(&connection, trouble).await),
            () = tokio::time::sleep(self.definition.call) => return Err(CallError::TooSlow),
        };
        // What went wrong beneath the SDK says more than that the SDK gave up.
        if answered.is_err()
            && let Some(trouble) = listener.reported()
        {
            return Err(self.call_error(&connection, trouble).await);
        }
        match answered {
            Ok(result) => {
                self.state.lock().await.failures = 0;
                Ok(result)
            }
            Err(ServiceError::TransportClosed | ServiceError::TransportSend(_)) => {
                let words = connection.stderr();
                let words = words.map_or_else(String::new, |said| format!("; it said: {said}"));
                Err(self
                    .died(&connection, format!("the server ended during the call{words}"))
                    .await)
            }
            Err(error) => Err(CallError::Refused(chain(&error))),
        }
    }

    /// Why a call gets no answer when something went wrong beneath it.
    async fn call_error(&self, connection: &Arc<Connection>, trouble: Trouble) -> CallError {
        match trouble {
            Trouble::TooLarge => CallError::TooLarge,
            Trouble::Unreachable(words) => {
                self.note_loss(connection, &words).await;
                CallError::NotStarted(words)
            }
            Trouble::Broken(words) => {
                self.died(connection, format!("the connection broke during the call: {words}"))
                    .await
            }
        }
    }

    async fn died(&self, connection: &Arc<Connection>, error: String) -> CallError {
        self.note_loss(connection, &error).await;
        let next = match self.is_given_up(&*self.state.lock().await) {
            true => "it is not started again in this task",
            false => "it is started again with the next call",
        };
        CallError::Died(format!("{error} ({next})"))
    }

    /// A program that keeps ending is not started for ever. A server elsewhere is asked again: it may be back.
    fn is_given_up(&self, state: &State) -> bool {
        match self.definition.transport {
            Transport::Stdio { .. } => state.failures >= MAX_FAILURES,
            Transport::Http { .. } => false,
        }
    }

    /// The running server; starts it if it does not run.
    async fn connected(&self) -> Result<Arc<Connection>, String> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            if connection.is_alive() {
                return Ok(Arc::clone(connection));
            }
            state.connection = None;
        }
        if self.is_given_up(&state) {
            return Err(format!("{} (it is not started again in this task)", state.last_error));
        }
        self.check_approval().await?;
        match Connection::open(&self.definition, self.host.sandbox.as_ref()).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                self.report_changes(&connection, &mut state).await;
                Ok(connection)
            }
            Err(error) => {
                state.failures += 1;
                state.last_error = error.clone();
                Err(error)
            }
        }
    }

    /// Refuses to start what a person has not approved as it is now.
    async fn check_approval(&self) -> Result<(), String> {
        let Some(approval) = self.definition.approval.clone() else { return Ok(()) };
        // It reads every file that the server runs.
        let checked = tokio::task::spawn_blocking(move || approval.run()).await;
        let checked = checked.unwrap_or_else(|_| Err("its approval cannot be checked".to_owned()));
        checked.inspect_err(|why| {
            tracing::warn!(server = self.name(), "MCP server not started: {why}")
        })
    }

    async fn note_loss(&self, connection: &Arc<Connection>, error: &str) {
        let mut state = self.state.lock().await;
        // Of several calls that ran only the first reports the loss.
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            tracing::warn!(server = self.name(), "MCP server ended: {error}");
            state.connection = None;
            state.failures += 1;
            state.last_error = error.to_owned();
        }
    }

    /// Compares what a server that was just started says with what is pinned, and tells of changes.
    async fn report_changes(&self, connection: &Connection, state: &mut State) {
        let Some(pinned) = pin::read(&self.host.pins, &self.definition) else { return };
        let Ok(now) = list(connection, &self.definition).await else { return };
        let changes = pinned.changes(&now);
        if changes.is_empty() || changes == state.reported {
            return;
        }
        let text = changes_text(self.name(), &changes);
        tracing::warn!(server = self.name(), "{text}");
        self.host.notices.add(text);
        state.reported = changes;
    }

    /// Tells of changes that the server itself announced since it was started.
    pub(super) async fn notice_changes(&self) {
        let mut state = self.state.lock().await;
        let Some(connection) = state.connection.clone() else { return };
        let announced =
            tokio::time::timeout(std::time::Duration::ZERO, connection.relist.notified());
        if announced.await.is_ok() {
            self.report_changes(&connection, &mut state).await;
        }
    }

    /// Ends it, if it runs.
    pub async fn close(&self) {
        let connection = self.state.lock().await.connection.take();
        if let Some(connection) = connection.and_then(Arc::into_inner) {
            connection.close().await;
        }
    }
}

/// Whether a call may change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effects {
    /// It only reads, by the word of a server that is trusted.
    None,
    Possible,
}

async fn list(connection: &Connection, definition: &Definition) -> Result<Listing, String> {
    let listed = tokio::time::timeout(definition.startup, pages(connection)).await;
    listed.unwrap_or_else(|_| Err("it did not say in time what it offers".to_owned()))
}

async fn pages(connection: &Connection) -> Result<Listing, String> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = connection.service.list_tools(Some(params)).await;
        let page = page.map_err(|error| chain(&error))?;
        tools.extend(page.tools.iter().filter_map(ToolInfo::new));
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() >= MAX_TOOLS {
            break;
        }
    }
    tools.truncate(MAX_TOOLS);
    Ok(Listing { tools })
}

fn changes_text(server: &str, changes: &[ToolChange]) -> String {
    let mut lines: Vec<_> = changes
        .iter()
        .map(|change| match change {
            ToolChange::Added(tool) => format!("- new, not offered: `{tool}`"),
            ToolChange::Changed(tool) => {
                format!("- described otherwise than when it was first met: `{tool}`")
            }
            ToolChange::Removed(tool) => format!("- gone: `{tool}`"),
        })
        .take(20)
        .collect();
    if changes.len() > lines.len() {
        lines.push(format!("- and {} more", changes.len() - lines.len()));
    }
    format!(
        "MCP server `{server}` describes its tools differently from what is pinned:\n{}\nYou are still \
         shown the pinned descriptions. A person can look at the new ones and accept them.",
        lines.join("\n")
    )
}
