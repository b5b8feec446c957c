//! What the model reads when a call is denied: why, what to try instead, and whether to try again.

use serde::{Deserialize, Serialize};

use super::analysis::CommandAnalysis;
use super::class::Class;
use super::decide::{Layer, Verdict};
use crate::string_enum;
use crate::tool_name;

/// The first line of every denial, exactly. (ES-116)
pub const DENIED: &str = include_str!("../prompts/denied.md").trim_ascii_end();

const SUGGESTIONS: &str = include_str!("../prompts/suggestions.md");

/// A denied call, as its tool result. (AX-037)
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool that was called.
    pub tool: String,
    /// Why it was denied.
    pub reason: String,
    /// What to try instead, best first.
    pub suggestions: Vec<String>,
    /// Whether another call of this tool may succeed.
    pub can_retry: bool,
}

/// What kind of call was denied, for choosing suggestions.
#[derive(Clone, Copy, Debug)]
pub enum DeniedCall<'a> {
    /// A command, as it was read.
    Command(&'a CommandAnalysis),
    /// Any other tool, with its class.
    Other(Class),
}

impl Denial {
    /// The denial of a call by this verdict.
    pub fn new(tool: &str, call: DeniedCall<'_>, verdict: &Verdict) -> Self {
        Self {
            tool: tool.to_owned(),
            reason: verdict.reason.clone(),
            suggestions: suggestions(tool, call, verdict.by),
            can_retry: verdict.by != Layer::Filter,
        }
    }

    /// The denial of a call that a person refused.
    pub fn by_person(tool: &str, call: DeniedCall<'_>, comment: Option<&str>) -> Self {
        let reason = match comment.filter(|comment| !comment.trim().is_empty()) {
            Some(comment) => format!("the user denied it: {comment}"),
            None => "the user denied it".to_owned(),
        };
        let general = Advice::ByPerson.lines().map(str::to_owned);
        let suggestions = general.chain(suggestions(tool, call, Layer::Approval)).collect();
        Self { tool: tool.to_owned(), reason, suggestions, can_retry: false }
    }

    /// The tool result: the fixed line, then the object.
    pub fn render(&self) -> String {
        let object = serde_json::to_string(self).unwrap_or_default();
        format!("{DENIED}\n{object}")
    }
}

string_enum! {
    /// A section of `prompts/suggestions.md`: what to try instead of one kind of denied call.
    Advice ("section of suggestions") {
        /// Of every denial.
        Always = "always",
        /// A person said no.
        ByPerson = "denied by the user",
        /// The role, the plan or the skill excludes the tool.
        NotOffered = "tool not offered",
        /// The configuration excludes the command.
        Denylist = "denylist",
        /// The work mode is read-only.
        ReadOnly = "read-only mode",
        /// `git push` and its like.
        Push = "push",
        /// `git reset --hard` and its like.
        DiscardedChanges = "discarded changes",
        /// `rm` and its like.
        Removal = "removal",
        /// `sudo` and its like.
        Privileges = "privileges",
        /// `kill` and its like.
        Signal = "signal",
        /// `chmod` and its like.
        FileMode = "file mode",
        /// `curl … | sh` and its like.
        DownloadIntoShell = "download into a shell",
        /// Any other command that cannot be read.
        Opaque = "opaque command",
        /// Any other command that destroys.
        Destructive = "destructive command",
        /// Any other command that could ruin the machine.
        Catastrophic = "catastrophic command",
        /// Any other command that sends work elsewhere.
        Publishing = "publishing",
        /// Any other command that changes something.
        Effect = "command with an effect",
        /// A command that reads what it must not.
        Secret = "secret",
        /// `write` over a file that was not read.
        UnreadFile = "unread file",
        /// `write` and `edit`.
        FileChange = "file change",
        /// `bash` as a whole.
        CommandTool = "command tool",
        SubAgent = "sub-agent",
        /// A tool that sends work elsewhere.
        PublishingTool = "publishing tool",
        /// Any other tool.
        OtherTool = "other tool",
    }
}

impl Advice {
    /// The lines of this section.
    fn lines(self) -> impl Iterator<Item = &'static str> {
        let heading = format!("## {self}");
        let below = SUGGESTIONS.lines().skip_while(move |line| *line != heading).skip(1);
        below.take_while(|line| !line.starts_with("## ")).filter(|line| !line.is_empty())
    }
}

fn suggestions(tool: &str, call: DeniedCall<'_>, by: Layer) -> Vec<String> {
    let by_layer = match by {
        Layer::Filter => Some(Advice::NotOffered),
        Layer::Denylist => Some(Advice::Denylist),
        // What would fit the call is a change as well.
        Layer::WorkMode => {
            let sections = [Advice::ReadOnly, Advice::Always].into_iter();
            return sections.flat_map(Advice::lines).map(str::to_owned).collect();
        }
        Layer::Profile
        | Layer::Allowlist
        | Layer::RunControl
        | Layer::SessionRule
        | Layer::StandingRule
        | Layer::Approval => None,
    };
    let by_call = match call {
        DeniedCall::Command(analysis) => for_command(analysis),
        DeniedCall::Other(class) => Some(for_tool(tool, class)),
    };
    let sections = by_layer.into_iter().chain(by_call).chain([Advice::Always]);
    sections.flat_map(Advice::lines).map(str::to_owned).collect()
}

/// What fits the worst command of a script.
fn for_command(analysis: &CommandAnalysis) -> Option<Advice> {
    let all = analysis.flat();
    let worst = all
        .iter()
        .max_by_key(|command| (command.assessment.risk, command.assessment.class))
        .map(|command| (command.program(), command.assessment.class));
    let (program, class) = worst?;
    Some(match (program, class) {
        ("git" | "hub", Class::Publish | Class::Production) => Advice::Push,
        ("git", Class::Destructive) => Advice::DiscardedChanges,
        ("rm" | "rimraf" | "find" | "shred" | "rmdir" | "unlink", _) => Advice::Removal,
        ("sudo" | "doas" | "su" | "pkexec" | "run0", _) => Advice::Privileges,
        ("kill" | "pkill" | "killall", _) => Advice::Signal,
        ("chmod" | "chown" | "chgrp", _) => Advice::FileMode,
        ("curl" | "wget", Class::Opaque) => Advice::DownloadIntoShell,
        (_, Class::Opaque) => Advice::Opaque,
        (_, Class::Destructive) => Advice::Destructive,
        (_, Class::Catastrophic) => Advice::Catastrophic,
        (_, Class::Production | Class::Publish) => Advice::Publishing,
        (_, Class::Edit | Class::LocalCommand | Class::Test | Class::Build) => Advice::Effect,
        (_, Class::Read | Class::Note | Class::Ledger | Class::Delegate) => Advice::Secret,
    })
}

/// What fits a tool that is not a command.
fn for_tool(tool: &str, class: Class) -> Advice {
    match (tool, class) {
        (tool_name::WRITE | tool_name::EDIT, Class::Opaque) => Advice::UnreadFile,
        (tool_name::WRITE | tool_name::EDIT, _) => Advice::FileChange,
        (tool_name::BASH, _) => Advice::CommandTool,
        (tool_name::SPAWN_AGENT, _) => Advice::SubAgent,
        (_, Class::Publish | Class::Production) => Advice::PublishingTool,
        (
            _,
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
            | Class::Catastrophic,
        ) => Advice::OtherTool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_of_suggestions_is_there_and_chosen_by_name() {
        for &advice in Advice::ALL {
            assert!(advice.lines().count() > 0, "{advice}");
        }
        let headings = SUGGESTIONS.lines().filter(|line| line.starts_with("## ")).count();
        assert_eq!(headings, Advice::ALL.len());
    }
}
