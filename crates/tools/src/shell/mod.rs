//! Commands: `bash`, and the background commands it leaves running.
//!
//! Invariants:
//! - Bounded: of any output only a head and a tail are in memory; the whole goes to files with a cap.
//! - A call ends with its tree: when its act returns, nothing it started in the foreground is left.

mod bash;
mod arriving_commits;
mod arriving_rules;
mod background;
mod bound_files;
mod collect;
mod linked_secrets;
mod live_tail;
mod background_tools;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use windlass_core::id::{CallId, TaskId};
use windlass_core::layout::TASKS_DIRECTORY;
use windlass_sandbox::{Exit, Sandbox};
use windlass_shell::{CommandAnalysis, Context};
use windlass_store::Store;

use crate::tool::Tool;
use crate::workspace::{RuleGuard, Workspace};
use background::Background;
pub use background::BackgroundExit;

/// Where and how one task's commands run.
pub struct Shell {
    sandbox: Arc<dyn Sandbox>,
    store: Store,
    task: TaskId,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    limits: CommandLimits,
    gate: Context,
    background: Background,
}

/// How long commands may take, and how much of what they print is kept at hand.
#[derive(Clone, Copy, Debug)]
pub struct CommandLimits {
    /// When the call does not say.
    pub default_timeout: Duration,
    pub max_timeout: Duration,
    /// Bytes of output in memory: that much of the beginning and that much of the end.
    pub shown_bytes: usize,
}

impl Shell {
    /// A shell in a sandbox, for one task. Nothing starts yet.
    pub fn new(
        sandbox: Arc<dyn Sandbox>,
        store: Store,
        task: TaskId,
        clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
        limits: CommandLimits,
        gate: Context,
    ) -> Self {
        Self { sandbox, store, task, clock, limits, gate, background: Background::default() }
    }

    /// A shell in the same sandbox for another task; it has background commands of its own.
    #[must_use]
    pub fn for_task(&self, task: TaskId) -> Self {
        Self {
            sandbox: Arc::clone(&self.sandbox),
            store: self.store.clone(),
            task,
            clock: Arc::clone(&self.clock),
            limits: self.limits,
            gate: self.gate.clone(),
            background: Background::default(),
        }
    }

    /// What a command would do if it started in `directory`, and what it would bring into the workspace.
    pub async fn analyze(
        &self,
        command: &str,
        directory: &Path,
        workspace: &Workspace,
    ) -> CommandAnalysis {
        let directory = directory.display().to_string();
        let tops: Vec<_> =
            std::iter::once(&self.gate.workspace).chain(&self.gate.more_workspaces).collect();
        let rule_files = arriving_rules::existing(workspace, command, &tops);
        let linked_rules = arriving_rules::linked(workspace, &tops);
        let task_directory = workspace
            .layout()
            .task()
            .map(|task| format!("{}/{TASKS_DIRECTORY}/{task}", workspace.layout().top()));
        let gate = self.gate.clone();
        let mut context = Context { directory, rule_files, task_directory, linked_rules, ..gate };
        let mut analysis = windlass_shell::analyze(command, &context);
        context.linked_secrets = linked_secrets::find(workspace, command, &analysis, &context);
        if !context.linked_secrets.is_empty() {
            analysis = windlass_shell::analyze(command, &context);
        }
        arriving_rules::add_to(&mut analysis, workspace);
        arriving_commits::add_to(&mut analysis, workspace).await;
        analysis
    }

    /// Puts back the files with rules that a call changed before its process was killed. What to say of it, if anything was.
    pub fn put_back_rules(&self, workspace: &Arc<Workspace>, call: CallId) -> Option<String> {
        RuleGuard::recall(Arc::clone(workspace), self.rule_record(call))?.put_back(call)
    }

    /// Where the rules before a call are remembered.
    pub(crate) fn rule_record(&self, call: CallId) -> PathBuf {
        self.store.dir().root().join("rules").join(format!("{call}.json"))
    }

    /// The task whose commands it runs.
    pub fn task(&self) -> TaskId {
        self.task
    }

    pub fn sandbox(&self) -> &Arc<dyn Sandbox> {
        &self.sandbox
    }

    /// Background commands that have ended since the last time somebody asked.
    pub fn exited(&self) -> Vec<BackgroundExit> {
        self.background.exited()
    }

    /// What is to be said of the background commands when all of them are ended now, for this reason.
    pub fn end_running(&self, reason: &str) -> Vec<BackgroundExit> {
        self.background.end_running(reason)
    }

    /// Ends this task's background commands and waits until they are gone; the sandbox stays.
    pub async fn end_background(&self) {
        self.background.kill_all();
        self.background.settle().await;
    }

    /// Ends every command and waits until nothing is left.
    pub async fn close(&self) {
        self.sandbox.stop().await;
        self.background.settle().await;
    }

    /// Where the agent starts.
    fn start_directory(&self) -> PathBuf {
        PathBuf::from(&self.gate.directory)
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

/// The tools of this module, in the order the model is shown them.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(bash::Bash),
        Arc::new(background_tools::BashOutput),
        Arc::new(background_tools::BashKill),
    ]
}

/// The end of a command for want of memory, with the limit where it is known (ES-381).
fn out_of_memory(limit_bytes: Option<u64>) -> String {
    let limit = limit_bytes.map_or(String::new(), |bytes| format!(" of {} MiB", bytes >> 20));
    format!(
        "OOM: ended by the kernel because the sandbox's memory limit{limit} was reached; use less memory \
         or smaller pieces"
    )
}

/// How a command ended, in words for the model; `None` when all went well.
fn exit_words(exit: Exit, timeout: Option<Duration>) -> Option<String> {
    match exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("exit code {code}")),
        Exit::Signal(signal) => Some(format!("ended by signal {signal}")),
        Exit::TimedOut => {
            let seconds = timeout.unwrap_or_default().as_secs();
            Some(format!("timed out after {seconds} s; it and everything it started were stopped"))
        }
        Exit::Killed => Some("stopped, with everything it started".to_owned()),
        Exit::OutOfMemory => Some(out_of_memory(None)),
        Exit::Lost => Some("the sandbox died; how far the command came is unknown".to_owned()),
    }
}
