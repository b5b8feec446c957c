//! What people have decided in advance, by configuration and by standing rules, and which of it applies to a
//! call. The gate and `explain` ask the same function, so that they never differ.

use std::collections::BTreeMap;

use super::allow::{self, DenyRule};
use super::analysis::CommandAnalysis;
use super::class::{Assessment, Class};
use super::decide::{Rules, can_be_session_allowed, effective_class};
use super::pattern::Pattern;
use crate::axes::Axes;
use crate::string_enum;

string_enum! {
    /// What becomes of `rm -rf` whose paths all lie inside the workspace.
    WorkspaceRemoval ("choice for `policy.workspace_removal`") {
        Deny = "deny",
        /// A person is asked.
        Ask = "ask",
    }
}

/// Everything that was decided in advance, for one agent.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// What is never run, whatever else is allowed.
    pub deny: Vec<DenyRule>,
    /// Commands that `restricted` allows in addition.
    pub allow: Vec<Pattern>,
    /// The person's standing rules that hold here.
    pub standing: Vec<Pattern>,
    pub workspace_removal: WorkspaceRemoval,
    /// Sets of rules that skills name as their `genesis_scope`.
    pub scopes: BTreeMap<String, ScopeRules>,
}

/// A named set of rules: it counts while a skill that names it binds an agent (AX-033).
#[derive(Clone, Debug, Default)]
pub struct ScopeRules {
    pub deny: Vec<DenyRule>,
    /// Commands that `restricted` allows in addition.
    pub allow: Vec<Pattern>,
}

impl RuleSet {
    /// Nothing was decided in advance.
    pub const fn none() -> Self {
        Self {
            deny: Vec::new(),
            allow: Vec::new(),
            standing: Vec::new(),
            workspace_removal: WorkspaceRemoval::Deny,
            scopes: BTreeMap::new(),
        }
    }

    /// The same with the rules of these scopes; what is denied anywhere stays denied.
    #[must_use]
    pub fn with_scopes<'a>(&self, scopes: impl IntoIterator<Item = &'a str>) -> Self {
        let mut joined = self.clone();
        for rules in scopes.into_iter().filter_map(|name| self.scopes.get(name)) {
            joined.deny.extend(rules.deny.iter().cloned());
            joined.allow.extend(rules.allow.iter().cloned());
        }
        joined
    }

    /// What applies to this call.
    pub fn rules_for(
        &self,
        tool: &str,
        call: &Assessment,
        analysis: Option<&CommandAnalysis>,
        axes: &Axes,
    ) -> Rules {
        let class = effective_class(call);
        let removes = class == Class::Catastrophic
            && analysis.is_some_and(CommandAnalysis::only_removes_in_workspace);
        Rules {
            denylisted: allow::denylist_reason(&self.deny, tool, analysis),
            allowlisted: analysis
                .is_some_and(|analysis| allow::is_allowlisted(&self.allow, analysis)),
            standing_rule: self.standing_rule(tool, class, analysis, axes).map(Pattern::to_string),
            asks_removal: removes && self.workspace_removal == WorkspaceRemoval::Ask,
            reclassified: analysis.is_some_and(|analysis| analysis.reclassified),
            ..Rules::default()
        }
    }

    /// The standing rule that covers the whole call; where it takes several, the one for the worst part.
    fn standing_rule(
        &self,
        tool: &str,
        class: Class,
        analysis: Option<&CommandAnalysis>,
        axes: &Axes,
    ) -> Option<&Pattern> {
        match analysis {
            Some(analysis) => allow::standing_rule(&self.standing, analysis, axes),
            None => self.standing.iter().find(|rule| {
                can_be_session_allowed(class) && rule.matches_words(&[Some(tool.to_owned())])
            }),
        }
    }
}
