//! Reads a bash script without running it: every command in it, and what each would do.
//!
//! Invariants:
//! - Total: any text gives a [`CommandAnalysis`]. What cannot be read is class opaque, with the reason.
//! - The worst command counts: an analysis is never less severe than any command found in it.
//! - Pure and bounded: no I/O, and limits on length, nesting and number of commands (see `guard`).

mod guard;
mod syntax;
mod word;
mod state;
mod findings;
mod budget;
mod walk;
mod expand;
mod shell;
mod builtin;
mod wrapper;
mod code;
mod invocation;
mod paths;
mod written;
mod address;
mod sending;
mod options;
mod environment;
mod classify;
mod special;
mod rules;
mod output;
mod table;

pub use paths::names_secret;
pub use rules::patched_names;
pub use table::CustomRule;
use windlass_core::policy::Pattern;
pub use windlass_core::policy::{CommandAnalysis, ShellCommand, Via};

/// The facts a command is read against; gathered by whoever knows the sandbox and the configuration.
#[derive(Clone, Debug)]
pub struct Context {
    /// The directory the command starts in, as the command sees it.
    pub directory: String,
    /// The workspace as the command sees it; writing elsewhere is destructive.
    pub workspace: String,
    /// Other names of the workspace, and directories that were added to it.
    pub more_workspaces: Vec<String>,
    /// The home directory as the command sees it.
    pub home: String,
    /// Directories outside the workspace that may be written freely, such as a sandbox's own `/tmp`.
    pub scratch: Vec<String>,
    /// Branches that count as production, as globs: a push to one is class production.
    pub protected_branches: Vec<String>,
    /// Commands that touch production, as patterns (`fly deploy *`).
    pub production: Vec<Pattern>,
    /// Classes from the configuration, asked before the built-in table.
    pub custom_rules: Vec<CustomRule>,
    /// Files that say what an agent may do, by absolute path, as far as they exist: a glob may stand for one.
    pub rule_files: Vec<String>,
    /// The directory of the task's own files, by absolute path, where it has one in a person's workspace. The files beside it
    /// are other tasks'.
    pub task_directory: Option<String>,
    /// What links among such files lead to, by absolute path: files, and directories of files.
    pub linked_rules: Vec<String>,
    /// Links that lead to files with secrets, or to directories of them, by absolute path.
    pub linked_secrets: Vec<String>,
}

impl Context {
    /// A command that starts in the workspace, with nothing configured.
    pub fn new(workspace: impl Into<String>, home: impl Into<String>) -> Self {
        let workspace = workspace.into();
        Self {
            directory: workspace.clone(),
            workspace,
            more_workspaces: Vec::new(),
            home: home.into(),
            scratch: Vec::new(),
            protected_branches: ["main", "master", "production", "prod", "release", "release/*"]
                .map(str::to_owned)
                .into(),
            production: Vec::new(),
            custom_rules: Vec::new(),
            rule_files: Vec::new(),
            task_directory: None,
            linked_rules: Vec::new(),
            linked_secrets: Vec::new(),
        }
    }
}

/// The stack of the thread that reads deeply nested text: `guard`'s limits times the largest frame.
const DEEP_STACK_BYTES: usize = 64 * 1024 * 1024;

/// Says what a script would do.
pub fn analyze(script: &str, context: &Context) -> CommandAnalysis {
    if script.len() <= guard::LONGEST_TEXT && guard::needs_room(script) {
        // Costs a thread, but only for text that could overflow the caller's stack.
        let analysis = std::thread::scope(|scope| {
            std::thread::Builder::new()
                .stack_size(DEEP_STACK_BYTES)
                .spawn_scoped(scope, || walk::analyze(script, context, budget::Stack::Deep))
                .map(|thread| thread.join().ok())
        });
        return match analysis {
            Ok(Some(analysis)) => analysis,
            _ => CommandAnalysis::new(vec![findings::unreadable(
                script,
                "there was no stack to read it on",
            )]),
        };
    }
    walk::analyze(script, context, budget::Stack::Usual)
}
