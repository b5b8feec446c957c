//! A workflow as a person wrote it: steps in order, each with its work and its conditions.
//!
//! Invariant: a [`Workflow`] that exists is valid. Every name is known, every loop has a bound, every template can be
//! parsed.

mod duration;
mod keys;
mod raw;
mod unknown;
mod check;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use windlass_core::axes::PermissionProfile;
use windlass_core::string_enum;

use check::Check;

use crate::state::name_of;

pub use keys::schema;
pub(crate) use raw::nearest;

/// The runner of a step that names none: our own loop.
pub const OWN_RUNNER: &str = "windlass";
/// Runners that every workflow may name.
pub const KNOWN_RUNNERS: [&str; 3] = [OWN_RUNNER, "claude", "codex"];
/// How many rounds a loop may have; more than this is an agent that does not get there.
pub const MAX_ROUNDS: u32 = windlass_core::question::MAX_ROUNDS;
/// How many steps of a parallel one may work at once: each has a worktree, a sandbox and a model's attention.
pub const MAX_WORKERS: u32 = 64;
/// How many worktrees a workflow may keep for its next runs: each takes the disk of a checkout and its build.
pub const MAX_WARM: u32 = 16;
/// How many steps a file may have in all.
pub const MAX_STEPS: usize = 200;
/// How deep loops and parallel steps may be nested.
pub const MAX_DEPTH: usize = 5;
/// The largest file that is read.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// A workflow as its file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Workflow {
    pub name: String,
    pub description: String,
    /// What a person gives it, by name.
    pub inputs: BTreeMap<String, Input>,
    /// Who works on agent steps that do not say it themselves.
    pub runner: String,
    /// Programs that this file brings as runners, by name.
    pub runners: BTreeMap<String, Vec<String>>,
    /// Where steps work.
    pub place: Checkout,
    /// The branch that merges go to; without, the one that is checked out where the run begins.
    pub target: Option<String>,
    pub steps: Vec<Step>,
}

/// A value that a person gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub description: String,
    /// Its value when none is given; without, it must be given.
    pub default: Option<String>,
}

/// Where the steps of a run work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkout {
    /// In a worktree of the run's own.
    Worktree(WorktreeSpec),
    /// In the directory itself.
    Here,
}

/// How a worktree is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorktreeSpec {
    pub maker: Maker,
    /// Directories that all worktrees of the repository share, by the variables that programs find them with.
    pub cache: BTreeMap<String, String>,
    /// Run once in the new worktree, before the first step.
    pub setup: Option<String>,
    /// Run before the worktree is removed.
    pub cleanup: Option<String>,
    /// Whether it stays after a run that succeeded.
    pub keep: bool,
}

/// Who makes worktrees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    Git(GitSpec),
    /// Commands of the project, for other version control.
    Command {
        create: String,
        remove: Option<String>,
    },
}

impl Default for Maker {
    fn default() -> Self {
        Self::Git(GitSpec::default())
    }
}

/// How git makes a worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitSpec {
    pub base: Base,
    /// The directories that are checked out, besides the files at the top; all where none is named.
    pub sparse: Vec<String>,
    /// How many worktrees stay for the next runs.
    pub reuse: u32,
}

/// What a worktree begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// The commit that is checked out, with what was not pushed.
    #[default]
    Head,
    /// The target as its remote has it now.
    Fresh,
    /// A branch, a tag or a commit by its name.
    Named(String),
}

/// One step of a workflow: what it does, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub name: String,
    /// The line of its name in the file.
    pub line: u64,
    /// It runs only where this is true.
    pub when: Option<String>,
    pub timeout: Option<Duration>,
    pub on_fail: OnFail,
    /// Another name for its output.
    pub output: Option<String>,
    /// Steps that must have succeeded.
    pub needs: Vec<String>,
    pub work: Work,
}

string_enum! {
    /// What follows when a step fails.
    #[derive(Default)]
    OnFail ("on_fail") {
        /// The run is blocked; resumed, it tries the step again.
        #[default]
        Stop = "stop",
        /// The next step runs, and sees `{{.previous.failed}}`.
        Continue = "continue",
        /// The next step runs, and the run fails at its end.
        FailAtEnd = "fail_at_end",
        /// A person decides.
        Ask = "ask",
    }
}

string_enum! {
    /// The type of a step.
    WorkKind ("type of a step") {
        Agent = "agent",
        Script = "script",
        Loop = "loop",
        Parallel = "parallel",
        Merge = "merge",
        PullRequest = "pull_request",
        Ask = "ask",
    }
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    Agent(AgentWork),
    Script {
        command: String,
        /// Whether it may run again after an interruption. Where not, a person decides.
        rerun: bool,
    },
    Loop(LoopWork),
    /// Its steps run side by side, each in a worktree of its own.
    Parallel(ParallelWork),
    Merge(MergeWork),
    PullRequest(PullRequestWork),
    Ask {
        question: String,
        options: Vec<String>,
        /// A parallel step of tries: those of them that succeeded are answers too.
        from: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct AgentWork {
    pub spell: Spell,
    pub runner: Option<String>,
    pub model: Option<String>,
    pub profile: Option<PermissionProfile>,
}

/// The prompt template of an agent step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spell {
    /// A file of the project's spells (WF-039).
    Named(String),
    /// The text itself (WF-042).
    Inline(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ParallelWork {
    /// How many of its steps work at once; all of them where it is not said.
    pub workers: Option<u32>,
    /// Whether what they did comes together in the worktree around them.
    pub join: bool,
    /// Whether they try the same, for a person to pick from. Nothing is claimed before it is edited.
    pub tries: bool,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LoopWork {
    /// How many rounds it runs at most.
    pub max: u32,
    /// It ends when this is true after a round.
    pub until: Option<String>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeWork {
    /// The worktree whose branch is merged, by the name of its step; a template. Without, the one around it.
    pub from: Option<String>,
    pub target: Option<String>,
    pub strategy: Strategy,
    /// Commands that must succeed on the merged tree.
    pub gates: Vec<String>,
    /// The message of the commit; a template.
    pub message: Option<String>,
    pub conflicts: OnConflict,
}

/// A branch that is pushed, and the draft of a pull request for it. All texts are templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestWork {
    /// Where the branch is pushed to; `origin` where none is named.
    pub remote: Option<String>,
    pub target: Option<String>,
    pub title: Option<String>,
    pub body: Option<String>,
    /// What opens it and prints its address, in place of `gh`.
    pub command: Option<String>,
}

string_enum! {
    /// How the target gets the work.
    #[derive(Default)]
    Strategy ("strategy") {
        /// All changes become one commit.
        #[default]
        Squash = "squash",
        /// The branch's own commits, on top of the target.
        Rebase = "rebase",
        /// The branch's own commits, and one that joins them.
        Merge = "merge",
    }
}

string_enum! {
    /// Who resolves conflicts.
    #[derive(Default)]
    OnConflict ("conflicts") {
        /// The runner of the workflow, with the list of files; then a person.
        #[default]
        Agent = "agent",
        /// A person is asked to resolve it.
        Ask = "ask",
    }
}

/// Pushes the branch.
const PUSH: &str =
    "git push --quiet {{.request.remote}} HEAD:refs/heads/{{.worktree.branch}} && \\\n";
/// Opens the draft, unless the branch has a pull request: so it may run again, and one made elsewhere is found.
const DRAFT: &str = "{ gh pr view {{.worktree.branch}} --json url --jq .url 2>/dev/null || \\
  gh pr create --draft --head {{.worktree.branch}} --base {{.request.target}} \\
  --title {{.request.title}} --body {{.request.body}}; }";

impl PullRequestWork {
    /// The command that pushes the branch and opens the draft, as a template.
    pub fn script(&self) -> String {
        format!("{PUSH}{}", self.command.as_deref().unwrap_or(DRAFT))
    }

    /// The program that opens it.
    pub fn program(&self) -> &str {
        let command = self.command.as_deref().unwrap_or("gh");
        command.split_whitespace().next().unwrap_or("gh")
    }
}

impl Step {
    /// Whether a step of this name is inside it, however deep.
    pub fn has_inside(&self, name: &str) -> bool {
        self.work.steps().iter().any(|inner| inner.name == name || inner.has_inside(name))
    }
}

impl Work {
    /// The word for it in files and events.
    pub const fn kind(&self) -> WorkKind {
        match self {
            Self::Agent(_) => WorkKind::Agent,
            Self::Script { .. } => WorkKind::Script,
            Self::Loop(_) => WorkKind::Loop,
            Self::Parallel(_) => WorkKind::Parallel,
            Self::Merge(_) => WorkKind::Merge,
            Self::PullRequest(_) => WorkKind::PullRequest,
            Self::Ask { .. } => WorkKind::Ask,
        }
    }

    /// What an agent works on; none of any other step.
    pub const fn agent(&self) -> Option<&AgentWork> {
        match self {
            Self::Agent(work) => Some(work),
            Self::Script { .. }
            | Self::Loop(_)
            | Self::Parallel(_)
            | Self::Merge(_)
            | Self::PullRequest(_)
            | Self::Ask { .. } => None,
        }
    }

    /// The steps inside it.
    pub fn steps(&self) -> &[Step] {
        match self {
            Self::Loop(work) => &work.steps,
            Self::Parallel(work) => &work.steps,
            Self::Agent(_)
            | Self::Script { .. }
            | Self::Merge(_)
            | Self::PullRequest(_)
            | Self::Ask { .. } => &[],
        }
    }
}

impl Workflow {
    /// Reads a file, whatever runners it names: which ones a person has configured may change. `stem` is its name
    /// without the ending, for a workflow that names itself in no other way.
    pub fn read(text: &str, stem: &str) -> Result<Self, DefinitionErrors> {
        Self::read_for(text, stem, None)
    }

    /// The same, but it may name no other runners than its own, the built-in ones and those that are `configured`.
    pub fn check(text: &str, stem: &str, configured: &[String]) -> Result<Self, DefinitionErrors> {
        Self::read_for(text, stem, Some(configured))
    }

    fn read_for(
        text: &str,
        stem: &str,
        configured: Option<&[String]>,
    ) -> Result<Self, DefinitionErrors> {
        let unknown = unknown::find(text)?;
        match raw::read(text) {
            Ok(raw) => check::checked(raw, text, stem, Check::new(unknown, configured)),
            Err(error) => Err(DefinitionErrors::new([unknown, vec![error]].concat())),
        }
    }

    /// The runners of its agent steps besides our own, each once.
    pub fn programs(&self) -> BTreeSet<&str> {
        let steps = self.all_steps().into_iter().filter_map(|step| step.work.agent());
        let names = steps.map(|agent| agent.runner.as_deref().unwrap_or(&self.runner));
        names.filter(|name| *name != OWN_RUNNER).collect()
    }

    /// Whether a step is one of several that try the same, or is in one.
    pub fn is_try(&self, path: &str) -> bool {
        let mut around: Vec<&str> = path.split('.').map(name_of).collect();
        around.pop();
        let tries = |step: &&Step| matches!(&step.work, Work::Parallel(work) if work.tries);
        self.all_steps()
            .iter()
            .filter(|step| tries(step))
            .any(|step| around.contains(&step.name.as_str()))
    }

    /// Every step, the outer before the inner.
    pub fn all_steps(&self) -> Vec<&Step> {
        fn add<'a>(steps: &'a [Step], all: &mut Vec<&'a Step>) {
            for step in steps {
                all.push(step);
                add(step.work.steps(), all);
            }
        }
        let mut all = Vec::new();
        add(&self.steps, &mut all);
        all
    }

    /// The names of the spells that it reads from files.
    pub fn spells(&self) -> Vec<&str> {
        let steps = self.all_steps().into_iter().filter_map(|step| step.work.agent());
        let named = steps.filter_map(|agent| match &agent.spell {
            Spell::Named(name) => Some(name.as_str()),
            Spell::Inline(_) => None,
        });
        named.collect()
    }

    /// Every command that the file brings, with where it stands: what a person approves (§15.13).
    pub fn commands(&self) -> Vec<(String, String)> {
        let Checkout::Worktree(spec) = &self.place else { return self.step_commands() };
        let (create, remove) = match &spec.maker {
            Maker::Git(_) => (None, None),
            Maker::Command { create, remove } => (Some(create), remove.as_ref()),
        };
        let named = |what: &str, command: Option<&String>| {
            command.map(|command| (format!("worktree {what}"), command.clone()))
        };
        let before = [named("create", create), named("setup", spec.setup.as_ref())];
        let after = [named("cleanup", spec.cleanup.as_ref()), named("remove", remove)];
        let before = before.into_iter().flatten();
        before.chain(self.step_commands()).chain(after.into_iter().flatten()).collect()
    }

    fn step_commands(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for step in self.all_steps() {
            match &step.work {
                Work::Script { command, .. } => {
                    found.push((format!("step {}", step.name), command.clone()));
                }
                Work::Merge(merge) => {
                    let gate = |gate: &String| (format!("gate of {}", step.name), gate.clone());
                    found.extend(merge.gates.iter().map(gate));
                }
                Work::PullRequest(work) => {
                    found.push((format!("step {}", step.name), work.script()));
                }
                Work::Agent(_) | Work::Loop(_) | Work::Parallel(_) | Work::Ask { .. } => {}
            }
        }
        let runner = |(name, command): (&String, &Vec<String>)| {
            (format!("runner {name}"), command.join(" "))
        };
        found.extend(self.runners.iter().map(runner));
        found
    }
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionError {
    pub line: Option<u64>,
    pub reason: String,
}

impl DefinitionError {
    pub(crate) fn at(line: u64, reason: impl Into<String>) -> Self {
        Self { line: (line > 0).then_some(line), reason: reason.into() }
    }
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// Everything that is wrong with a file, by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionErrors(Vec<DefinitionError>);

impl DefinitionErrors {
    fn new(mut errors: Vec<DefinitionError>) -> Self {
        errors.sort_by_key(|error| error.line);
        errors.dedup();
        Self(errors)
    }

    pub fn iter(&self) -> impl Iterator<Item = &DefinitionError> {
        self.0.iter()
    }
}

impl From<DefinitionError> for DefinitionErrors {
    fn from(error: DefinitionError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for DefinitionErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for DefinitionErrors {}
