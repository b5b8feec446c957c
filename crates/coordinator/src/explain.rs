//! What `windlass explain` prints: every command found, its class, and the decision under each profile.

use serde::Serialize;

use windlass_core::axes::{Axes, PermissionProfile};
use windlass_core::policy::decide::effective_class;
use windlass_core::policy::{
    Class, CommandAnalysis, Decision, Layer, Risk, RuleSet, ShellCommand, Verdict, Via, decide,
};
use windlass_core::shown::{shown_line, shown_once};
use windlass_core::tool_name;

/// The explanation of one command text; its JSON is a promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub command: String,
    /// The worst risk in it.
    pub risk: Risk,
    /// The worst class in it.
    pub class: Class,
    /// Why, for every part that is asked about or denied somewhere.
    pub reason: String,
    /// Whether it could be parsed as a whole.
    pub parsed: bool,
    /// Every command found, as a tree.
    pub commands: Vec<ShellCommand>,
    /// What would happen under each profile.
    pub decisions: Decisions,
    /// The profile of a task that `run` would start where it is asked.
    pub profile: PermissionProfile,
    /// The profile of the last conversation there, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_profile: Option<PermissionProfile>,
    /// What decided, where it was not the profile's table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decided_by: Vec<DecidedBy>,
}

/// A decision that a rule, an entry of the configuration or the work mode made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecidedBy {
    pub profile: PermissionProfile,
    pub layer: Layer,
    pub reason: String,
}

/// One decision for each profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Decisions {
    /// Reading and notes.
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
    /// Explains an analysis of `command`, with what was decided in advance. All four profiles are shown, and that of
    /// `axes` is marked as the one of `run`.
    pub fn new(command: &str, analysis: CommandAnalysis, rule_set: &RuleSet, axes: &Axes) -> Self {
        let call = &analysis.assessment;
        let under = |permission_profile| {
            let axes = Axes { permission_profile, ..*axes };
            decide(call, &axes, &rule_set.rules_for(tool_name::BASH, call, Some(&analysis), &axes))
        };
        let verdicts = PermissionProfile::ALL.iter().map(|&profile| (profile, under(profile)));
        let decided_by = verdicts.filter_map(|(profile, verdict)| decided_by(profile, verdict));
        let decisions = Decisions {
            restricted: under(PermissionProfile::Restricted).decision,
            normal: under(PermissionProfile::Normal).decision,
            trusted: under(PermissionProfile::Trusted).decision,
            unrestricted: under(PermissionProfile::Unrestricted).decision,
        };
        Self {
            command: command.to_owned(),
            risk: call.risk,
            class: call.class,
            reason: reasons(&analysis),
            parsed: analysis.parsed,
            decisions,
            profile: axes.permission_profile,
            conversation_profile: None,
            decided_by: decided_by.collect(),
            commands: analysis.commands,
        }
    }

    /// The text for people, in which nothing is hidden; `paint` wraps each segment, with nothing for plain text.
    pub fn render(&self, mut paint: impl FnMut(Paint, &str) -> String) -> String {
        let mut out = String::new();
        out.push_str(&paint(Paint::Risk(self.risk), self.risk.as_str()));
        out.push_str(&paint(
            Paint::Text,
            &format!(" {}: {}", self.class, shown_line(&self.reason)),
        ));
        out.push('\n');
        tree(self, &self.commands, "", &mut out, &mut paint);
        let Decisions { restricted, normal, trusted, unrestricted } = self.decisions;
        let profiles = [
            (PermissionProfile::Restricted, restricted),
            (PermissionProfile::Normal, normal),
            (PermissionProfile::Trusted, trusted),
            (PermissionProfile::Unrestricted, unrestricted),
        ];
        out.push_str(&paint(Paint::Frame, "\nPROFILE       DECISION\n"));
        for (profile, decision) in profiles {
            out.push_str(&paint(Paint::Text, &format!("{profile:<14}")));
            out.push_str(&paint(Paint::Decision(decision), decision.as_str()));
            let by = self.decided_by.iter().find(|by| by.profile == profile);
            let words = self.used_by(profile).into_iter().chain(by.map(|by| by.reason.as_str()));
            let words = words.collect::<Vec<_>>().join(" ");
            if !words.is_empty() {
                let space = " ".repeat(7 - decision.as_str().len().min(6));
                out.push_str(&paint(Paint::Text, &format!("{space}{}", shown_line(&words))));
            }
            out.push('\n');
        }
        out
    }
}

impl Explanation {
    /// What works under a profile where it is asked.
    fn used_by(&self, profile: PermissionProfile) -> Option<&'static str> {
        match (self.profile == profile, self.conversation_profile == Some(profile)) {
            (true, true) => Some("(run, and the conversation here)"),
            (true, false) => Some("(run)"),
            (false, true) => Some("(the conversation here)"),
            (false, false) => None,
        }
    }
}

fn decided_by(profile: PermissionProfile, verdict: Verdict) -> Option<DecidedBy> {
    let Verdict { by: layer, reason, .. } = verdict;
    (layer != Layer::Profile).then_some(DecidedBy { profile, layer, reason })
}

/// Why, for each part that leaves the machine or worse; else for the worst part.
fn reasons(analysis: &CommandAnalysis) -> String {
    let all = analysis.flat();
    let mut parts: Vec<_> = all
        .iter()
        .map(|command| &command.assessment)
        .filter(|part| effective_class(part) >= Class::Publish)
        .collect();
    parts.sort_by_key(|part| std::cmp::Reverse((part.risk, part.class)));
    let mut reasons: Vec<&str> = Vec::new();
    for part in parts {
        if !reasons.contains(&&*part.reason) {
            reasons.push(&part.reason);
        }
    }
    match reasons.is_empty() {
        true => analysis.assessment.reason.clone(),
        false => reasons.join("; "),
    }
}

fn tree(
    of: &Explanation,
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
        out.push_str(&paint(Paint::Command, &shown_once(&command.command)));
        out.push_str(&paint(Paint::Text, &format!("  {}, ", found.class)));
        out.push_str(&paint(Paint::Risk(found.risk), found.risk.as_str()));
        // Why a text does not parse was said above.
        if of.parsed || !of.reason.contains(&found.reason) {
            out.push_str(&paint(Paint::Text, &format!(": {}", shown_line(&found.reason))));
        }
        if command.via != Via::Direct {
            let via = shown_line(&command.via.to_string());
            out.push_str(&paint(Paint::Text, &format!(" ({via})")));
        }
        out.push('\n');
        tree(of, &command.commands, &format!("{indent}{below}"), out, paint);
    }
}
