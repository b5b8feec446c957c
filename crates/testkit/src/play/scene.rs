//! What a script for `play` says besides the model's replies.
//!
//! ```yaml
//! goal: paint the door              # the goal; alone it is enough
//! constraints: [use no red]
//! profile: normal                   # permission profile, else as headless tasks start
//! control: manual                   # run control, likewise
//! mode: plan                        # work mode, likewise
//! role: auditor                     # the role that it begins in, with its axes
//! contract: {checks: {test: sh t}}  # the completion contract; `approved: false` asks before its commands
//! rules: [cargo test]               # standing rules, and entries of `[policy] allow`
//! files: {colours.txt: "blue\n"}    # the workspace before the task starts
//! skills: {painting: "---\n…"}      # the text of each SKILL.md
//! instructions: Two coats.          # what AGENTS.md would say
//! vision: true                      # whether the model can see, else not
//! limits: {max_iterations: 3}       # see `SceneLimits`
//! before: [{send: hurry}]           # happens before the first segment
//! at_request: {2: [{send: stop}]}   # happens when the second request arrives
//! then: [{answer: blue}, resume]    # after a segment; each is followed by the next segment
//! crash_when_written: started       # the first segment is dropped when a command writes to this pipe
//! crash_at_request: 2               # or while the model has this request to answer
//! show: 2                           # which request `play_context` shows, else the last
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use windlass_agent::ContractInForce;
use windlass_core::axes::{PermissionProfile, RunControl, WorkMode};
use windlass_core::policy::{Pattern, RuleSet};
use windlass_core::role::Role;

/// The workspace's name on a stage.
pub(super) const WORKSPACE: &str = "workspace";
/// Where a stage's skills are.
pub(super) const SKILLS: &str = "skills";

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scene {
    pub(super) goal: String,
    #[serde(default)]
    pub(super) constraints: Vec<String>,
    profile: Option<String>,
    control: Option<String>,
    mode: Option<String>,
    role: Option<String>,
    contract: Option<serde_json::Value>,
    #[serde(default = "yes")]
    approved: bool,
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    skills: BTreeMap<String, String>,
    pub(super) instructions: Option<String>,
    #[serde(default)]
    pub(super) vision: bool,
    #[serde(default)]
    pub(super) limits: SceneLimits,
    #[serde(default)]
    pub(super) before: Vec<Step>,
    #[serde(default)]
    pub(super) at_request: BTreeMap<usize, Vec<Step>>,
    #[serde(default)]
    pub(super) then: Vec<Step>,
    pub(super) crash_when_written: Option<String>,
    pub(super) crash_at_request: Option<usize>,
    pub(super) show: Option<usize>,
    // The model reads these.
    #[expect(dead_code, reason = "named, so that an unknown key is an error")]
    replies: Option<serde::de::IgnoredAny>,
    #[expect(dead_code, reason = "named, so that an unknown key is an error")]
    r#match: Option<serde::de::IgnoredAny>,
}

const fn yes() -> bool {
    true
}

/// Limits of the agent; what is not given is as generous as the defaults.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SceneLimits {
    /// The most rounds of tool calls.
    pub(super) max_iterations: Option<u32>,
    /// The largest tool result in the context, in tokens.
    pub(super) output_tokens: Option<u64>,
    /// The model's context window, in tokens, all of it for the prompt.
    pub(super) window: Option<u64>,
    /// Recent turns that a compaction keeps.
    pub(super) recent_turns: Option<u32>,
    /// Whether notes are saved before a compaction.
    pub(super) flush: Option<bool>,
    /// The budget of model turns.
    pub(super) turns: Option<u64>,
}

/// Something that a person or another process does.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Send(String),
    Event(String),
    Answer(String),
    Pause,
    Cancel,
    Resume,
}

impl Scene {
    pub(super) fn parse(script: &str) -> Self {
        serde_saphyr::from_str(script).unwrap_or_else(|error| panic!("bad scene: {error}"))
    }

    pub(super) fn profile(&self) -> Option<PermissionProfile> {
        self.profile.as_ref().map(|text| text.parse().expect("a permission profile"))
    }

    pub(super) fn control(&self) -> Option<RunControl> {
        self.control.as_ref().map(|text| text.parse().expect("a run control"))
    }

    pub(super) fn mode(&self) -> Option<WorkMode> {
        self.mode.as_ref().map(|text| text.parse().expect("a work mode"))
    }

    pub(super) fn role(&self) -> Option<Role> {
        self.role.as_ref().map(|text| text.parse().expect("a role"))
    }

    pub(super) fn contract(&self) -> Option<Arc<ContractInForce>> {
        let text = self.contract.as_ref()?.to_string();
        let contract = windlass_plan::read_contract(&text).expect("a contract");
        let (source, approved) = ("completion.json".to_owned(), self.approved);
        Some(Arc::new(ContractInForce { contract, source, approved }))
    }

    pub(super) fn rules(&self) -> RuleSet {
        let patterns: Vec<_> = self.rules.iter().filter_map(|text| Pattern::new(text)).collect();
        RuleSet { allow: patterns.clone(), standing: patterns, ..RuleSet::none() }
    }

    /// Writes the workspace and the skills below a directory.
    pub(super) fn write_files(&self, root: &Path) {
        std::fs::create_dir(root.join(WORKSPACE)).expect("a fresh directory is writable");
        let skill = |(name, text): (&String, &String)| {
            (root.join(SKILLS).join(name).join("SKILL.md"), text.clone())
        };
        let file =
            |(name, text): (&String, &String)| (root.join(WORKSPACE).join(name), text.clone());
        for (path, text) in self.files.iter().map(file).chain(self.skills.iter().map(skill)) {
            let parent = path.parent().expect("a file lies in a directory");
            std::fs::create_dir_all(parent).expect("a fresh directory is writable");
            std::fs::write(&path, text).expect("a fresh directory is writable");
        }
    }
}

/// A script without the indentation that all its lines share.
pub(super) fn unindent(script: &str) -> String {
    let lines = || script.lines().filter(|line| !line.trim().is_empty());
    let indent = lines().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    script.lines().map(|line| format!("{}\n", line.get(indent..).unwrap_or_default())).collect()
}
