//! Rules about several settings at once: which follow another, and which exclude each other.

use std::collections::BTreeMap;

use windlass_core::axes::PermissionProfile;
use windlass_model::{KnownProvider, PROVIDERS, Price};

use super::Config;
use super::error::{ConfigError, Source};
use super::kind::Value;
use super::layers::{Layers, fact_key, refusal};
use super::models::unknown_provider_text;
use super::notice::ConfigNotice;
use super::providers;
use super::settings::{self, Setting};
use super::types::{ModeModel, ModelChoice, ModelFacts, SearchProvider};
use super::values::{Provenance, Values};
use super::written::Raw;

/// Unset models follow `smart`, now and visibly, never when something fails (C-40).
pub(super) fn follow_smart(layers: &mut Layers) {
    let values = &mut layers.values;
    let explicit = values.get("models.model").is_some();
    let smart = mode(values, "models.smart").unwrap_or_default();
    if smart.model.is_none()
        && let Some(model) = default_model(values)
    {
        // An effort alone is of the default model.
        let source = values.source("models.smart");
        let mode = ModeModel { model: Some(model.clone()), ..smart };
        hold_mode(values, "models.smart", mode, source);
        if !explicit {
            layers.notices.push(ConfigNotice::DefaultModel { model });
        }
    }
    let Some(smart @ ModeModel { model: Some(_), .. }) = mode(values, "models.smart") else {
        return;
    };
    let mut keys = Vec::new();
    for key in ["models.fast", "models.deep"] {
        match mode(values, key) {
            None => {
                hold_mode(values, key, smart.clone(), Source::Follows("models.smart"));
                keys.push(key);
            }
            Some(ModeModel { model: None, effort }) => {
                let source = values.source(key);
                hold_mode(values, key, ModeModel { model: smart.model.clone(), effort }, source);
            }
            Some(ModeModel { model: Some(_), .. }) => {}
        }
    }
    if let Some(model) = smart.model.filter(|_| !keys.is_empty() && !explicit) {
        layers.notices.push(ConfigNotice::FollowsSmart { keys, model });
    }
}

/// Every model must be of a provider that is built in or described.
pub(super) fn check_providers(layers: &mut Layers) {
    for setting in settings::all() {
        let Some(held) = layers.values.get(setting.key) else { continue };
        let model = match &held.value {
            Value::Model(model) => Some(model),
            Value::Mode(mode) => mode.model.as_ref(),
            _ => None,
        };
        let Some(ModelChoice::Served { provider, model: short }) = model else { continue };
        if KnownProvider::find(provider).is_some() || layers.values.providers.contains_key(provider)
        {
            continue;
        }
        let source = layers.values.source(setting.key);
        if matches!(source, Source::Follows(_)) {
            continue;
        }
        let reason = unknown_provider_text(provider, short);
        let raw = Raw::Text(format!("{provider}/{short}"));
        layers.errors.push(refusal(setting, setting.key, &raw, source, reason));
    }
}

fn mode(values: &Values, key: &str) -> Option<ModeModel> {
    match values.get(key).map(|held| &held.value) {
        Some(Value::Mode(mode)) => Some(mode.clone()),
        _ => None,
    }
}

fn default_model(values: &Values) -> Option<ModelChoice> {
    // A self-hosted provider is configured by its base URL, any other by its key.
    let is_configured = |provider: &&KnownProvider| {
        let variable = if provider.base.is_some() { provider.key_env } else { provider.base_env };
        Setting::of_variable(variable).is_some_and(|setting| values.get(setting.key).is_some())
    };
    let known = PROVIDERS.iter().find(is_configured)?;
    let (provider, model) = (known.name.to_owned(), known.default_model?.to_owned());
    Some(ModelChoice::Served { provider, model })
}

fn hold_mode(values: &mut Values, key: &str, mode: ModeModel, source: Source) {
    if let Some(setting) = Setting::find(key) {
        values.hold(setting, Value::Mode(mode), source);
    }
}

/// What is known of each model. A price needs both of its sides.
pub(super) fn model_facts(layers: &mut Layers) -> BTreeMap<String, ModelFacts> {
    let mut all = BTreeMap::new();
    for (model, fields) in &layers.values.facts {
        let number = |field: &str| match fields.get(field) {
            Some(Provenance { value: Value::Number(number), .. }) => Some(*number),
            _ => None,
        };
        let context_window = match fields.get("context_window") {
            Some(Provenance { value: Value::Whole(tokens), .. }) => Some(*tokens),
            _ => None,
        };
        let vision = match fields.get("vision") {
            Some(Provenance { value: Value::Switch(sees), .. }) => Some(*sees),
            _ => None,
        };
        let (cached, cache_write) = (number("cached"), number("cache_write"));
        let price = match (number("input"), number("output")) {
            (Some(input), Some(output)) => {
                Some(Price { input, output, cached, cache_write, long: None })
            }
            _ => None,
        };
        let half = ["input", "output", "cached", "cache_write"]
            .iter()
            .find_map(|&field| fields.get(field).map(|held| (field, held)));
        if let (None, Some((field, held))) = (price, half) {
            let source = held.sources.last().cloned().unwrap_or(Source::Default);
            let problem = "a price needs both `input` and `output`";
            layers.errors.push(ConfigError::at(fact_key(model, field), source, problem));
        }
        all.insert(model.clone(), ModelFacts { context_window, price, vision });
    }
    all
}

/// Reports settings that exclude each other.
pub(super) fn check_combinations(config: &Config) -> Vec<ConfigError> {
    let at = |key: &str, problem: String| ConfigError::at(key, config.values.source(key), problem);
    let mut errors = Vec::new();
    let unrestricted = config.policy.profile == Some(PermissionProfile::Unrestricted);
    if unrestricted && !config.policy.allow_unrestricted {
        errors.push(no_opt_in(config.values.source("policy.profile")));
    }
    errors.extend(window_too_small(config));
    errors.extend(providers::missing_bases(config));
    errors.extend(providers::refused_efforts(config));
    let models = &config.models;
    if models.backoff_base_ms > models.max_backoff_ms {
        let problem = "the first wait may not be longer than `models.max_backoff_ms`";
        errors.push(at("models.backoff_base_ms", problem.to_owned()));
    }
    if config.agent.bash_timeout_seconds > config.agent.bash_max_timeout_seconds {
        let problem = "may not be longer than `agent.bash_max_timeout_seconds`";
        errors.push(at("agent.bash_timeout_seconds", problem.to_owned()));
    }
    let needs = match config.web.search_provider {
        Some(SearchProvider::Searxng) if config.web.search_url.is_none() => Some("web.search_url"),
        Some(SearchProvider::Brave | SearchProvider::Tavily)
            if config.web.search_api_key.is_none() =>
        {
            Some("web.search_api_key")
        }
        Some(_) | None => None,
    };
    if let (Some(needed), Some(provider)) = (needs, config.web.search_provider) {
        errors.push(at("web.search_provider", format!("`{provider}` needs `{needed}`")));
    }
    errors
}

/// Every window that is known must hold more than the reserve.
fn window_too_small(config: &Config) -> Option<ConfigError> {
    let reserve = config.compaction.response_reserve_tokens;
    let overall = config.agent.context_window.map(|window| {
        let key = "agent.context_window";
        (key.to_owned(), window, config.values.source(key))
    });
    let by_model = config.model_facts.iter().filter_map(|(model, facts)| {
        let held = config.values.facts.get(model)?.get("context_window")?;
        let source = held.sources.last()?.clone();
        Some((fact_key(model, "context_window"), facts.context_window?, source))
    });
    let mut windows = overall.into_iter().chain(by_model);
    let (key, window, source) = windows.find(|(_, window, _)| *window <= reserve)?;
    let problem = format!("allowed: more than `compaction.response_reserve_tokens` = {reserve}");
    Some(ConfigError::at(key, source, problem).value(window.to_string()))
}

/// Reports the profile `unrestricted` where the user has not opted in.
pub(super) fn no_opt_in(source: Source) -> ConfigError {
    let problem = "`unrestricted` is not allowed until you opt in";
    let hint = "put `allow_unrestricted = true` under `[policy]` in your own configuration file \
                (`windlass config path`)";
    ConfigError::at("policy.profile", source, problem).value("unrestricted").hint(hint)
}
