//! Every setting as a person sees it: `windlass config`.

use secrecy::SecretString;
use serde::Serialize;

use super::Config;
use super::kind::{Kind, Value};
use super::layers::fact_key;
use super::settings::{self, MODEL_FACTS};
use super::types::Timeout;
use super::values::Provenance;

/// One setting: its name, value and where that came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Such as `agent.max_iterations`.
    pub key: String,
    /// As it would be written; keys are hidden. `None` where nothing is set.
    pub value: Option<String>,
    /// Where it came from.
    pub source: String,
}

impl Config {
    /// Every setting, in reading order; what is known of models comes last.
    pub fn report(&self) -> Vec<Row> {
        let fixed = settings::all().map(|setting| {
            let held = self.values.get(setting.key);
            Row {
                key: setting.key.to_owned(),
                value: held.map_or_else(|| unset(setting.kind), |held| Some(show(&held.value))),
                source: held.map_or_else(|| "default".to_owned(), places),
            }
        });
        let facts = self.values.facts.iter().flat_map(|(model, fields)| {
            MODEL_FACTS.iter().filter_map(|fact| {
                let held = fields.get(fact.key)?;
                let key = fact_key(model, fact.key);
                Some(Row { key, value: Some(show(&held.value)), source: places(held) })
            })
        });
        fixed.chain(facts).collect()
    }
}

fn places(held: &Provenance) -> String {
    let places: Vec<_> = held.sources.iter().map(ToString::to_string).collect();
    places.join(", ")
}

/// What no value means, where it means something.
pub(super) fn unset(kind: Kind) -> Option<String> {
    match kind {
        Kind::Timeout => Some("600 for a task command, off for `run` and chats".to_owned()),
        Kind::List | Kind::Union | Kind::Addresses | Kind::Deny | Kind::Classes | Kind::Tables => {
            Some("none".to_owned())
        }
        Kind::Whole(..)
        | Kind::Number(..)
        | Kind::Switch
        | Kind::Text
        | Kind::Secret
        | Kind::Url(_)
        | Kind::Listen
        | Kind::Word(_)
        | Kind::Sandbox
        | Kind::Time(..)
        | Kind::Size(..)
        | Kind::Model => None,
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
        Value::Deny(rules) => counted(rules.iter().map(|rule| rule.pattern.as_str())),
        Value::Classes(rules) => {
            let shown: Vec<_> =
                rules.iter().map(|rule| format!("{} = {}", rule.pattern, rule.class)).collect();
            counted(shown.iter().map(String::as_str))
        }
        Value::Tables(tables) => counted(tables.0.keys().map(String::as_str)),
    }
}

fn hidden(_: &SecretString) -> String {
    "set (hidden)".to_owned()
}

fn counted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    names.join(", ")
}
