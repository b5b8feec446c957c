//! Values as they were written, and the small readers that kinds are made of.
//!
//! Invariant: a reader answers `None` or a refusal for what it cannot take; it never panics.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value as Json;
use url::Url;
use windlass_core::reasoning::Effort;

use super::kind::{InvalidValue, TimeUnit, YEAR};
use super::types::{Base, ByteSize, ClassRule, ModeModel, Pairs, SandboxMode, Tables, Timeout};

/// A value as it was written.
#[derive(Clone, Debug)]
pub enum Raw {
    /// Text without a type: a variable, a flag, a default.
    Word(String),
    /// A TOML string.
    Text(String),
    /// A TOML integer, or one too large for us.
    Whole(Option<i64>),
    /// A TOML float.
    Number(f64),
    /// A TOML boolean.
    Switch(bool),
    /// A TOML array.
    List(Vec<Raw>),
    /// A TOML table.
    Table(BTreeMap<String, Raw>),
    /// A TOML date or time; no setting takes one.
    Date(String),
}

pub(super) fn text(raw: &Raw) -> Option<&str> {
    match raw {
        Raw::Word(text) | Raw::Text(text) => Some(text).filter(|text| !text.trim().is_empty()),
        _ => None,
    }
    .map(String::as_str)
}

pub(super) fn whole(raw: &Raw) -> Option<u64> {
    match raw {
        // `200_000` reads as it does in TOML.
        Raw::Word(word) => word.trim().replace('_', "").parse().ok(),
        Raw::Whole(number) => number.and_then(|number| number.try_into().ok()),
        _ => None,
    }
}

pub(super) fn number(raw: &Raw) -> Option<f64> {
    match raw {
        Raw::Word(word) => word.trim().parse().ok(),
        Raw::Whole(number) => number.map(|number| number as f64),
        Raw::Number(number) => Some(*number),
        _ => None,
    }
}

pub(super) fn switch(raw: &Raw) -> Option<bool> {
    match raw {
        Raw::Switch(on) => Some(*on),
        Raw::Word(word) => match word.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn base(raw: &Raw, schemes: &[&str]) -> Option<Base> {
    let url = Url::parse(text(raw)?.trim()).ok()?;
    (schemes.contains(&url.scheme()) && url.has_host()).then(|| Base::new(url))
}

pub(super) fn time(raw: &Raw, unit: TimeUnit) -> Option<Duration> {
    if let Some(count) = whole(raw) {
        return unit.of(count);
    }
    if let Some(count) = number(raw) {
        let one = unit.of(1)?.as_secs_f64();
        return Duration::try_from_secs_f64(count * one).ok();
    }
    let written: SignedDuration = text(raw)?.trim().parse().ok()?;
    written.try_into().ok()
}

pub(super) fn timeout(raw: &Raw) -> Option<Timeout> {
    if text(raw).is_some_and(|text| text.trim().eq_ignore_ascii_case("off")) {
        return Some(Timeout::Off);
    }
    let limit = time(raw, TimeUnit::Seconds)?;
    (Duration::from_secs(1)..=YEAR).contains(&limit).then_some(Timeout::After(limit))
}

pub(super) fn size(raw: &Raw) -> Option<ByteSize> {
    match raw {
        Raw::Word(text) | Raw::Text(text) => text.parse().ok(),
        _ => whole(raw).map(ByteSize),
    }
}

pub(super) fn list(raw: &Raw) -> Option<Vec<String>> {
    match raw {
        Raw::Word(word) => Some(
            word.split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(Into::into)
                .collect(),
        ),
        Raw::List(items) => {
            items.iter().map(|item| text(item).map(|text| text.trim().to_owned())).collect()
        }
        _ => None,
    }
}

pub(super) fn sandbox(raw: &Raw) -> Option<SandboxMode> {
    let word = text(raw)?.trim().to_ascii_lowercase();
    // The Execution Service's word for running without Docker (ES-354).
    let word = if word == "mock" { "local" } else { &word };
    word.parse().ok()
}

pub(super) fn addresses(raw: &Raw) -> Result<Vec<String>, InvalidValue> {
    let list = list(raw).ok_or_else(InvalidValue::default)?;
    match list.iter().find(|item| !is_network(item)) {
        None => Ok(list),
        Some(item) => Err(InvalidValue(format!("`{item}` is neither an address nor a network"))),
    }
}

/// `10.0.0.5`, `10.1.0.0/16`, `fd00::/8`.
fn is_network(text: &str) -> bool {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, prefix.parse::<u8>().ok()),
        None => (text, Some(0)),
    };
    match (address.parse(), prefix) {
        (Ok(IpAddr::V4(_)), Some(prefix)) => prefix <= 32,
        (Ok(IpAddr::V6(_)), Some(prefix)) => prefix <= 128,
        (Err(_), _) | (_, None) => false,
    }
}

/// Tables of exactly `pattern` and one other text.
pub(super) fn pairs(raw: &Raw, other: &str) -> Result<Vec<(String, String)>, InvalidValue> {
    let Raw::List(items) = raw else { return Err(InvalidValue::default()) };
    let read = |(index, item): (usize, &Raw)| {
        let refused = |what: String| InvalidValue(format!("entry {} {what}", index + 1));
        let Raw::Table(fields) = item else { return Err(refused("is not a table".to_owned())) };
        if let Some(name) = fields.keys().find(|name| *name != "pattern" && *name != other) {
            return Err(refused(format!("has `{}`, which is not known", name)));
        }
        let field = |name: &str| {
            let text = fields.get(name).and_then(text).map(str::to_owned);
            text.ok_or_else(|| refused(format!("has no text `{name}`")))
        };
        Ok((field("pattern")?, field(other)?))
    };
    items.iter().enumerate().map(read).collect()
}

/// A model, or a table of a model and an effort.
pub(super) fn mode(raw: &Raw) -> Result<ModeModel, InvalidValue> {
    let Raw::Table(fields) = raw else {
        let name = text(raw).ok_or_else(InvalidValue::default)?;
        let model = name.trim().parse().map_err(InvalidValue)?;
        return Ok(ModeModel { model: Some(model), effort: None });
    };
    if let Some(name) = fields.keys().find(|name| !["model", "effort"].contains(&name.as_str())) {
        return Err(InvalidValue(format!("it has `{name}`, which is not known")));
    }
    let field = |name: &str| match fields.get(name).map(text) {
        None => Ok(None),
        Some(Some(text)) => Ok(Some(text.trim())),
        Some(None) => Err(InvalidValue(format!("its `{name}` is not a text"))),
    };
    let model = field("model")?.map(str::parse).transpose().map_err(InvalidValue)?;
    let effort = field("effort")?.map(str::parse::<Effort>).transpose();
    let effort = effort.map_err(|unknown| InvalidValue(unknown.to_string()))?;
    if model.is_none() && effort.is_none() {
        return Err(InvalidValue("it has neither `model` nor `effort`".to_owned()));
    }
    Ok(ModeModel { model, effort })
}

/// A table of texts.
pub(super) fn texts(raw: &Raw) -> Option<Pairs> {
    let Raw::Table(fields) = raw else { return None };
    let pair = |(name, value): (&String, &Raw)| Some((name.clone(), text(value)?.to_owned()));
    fields.iter().map(pair).collect::<Option<_>>().map(Pairs)
}

pub(super) fn classes(raw: &Raw) -> Result<Vec<ClassRule>, InvalidValue> {
    let rule = |(pattern, class): (String, String)| match class.parse() {
        Ok(class) => Ok(ClassRule { pattern, class }),
        Err(_) => Err(InvalidValue(format!("`{}` is not a class", class))),
    };
    pairs(raw, "class")?.into_iter().map(rule).collect()
}

pub(super) fn tables(raw: &Raw) -> Result<Tables, InvalidValue> {
    let Raw::Table(entries) = raw else { return Err(InvalidValue::default()) };
    if let Some((name, _)) = entries.iter().find(|(_, entry)| !matches!(entry, Raw::Table(_))) {
        return Err(InvalidValue(format!("`{}` is not a table", name)));
    }
    Ok(Tables(entries.iter().map(|(name, entry)| (name.clone(), json(entry))).collect()))
}

/// Named sets of rules. A set that is not understood is refused as a whole: half of it would deny too little.
pub(super) fn scopes(raw: &Raw) -> Result<Tables, InvalidValue> {
    let Raw::Table(entries) = raw else { return Err(InvalidValue::default()) };
    for (name, entry) in entries {
        let refused = |why: String| InvalidValue(format!("`{name}` {why}"));
        let Raw::Table(fields) = entry else { return Err(refused("is not a table".to_owned())) };
        for (field, value) in fields {
            match field.as_str() {
                "deny" => {
                    pairs(value, "reason")
                        .map_err(|InvalidValue(why)| refused(format!("`deny`: {why}")))?;
                }
                "allow" if list(value).is_some() => {}
                "allow" => return Err(refused("`allow` is not a list of texts".to_owned())),
                other => return Err(refused(format!("has `{other}`, which is not known"))),
            }
        }
    }
    tables(raw)
}

/// Keys of the terminal: each action with its keys in one text. Conflicts are found here, before the terminal opens.
pub(super) fn keys(raw: &Raw) -> Result<Tables, InvalidValue> {
    let Raw::Table(entries) = raw else { return Err(InvalidValue::default()) };
    let mut bindings = BTreeMap::new();
    for (name, entry) in entries {
        let (Raw::Word(keys) | Raw::Text(keys)) = entry else {
            return Err(InvalidValue(format!("`{name}` is not a text")));
        };
        bindings.insert(name.clone(), keys.clone());
    }
    windlass_tui::keymap::Keymap::with(&bindings).map_err(InvalidValue)?;
    Ok(Tables(bindings.into_iter().map(|(name, keys)| (name, Json::from(keys))).collect()))
}

fn json(raw: &Raw) -> Json {
    match raw {
        Raw::Word(text) | Raw::Text(text) | Raw::Date(text) => Json::from(text.as_str()),
        Raw::Whole(number) => Json::from(*number),
        Raw::Number(number) => Json::from(*number),
        Raw::Switch(on) => Json::from(*on),
        Raw::List(items) => items.iter().map(json).collect(),
        Raw::Table(fields) => {
            Json::Object(fields.iter().map(|(name, field)| (name.clone(), json(field))).collect())
        }
    }
}
