//! The values in force, each with where it came from, and how they become typed fields.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use windlass_core::axes::{ModelMode, PermissionProfile, RunControl, WorkMode};
use windlass_core::command::Outage;
use windlass_core::policy::WorkspaceRemoval;
use windlass_core::reasoning::Effort;

use super::error::Source;
use super::keys;
use super::kind::{Value, ValueKind};
use super::settings::{self, Setting};
use super::types::{
    Base, ByteSize, ClassRule, DenyRule, Editing, Keep, ModeModel, ModelChoice, Network, Notify,
    Placement, RepairPolicy, SandboxMode, SearchProvider, SkillPolicy, Tables, TerminalScreen,
    Timeout,
};
use super::written::Raw;

/// The address that notices go to. A part of its path often is all that lets somebody post there.
const NOTIFY_URL: &str = "server.notify_url";

/// A value and where it came from; several places where lists were joined.
#[derive(Clone, Debug)]
pub(super) struct Provenance {
    pub value: Value,
    pub sources: Vec<Source>,
}

/// Every value in force. A setting without a value is absent.
#[derive(Clone, Debug)]
pub struct Values {
    held: BTreeMap<&'static str, Provenance>,
    /// `[models."NAME"]`: by name, then by field.
    pub(super) facts: BTreeMap<String, BTreeMap<&'static str, Provenance>>,
    /// `[models.providers.NAME]`: by name, then by field.
    pub(super) providers: BTreeMap<String, BTreeMap<&'static str, Provenance>>,
    /// The variables that providers name for their base and their key.
    pub(super) provider_env: BTreeMap<String, SecretString>,
    /// Keys that a later layer has replaced.
    overridden: Vec<(String, SecretString)>,
}

impl Values {
    /// The defaults of the table.
    pub(super) fn defaults() -> Self {
        let mut values = Self {
            held: BTreeMap::new(),
            facts: BTreeMap::new(),
            providers: BTreeMap::new(),
            provider_env: BTreeMap::new(),
            overridden: Vec::new(),
        };
        for setting in settings::all().filter(|setting| !setting.default.is_empty()) {
            let value = setting
                .kind
                .read(&Raw::Word(setting.default.to_owned()))
                .expect("the table's defaults are allowed; a test reads every one");
            values.hold(setting, value, Source::Default);
        }
        values
    }

    /// Takes a value of a later layer.
    pub(super) fn hold(&mut self, setting: &'static Setting, value: Value, source: Source) {
        let before = self.held.remove(setting.key);
        // A key in a file stays a key where the environment has another one.
        let keys = before.iter().flat_map(|before| keys::find_in_value(setting.key, &before.value));
        self.overridden.extend(keys.map(|(name, key)| (name, SecretString::from(key))));
        self.held.insert(setting.key, merge_values(setting.kind, before, value, source));
    }

    pub(super) fn get(&self, key: &str) -> Option<&Provenance> {
        self.held.get(key)
    }

    /// Where a value came from last.
    pub(super) fn source(&self, key: &str) -> Source {
        let held = self.held.get(key);
        held.and_then(|held| held.sources.last()).cloned().unwrap_or(Source::Default)
    }

    /// The keys, each with the name of the variable that sets it, those that others were set over, and those in
    /// addresses.
    pub(super) fn secrets(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let name = |setting: &Setting| setting.explicit_env.first().copied().unwrap_or(setting.key);
        for setting in settings::all() {
            let value = self.held.get(setting.key).map(|held| &held.value);
            found.extend(
                value.into_iter().flat_map(|value| keys::find_in_value(name(setting), value)),
            );
        }
        let overridden = self.overridden.iter();
        found.extend(
            overridden.map(|(key, value)| (keys::mark_name(key), value.expose_secret().to_owned())),
        );
        if let Some(Value::Url(address)) = self.held.get(NOTIFY_URL).map(|held| &held.value) {
            found.extend(keys::find_in_path(NOTIFY_URL, address.expose()));
        }
        found
    }

    /// A value as the type of its field.
    pub(super) fn typed<T: FromValue>(&self, key: &str) -> T {
        T::from_value(self.held.get(key).map(|held| &held.value))
            .expect("the table pairs each field with a kind that yields its type; a test reads all")
    }
}

/// Merges a later value into an earlier one. It replaces it, except in lists where all entries count.
fn merge_values(
    kind: ValueKind,
    before: Option<Provenance>,
    value: Value,
    source: Source,
) -> Provenance {
    let Some(Provenance { value: earlier, mut sources }) = before else {
        return Provenance { value, sources: vec![source] };
    };
    let value = match (kind, earlier, value) {
        (ValueKind::Union, Value::List(earlier), Value::List(later)) => {
            Value::List(earlier.into_iter().chain(later).collect())
        }
        (ValueKind::Deny, Value::Deny(earlier), Value::Deny(later)) => {
            Value::Deny(earlier.into_iter().chain(later).collect())
        }
        (ValueKind::Tables | ValueKind::Scopes, Value::Tables(earlier), Value::Tables(later)) => {
            Value::Tables(Tables(earlier.0.into_iter().chain(later.0).collect()))
        }
        (_, _, value) => return Provenance { value, sources: vec![source] },
    };
    sources.push(source);
    Provenance { value, sources }
}

/// How a value becomes a field; `None` where the kind does not fit the type.
pub(super) trait FromValue: Sized {
    fn from_value(value: Option<&Value>) -> Option<Self>;
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Option<&Value>) -> Option<Self> {
        match value {
            None => Some(None),
            Some(value) => T::from_value(Some(value)).map(Some),
        }
    }
}

/// Declares which variant each type is read from.
macro_rules! from_value {
    ($($type:ty: $pattern:pat => $value:expr;)*) => { $(
        impl FromValue for $type {
            fn from_value(value: Option<&Value>) -> Option<Self> {
                match value { $pattern => $value, _ => None }
            }
        }
    )* };
}

from_value! {
    u32: Some(Value::Whole(number)) => u32::try_from(*number).ok();
    u64: Some(Value::Whole(number)) => Some(*number);
    f64: Some(Value::Number(number)) => Some(*number);
    bool: Some(Value::Switch(on)) => Some(*on);
    String: Some(Value::Text(text)) => Some(text.clone());
    SecretString: Some(Value::Secret(key)) => Some(key.clone());
    Base: Some(Value::Url(base)) => Some(base.clone());
    SocketAddr: Some(Value::Listen(address)) => Some(*address);
    SandboxMode: Some(Value::Sandbox(mode)) => Some(*mode);
    Duration: Some(Value::Time(time, _)) => Some(*time);
    ByteSize: Some(Value::Size(size)) => Some(*size);
    ModelChoice: Some(Value::Model(model)) => Some(model.clone());
    ModeModel: Some(Value::Mode(mode)) => Some(mode.clone());
    Effort: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    PermissionProfile: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    WorkMode: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    RunControl: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    ModelMode: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    WorkspaceRemoval: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    Network: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    Placement: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    Notify: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    TerminalScreen: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    Editing: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    RepairPolicy: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    SkillPolicy: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    Outage: Some(Value::Text(word)) => FromStr::from_str(word).ok();
    SearchProvider: Some(Value::Text(word)) => FromStr::from_str(word).ok();
}

impl FromValue for Keep {
    fn from_value(value: Option<&Value>) -> Option<Self> {
        match value {
            Some(Value::Time(time, _)) => Some(Self::For(*time)),
            Some(Value::Text(_)) | None => Some(Self::Forever),
            Some(_) => None,
        }
    }
}

/// For these types "not set" is a value of its own.
macro_rules! from_value_or {
    ($($type:ty: $pattern:pat => $value:expr, $unset:expr;)*) => { $(
        impl FromValue for $type {
            fn from_value(value: Option<&Value>) -> Option<Self> {
                match value { None => Some($unset), Some($pattern) => Some($value), _ => None }
            }
        }
    )* };
}

from_value_or! {
    Timeout: Value::Timeout(timeout) => *timeout, Timeout::ByOrigin;
    Vec<String>: Value::List(list) => list.clone(), Vec::new();
    Vec<DenyRule>: Value::Deny(rules) => rules.clone(), Vec::new();
    Vec<ClassRule>: Value::Classes(rules) => rules.clone(), Vec::new();
    Tables: Value::Tables(tables) => tables.clone(), Tables::default();
}
