//! Rules people give: what is never run, and what is allowed.
//!
//! Invariants:
//! - A rule matches the structure of *every* command in an analysis, so `npm test; rm x` is not covered
//!   by a rule for `npm test`.
//! - No session rule covers what destroys, what cannot be read, or what touches production. A standing rule
//!   covers what touches production where it names the whole command, and what destroys where every path lies
//!   inside the workspace; never what cannot be read or is catastrophic.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::analysis::{CommandAnalysis, ShellCommand};
use super::class::{Assessment, Class, Risk};
use super::decide::{Decision, Rules, can_be_session_allowed, decide, effective_class};
use super::pattern::Pattern;
use crate::axes::Axes;
use crate::hash::sha256;

/// An entry of the denylist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenyRule {
    /// Which commands, or which tool when the call is not a command (`web_fetch`, `mcp:*`).
    pub pattern: Pattern,
    /// Why, in words for the model and the person.
    pub reason: String,
}

impl DenyRule {
    /// Whether any command of the analysis is denied.
    pub fn denies(&self, analysis: &CommandAnalysis) -> bool {
        self.pattern.matches_any(analysis)
    }

    /// Whether calls of this tool are denied.
    pub fn denies_tool(&self, tool: &str) -> bool {
        self.pattern.matches_words(&[Some(tool.to_owned())])
    }
}

/// The reason of the first denylist entry that matches a call.
pub fn denylist_reason(
    rules: &[DenyRule],
    tool: &str,
    analysis: Option<&CommandAnalysis>,
) -> Option<String> {
    rules
        .iter()
        .find(|rule| {
            rule.denies_tool(tool) || analysis.is_some_and(|analysis| rule.denies(analysis))
        })
        .map(|rule| rule.reason.clone())
}

/// Whether every command of an analysis is named by an entry of `[policy] allow`, or only looks.
pub fn is_allowlisted(entries: &[Pattern], analysis: &CommandAnalysis) -> bool {
    covers(analysis, |command| entries.iter().any(|entry| entry.matches(command)))
}

/// The standing rule that covers the worst command of an analysis, where every other command is covered by one
/// too, or runs without being asked about.
pub fn standing_rule<'r>(
    rules: &'r [Pattern],
    analysis: &CommandAnalysis,
    axes: &Axes,
) -> Option<&'r Pattern> {
    let rule_for = |command: &ShellCommand| rules.iter().find(|rule| stands_for(rule, command));
    let runs = |command: &ShellCommand| {
        decide(&command.assessment, axes, &Rules::default()).decision == Decision::Allow
    };
    if !covers(analysis, |command| runs(command) || rule_for(command).is_some()) {
        return None;
    }
    let all = analysis.flat();
    let worst =
        all.iter().max_by_key(|command| (command.assessment.risk, command.assessment.class))?;
    rule_for(worst)
}

/// Programs whose operands are all files, so that a rule may name the program alone.
const FILE_TOOLS: &[&str] = &["rm", "rmdir", "unlink", "chmod", "mv", "cp", "truncate"];

/// Whether a standing rule may and does cover a command.
fn stands_for(rule: &Pattern, command: &ShellCommand) -> bool {
    let named = |command: &ShellCommand| rule.has_terms() && rule.names_all(&command.words);
    match effective_class(&command.assessment) {
        Class::Catastrophic | Class::Opaque => false,
        // What makes it risky is what it is used on, such as a file of secrets.
        _ if is_raised(command) => named(command),
        Class::Destructive => {
            command.confined
                && rule.matches(command)
                && (rule.has_terms() || FILE_TOOLS.contains(&command.program()))
        }
        Class::Production => named(command),
        Class::Read
        | Class::Note
        | Class::Ledger
        | Class::Edit
        | Class::Delegate
        | Class::LocalCommand
        | Class::Test
        | Class::Build
        | Class::Publish => rule.matches(command),
    }
}

/// What `Allow All` grants until it is revoked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum AllowRule {
    /// Commands of one class or less, and calls of other tools of exactly that class.
    Class { class: Class },
    /// Commands that start with these words.
    Command {
        /// The program and the words after it.
        words: Vec<String>,
    },
    /// Every call of one tool that is not a command.
    Tool {
        tool: String,
        /// The class it must not exceed.
        class: Class,
    },
}

impl AllowRule {
    /// The rule that `Allow All` would grant for this analysis; `None` where none may be given.
    ///
    /// It is as narrow as it can be: the program and its subcommand when all commands that do
    /// anything share them, else the class. Where what a command is used on makes it risky, such as
    /// a file of secrets, it is that very command, or none.
    pub fn for_analysis(analysis: &CommandAnalysis) -> Option<Self> {
        let class = effective_class(&analysis.assessment);
        if !can_be_session_allowed(class) {
            return None;
        }
        let acting: Vec<&ShellCommand> =
            analysis.flat().into_iter().filter(|command| !only_reads(command)).collect();
        let named = |command: &&ShellCommand| match is_raised(command) {
            true => command.words.iter().cloned().collect::<Option<_>>().unwrap_or_default(),
            false => prefix(command),
        };
        let words: Vec<Vec<String>> = acting.iter().map(named).collect();
        match words.split_first() {
            Some((first, rest)) if !first.is_empty() && rest.iter().all(|words| words == first) => {
                Some(Self::Command { words: first.clone() })
            }
            _ if acting.iter().any(|command| is_raised(command)) => None,
            _ => Some(Self::Class { class }),
        }
    }

    /// Whether the rule covers everything a command text would do.
    pub fn covers(&self, analysis: &CommandAnalysis) -> bool {
        let class = effective_class(&analysis.assessment);
        can_be_session_allowed(class)
            && match self {
                Self::Class { class: ruled } => {
                    let raised = analysis.flat().into_iter().any(is_raised);
                    class <= *ruled && can_be_session_allowed(*ruled) && !raised
                }
                Self::Command { words } => {
                    !words.is_empty()
                        && covers(analysis, |command| match is_raised(command) {
                            true => is_exactly(command, words),
                            false => starts_with(command, words),
                        })
                }
                Self::Tool { .. } => false,
            }
    }

    /// Whether the rule covers a call of a tool that is not a command.
    pub fn covers_tool(&self, tool: &str, class: Class) -> bool {
        can_be_session_allowed(class)
            && match self {
                Self::Class { class: ruled } => class == *ruled,
                Self::Command { .. } => false,
                Self::Tool { tool: ruled, class: most } => ruled == tool && class <= *most,
            }
    }

    /// What the rule grants and where it holds, in words to be shown before it is given.
    pub fn describe(&self, scope: RuleScope) -> String {
        let place = match scope {
            RuleScope::Session => "for this session",
            RuleScope::Child => "for this sub-agent or step only",
        };
        format!("{}, {place}; {LIMITS}", self.granted_words())
    }

    fn granted_words(&self) -> String {
        match self {
            Self::Class { class } => format!(
                "every command of class `{class}` or less, and every tool call of class `{class}`"
            ),
            Self::Command { words } => format!(
                "every command that starts with `{}`, alone or with commands that only look",
                words.join(" ")
            ),
            Self::Tool { tool, class } => format!("every call of `{tool}` up to class `{class}`"),
        }
    }
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {LIMITS}", self.granted_words())
    }
}

/// What no allow rule covers.
const LIMITS: &str = "never what destroys, touches production or cannot be read";

/// Where an allow rule holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// In the session: for its tasks of now and later, without the agents below them.
    #[default]
    Session,
    /// For the one task below another that asked: a sub-agent, or a step of a workflow.
    Child,
}

impl RuleScope {
    /// Whether it is the session's, as for every question that does not say it.
    pub(super) fn is_session(&self) -> bool {
        *self == Self::Session
    }
}

fn only_reads(command: &ShellCommand) -> bool {
    command.assessment.class == Class::Read && command.assessment.risk == Risk::Low
}

/// Whether it is what the command is used on, not the command itself, that makes it risky.
fn is_raised(command: &ShellCommand) -> bool {
    let Assessment { class, risk, .. } = command.assessment;
    risk >= Risk::High && risk > class.base_risk()
}

fn is_exactly(command: &ShellCommand, words: &[String]) -> bool {
    command.words.len() == words.len() && starts_with(command, words)
}

fn covers(analysis: &CommandAnalysis, named: impl Fn(&ShellCommand) -> bool) -> bool {
    analysis.flat().into_iter().all(|command| only_reads(command) || named(command))
}

fn starts_with(command: &ShellCommand, words: &[String]) -> bool {
    command.words.len() >= words.len()
        && command.words.iter().zip(words).all(|(have, want)| have.as_ref() == Some(want))
}

/// Program and subcommand, as far as they are known and no option is between them.
fn prefix(command: &ShellCommand) -> Vec<String> {
    let plain = |word: &&Option<String>| {
        word.as_ref().is_some_and(|word| {
            word.starts_with(|c: char| c.is_ascii_alphabetic())
                && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_:.".contains(c))
        })
    };
    match command.words.split_first() {
        Some((Some(program), rest)) => {
            let subcommand = rest.first().into_iter().filter(plain).flatten();
            std::iter::once(program).chain(subcommand).cloned().collect()
        }
        _ => Vec::new(),
    }
}

/// The hash that binds an approval to a call's arguments, byte for byte.
pub fn arguments_hash(arguments: &str) -> String {
    sha256(arguments)
}
