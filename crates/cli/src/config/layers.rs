//! Merges files, environment and flags over the defaults, in that order.
//!
//! Invariants:
//! - Everything that is wrong is collected; one mistake does not hide another.
//! - What a project may not set is neither used nor parsed; a notice says so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Source, printable};
use super::kind::Value;
use super::notice::ConfigNotice;
use super::settings::{self, Authority, MODEL_FACTS, PROVIDER_FIELDS, SECTIONS, Setting};
use super::suggest;
use super::types::{SandboxMode, is_provider_name};
use super::values::{Provenance, Values};
use super::written::Raw;

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileTrust {
    /// The user's own.
    User,
    /// The project's, approved by a person.
    ApprovedProject,
    /// The project's, by whoever wrote it.
    Project,
}

/// The layers merged so far, with their problems and notices.
pub(super) struct Layers {
    pub values: Values,
    pub errors: Vec<ConfigError>,
    pub notices: Vec<ConfigNotice>,
}

impl Layers {
    pub(super) fn new(values: Values) -> Self {
        Self { values, errors: Vec::new(), notices: Vec::new() }
    }

    /// Merges a file over the layers so far.
    pub(super) fn file(&mut self, path: &Path, text: &str, trust: FileTrust) {
        let place = SourceFile { path, text, trust };
        let (document, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let at = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
            self.errors.extend(errors.iter().map(|error| {
                let message: Vec<_> = error.message().lines().map(printable).collect();
                let problem = format!("not valid TOML: {}", message.join(", "));
                ConfigError::at("", place.source(at(error)), problem)
            }));
            return;
        }
        let (errors_before, notices_before) = (self.errors.len(), self.notices.len());
        self.tables(&place, document.get_ref());
        // The parser sorts by name; people read from top to bottom.
        self.errors[errors_before..].sort_by_key(|error| error.line());
        self.notices[notices_before..].sort_by_key(ConfigNotice::line);
    }

    fn tables(&mut self, place: &SourceFile<'_>, document: &DeTable<'_>) {
        for (name, content) in document {
            let source = place.source(name.span().start);
            let known = SECTIONS.iter().any(|section| section.name == name.get_ref());
            match content.get_ref() {
                DeValue::Table(table) if known => self.section(place, name.get_ref(), table),
                DeValue::Table(_) => {
                    self.errors.push(suggest::unknown_table(name.get_ref(), source))
                }
                _ => self.errors.push(suggest::unknown_key(name.get_ref(), source)),
            }
        }
    }

    fn section(&mut self, place: &SourceFile<'_>, section: &str, table: &DeTable<'_>) {
        for (name, content) in table {
            let key = format!("{section}.{}", name.get_ref());
            let source = place.source(name.span().start);
            match (Setting::find(&key), content.get_ref()) {
                (Some(setting), content) => {
                    if self.may_set(setting.who, &key, place.trust, &source) {
                        self.set(setting, &raw(content), source);
                    }
                }
                (None, DeValue::Table(named)) if key == "models.providers" => {
                    self.providers(place, named);
                }
                (None, DeValue::Table(fields)) if section == "models" => {
                    self.facts(place, name.get_ref(), fields);
                }
                (None, _) => self.errors.push(suggest::unknown_key(&key, source)),
            }
        }
    }

    /// Takes what `[models."NAME"]` says of one model.
    fn facts(&mut self, place: &SourceFile<'_>, model: &str, fields: &DeTable<'_>) {
        for (name, content) in fields {
            let key = fact_key(model, name.get_ref());
            let source = place.source(name.span().start);
            let Some(setting) = MODEL_FACTS.iter().find(|fact| fact.key == name.get_ref()) else {
                let quoted = matches!(content.get_ref(), DeValue::Table(_));
                self.errors.push(suggest::unknown_fact(&key, source, quoted));
                continue;
            };
            if self.may_set(setting.who, &key, place.trust, &source)
                && let Some(value) = self.read(setting, &key, &raw(content.get_ref()), &source)
            {
                let held = Provenance { value, sources: vec![source] };
                self.values.facts.entry(model.to_owned()).or_default().insert(setting.key, held);
            }
        }
    }

    /// Takes what `[models.providers.NAME]` says of each provider.
    fn providers(&mut self, place: &SourceFile<'_>, named: &DeTable<'_>) {
        for (name, content) in named {
            let source = place.source(name.span().start);
            let (name, DeValue::Table(fields)) = (name.get_ref(), content.get_ref()) else {
                let problem = "a provider is a table, such as `[models.providers.NAME]`";
                let key = format!("models.providers.{}", name.get_ref());
                self.errors.push(ConfigError::at(key, source, problem));
                continue;
            };
            if !is_provider_name(name) {
                let problem =
                    "a provider's name has letters, digits, `-`, `_` and `.`, and is not `script`";
                let key = format!("models.providers.{name}");
                self.errors.push(ConfigError::at(key, source, problem));
                continue;
            }
            self.values.providers.entry(name.to_string()).or_default();
            for (field, content) in fields {
                let key = provider_key(name, field.get_ref());
                let source = place.source(field.span().start);
                let known = PROVIDER_FIELDS.iter().find(|known| known.key == field.get_ref());
                let Some(setting) = known else {
                    self.errors.push(suggest::unknown_provider_field(&key, source));
                    continue;
                };
                if self.may_set(setting.who, &key, place.trust, &source)
                    && let Some(value) = self.read(setting, &key, &raw(content.get_ref()), &source)
                {
                    let held = Provenance { value, sources: vec![source] };
                    let entry = self.values.providers.entry(name.to_string()).or_default();
                    entry.insert(setting.key, held);
                }
            }
        }
    }

    fn may_set(&mut self, who: Authority, key: &str, trust: FileTrust, source: &Source) -> bool {
        let (key, source) = (key.to_owned(), source.clone());
        let notice = match (trust, who) {
            (FileTrust::User, _) | (_, Authority::Project) => return true,
            (FileTrust::ApprovedProject, Authority::Approved) => return true,
            (FileTrust::Project, Authority::Approved) => ConfigNotice::NeedsTrust { key, source },
            (_, Authority::User | Authority::UserFile) => {
                ConfigNotice::NeverByProject { key, source }
            }
        };
        self.notices.push(notice);
        false
    }

    /// Merges the environment over the layers so far. An empty variable counts as unset.
    pub(super) fn environment(&mut self, variables: &BTreeMap<String, String>) {
        for setting in settings::all() {
            let mut names = setting.env_names().into_iter();
            let given = names.find_map(|name| {
                let value = variables.get(&name).filter(|value| !value.trim().is_empty())?;
                Some((name, Raw::Word(value.clone())))
            });
            if let Some((name, value)) = given {
                self.set(setting, &value, Source::Env(name));
            }
        }
        self.values.keep_provider_env(variables);
        self.notices.extend(suggest::near_misses(variables));
    }

    /// Merges one flag over the layers so far.
    pub(super) fn flag(&mut self, flag: &str, key: &str, value: &str) {
        let source = Source::Flag(flag.to_owned());
        match Setting::find(key) {
            None => self.errors.push(suggest::unknown_key(key, source)),
            Some(setting) if setting.who == Authority::UserFile || !setting.kind.fits_a_word() => {
                let problem = "can only be set in the user's configuration file";
                self.errors.push(ConfigError::at(key, source, problem));
            }
            Some(setting) => self.set(setting, &Raw::Word(value.to_owned()), source),
        }
    }

    /// Takes one value, or says what is wrong with it.
    pub(super) fn set(&mut self, setting: &'static Setting, raw: &Raw, source: Source) {
        let Some(value) = self.read(setting, setting.key, raw, &source) else { return };
        let by_flag = matches!(source, Source::Flag(_));
        if matches!(value, Value::Sandbox(SandboxMode::Host)) && !by_flag {
            self.errors.push(refusal(setting, setting.key, raw, source, String::new()));
            return;
        }
        self.values.hold(setting, value, source);
    }

    fn read(&mut self, setting: &Setting, key: &str, raw: &Raw, source: &Source) -> Option<Value> {
        match setting.kind.read(raw) {
            Ok(value) => Some(value),
            Err(refused) => {
                self.errors.push(refusal(setting, key, raw, source.clone(), refused.0));
                None
            }
        }
    }
}

/// What is wrong with a value. `reason` is empty where what is allowed says it all.
pub(super) fn refusal(
    setting: &Setting,
    key: &str,
    raw: &Raw,
    source: Source,
    reason: String,
) -> ConfigError {
    let reason = if reason.is_empty() { reason } else { format!("{reason}; ") };
    let problem = format!("{reason}allowed: {}", setting.kind.allowed_values());
    let error = ConfigError::at(key, source, problem);
    match suggest::shown_value(setting.kind, raw) {
        Some(value) => error.value(value),
        None => error,
    }
}

/// The name of a provider's setting in rows and errors.
pub(super) fn provider_key(name: &str, field: &str) -> String {
    format!("models.providers.{name}.{field}")
}

/// The name of a model's setting in rows and errors.
pub(super) fn fact_key(model: &str, field: &str) -> String {
    format!("models.\"{model}\".{field}")
}

/// A file that is being read.
struct SourceFile<'a> {
    path: &'a Path,
    text: &'a str,
    trust: FileTrust,
}

impl SourceFile<'_> {
    fn source(&self, offset: usize) -> Source {
        let before = self.text.bytes().take(offset);
        let line = 1 + before.filter(|byte| *byte == b'\n').count();
        let path = PathBuf::from(self.path);
        match self.trust {
            FileTrust::User => Source::User { path, line },
            FileTrust::ApprovedProject | FileTrust::Project => Source::Project { path, line },
        }
    }
}

/// A TOML value without its place. Its depth is bounded by the parser.
fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            Raw::Whole(i64::from_str_radix(&digits, number.radix()).ok())
        }
        DeValue::Float(number) => {
            let number = number.as_str().replace('_', "");
            Raw::Number(number.parse().unwrap_or(f64::NAN))
        }
        DeValue::Boolean(on) => Raw::Switch(*on),
        DeValue::Datetime(date) => Raw::Date(date.to_string()),
        DeValue::Array(items) => Raw::List(items.iter().map(|item| raw(item.get_ref())).collect()),
        DeValue::Table(table) => {
            let field = |(name, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
                let name: &toml::de::DeString<'_> = name.get_ref();
                (name.to_string(), raw(value.get_ref()))
            };
            Raw::Table(table.iter().map(field).collect())
        }
    }
}
