//! The table of slash commands.

use std::fmt::Write as _;

use serde::Serialize;
use windlass_core::axes::{ModelMode, PermissionProfile, RunControl, WorkMode};
use windlass_core::session::Scope;

/// A slash command as help, completion and documentation show it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SlashCommand {
    /// Without its slash.
    pub name: &'static str,
    /// What it takes, as people write it; empty for nothing.
    pub arguments: &'static str,
    /// What it does, in one sentence.
    pub help: &'static str,
    pub group: Group,
    pub availability: Availability,
    /// What its arguments may be.
    pub complete: Complete,
}

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Group {
    Modes,
    Work,
    Look,
    Session,
}

impl Group {
    pub const ALL: [Self; 4] = [Self::Modes, Self::Work, Self::Look, Self::Session];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Modes => "Modes and models",
            Self::Work => "Steer the work",
            Self::Look => "See what happens",
            Self::Session => "The session",
        }
    }
}

/// Who may use a command. Every surface has every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Availability {
    /// Whoever may write to the session may use it; it shows and changes what is theirs.
    Everywhere,
    /// It shows or changes everybody's work: over HTTP it is for admins.
    Admins,
}

/// What the arguments of a command may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Complete {
    Nothing,
    WorkMode,
    RunControl,
    Profile,
    ModelMode,
    /// An axis, a value of it and a scope; or any text.
    Steer,
    Task,
    Question,
    Command,
    /// A subcommand of `/plans`.
    Plans,
}

impl SlashCommand {
    /// Words that may follow, for completion; `before` are those that are there already.
    pub fn completions(&self, before: &[&str]) -> Vec<&'static str> {
        let scopes = || words(Scope::ALL, Scope::as_str);
        let options = ["--autonomous", "--permission-profile", "--model-mode", "--scope"];
        match (self.complete, before) {
            (_, [.., "--permission-profile"]) => {
                words(PermissionProfile::ALL, PermissionProfile::as_str)
            }
            (_, [.., "--model-mode"]) => words(ModelMode::ALL, ModelMode::as_str),
            (_, [.., "--scope"]) => scopes(),
            (Complete::WorkMode, []) => words(WorkMode::ALL, WorkMode::as_str),
            (Complete::WorkMode, _) => options.into_iter().chain(scopes()).collect(),
            (Complete::RunControl, []) => words(RunControl::ALL, RunControl::as_str),
            (Complete::Profile, []) => words(PermissionProfile::ALL, PermissionProfile::as_str),
            (Complete::ModelMode, []) => words(ModelMode::ALL, ModelMode::as_str),
            (Complete::RunControl | Complete::Profile | Complete::ModelMode, [_]) => scopes(),
            (Complete::Steer, []) => vec!["mode", "control", "permission-profile", "model-mode"],
            (Complete::Steer, ["mode"]) => words(WorkMode::ALL, WorkMode::as_str),
            (Complete::Steer, ["control"]) => words(RunControl::ALL, RunControl::as_str),
            (Complete::Steer, ["permission-profile"]) => {
                words(PermissionProfile::ALL, PermissionProfile::as_str)
            }
            (Complete::Steer, ["model-mode"]) => words(ModelMode::ALL, ModelMode::as_str),
            (Complete::Steer, [_, _]) => scopes(),
            (Complete::Plans, []) => super::plans::SUBCOMMANDS.to_vec(),
            (Complete::Command, []) => TABLE.iter().map(|command| command.name).collect(),
            _ => Vec::new(),
        }
    }

    /// How it is written.
    pub fn usage(&self) -> String {
        match self.arguments {
            "" => format!("/{}", self.name),
            arguments => format!("/{} {arguments}", self.name),
        }
    }
}

fn words<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().map(|one| word(*one)).collect()
}

/// The command of this name.
pub fn find(name: &str) -> Option<&'static SlashCommand> {
    TABLE.iter().find(|command| command.name == name)
}

macro_rules! table {
    ($($group:ident { $($name:literal $arguments:literal $complete:ident $available:ident: $help:literal,)* })*) => {
        /// Every command, in the order of `/help`.
        pub const TABLE: &[SlashCommand] = &[$($(SlashCommand {
            name: $name,
            arguments: $arguments,
            help: $help,
            group: Group::$group,
            availability: Availability::$available,
            complete: Complete::$complete,
        },)*)*];
    };
}

table! {
    Modes {
        "mode" "[MODE] [--autonomous] [--permission-profile P] [--model-mode M] [SCOPE]" WorkMode Everywhere:
            "Show the axes, or set the work mode: chat, plan, build, review, repair or research.",
        "control" "CONTROL [SCOPE]" RunControl Everywhere:
            "Set how far it goes alone: manual, assisted or autonomous.",
        "permission-profile" "PROFILE [SCOPE]" Profile Everywhere:
            "Set what it may do without asking: restricted, normal, trusted or unrestricted.",
        "model-mode" "MODE [SCOPE]" ModelMode Everywhere:
            "Set which configured model it asks: fast, smart or deep.",
        "model" "[NAME | default]" Nothing Everywhere:
            "Name a model, which wins over the model mode; `default` takes that back.",
        "autonomous" "[GOAL]" Nothing Everywhere:
            "Run alone; chat and plan mode change to build.",
        "next" "[GOAL]" Nothing Everywhere:
            "Run one unit, then wait for you to look.",
        "plan" "[GOAL]" Nothing Everywhere:
            "Work out a plan to accept; nothing is changed.",
        "research" "[QUESTION]" Nothing Everywhere:
            "Find things out; nothing is changed.",
        "implement" "[GOAL]" Nothing Everywhere:
            "Build.",
        "repair" "[--autonomous]" Nothing Admins:
            "Check the installation and repair what is broken.",
        "architect" "" Nothing Everywhere:
            "Plan and make commitments; nothing is changed.",
        "executor" "" Nothing Everywhere: "Carry out a claimed commitment.",
        "auditor" "" Nothing Everywhere:
            "Review, run tests, approve or reject; nothing is changed.",
    }
    Work {
        "steer" "AXIS VALUE [SCOPE] | TEXT" Steer Everywhere:
            "Change an axis when the running call has ended, or tell the task something.",
        "pause" "[TASK]" Task Everywhere: "Pause the task after its current step.",
        "interrupt" "[TASK]" Task Everywhere:
            "End what the task is doing, keep the output so far, and wait for a message.",
        "resume" "[TASK]" Task Everywhere: "Resume a paused task.",
        "stop" "[WHY]" Nothing Everywhere: "Cancel the session's work and what waits in its queue.",
        "remote" "[QUESTION ANSWER [--mode M] [--control C] [--permission-profile P] [--model-mode M]]" Question Admins:
            "List what waits for an answer, or answer it, optionally with other axes.",
        "plans" "[SUBCOMMAND …]" Plans Everywhere:
            "Show how far the active plan is; or act on it, as `plan SUBCOMMAND` does on the command line.",
        "parallel" "[status]" Nothing Admins: "Show the parallel workers: their worktrees, heartbeats and claims.",
        "workflow" "[RUN | run NAME TITLE --input KEY=VALUE | validate [NAME] | render NAME | resume RUN [ROUNDS] | cancel RUN]" Nothing Everywhere:
            "List, check, render and run workflows; show, resume and cancel runs.",
        "schedule" "" Nothing Admins: "List what happens automatically, and when.",
    }
    Look {
        "inbox" "" Nothing Admins: "List what waits for you: questions, and skills that are proposed.",
        "tasks" "" Nothing Admins: "List all tasks, what they wait for, and what they cost.",
        "status" "" Nothing Admins: "Show how much runs and waits, and whether a service runs.",
        "queue" "" Nothing Everywhere: "Show the session's tasks in the order in which they start.",
        "commitments" "[COMMITMENT]" Nothing Everywhere: "List promised work, or show one piece of it.",
        "logs" "[TASK]" Task Everywhere: "Show the last events of a task.",
        "forensics" "[TASK]" Task Everywhere: "Show why a task is in its current state.",
        "cost" "[TASK]" Task Admins: "Show tokens and cost by model.",
        "doctor" "[fix | heal]" Nothing Admins: "Check the installation.",
    }
    Session {
        "session-report" "[DATE]" Nothing Everywhere:
            "Show tokens and cost of this session, day by day.",
        "rate" "1-5 [NOTE]" Nothing Everywhere: "Rate what was done last.",
        "skills" "" Nothing Everywhere: "List the skills that `/NAME` calls.",
        "clear" "" Nothing Everywhere:
            "End the conversation; the next message starts another.",
        "help" "[COMMAND]" Command Everywhere: "List the commands, or explain one.",
    }
}

/// The part of docs/commands.md that is made from the table.
pub fn markdown() -> String {
    let mut text = String::from(HEAD);
    for group in Group::ALL {
        let _ = write!(text, "\n### {}\n\n| command | what it does |\n|---|---|\n", group.title());
        for command in TABLE.iter().filter(|command| command.group == group) {
            let usage = command.usage().replace('|', "\\|");
            let mark = if command.availability == Availability::Admins { " \\*" } else { "" };
            let _ = writeln!(text, "| `{usage}`{mark} | {} |", command.help);
        }
    }
    text.push_str(TAIL);
    text
}

const HEAD: &str = "\
## Slash commands

This part is made from the table in `crates/coordinator/src/slash/table.rs`; a test keeps it so. The same commands work in
`windlass chat`, in the terminal, on the web page, over the API and in `windlass send SESSION \"/…\"`. Over HTTP an operator sees
and changes what is theirs: those marked with \\* show or change everybody's work, and are for admins.
";

const TAIL: &str = "
Every skill that people may call is also a command: `/NAME …`. If a skill has the name of a command, the command counts.

### Scopes

| scope | when a change takes effect |
|---|---|
| `now` | at once; a call that runs ends as it was allowed, a reply that is being written is asked for again |
| `after-current-tool` | when the running call has ended; what `/steer` does |
| `after-current-unit` | when the task, or in a conversation the answer to the last message, is finished |
| `next-milestone` | when the phase of the plan has ended; without a plan, as `after-current-unit` |
| `for-next-unit` | for the next unit alone; it is taken back when that is finished |
";
