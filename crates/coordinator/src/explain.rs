//! What `windlass explain` prints: every command found, its class, and the decision under each profile.

use serde::Serialize;

use windlass_core::axes::{Axes, PermissionProfile};
use windlass_core::policy::{Class, CommandAnalysis, Decision, Risk, Rules, ShellCommand, decide};
use windlass_core::shown::shown_line;

/// The explanation of one command text; its JSON is a promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub command: String,
    /// The worst risk in it.
    pub risk: Risk,
    /// The worst class in it.
    pub class: Class,
    pub reason: String,
    /// Every command found, as a tree.
    pub commands: Vec<ShellCommand>,
    /// What would happen under each profile, by the table alone.
    pub decisions: Decisions,
}

/// One decision for each profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Decisions {
    /// CommandAnalysis and notes.
    pub restricted: Decision,
    /// Edits and local commands.
    pub normal: Decision,
    /// Builds and tests.
    pub trusted: Decision,
    pub unrestricted: Decision,
}

/// Which kind of text a segment is, so that a terminal can paint it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Lines of the tree and other structure.
    Frame,
    Command,
    /// A risk, by how bad it is.
    Risk(Risk),
    Decision(Decision),
    /// Words for people.
    Text,
}

impl Explanation {
    /// Explains an analysis of `command`.
    pub fn new(command: &str, analysis: CommandAnalysis) -> Self {
        let under = |permission_profile| {
            let axes = Axes { permission_profile, ..Axes::headless() };
            decide(&analysis.assessment, &axes, &Rules::default()).decision
        };
        let decisions = Decisions {
            restricted: under(PermissionProfile::Restricted),
            normal: under(PermissionProfile::Normal),
            trusted: under(PermissionProfile::Trusted),
            unrestricted: under(PermissionProfile::Unrestricted),
        };
        let CommandAnalysis { assessment, commands, .. } = analysis;
        Self {
            command: command.to_owned(),
            risk: assessment.risk,
            class: assessment.class,
            reason: assessment.reason,
            commands,
            decisions,
        }
    }

    /// The text for people; `paint` wraps each segment, with nothing for plain text.
    pub fn render(&self, mut paint: impl FnMut(Paint, &str) -> String) -> String {
        let mut out = String::new();
        out.push_str(&paint(Paint::Risk(self.risk), self.risk.as_str()));
        out.push_str(&paint(
            Paint::Text,
            &format!(" {}: {}", self.class, shown_line(&self.reason)),
        ));
        out.push('\n');
        tree(&self.commands, "", &mut out, &mut paint);
        let Decisions { restricted, normal, trusted, unrestricted } = self.decisions;
        let profiles = [
            (PermissionProfile::Restricted, restricted),
            (PermissionProfile::Normal, normal),
            (PermissionProfile::Trusted, trusted),
            (PermissionProfile::Unrestricted, unrestricted),
        ];
        for (profile, decision) in profiles {
            out.push_str(&paint(Paint::Text, &format!("{profile:<13}")));
            out.push_str(&paint(Paint::Decision(decision), decision.as_str()));
            out.push('\n');
        }
        out
    }
}

fn tree(
    commands: &[ShellCommand],
    indent: &str,
    out: &mut String,
    paint: &mut impl FnMut(Paint, &str) -> String,
) {
    for (index, command) in commands.iter().enumerate() {
        let last = index + 1 == commands.len();
        let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let found = &command.assessment;
        out.push_str(&paint(Paint::Frame, &format!("{indent}{branch}")));
        out.push_str(&paint(Paint::Command, &shown_line(&command.command)));
        out.push_str(&paint(Paint::Text, &format!("  {}, ", found.class)));
        out.push_str(&paint(Paint::Risk(found.risk), found.risk.as_str()));
        out.push_str(&paint(
            Paint::Text,
            &format!(": {}", shown_line(&format!("{} ({})", found.reason, command.via))),
        ));
        out.push('\n');
        tree(&command.commands, &format!("{indent}{below}"), out, paint);
    }
}
