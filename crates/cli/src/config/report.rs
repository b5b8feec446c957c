//! Every setting as a person sees it: `windlass config`.

use secrecy::SecretString;
use serde::Serialize;

use super::Config;
use super::kind::{Value, ValueKind};
use super::layers::{fact_key, provider_key};
use super::settings::{self, MODEL_FACTS, PROVIDER_FIELDS, Setting};
use super::types::Timeout;
use super::values::Provenance;

/// One setting: its name, value and where that came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Such as `agent.max_iterations`.
    pub key: String,
    /// As it would be written; keys are hidden. `None` where nothing is set.
    pub value: Option<String>,
    /// The value, or what holds where nothing is set.
    pub effective: String,
    /// Where it came from.
    pub source: String,
}

impl Config {
    /// Every setting, in reading order; providers and what is known of models come last.
    pub fn report(&self) -> Vec<Row> {
        let fixed = settings::all().map(|setting| {
            let held = self.values.get(setting.key);
            let value = held.map(|held| show(&held.value));
            Row {
                key: setting.key.to_owned(),
                effective: value.clone().unwrap_or_else(|| unset(setting).to_owned()),
                value,
                source: held.map_or_else(|| "default".to_owned(), places),
            }
        });
        let row = |key: String, held: &Provenance| {
            let value = show(&held.value);
            Row { key, effective: value.clone(), value: Some(value), source: places(held) }
        };
        let providers = self.values.providers.iter().flat_map(|(name, fields)| {
            let held = PROVIDER_FIELDS.iter().filter_map(|field| fields.get_key_value(field.key));
            held.map(|(field, held)| row(provider_key(name, field), held))
        });
        let facts = self.values.facts.iter().flat_map(|(model, fields)| {
            let held = MODEL_FACTS.iter().filter_map(|fact| fields.get_key_value(fact.key));
            held.map(|(fact, held)| row(fact_key(model, fact), held))
        });
        fixed.chain(providers).chain(facts).collect()
    }
}

fn places(held: &Provenance) -> String {
    let places: Vec<_> = held.sources.iter().map(ToString::to_string).collect();
    places.join(", ")
}

/// What holds where nothing is set, in words.
pub(super) fn unset(setting: &Setting) -> &'static str {
    match setting.key {
        "models.model" => "none: the model mode decides",
        "models.fast" | "models.deep" => "as `models.smart`",
        "models.effort" => "none: the model mode or the provider decides",
        "models.embeddings_api_base" => "none: memories are searched by words",
        "agent.timeout_seconds" => "off for `run`, 600 for a task of another program",
        "models.outage" => "park for `run`, fail for a task of another program",
        "agent.context_window" => "what is known of the model, else 128000",
        "agent.budget_usd"
        | "agent.budget_tokens"
        | "agent.budget_turns"
        | "agent.budget_seconds" => "no limit",
        "compaction.summarization_model" | "coordinator.router_model" => "as `models.fast`",
        "sandbox.mode" => "auto: docker if available, else local",
        "sandbox.allow_hosts" => "all public hosts",
        "policy.profile" => "trusted",
        "coordinator.redis_url" => "none: no other process is needed",
        "coordinator.context_service_url" => "none: memories are in the data directory",
        "web.search_provider" => "none: `web_search` is not offered",
        "server.listen" => "127.0.0.1:7878, or a free port where that is taken",
        "store.data_dir" => "$XDG_DATA_HOME/windlass or ~/.local/share/windlass",
        _ => match setting.kind {
            ValueKind::List
            | ValueKind::Union
            | ValueKind::Words(_)
            | ValueKind::Addresses
            | ValueKind::Deny
            | ValueKind::Classes
            | ValueKind::Pairs
            | ValueKind::Tables
            | ValueKind::Scopes
            | ValueKind::Keys => "none",
            ValueKind::Timeout
            | ValueKind::Whole(..)
            | ValueKind::Number(..)
            | ValueKind::Switch
            | ValueKind::Text
            | ValueKind::Secret
            | ValueKind::Url(_)
            | ValueKind::Listen
            | ValueKind::Word(_)
            | ValueKind::Sandbox
            | ValueKind::Time(..)
            | ValueKind::Keep
            | ValueKind::Size(..)
            | ValueKind::Model
            | ValueKind::Mode => "not set",
        },
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Whole(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Switch(on) => on.to_string(),
        Value::Text(text) => text.clone(),
        Value::Secret(key) => hidden(key),
        Value::Url(base) => base.to_string(),
        Value::Listen(address) => address.to_string(),
        Value::Sandbox(mode) => mode.to_string(),
        Value::Time(time, unit) => unit.count(*time),
        Value::Timeout(Timeout::After(limit)) => limit.as_secs_f64().to_string(),
        Value::Timeout(Timeout::Off | Timeout::ByOrigin) => "off".to_owned(),
        Value::Size(size) => size.to_string(),
        Value::List(items) => items.join(", "),
        Value::Model(model) => model.to_string(),
        Value::Mode(mode) => mode.to_string(),
        // A header may be a key.
        Value::Pairs(pairs) => count_of(pairs.0.keys().map(String::as_str)),
        Value::Deny(rules) => count_of(rules.iter().map(|rule| rule.pattern.as_str())),
        Value::Classes(rules) => {
            let shown: Vec<_> =
                rules.iter().map(|rule| format!("{} = {}", rule.pattern, rule.class)).collect();
            count_of(shown.iter().map(String::as_str))
        }
        Value::Tables(tables) => count_of(tables.0.keys().map(String::as_str)),
    }
}

fn hidden(_: &SecretString) -> String {
    "set (hidden)".to_owned()
}

fn count_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    names.join(", ")
}
