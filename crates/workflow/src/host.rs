//! What the engine needs of what lies above it: agents, sandboxes and runners.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windlass_core::error::ErrorDetails;
use windlass_core::event::WorkflowSource;
use windlass_core::id::TaskId;
use windlass_core::layout::Site;
use windlass_core::state::TaskState;
use windlass_sandbox::Sandbox;

use crate::BoxFuture;
use crate::runner::Runner;

/// The coordinator, as the engine sees it.
pub trait Host: Send + Sync {
    /// Works on a task of the run with our own loop, until its segment ends. Its state afterwards.
    fn drive<'a>(
        &'a self,
        task: TaskId,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<TaskState, windlass_agent::Error>>;

    /// What belongs to the workspace of a task that starts in a directory.
    fn site(&self, directory: &Path) -> Site;

    /// Below this the worktrees are.
    fn worktrees(&self) -> PathBuf;

    /// Below this the directories are that worktrees share.
    fn caches(&self) -> PathBuf;

    /// Whether a person has approved the commands of a workflow since it was started.
    fn is_approved(&self, source: &WorkflowSource) -> bool;

    /// Remembers that a person has approved the commands of a workflow.
    fn approve(&self, source: &WorkflowSource) -> Result<(), ErrorDetails>;

    /// Another program that works on steps; `command` where the workflow brings it.
    fn runner(
        &self,
        directory: &Path,
        name: &str,
        command: Option<&[String]>,
    ) -> Result<Arc<dyn Runner>, ErrorDetails>;

    /// The sandbox of a task, for a runner.
    fn sandbox<'a>(
        &'a self,
        task: &'a TaskState,
    ) -> BoxFuture<'a, Result<RunnerPlace, ErrorDetails>>;
}

/// Where a runner works.
pub struct RunnerPlace {
    pub sandbox: Arc<dyn Sandbox>,
    /// Where the program keeps its own sessions, as the sandbox names it.
    pub state: PathBuf,
    /// How long it may print nothing.
    pub stall: Duration,
    /// Its own credentials, where the user's configuration names them.
    pub environment: Vec<(String, String)>,
    /// The MCP servers of the session and of the task.
    pub mcp_servers: serde_json::Map<String, serde_json::Value>,
    /// What the project says to agents, as the worktree has it (WF-006).
    pub instructions: Option<String>,
}
