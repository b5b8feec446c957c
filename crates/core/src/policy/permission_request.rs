//! Why a person is asked about a call, as data: whoever shows the question draws it from this.

use serde::{Deserialize, Serialize};

use super::allow::RuleScope;
use super::analysis::{CommandAnalysis, ShellCommand};
use super::class::{Assessment, Class, Risk};
use super::decide::{Layer, Rules, decide};
use crate::axes::Axes;
use crate::tool_name;

/// The most sentences in the first line of a question; its parts say the rest.
const MOST_SENTENCES: usize = 3;

/// What raised a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionRequest {
    pub tool: String,
    pub class: Class,
    pub risk: Risk,
    /// What the call would do; see [`sentence`].
    pub reason: String,
    /// What asks: the profile's table, or run control.
    pub by: Layer,
    /// The commands that raised it, worst first, each once. Empty for a call that is not a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PermissionPart>,
    /// What is different from when the person was asked about this call before, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Where a rule from `Allow All` would hold.
    #[serde(default, skip_serializing_if = "RuleScope::is_session")]
    pub rule_scope: RuleScope,
}

/// One command that raised a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionPart {
    /// Its words as far as they are known; `…` for what is not known.
    pub command: String,
    pub class: Class,
    pub risk: Risk,
    /// What it would do; see [`sentence`].
    pub reason: String,
}

impl PermissionRequest {
    /// Why `axes` ask about this call.
    pub fn new(
        tool: &str,
        call: &Assessment,
        analysis: Option<&CommandAnalysis>,
        axes: &Axes,
        by: Layer,
    ) -> Self {
        Self {
            tool: tool.to_owned(),
            class: call.class,
            risk: call.risk,
            reason: call.reason.clone(),
            by,
            parts: analysis.map(|analysis| parts(analysis, axes)).unwrap_or_default(),
            changed: Vec::new(),
            rule_scope: RuleScope::Session,
        }
    }

    /// The question's first line: what is asked, and what it would do.
    pub fn headline(&self) -> String {
        let asks = match (&*self.tool, self.parts.is_empty()) {
            (_, false) => "Run this command?".to_owned(),
            (tool_name::WRITE | tool_name::EDIT, true) => "Make this change?".to_owned(),
            (tool, true) => format!("Allow `{tool}`?"),
        };
        let mut reasons: Vec<&str> = Vec::new();
        for reason in self.parts.iter().map(|part| &*part.reason) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        if reasons.is_empty() {
            reasons.push(&self.reason);
        }
        let more = reasons.len().saturating_sub(MOST_SENTENCES);
        let mut text = asks;
        for reason in reasons.iter().take(MOST_SENTENCES) {
            text.push(' ');
            text.push_str(&sentence(reason));
        }
        if more > 0 {
            text.push_str(&format!(" And {more} more."));
        }
        if !self.changed.is_empty() {
            text = format!("Changed since you were asked: {}. {text}", self.changed.join(", "));
        }
        text
    }
}

/// A reason as a sentence. A reason is a predicate for "it" (`removes files`), or begins with its own
/// subject in backquotes (`` `x` holds secrets ``).
pub fn sentence(reason: &str) -> String {
    match reason.starts_with('`') {
        true => format!("{reason}."),
        false => format!("It {reason}."),
    }
}

/// The commands that are not allowed at once, worst first; else the worst one.
fn parts(analysis: &CommandAnalysis, axes: &Axes) -> Vec<PermissionPart> {
    let all = analysis.flat();
    let asks = |command: &&ShellCommand| {
        decide(&command.assessment, axes, &Rules::default()).decision != super::Decision::Allow
    };
    let mut raised: Vec<&ShellCommand> = all.iter().copied().filter(asks).collect();
    // A stable sort: among equals the text's own order stays.
    raised.sort_by_key(|command| {
        std::cmp::Reverse((command.assessment.risk, command.assessment.class))
    });
    if raised.is_empty() {
        let worst = |command: &&&ShellCommand| (command.assessment.risk, command.assessment.class);
        raised.extend(all.iter().max_by_key(worst));
    }
    let mut parts: Vec<PermissionPart> = Vec::new();
    for command in raised {
        let Assessment { class, risk, reason } = command.assessment.clone();
        let part = PermissionPart { command: command.command.clone(), class, risk, reason };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}
