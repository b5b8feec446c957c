//! Reads a shell command without running it: every command in it, and what each would do.
//!
//! Invariants:
//! - Total: any text gives a [`Reading`]. What cannot be read is class opaque, with the reason.
//! - The worst command counts: a reading is never less severe than any command found in it.
//! - Pure and bounded: no I/O, and limits on length, nesting and number of commands (see `guard`).

mod guard;
mod syntax;
mod word;
mod state;
mod expand;
mod walk;
mod shell;
mod builtin;
mod wrapper;
mod code;
mod invocation;
mod paths;
mod environment;
mod classify;
mod special;
mod output;
pub mod table;

use std::fmt;

use serde::Serialize;

use super::class::{Assessment, Class, Risk};
pub use table::Extra;

/// The facts a command is read against; gathered by whoever knows the sandbox and the configuration.
#[derive(Clone, Debug)]
pub struct Context {
    /// The directory the command starts in, as the command sees it.
    pub directory: String,
    /// The workspace as the command sees it; writing elsewhere is destructive.
    pub workspace: String,
    /// The home directory as the command sees it.
    pub home: String,
    /// Directories outside the workspace that may be written freely, such as a sandbox's own `/tmp`.
    pub scratch: Vec<String>,
    /// Branches that count as production, as globs: a push to one is class production.
    pub protected_branches: Vec<String>,
    /// Commands that touch production, as patterns (`fly deploy *`).
    pub production: Vec<super::pattern::Pattern>,
    /// Classes from the configuration, asked before the built-in table.
    pub extra: Vec<Extra>,
}

impl Context {
    /// A command that starts in the workspace, with nothing configured.
    pub fn new(workspace: impl Into<String>, home: impl Into<String>) -> Self {
        let workspace = workspace.into();
        Self {
            directory: workspace.clone(),
            workspace,
            home: home.into(),
            scratch: Vec::new(),
            protected_branches: ["main", "master", "production", "prod", "release", "release/*"]
                .map(str::to_owned)
                .into(),
            production: Vec::new(),
            extra: Vec::new(),
        }
    }
}

/// How a command is reached from the text around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It stands in the text itself.
    Direct,
    /// As a part of a pipe.
    Pipe,
    /// In `$(…)` or backquotes.
    Substitution,
    /// In `<(…)` or `>(…)`.
    Process,
    /// In `(…)`, `&` or `coproc`.
    Subshell,
    /// A program runs it: `env`, `xargs`, `find -exec`, `ssh` …
    Wrapper(String),
    /// In text that a shell is given: `sh -c`, `eval`, a here-document.
    Script(String),
    /// In the body of a function.
    Function(String),
    /// As the meaning of an alias.
    Alias(String),
    /// As the value of a variable that a program runs.
    Variable(String),
    /// As a file that a redirection opens.
    Redirection,
    /// In code for another interpreter.
    Code(String),
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => f.write_str("directly"),
            Self::Pipe => f.write_str("in a pipe"),
            Self::Substitution => f.write_str("in a command substitution"),
            Self::Process => f.write_str("in a process substitution"),
            Self::Subshell => f.write_str("in a subshell"),
            Self::Wrapper(program) => write!(f, "run by `{program}`"),
            Self::Script(program) => write!(f, "in text for `{program}`"),
            Self::Function(name) => write!(f, "in function `{name}`"),
            Self::Alias(name) => write!(f, "by alias `{name}`"),
            Self::Variable(name) => write!(f, "as the value of `{name}`"),
            Self::Redirection => f.write_str("by redirection"),
            Self::Code(program) => write!(f, "in code for `{program}`"),
        }
    }
}

impl Serialize for How {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One command that was found, and the commands found inside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Command {
    /// Its words as far as they are known, quoted where needed; `…` for what is not known.
    pub command: String,
    /// How it is reached.
    pub how: How,
    /// What it would do by itself, without the commands inside it.
    #[serde(flatten)]
    pub assessment: Assessment,
    /// Program and arguments for matching rules; `None` for a word that is not wholly known.
    #[serde(skip)]
    pub words: Vec<Option<String>>,
    /// Commands found in its arguments, or run by it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Command>,
}

impl Command {
    /// The program's own name, without its directory; empty when it is not known.
    pub fn program(&self) -> &str {
        let name = self.words.first().and_then(Option::as_deref).unwrap_or_default();
        name.rsplit('/').next().unwrap_or_default()
    }
}

/// What a command text would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The worst of everything found.
    pub assessment: Assessment,
    /// Every command found, as a tree.
    pub commands: Vec<Command>,
    /// Whether the text could be taken apart; one that could not may be none that a shell takes either.
    pub parsed: bool,
}

impl Reading {
    /// Every command of the tree, outer before inner.
    pub fn flat(&self) -> Vec<&Command> {
        fn add<'r>(commands: &'r [Command], all: &mut Vec<&'r Command>) {
            for command in commands {
                all.push(command);
                add(&command.commands, all);
            }
        }
        let mut all = Vec::new();
        add(&self.commands, &mut all);
        all
    }

    fn of(commands: Vec<Command>) -> Self {
        let mut reading = Self {
            assessment: Assessment::of(Class::Read, "it runs nothing"),
            commands,
            parsed: true,
        };
        let mut worst: Option<&Assessment> = None;
        let (mut class, mut risk) = (Class::Read, Risk::Low);
        let all = reading.flat();
        for command in &all {
            let this = &command.assessment;
            (class, risk) = (class.max(this.class), risk.max(this.risk));
            if worst.is_none_or(|worst| (worst.risk, worst.class) < (this.risk, this.class)) {
                worst = Some(this);
            }
        }
        if let Some(worst) = worst {
            reading.assessment = Assessment { class, risk, reason: worst.reason.clone() };
        }
        reading
    }
}

/// The stack of the thread that reads deeply nested text: `guard`'s limits times the largest frame.
const ROOMY_STACK: usize = 64 * 1024 * 1024;

/// Reads a command text.
pub fn read(script: &str, context: &Context) -> Reading {
    if script.len() <= guard::LONGEST_TEXT && guard::needs_room(script) {
        // Costs a thread, but only for text that could overflow the caller's stack.
        let roomy = std::thread::scope(|scope| {
            std::thread::Builder::new()
                .stack_size(ROOMY_STACK)
                .spawn_scoped(scope, || walk::read(script, context, walk::Stack::Roomy))
                .map(|thread| thread.join().ok())
        });
        return match roomy {
            Ok(Some(reading)) => reading,
            _ => Reading::of(vec![walk::unreadable(script, "there was no stack to read it on")]),
        };
    }
    walk::read(script, context, walk::Stack::Usual)
}

/// Reads a command given as bytes; text that is not UTF-8 is opaque whatever else it holds.
pub fn read_bytes(script: &[u8], context: &Context) -> Reading {
    match std::str::from_utf8(script) {
        Ok(script) => read(script, context),
        Err(_) => {
            let text = String::from_utf8_lossy(script);
            let mut reading = read(&text, context);
            reading.commands.push(walk::unreadable(&text, "it is not UTF-8"));
            Reading::of(reading.commands)
        }
    }
}
