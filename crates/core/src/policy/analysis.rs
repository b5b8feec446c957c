//! What was found in a shell script: every command, how it is reached, and what it would do.

use std::fmt;

use serde::Serialize;

use super::class::{Assessment, Class, Risk};

/// How a command is reached from the text around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// It is in the script itself.
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

impl fmt::Display for Via {
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

impl Serialize for Via {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One command that was found, and the commands found inside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShellCommand {
    /// Its words as far as they are known, quoted where needed; `…` for what is not known.
    pub command: String,
    /// How it is reached.
    #[serde(rename = "how")]
    pub via: Via,
    /// What it would do alone, without the commands inside it.
    #[serde(flatten)]
    pub assessment: Assessment,
    /// Program and arguments for matching rules; `None` for a word that is not wholly known.
    #[serde(skip)]
    pub words: Vec<Option<String>>,
    /// Whether every path it names lies inside the workspace and is neither its root nor in `.git`.
    #[serde(skip)]
    pub confined: bool,
    /// Commands found in its arguments, or run by it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<ShellCommand>,
}

impl ShellCommand {
    /// The program's own name, without its directory; empty when it is not known.
    pub fn program(&self) -> &str {
        let name = self.words.first().and_then(Option::as_deref).unwrap_or_default();
        name.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it removes whole directories, all of them inside the workspace.
    fn removes_in_workspace(&self) -> bool {
        self.confined && matches!(self.program(), "rm" | "grm" | "rimraf")
    }
}

/// What a shell script would do. The crate `shell` makes it; the rules here judge it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandAnalysis {
    /// The worst of everything found.
    pub assessment: Assessment,
    /// Every command found, as a tree.
    pub commands: Vec<ShellCommand>,
    /// Whether the script could be parsed. A shell may refuse one that could not.
    pub parsed: bool,
    /// Whether the configuration rates a command as more harmless than the table does.
    pub reclassified: bool,
    /// Files whose content it runs; an approval is bound to them.
    pub scripts: Vec<Script>,
    /// What it brings into the workspace under names that its text does not say.
    pub arrivals: Vec<Arrival>,
}

/// Files that a command puts into a directory under names that only their source knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival {
    pub source: ArrivalSource,
    /// The absolute path of the directory, as the command sees it.
    pub into: String,
}

/// Where the names of files are that arrive. Each path is absolute, as the command sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArrivalSource {
    /// What lies in this directory.
    Tree(String),
    /// Files that this glob stands for.
    Glob(String),
    /// What is packed in this file.
    Archive(String),
    /// What this patch changes.
    Patch(String),
    /// The output of another command.
    Pipe,
    /// A place that is only known when it runs.
    Computed,
    /// What git takes from its own store.
    Git(GitSource),
}

/// Where the files come from that a git command puts into its work tree. Names of commits are as git reads them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GitSource {
    /// Another commit is checked out: `git switch topic`.
    Commit(String),
    /// `git merge topic`.
    Merge(String),
    /// The own commits are applied again on top of this one: `git rebase main`.
    Base(String),
    /// What these commits change, or undo: `git cherry-pick a..b`.
    Changes(Vec<String>),
    /// `git stash pop`.
    Stash(String),
    /// Files as they are in this commit, or in the index: `git restore --source topic .`. Only these paths, where
    /// there are some; one that is not absolute may mean any file.
    Files { commit: Option<String>, paths: Vec<String> },
    /// `git submodule update`.
    Submodules,
    /// Some commit of the whole history: `git bisect good`.
    History,
    /// What is fetched, or changed by the same command before: `git pull`.
    Unseen,
}

/// A file that a command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Its absolute path, as the command sees it.
    pub path: String,
    /// Hash of its content, where somebody has looked.
    pub hash: Option<String>,
}

impl CommandAnalysis {
    /// Every command of the tree, outer before inner.
    pub fn flat(&self) -> Vec<&ShellCommand> {
        fn add<'r>(commands: &'r [ShellCommand], all: &mut Vec<&'r ShellCommand>) {
            for command in commands {
                all.push(command);
                add(&command.commands, all);
            }
        }
        let mut all = Vec::new();
        add(&self.commands, &mut all);
        all
    }

    /// Whether all that is catastrophic in it is removal inside the workspace.
    pub fn only_removes_in_workspace(&self) -> bool {
        let all = self.flat();
        let mut worst = all.iter().filter(|command| command.assessment.risk == Risk::Critical);
        worst.all(|command| command.removes_in_workspace())
    }

    /// Whether whoever lets it run has approved that it touches production, such as an agent's rules.
    pub fn is_production(&self) -> bool {
        self.flat().iter().any(|command| command.assessment.class == Class::Production)
    }

    /// Adds something that was found beside its text.
    pub fn add(&mut self, command: String, assessment: Assessment) {
        let worst = &mut self.assessment;
        if (worst.risk, worst.class) < (assessment.risk, assessment.class) {
            worst.reason.clone_from(&assessment.reason);
        }
        (worst.class, worst.risk) =
            (worst.class.max(assessment.class), worst.risk.max(assessment.risk));
        let (via, words, commands) = (Via::Direct, Vec::new(), Vec::new());
        self.commands.push(ShellCommand {
            command,
            via,
            assessment,
            words,
            confined: false,
            commands,
        });
    }

    /// The analysis of a script in which these commands were found.
    pub fn new(commands: Vec<ShellCommand>) -> Self {
        let mut analysis = Self {
            assessment: Assessment::of(Class::Read, "it runs nothing"),
            commands,
            parsed: true,
            reclassified: false,
            scripts: Vec::new(),
            arrivals: Vec::new(),
        };
        let mut worst: Option<&Assessment> = None;
        let (mut class, mut risk) = (Class::Read, Risk::Low);
        let all = analysis.flat();
        for command in &all {
            let this = &command.assessment;
            (class, risk) = (class.max(this.class), risk.max(this.risk));
            if worst.is_none_or(|worst| (worst.risk, worst.class) < (this.risk, this.class)) {
                worst = Some(this);
            }
        }
        if let Some(worst) = worst {
            analysis.assessment = Assessment { class, risk, reason: worst.reason.clone() };
        }
        analysis
    }
}
