//! What a setting may be: each kind reads a value as it was written, and can say what it allows.
//!
//! Invariants:
//! - Reading never panics, whatever the input.
//! - What `allowed` says is what `read` takes: errors and documentation use the same words.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use jiff::SignedDuration;
use secrecy::SecretString;
use serde_json::Value as Json;
use url::Url;
use windlass_core::policy::Class;

use super::types::{
    Base, ByteSize, ClassRule, DenyRule, MODEL_FORMS, ModelChoice, SandboxMode, Tables, Timeout,
};

/// What a setting may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number within bounds.
    Whole(u64, u64),
    /// A number within bounds.
    Number(f64, f64),
    /// True or false.
    Switch,
    /// Any text but none.
    Text,
    /// A key; never shown.
    Secret,
    /// A URL with one of these schemes.
    Url(&'static [&'static str]),
    /// An address to listen on.
    Listen,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Where effects happen.
    Sandbox,
    /// A time within bounds, counted in this unit where no other is written.
    Time(Unit, Duration, Duration),
    /// A time, or `off`.
    Timeout,
    /// A size within bounds.
    Size(ByteSize, ByteSize),
    /// Texts. Those of a later layer replace those of an earlier one.
    List,
    /// Texts that only make things stricter. Those of all layers count.
    Union,
    /// Addresses and networks.
    Addresses,
    /// A model.
    Model,
    /// Denied patterns with reasons. Those of all layers count.
    Deny,
    /// Commands and their classes.
    Classes,
    /// Named tables. Those of a later layer win by name.
    Tables,
}

/// The unit a plain number counts; it is in the setting's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `…_seconds`
    Seconds,
    /// `…_ms`
    Milliseconds,
    /// `…_hours`
    Hours,
    /// `…_days`
    Days,
}

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

/// A value that was read.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each variant is what the kind of its name yields")]
pub enum Value {
    Whole(u64),
    Number(f64),
    Switch(bool),
    Text(String),
    Secret(SecretString),
    Url(Base),
    Listen(SocketAddr),
    Sandbox(SandboxMode),
    Time(Duration, Unit),
    Timeout(Timeout),
    Size(ByteSize),
    List(Vec<String>),
    Model(ModelChoice),
    Deny(Vec<DenyRule>),
    Classes(Vec<ClassRule>),
    Tables(Tables),
}

/// A value was refused; the text is a hint beyond what is allowed, or empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refused(pub String);

/// The longest time a setting takes: a year. Beyond it, someone meant another unit.
pub const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Kind {
    /// Reads a value as it was written.
    pub fn read(self, raw: &Raw) -> Result<Value, Refused> {
        let refused = Refused::default;
        match self {
            Self::Whole(min, max) => {
                let number = whole(raw).filter(|number| (min..=max).contains(number));
                number.map(Value::Whole).ok_or_else(refused)
            }
            Self::Number(min, max) => {
                let number = number(raw).filter(|number| (min..=max).contains(number));
                number.map(Value::Number).ok_or_else(refused)
            }
            Self::Switch => switch(raw).map(Value::Switch).ok_or_else(refused),
            Self::Text => text(raw).map(|text| Value::Text(text.to_owned())).ok_or_else(refused),
            Self::Secret => {
                let key = text(raw).map(str::trim).filter(|key| !key.contains(char::is_control));
                key.map(|key| Value::Secret(key.into())).ok_or_else(refused)
            }
            Self::Url(schemes) => base(raw, schemes).map(Value::Url).ok_or_else(refused),
            Self::Listen => {
                let address = text(raw).and_then(|text| text.trim().parse().ok());
                address.map(Value::Listen).ok_or_else(refused)
            }
            Self::Word(allowed) => {
                let word = text(raw).map(|text| text.trim().to_ascii_lowercase());
                let word = word.filter(|word| allowed.contains(&word.as_str()));
                word.map(Value::Text).ok_or_else(refused)
            }
            Self::Sandbox => {
                let word = text(raw).map(|text| text.trim().to_ascii_lowercase());
                let word = word.ok_or_else(refused)?;
                // The Execution Service's word for running without Docker (ES-354).
                let word = if word == "mock" { "local" } else { &word };
                word.parse().map(Value::Sandbox).map_err(|_| refused())
            }
            Self::Time(unit, min, max) => {
                let time = time(raw, unit).filter(|time| (min..=max).contains(time));
                time.map(|time| Value::Time(time, unit)).ok_or_else(refused)
            }
            Self::Timeout => timeout(raw).map(Value::Timeout).ok_or_else(refused),
            Self::Size(min, max) => {
                let size = size(raw).filter(|size| (min..=max).contains(size));
                size.map(Value::Size).ok_or_else(refused)
            }
            Self::List | Self::Union => list(raw).map(Value::List).ok_or_else(refused),
            Self::Addresses => {
                let list = list(raw).ok_or_else(refused)?;
                match list.iter().find(|item| !is_network(item)) {
                    None => Ok(Value::List(list)),
                    Some(item) => Err(Refused(format!("`{}` is neither", item.escape_debug()))),
                }
            }
            Self::Model => {
                let name = text(raw).ok_or_else(refused)?;
                name.trim().parse().map(Value::Model).map_err(Refused)
            }
            Self::Deny => pairs(raw, "reason")
                .map(|all| all.into_iter().map(|(pattern, reason)| DenyRule { pattern, reason }))
                .map(|rules| Value::Deny(rules.collect())),
            Self::Classes => classes(raw).map(Value::Classes),
            Self::Tables => tables(raw).map(Value::Tables),
        }
    }

    /// What is allowed, in words.
    pub fn allowed(self) -> String {
        match self {
            Self::Whole(min, max) => format!("a whole number from {min} to {max}"),
            Self::Number(min, max) => format!("a number from {min} to {max}"),
            Self::Switch => "true or false".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Secret => "a key, as text on one line".to_owned(),
            Self::Url(schemes) => format!("a URL that starts with {}", ticked(schemes, "://")),
            Self::Listen => "an address and port such as `127.0.0.1:7878`".to_owned(),
            Self::Word(words) => ticked(words, ""),
            Self::Sandbox => {
                "`docker` or `local` (`mock` means `local`); `host` only as a flag".to_owned()
            }
            Self::Time(unit, min, max) => format!(
                "{} from {} to {}, or text such as `2h 30m`",
                unit.plural(),
                unit.count(min),
                unit.count(max)
            ),
            Self::Timeout => {
                format!("seconds from 1 to {}, text such as `2h 30m`, or `off`", YEAR.as_secs())
            }
            Self::Size(min, max) => {
                format!("a size from {min} to {max}, such as `512m` or `2g`, or a number of bytes")
            }
            Self::List | Self::Union => "a list of texts".to_owned(),
            Self::Addresses => {
                "a list of addresses or networks, such as `10.0.0.5` or `10.1.0.0/16`".to_owned()
            }
            Self::Model => MODEL_FORMS.to_owned(),
            Self::Deny => "a list of `{ pattern = \"…\", reason = \"…\" }`".to_owned(),
            Self::Classes => {
                let classes: Vec<_> = Class::ALL.iter().map(|class| class.as_str()).collect();
                format!(
                    "a list of `{{ pattern = \"…\", class = \"…\" }}`, class being one of {}",
                    ticked(&classes, "")
                )
            }
            Self::Tables => "tables with names".to_owned(),
        }
    }

    /// Whether a single text can hold it, so that a variable or flag can.
    pub const fn fits_a_word(self) -> bool {
        !matches!(self, Self::Deny | Self::Classes | Self::Tables)
    }
}

impl Unit {
    const fn plural(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Hours => "hours",
            Self::Days => "days",
        }
    }

    fn of(self, count: u64) -> Option<Duration> {
        match self {
            Self::Milliseconds => Some(Duration::from_millis(count)),
            Self::Seconds => Some(Duration::from_secs(count)),
            Self::Hours => count.checked_mul(60 * 60).map(Duration::from_secs),
            Self::Days => count.checked_mul(24 * 60 * 60).map(Duration::from_secs),
        }
    }

    /// The time as a number of this unit, as exactly as it can be told.
    pub(super) fn count(self, time: Duration) -> String {
        let one = self.of(1).unwrap_or(YEAR).as_secs_f64();
        format!("{}", (time.as_secs_f64() / one * 1000.0).round() / 1000.0)
    }
}

fn text(raw: &Raw) -> Option<&str> {
    match raw {
        Raw::Word(text) | Raw::Text(text) => Some(text).filter(|text| !text.trim().is_empty()),
        _ => None,
    }
    .map(String::as_str)
}

fn whole(raw: &Raw) -> Option<u64> {
    match raw {
        // `200_000` reads as it does in TOML.
        Raw::Word(word) => word.trim().replace('_', "").parse().ok(),
        Raw::Whole(number) => number.and_then(|number| number.try_into().ok()),
        _ => None,
    }
}

fn number(raw: &Raw) -> Option<f64> {
    match raw {
        Raw::Word(word) => word.trim().parse().ok(),
        Raw::Whole(number) => number.map(|number| number as f64),
        Raw::Number(number) => Some(*number),
        _ => None,
    }
}

fn switch(raw: &Raw) -> Option<bool> {
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

fn base(raw: &Raw, schemes: &[&str]) -> Option<Base> {
    let url = Url::parse(text(raw)?.trim()).ok()?;
    (schemes.contains(&url.scheme()) && url.has_host()).then(|| Base::new(url))
}

fn time(raw: &Raw, unit: Unit) -> Option<Duration> {
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

fn timeout(raw: &Raw) -> Option<Timeout> {
    if text(raw).is_some_and(|text| text.trim().eq_ignore_ascii_case("off")) {
        return Some(Timeout::Off);
    }
    let limit = time(raw, Unit::Seconds)?;
    (Duration::from_secs(1)..=YEAR).contains(&limit).then_some(Timeout::After(limit))
}

fn size(raw: &Raw) -> Option<ByteSize> {
    match raw {
        Raw::Word(text) | Raw::Text(text) => text.parse().ok(),
        _ => whole(raw).map(ByteSize),
    }
}

fn list(raw: &Raw) -> Option<Vec<String>> {
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
fn pairs(raw: &Raw, other: &str) -> Result<Vec<(String, String)>, Refused> {
    let Raw::List(items) = raw else { return Err(Refused::default()) };
    let read = |(index, item): (usize, &Raw)| {
        let refused = |what: String| Refused(format!("entry {} {what}", index + 1));
        let Raw::Table(fields) = item else { return Err(refused("is not a table".to_owned())) };
        if let Some(name) = fields.keys().find(|name| *name != "pattern" && *name != other) {
            return Err(refused(format!("has `{}`, which is not known", name.escape_debug())));
        }
        let field = |name: &str| {
            let text = fields.get(name).and_then(text).map(str::to_owned);
            text.ok_or_else(|| refused(format!("has no text `{name}`")))
        };
        Ok((field("pattern")?, field(other)?))
    };
    items.iter().enumerate().map(read).collect()
}

fn classes(raw: &Raw) -> Result<Vec<ClassRule>, Refused> {
    let rule = |(pattern, class): (String, String)| match class.parse() {
        Ok(class) => Ok(ClassRule { pattern, class }),
        Err(_) => Err(Refused(format!("`{}` is not a class", class.escape_debug()))),
    };
    pairs(raw, "class")?.into_iter().map(rule).collect()
}

fn tables(raw: &Raw) -> Result<Tables, Refused> {
    let Raw::Table(entries) = raw else { return Err(Refused::default()) };
    if let Some((name, _)) = entries.iter().find(|(_, entry)| !matches!(entry, Raw::Table(_))) {
        return Err(Refused(format!("`{}` is not a table", name.escape_debug())));
    }
    Ok(Tables(entries.iter().map(|(name, entry)| (name.clone(), json(entry))).collect()))
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

/// `a`, `b` or `c`
fn ticked(words: &[&str], after: &str) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}{after}`")).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
