//! Configuration: defaults, files, environment, flags and a task's own wishes become one set of typed
//! values, each of which knows where it came from.
//!
//! Invariants:
//! - `Config::load` is pure; `read` alone touches files and the environment.
//! - A later layer wins: defaults < user's file < project's file < environment < flags < task (C-39).
//! - Either every value is allowed, or all errors are returned together.
//! - Keys and passwords are never in errors, notices or rows.

pub mod settings;
pub mod kind;
pub mod written;
pub mod types;
mod values;
mod layers;
mod suggest;
mod checks;
mod models;
pub mod keys;
pub mod providers;
pub mod error;
pub mod notice;
pub mod report;
pub mod docs;
pub mod edit;
pub mod read;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_layers;

use std::collections::BTreeMap;
use std::path::PathBuf;

use windlass_core::axes::PermissionProfile;
use windlass_core::command::{CompactionOverrides, ExecutionConfig};
use windlass_model::KnownModel;

pub use error::{ConfigError, ConfigErrors, Source};
pub use models::{DEFAULT_CONTEXT_WINDOW, Endpoint};
pub use notice::ConfigNotice;
pub use providers::ConfiguredProvider;
pub use report::Row;
pub use types::{ModelChoice, ModelFacts, ModelSelection, Origin, Timeout};

use layers::{FileTrust, Layers};
use settings::{
    Agent, Compaction, Coordinator, Mcp, Models, Policy, Runners, Sandbox, Server, Setting, Store,
    Subagents, Tui, Ui, Web,
};
use values::Values;
use written::Raw;

/// A file's text and where it is. Cannot be printed: it may hold keys.
#[derive(Clone)]
pub struct File {
    /// As errors name it.
    pub path: PathBuf,
    pub text: String,
}

/// Whether a person has approved a project's file, as it is now (§15.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Approved, with this content hash.
    Approved,
    /// Not approved, or changed since.
    Unknown,
}

/// A setting given on the command line.
#[derive(Clone)]
pub struct Flag {
    /// As the person wrote it, such as `--model`.
    pub flag: String,
    pub key: String,
    pub value: String,
}

/// All that configuration is made of. Cannot be printed: it holds keys.
#[derive(Clone)]
pub struct Sources {
    /// The user's file, if there is one.
    pub user: Option<File>,
    /// The project's file, if there is one.
    pub project: Option<(File, Trust)>,
    /// The variables of the environment.
    pub env: BTreeMap<String, String>,
    /// The flags that are settings.
    pub flags: Vec<Flag>,
}

/// Every setting, ready to use.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field is the table of its name, documented there")]
pub struct Config {
    pub models: Models,
    pub agent: Agent,
    pub compaction: Compaction,
    pub subagents: Subagents,
    pub sandbox: Sandbox,
    pub policy: Policy,
    pub coordinator: Coordinator,
    pub web: Web,
    pub mcp: Mcp,
    pub runners: Runners,
    pub store: Store,
    pub server: Server,
    pub ui: Ui,
    /// The interactive terminal.
    pub tui: Tui,
    /// What is known of models, by the names in `[models."NAME"]`.
    pub model_facts: BTreeMap<String, ModelFacts>,
    /// What the person should know.
    pub notices: Vec<ConfigNotice>,
    values: Values,
}

impl Config {
    /// Merges all sources over the defaults.
    pub fn load(sources: &Sources) -> Result<Self, ConfigErrors> {
        let mut layers = Layers::new(Values::defaults());
        if let Some(file) = &sources.user {
            layers.file(&file.path, &file.text, FileTrust::User);
        }
        if let Some((file, trust)) = &sources.project {
            let trust = match trust {
                Trust::Approved => FileTrust::ApprovedProject,
                Trust::Unknown => FileTrust::Project,
            };
            layers.file(&file.path, &file.text, trust);
        }
        layers.environment(&sources.env);
        for Flag { flag, key, value } in &sources.flags {
            layers.flag(flag, key, value);
        }
        Self::settle(layers)
    }

    /// The configuration of one task: its own wishes win (ES-369).
    pub fn for_task(&self, wishes: &ExecutionConfig) -> Result<Self, ConfigErrors> {
        // Neither a role nor a contract is a setting.
        let ExecutionConfig {
            timeout_seconds,
            max_iterations,
            model,
            effort,
            compaction,
            outage,
            role: _,
            contract: _,
        } = wishes;
        let CompactionOverrides {
            context_window_tokens,
            response_reserve_tokens,
            compaction_trigger_ratio,
            memory_flush_enabled,
            memory_flush_soft_threshold_tokens,
            max_summary_tokens,
            preserve_recent_turns,
        } = compaction.clone().unwrap_or_default();
        let whole = |number: u64| Raw::Whole(number.try_into().ok());
        let given = [
            ("timeout_seconds", "agent.timeout_seconds", timeout_seconds.map(whole)),
            ("max_iterations", "agent.max_iterations", max_iterations.map(|n| whole(n.into()))),
            ("model", "models.model", model.clone().map(Raw::Text)),
            ("effort", "models.effort", effort.map(|effort| Raw::Word(effort.to_string()))),
            ("outage", "models.outage", outage.map(|outage| Raw::Word(outage.to_string()))),
            (
                "compaction.context_window_tokens",
                "agent.context_window",
                context_window_tokens.map(whole),
            ),
            (
                "compaction.response_reserve_tokens",
                "compaction.response_reserve_tokens",
                response_reserve_tokens.map(whole),
            ),
            (
                "compaction.compaction_trigger_ratio",
                "compaction.trigger_ratio",
                compaction_trigger_ratio.map(Raw::Number),
            ),
            (
                "compaction.memory_flush_enabled",
                "compaction.memory_flush_enabled",
                memory_flush_enabled.map(Raw::Switch),
            ),
            (
                "compaction.memory_flush_soft_threshold_tokens",
                "compaction.memory_flush_soft_threshold_tokens",
                memory_flush_soft_threshold_tokens.map(whole),
            ),
            (
                "compaction.max_summary_tokens",
                "compaction.max_summary_tokens",
                max_summary_tokens.map(whole),
            ),
            (
                "compaction.preserve_recent_turns",
                "compaction.preserve_recent_turns",
                preserve_recent_turns.map(|n| whole(n.into())),
            ),
        ];
        let mut layers = Layers::new(self.values.clone());
        for (field, key, value) in given {
            if let (Some(setting), Some(value)) = (Setting::find(key), value) {
                layers.set(setting, &value, Source::Task(field));
            }
        }
        Self::settle(layers)
    }

    /// Checks what concerns several values, and makes fields of all.
    fn settle(mut layers: Layers) -> Result<Self, ConfigErrors> {
        checks::follow_smart(&mut layers);
        checks::check_providers(&mut layers);
        let model_facts = checks::model_facts(&mut layers);
        if !layers.errors.is_empty() {
            return Err(ConfigErrors(layers.errors));
        }
        let Layers { values, notices, .. } = layers;
        let config = Self {
            models: Models::of(&values),
            agent: Agent::of(&values),
            compaction: Compaction::of(&values),
            subagents: Subagents::of(&values),
            sandbox: Sandbox::of(&values),
            policy: Policy::of(&values),
            coordinator: Coordinator::of(&values),
            web: Web::of(&values),
            mcp: Mcp::of(&values),
            runners: Runners::of(&values),
            store: Store::of(&values),
            server: Server::of(&values),
            ui: Ui::of(&values),
            tui: Tui::of(&values),
            model_facts,
            notices,
            values,
        };
        let errors = checks::check_combinations(&config);
        if errors.is_empty() { Ok(config) } else { Err(ConfigErrors(errors)) }
    }

    /// What is known of a model: what the configuration says, by the whole name (`litellm/gpt-4o`) or the name
    /// alone (`gpt-4o`), then what the built-in table says.
    pub fn facts(&self, model: &ModelChoice) -> ModelFacts {
        let alone = match model {
            ModelChoice::Served { model, .. } => self.model_facts.get(model),
            ModelChoice::Script(_) => None,
        };
        let given = self.model_facts.get(&model.to_string()).or(alone).copied().unwrap_or_default();
        let built_in = model.to_string().parse().ok().and_then(|name| KnownModel::find(&name));
        ModelFacts {
            context_window: given
                .context_window
                .or(built_in.and_then(|known| known.context_window)),
            price: given.price.or(built_in.map(|known| known.price)),
            vision: given
                .vision
                .or_else(|| self.provider_vision(model))
                .or(built_in.map(|known| known.sees)),
        }
    }

    /// What the configuration says of all models of a provider.
    fn provider_vision(&self, model: &ModelChoice) -> Option<bool> {
        match model {
            ModelChoice::Served { provider, .. } => self.provider(provider)?.ok()?.vision,
            ModelChoice::Script(_) => None,
        }
    }

    /// Whether tasks of this model read memories and leave some. What a script is sent must be the same in every run, so its
    /// tasks have memories only where somebody has switched them on.
    pub fn has_memories(&self, model: &ModelChoice) -> bool {
        let is_chosen = self.values.source("agent.memories") != Source::Default;
        let is_script = matches!(model, ModelChoice::Script(_));
        self.agent.memories && (is_chosen || !is_script)
    }

    /// The window of a model in tokens (ES-151).
    pub fn context_window(&self, model: &ModelChoice) -> u64 {
        let known = self.agent.context_window.or(self.facts(model).context_window);
        known.unwrap_or(DEFAULT_CONTEXT_WINDOW)
    }

    /// The keys by name, in force or not; nothing that is kept or shown may hold one.
    pub fn secrets(&self) -> Vec<(String, String)> {
        let mut found = self.values.secrets();
        found.extend(self.provider_secrets());
        found
    }

    /// Whether a session may have the profile of the flag; `unrestricted` needs the user's opt-in (MS-065).
    pub fn permits(&self, profile: PermissionProfile) -> Result<(), ConfigErrors> {
        if profile == PermissionProfile::Unrestricted && !self.policy.allow_unrestricted {
            return Err(checks::no_opt_in(Source::Flag("--permission-profile".to_owned())).into());
        }
        Ok(())
    }

    /// Whether the project's file holds settings that wait for `windlass trust`.
    pub fn needs_trust(&self) -> bool {
        self.notices.iter().any(|notice| matches!(notice, ConfigNotice::NeedsTrust { .. }))
    }
}
