//! What a setting may be: each kind reads a value as it was written, and can say what it allows.
//!
//! Invariants:
//! - Reading never panics, whatever the input.
//! - What `allowed` says is what `read` takes: errors and documentation use the same words.

use std::net::SocketAddr;
use std::time::Duration;

use secrecy::SecretString;
use windlass_core::policy::Class;
use windlass_core::reasoning::Effort;

use super::types::{
    Base, ByteSize, ClassRule, DenyRule, ModeModel, ModelChoice, Pairs, SandboxMode, Tables,
    Timeout, model_forms,
};
use super::written::{
    self, Raw, base, list, number, pairs, size, switch, text, time, timeout, whole,
};

/// What a setting may be.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
    /// A whole number within bounds.
    Whole(u64, u64),
    /// A number within bounds.
    Number(f64, f64),
    /// True or false.
    Switch,
    /// Any text that is not empty.
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
    Time(TimeUnit, Duration, Duration),
    /// A time, or `off`.
    Timeout,
    /// Days, or `forever`.
    Keep,
    /// A size within bounds.
    Size(ByteSize, ByteSize),
    /// Texts. Those of a later layer replace those of an earlier one.
    List,
    /// Some of these words, in any order.
    Words(&'static [&'static str]),
    /// Texts that only make things stricter. Those of all layers count.
    Union,
    /// Addresses and networks.
    Addresses,
    /// A model: `provider/name`, a name alone, or a script.
    Model,
    /// A model, or a table with a model and its effort.
    Mode,
    /// Names with texts.
    Pairs,
    /// Denied patterns with reasons. Those of all layers count.
    Deny,
    /// Commands and their classes.
    Classes,
    /// Named tables. Those of a later layer win by name.
    Tables,
    /// Named sets of denied and allowed patterns. Those of a later layer win by name.
    Scopes,
    /// Keys of the terminal, by the name of what they do.
    Keys,
}

/// The unit a plain number counts; it is in the setting's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Of settings named `…_seconds`.
    Seconds,
    /// Of settings named `…_ms`.
    Milliseconds,
    /// Of settings named `…_hours`.
    Hours,
    /// Of settings named `…_days`.
    Days,
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
    Time(Duration, TimeUnit),
    Timeout(Timeout),
    Size(ByteSize),
    List(Vec<String>),
    Model(ModelChoice),
    Mode(ModeModel),
    Pairs(Pairs),
    Deny(Vec<DenyRule>),
    Classes(Vec<ClassRule>),
    Tables(Tables),
}

/// A value was refused; the text says what is wrong with it, or is empty where what is allowed says it all.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct InvalidValue(pub String);

/// The longest time a setting takes: a year. Beyond it, someone meant another unit.
pub const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The word for what is never removed.
const FOREVER: &str = "forever";

impl ValueKind {
    /// Reads a value as it was written.
    pub fn read(self, raw: &Raw) -> Result<Value, InvalidValue> {
        let refused = InvalidValue::default;
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
            Self::Sandbox => written::sandbox(raw).map(Value::Sandbox).ok_or_else(refused),
            Self::Time(unit, min, max) => {
                let time = time(raw, unit).filter(|time| (min..=max).contains(time));
                time.map(|time| Value::Time(time, unit)).ok_or_else(refused)
            }
            Self::Keep => match text(raw).is_some_and(|text| text.trim() == FOREVER) {
                true => Ok(Value::Text(FOREVER.to_owned())),
                false => Self::Time(TimeUnit::Days, DAY, 100 * YEAR).read(raw),
            },
            Self::Timeout => timeout(raw).map(Value::Timeout).ok_or_else(refused),
            Self::Size(min, max) => {
                let size = size(raw).filter(|size| (min..=max).contains(size));
                size.map(Value::Size).ok_or_else(refused)
            }
            Self::List | Self::Union => list(raw).map(Value::List).ok_or_else(refused),
            Self::Words(allowed) => {
                let words = list(raw)
                    .filter(|words| words.iter().all(|word| allowed.contains(&word.as_str())));
                words.map(Value::List).ok_or_else(refused)
            }
            Self::Addresses => written::addresses(raw).map(Value::List),
            Self::Model => {
                let name = text(raw).ok_or_else(refused)?;
                name.trim().parse().map(Value::Model).map_err(InvalidValue)
            }
            Self::Mode => written::mode(raw).map(Value::Mode),
            Self::Pairs => written::texts(raw).map(Value::Pairs).ok_or_else(refused),
            Self::Deny => pairs(raw, "reason")
                .map(|all| all.into_iter().map(|(pattern, reason)| DenyRule { pattern, reason }))
                .map(|rules| Value::Deny(rules.collect())),
            Self::Classes => written::classes(raw).map(Value::Classes),
            Self::Tables => written::tables(raw).map(Value::Tables),
            Self::Scopes => written::scopes(raw).map(Value::Tables),
            Self::Keys => written::keys(raw).map(Value::Tables),
        }
    }

    /// What is allowed, in words.
    pub fn allowed_values(self) -> String {
        match self {
            Self::Whole(min, max) => format!("a whole number from {min} to {max}"),
            Self::Number(min, max) => format!("a number from {min} to {max}"),
            Self::Switch => "true or false".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Secret => "a key, as text on one line".to_owned(),
            Self::Url(schemes) => {
                format!("a URL that starts with {}", quoted_words(schemes, "://"))
            }
            Self::Listen => "an address and port such as `127.0.0.1:7878`".to_owned(),
            Self::Word(words) => quoted_words(words, ""),
            Self::Sandbox => {
                "`docker` or `local` (`mock` means `local`); `host` only as a flag".to_owned()
            }
            Self::Time(unit, min, max) => format!(
                "{} from {} to {}, or text such as `2h 30m`",
                unit.plural(),
                unit.count(min),
                unit.count(max)
            ),
            Self::Keep => "`forever`, or days from 1 on".to_owned(),
            Self::Timeout => {
                format!("seconds from 1 to {}, text such as `2h 30m`, or `off`", YEAR.as_secs())
            }
            Self::Size(min, max) => {
                format!("a size from {min} to {max}, such as `512m` or `2g`, or a number of bytes")
            }
            Self::List | Self::Union => "a list of texts".to_owned(),
            Self::Words(words) => format!("a list of {}", quoted_words(words, "")),
            Self::Addresses => {
                "a list of addresses or networks, such as `10.0.0.5` or `10.1.0.0/16`".to_owned()
            }
            Self::Model => model_forms(),
            Self::Mode => format!(
                "{}; or `{{ model = \"…\", effort = \"…\" }}`, effort being one of {}",
                model_forms(),
                quoted_words(&efforts(), "")
            ),
            Self::Pairs => "a table of names and texts".to_owned(),
            Self::Deny => "a list of `{ pattern = \"…\", reason = \"…\" }`".to_owned(),
            Self::Classes => {
                let classes: Vec<_> = Class::ALL.iter().map(|class| class.as_str()).collect();
                format!(
                    "a list of `{{ pattern = \"…\", class = \"…\" }}`, class being one of {}",
                    quoted_words(&classes, "")
                )
            }
            Self::Tables => "tables with names".to_owned(),
            Self::Scopes => {
                "tables with names, each with `deny` and `allow` as in `[policy]`".to_owned()
            }
            Self::Keys => {
                "a table such as `editor = \"f4\"`; `?` in the terminal lists them".to_owned()
            }
        }
    }

    /// Whether a single text can hold it, so that a variable or flag can.
    pub const fn fits_a_word(self) -> bool {
        !matches!(
            self,
            Self::Deny | Self::Classes | Self::Tables | Self::Scopes | Self::Pairs | Self::Keys
        )
    }
}

impl TimeUnit {
    const fn plural(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Hours => "hours",
            Self::Days => "days",
        }
    }

    pub(super) fn of(self, count: u64) -> Option<Duration> {
        match self {
            Self::Milliseconds => Some(Duration::from_millis(count)),
            Self::Seconds => Some(Duration::from_secs(count)),
            Self::Hours => count.checked_mul(60 * 60).map(Duration::from_secs),
            Self::Days => count.checked_mul(24 * 60 * 60).map(Duration::from_secs),
        }
    }

    /// The time as a number of this unit, as exact as a float can be.
    pub(super) fn count(self, time: Duration) -> String {
        let one = self.of(1).unwrap_or(YEAR).as_secs_f64();
        format!("{}", (time.as_secs_f64() / one * 1000.0).round() / 1000.0)
    }
}

/// The words for efforts.
fn efforts() -> Vec<&'static str> {
    Effort::ALL.iter().map(|effort| effort.as_str()).collect()
}

/// `a`, `b` or `c`
fn quoted_words(words: &[&str], after: &str) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}{after}`")).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
