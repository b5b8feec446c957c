//! The interface of every tool.
//!
//! Invariant: `prepare` changes nothing. Everything a call changes, it changes in its `Act`, which a
//! process runs at most once, and only after the gate has allowed it and the journal has it. After a crash its
//! `Recovery` says whether it may run again.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_core::id::CallId;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::policy::CommandAnalysis;
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::question::BoundFile;
use windlass_core::string_enum;

use crate::builtin::{Ledger, Signature};
use crate::shell::Shell;
use crate::workspace::Workspace;
use windlass_model::Embeddings;
use windlass_skills::{SkillRegistry, Viewer};
use windlass_store::Pictures;

/// How many notices wait for an agent that does not ask for them.
const MAX_NOTICES: usize = 32;

/// What one agent's tools work with; the same for all its calls.
#[derive(Clone)]
pub struct ToolContext {
    /// The files it may touch.
    pub workspace: Arc<Workspace>,
    /// The skills, as they are now.
    pub skills: SkillRegistry,
    /// Where its commands run.
    pub shell: Arc<Shell>,
    /// Tells how near two texts are in meaning. Without it, notes are searched by words alone.
    pub embeddings: Option<Embeddings>,
    /// Promised work, and what proves it.
    pub ledger: Ledger,
    /// Where pictures are kept that it is shown.
    pub pictures: Pictures,
    /// What it should read before its next turn.
    pub notices: Notices,
}

/// What changed around an agent and the agent does not know yet, such as a new description of a tool.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    texts: Arc<Mutex<VecDeque<String>>>,
}

impl Notices {
    /// Adds a text; the oldest goes when too many wait.
    pub fn add(&self, text: impl Into<String>) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.len() == MAX_NOTICES {
            texts.pop_front();
        }
        texts.push_back(text.into());
    }

    /// Everything that waits, oldest first.
    pub fn take(&self) -> Vec<String> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *texts).into()
    }
}

/// What the task's state knows that tools need.
#[derive(Clone, Debug, Default)]
pub struct TaskFacts {
    /// The version of each file that the agent has last seen or made, by path.
    pub known_files: BTreeMap<String, String>,
    /// The shell's directory, as the agent sees it.
    pub working_directory: Option<String>,
    /// Who asks, as far as skills are offered by it.
    pub viewer: Viewer,
    /// Whether it can let others work for it.
    pub may_spawn: bool,
    /// Whose call it is, as the ledger of commitments keeps it.
    pub signature: Option<Signature>,
}

/// Where a running call shows what it prints, before it has ended. Nobody need watch.
#[derive(Clone, Default)]
pub struct LiveOutput(Option<Arc<dyn Fn(String) + Send + Sync>>);

impl LiveOutput {
    /// Shows each piece by this function.
    pub fn new(show: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(show)))
    }

    /// Shows a piece.
    pub(crate) fn show(&self, text: String) {
        if let Some(show) = &self.0 {
            show(text);
        }
    }
}

impl fmt::Debug for LiveOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "LiveOutput(shown)" } else { "LiveOutput(none)" })
    }
}

/// One call, its arguments already checked against the tool's schema.
#[derive(Clone, Debug)]
pub struct Call {
    /// Our id of it.
    pub id: CallId,
    pub arguments: Value,
    /// What the state knows.
    pub facts: Arc<TaskFacts>,
    /// Largest result in the context, in tokens.
    pub limit_tokens: u64,
    /// Set when the call is to end before its time.
    pub stop: CancellationToken,
    /// Where it shows what it prints.
    pub live: LiveOutput,
}

/// The part of a call that changes things; a process runs it at most once.
pub type Act = Box<dyn FnOnce() -> BoxFuture<'static, Outcome> + Send>;

/// Looks up the files that an approval of a call holds for.
pub type Bind = Box<dyn Fn(Option<&CommandAnalysis>) -> Vec<BoundFile> + Send + Sync>;

/// A call that is ready to be decided and run.
pub struct Prepared {
    /// What it would do.
    pub assessment: Assessment,
    /// The commands in it, when it is one; rules are matched against these.
    pub analysis: Option<Box<CommandAnalysis>>,
    /// The change of a file that it would make, or the form that it would send, whole, for a person who is asked.
    pub diff: Option<String>,
    /// What an approval holds for beside the arguments and the files, such as a form as it is now.
    pub bound: Vec<BoundFile>,
    /// The files that its meaning depends on. Looked up when a person is asked: most calls run unasked.
    pub bind: Option<Bind>,
    /// The workspace, where the call may depend on files of it that nobody can name beforehand.
    pub depends_on: Option<Arc<Workspace>>,
    /// How it is brought to a result after a crash.
    pub recovery: Recovery,
    pub act: Act,
}

impl Prepared {
    /// A call that is not a command.
    pub fn new(assessment: Assessment, recovery: Recovery, act: Act) -> Self {
        Self {
            assessment,
            analysis: None,
            diff: None,
            bound: Vec::new(),
            bind: None,
            depends_on: None,
            recovery,
            act,
        }
    }
}

string_enum! {
    /// What a tool is for, as lists of tools group it.
    Category ("tool category") {
        /// Files of the workspace.
        FileSystem = "File System",
        /// Plan and notes.
        ContextEngineering = "Context Engineering",
        /// Talking to people.
        Communication = "Communication",
        /// Instructions for kinds of work.
        Skills = "Skills",
        /// What is handed back.
        Output = "Output",
        Environment = "Environment",
        Information = "Information",
        Orchestration = "Orchestration",
        Other = "Other",
    }
}

/// Who carries a call out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// The tool itself, by its `Act`.
    Plain,
    /// The loop parks the task until a person has answered; the `Act` is never run.
    Question,
    /// The loop starts another agent; the `Act` is never run.
    SubAgent,
}

/// What a call is about, as the compaction summary names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Command(String),
    /// A file, by its path.
    File(String),
    /// A note that the agent wrote for itself.
    Note {
        /// Its file's name.
        name: String,
        /// What it says.
        content: String,
    },
    /// Nothing that a summary would name.
    Other,
}

pub trait Tool: Send + Sync {
    /// The name the model calls it by.
    fn name(&self) -> &str;

    /// What it is for, in words for the model.
    fn description(&self) -> &str;

    /// The JSON schema of its arguments.
    fn parameters(&self) -> Value;

    /// What it is for, as lists group it.
    fn category(&self) -> Category {
        Category::Other
    }

    /// The most harmless thing a call of it can be; a profile that denies even this is not offered
    /// the tool (ES-203).
    fn min_class(&self) -> (Class, Risk) {
        (Class::Read, Risk::Low)
    }

    /// Who carries its calls out.
    fn executor(&self) -> Executor {
        Executor::Plain
    }

    /// Whether it keeps the agent's own plan and notes. While notes are saved before a compaction, only
    /// these tools can be used.
    fn is_note(&self) -> bool {
        false
    }

    /// Whether an agent can use it whatever tools the skill it follows names: to read skills, keep notes,
    /// ask and hand over (AX-034).
    fn is_always_allowed(&self) -> bool {
        self.is_note()
    }

    /// Other names that a skill may call it by, such as those of other agents.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// Replaces words that other agents' tools use with ours, before the arguments are checked.
    fn replace_synonyms(&self, _arguments: &mut Value) {}

    /// All names that a skill may call it by.
    fn names(&self) -> Vec<&str> {
        std::iter::once(self.name()).chain(self.aliases().iter().copied()).collect()
    }

    /// What a call is about.
    fn subject(&self, arguments: &Value) -> Subject {
        match arguments["path"].as_str() {
            Some(path) => Subject::File(path.to_owned()),
            None => Subject::Other,
        }
    }

    /// Whether its calls run one at a time even where they only read: one leaves something for the next,
    /// such as the directory in which it begins.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Whether every call of it only reads, so that several may run side by side. Such a tool looks at
    /// nothing that another one of them could change.
    fn only_reads(&self) -> bool {
        self.min_class().0 == Class::Read && !self.is_exclusive()
    }

    /// Gathers what policy and recovery need, and changes nothing. An `Err` is
    /// an outcome the model can act on; the call then never starts.
    fn prepare(
        &self,
        context: &ToolContext,
        call: Call,
    ) -> BoxFuture<'_, Result<Prepared, Outcome>>;
}
