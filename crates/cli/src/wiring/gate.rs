//! What the gate has to know about this machine and its configuration to read commands.

use windlass_core::layout::{AddedDirectory, Layout, WORKSPACE};
use windlass_core::policy::{DenyRule, Pattern, RuleSet, ScopeRules};
use windlass_sandbox::{IsolationReport, SandboxKind};
use windlass_shell::{Context, CustomRule};

use super::Environment;
use crate::config::Config;

/// Directories that a sandbox gives its commands for themselves.
const SCRATCH: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/dev/shm"];

/// The facts that commands of a sandbox are read against. `layout` is as its commands see it.
pub fn context(
    environment: &Environment,
    config: &Config,
    isolation: &IsolationReport,
    layout: &Layout,
    added: &[AddedDirectory],
) -> Context {
    let home = environment.variables.get("HOME").cloned().unwrap_or_default();
    let scratch = match isolation.kind {
        SandboxKind::Docker | SandboxKind::Local => SCRATCH.map(str::to_owned).into(),
        SandboxKind::Host => Vec::new(),
    };
    let alias = (isolation.kind == SandboxKind::Local).then(|| WORKSPACE.to_owned());
    let added = added.iter().filter(|added| added.writable).map(|added| added.path.clone());
    Context {
        directory: layout.start(),
        more_workspaces: alias.into_iter().chain(added).collect(),
        scratch,
        production: config.policy.production.iter().filter_map(|text| Pattern::new(text)).collect(),
        custom_rules: config.policy.classes.iter().filter_map(custom_rule).collect(),
        ..Context::new(layout.top(), home)
    }
}

/// What the configuration and the person's standing rules decide in advance.
pub fn rule_set(config: &Config, standing: Vec<Pattern>) -> RuleSet {
    let deny = config.policy.deny.iter().filter_map(|rule| {
        Some(DenyRule { pattern: Pattern::new(&rule.pattern)?, reason: rule.reason.clone() })
    });
    RuleSet {
        deny: deny.collect(),
        allow: config.policy.allow.iter().filter_map(|text| Pattern::new(text)).collect(),
        standing,
        workspace_removal: config.policy.workspace_removal,
        scopes: config
            .policy
            .scopes
            .0
            .iter()
            .map(|(name, set)| (name.clone(), scope(set)))
            .collect(),
    }
}

/// A set of rules, whose form was checked when it was read.
fn scope(set: &serde_json::Value) -> ScopeRules {
    let entries = |key: &str| set[key].as_array().into_iter().flatten();
    let pattern = |text: &serde_json::Value| Pattern::new(text.as_str()?);
    ScopeRules {
        deny: entries("deny")
            .filter_map(|rule| {
                let reason = rule["reason"].as_str().unwrap_or_default().to_owned();
                Some(DenyRule { pattern: pattern(&rule["pattern"])?, reason })
            })
            .collect(),
        allow: entries("allow").filter_map(pattern).collect(),
    }
}

fn custom_rule(rule: &crate::config::types::ClassRule) -> Option<CustomRule> {
    let reason = format!("`{}` in `policy.classes`", rule.pattern);
    Some(CustomRule { pattern: Pattern::new(&rule.pattern)?, class: rule.class, reason })
}
