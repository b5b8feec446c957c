//! What the model reads when a call is denied: why, what to try instead, and whether to try again.

use serde::{Deserialize, Serialize};

use super::analysis::CommandAnalysis;
use super::class::Class;
use super::decide::{Layer, Verdict};

/// The first line of every denial, exactly. (ES-116)
pub const DENIED: &str = "DENIED: This action is not permitted.";

/// A denied call, as its tool result. (AX-037)
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool that was called.
    pub tool: String,
    /// Why it was denied.
    pub reason: String,
    /// What to try instead, best first.
    pub suggestions: Vec<String>,
    /// Whether the same goal may be reached with another call of this tool.
    pub can_retry: bool,
}

/// What kind of call was denied, for choosing suggestions.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// A command, as it was read.
    Command(&'a CommandAnalysis),
    /// Any other tool, with its class.
    Other(Class),
}

impl Denial {
    /// The denial of a call by this verdict.
    pub fn new(tool: &str, call: Call<'_>, verdict: &Verdict) -> Self {
        Self {
            tool: tool.to_owned(),
            reason: verdict.reason.clone(),
            suggestions: suggestions(tool, call, verdict.by),
            can_retry: verdict.by != Layer::Filter,
        }
    }

    /// The denial of a call that a person refused.
    pub fn by_person(tool: &str, call: Call<'_>, comment: Option<&str>) -> Self {
        let reason = match comment.filter(|comment| !comment.trim().is_empty()) {
            Some(comment) => format!("the user denied it: {comment}"),
            None => "the user denied it".to_owned(),
        };
        let mut suggestions = suggestions(tool, call, Layer::Approval);
        suggestions.insert(0, "do what remains without this step".to_owned());
        Self { tool: tool.to_owned(), reason, suggestions, can_retry: false }
    }

    /// The tool result: the fixed line, then the object.
    pub fn render(&self) -> String {
        let object = serde_json::to_string(self).unwrap_or_default();
        format!("{DENIED}\n{object}")
    }
}

const ASK: &str = "ask the user with `ask_user`, saying what you need and why";

fn suggestions(tool: &str, call: Call<'_>, by: Layer) -> Vec<String> {
    let mut list: Vec<&str> = match call {
        Call::Command(analysis) => command_suggestions(analysis).to_vec(),
        Call::Other(class) => tool_suggestions(tool, class).to_vec(),
    };
    match by {
        Layer::Filter => list.insert(0, "use one of the tools that are offered to you"),
        Layer::Denylist => {
            list.insert(0, "do it another way; this one is ruled out by configuration")
        }
        Layer::Profile
        | Layer::Allowlist
        | Layer::RunControl
        | Layer::SessionRule
        | Layer::Approval => {}
    }
    list.push(ASK);
    let mut seen = Vec::new();
    list.retain(|text| {
        let new = !seen.contains(text);
        seen.push(*text);
        new
    });
    list.into_iter().map(str::to_owned).collect()
}

/// What fits the worst command of an analysis.
fn command_suggestions(analysis: &CommandAnalysis) -> &'static [&'static str] {
    let all = analysis.flat();
    let worst = all
        .iter()
        .max_by_key(|command| (command.assessment.risk, command.assessment.class))
        .map(|command| (command.program(), command.assessment.class));
    let Some((program, class)) = worst else { return &[] };
    match (program, class) {
        ("git" | "hub", Class::Publish | Class::Production) => &[
            "commit your work on a branch and open a pull request with `gh pr create`",
            "ask the user to push",
        ],
        ("git", Class::Destructive) => &[
            "set changes aside with `git stash` instead of throwing them away",
            "commit the current state to a branch first",
        ],
        ("rm" | "rimraf" | "find" | "shred" | "rmdir" | "unlink", _) => &[
            "remove the files you mean by name, without `-r` and `-f`",
            "move them aside instead, such as `mv build build.old`",
            "use the project's own clean command",
        ],
        ("sudo" | "doas" | "su" | "pkexec" | "run0", _) => &[
            "do it without more privileges: install for the user or into the workspace",
            "use a tool that is already installed",
        ],
        ("kill" | "pkill" | "killall", _) => {
            &["end a command you started yourself with `bash_kill`"]
        }
        ("chmod" | "chown" | "chgrp", _) => {
            &["run the script by its interpreter, such as `bash script.sh`"]
        }
        ("curl" | "wget", Class::Opaque) => {
            &["download to a file in the workspace, read it, then run what you need from it"]
        }
        _ => match class {
            Class::Opaque => &[
                "write the command out plainly, without computed names or text piped into a shell",
                "split it into smaller commands",
            ],
            Class::Destructive => &[
                "keep to files in the workspace, and to steps that can be undone",
                "split it into smaller steps and leave this one out",
            ],
            Class::Catastrophic => &["reach the goal without it; this is never allowed"],
            Class::Production | Class::Publish => {
                &["prepare everything locally and leave the last step to the user"]
            }
            Class::Edit | Class::LocalCommand | Class::Test | Class::Build => &[
                "use `read`, `grep` and `glob` to find out what you need",
                "record the work as a commitment with `commit`, for someone who may do it",
            ],
            Class::Read | Class::Note | Class::Ledger | Class::Delegate => {
                &["use another file or source that does not hold secrets"]
            }
        },
    }
}

/// What fits a tool that is not a command.
fn tool_suggestions(tool: &str, class: Class) -> &'static [&'static str] {
    match tool {
        "write" | "edit" => match class {
            Class::Opaque => &["read the file first, then write it"],
            _ => &[
                "record the work as a commitment with `commit`, for an executor to do",
                "put your findings into the plan with `update_plan`",
            ],
        },
        "bash" => &["use `read`, `grep` and `glob` instead of a command"],
        "browser" => &["read the page with `web_fetch` instead"],
        "spawn_agent" => &["do the work yourself, in smaller steps"],
        _ => match class {
            Class::Publish | Class::Production => {
                &["prepare everything and leave the last step to the user"]
            }
            Class::Read
            | Class::Note
            | Class::Ledger
            | Class::Edit
            | Class::Delegate
            | Class::LocalCommand
            | Class::Test
            | Class::Build
            | Class::Destructive
            | Class::Opaque
            | Class::Catastrophic => &["use a tool that only reads"],
        },
    }
}
