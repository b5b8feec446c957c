//! Where a provider is and what it takes: what the configuration says of it, then its built-in entry.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};
use url::Url;
use windlass_model::{KnownProvider, PROVIDERS, Provider, ReasoningUse, Wire};

use super::Config;
use super::error::{ConfigError, Source};
use super::keys;
use super::kind::Value;
use super::layers::provider_key;
use super::settings::Setting;
use super::types::{Base, Pairs};
use super::values::Values;

/// A provider as it is configured; nothing is asked of it yet.
#[derive(Clone, Debug)]
pub struct ConfiguredProvider {
    /// The part of a model's name before the slash.
    pub name: String,
    /// Its built-in entry.
    pub known: Option<&'static KnownProvider>,
    /// Where it is; `None` where that is not set.
    pub base: Option<Base>,
    pub key: Option<SecretString>,
    /// The variable that its key is read from.
    pub key_env: Option<String>,
    pub wire: Wire,
    /// Whether its models take pictures, where that is configured.
    pub vision: Option<bool>,
    headers: Pairs,
    query: Pairs,
    reasoning: Option<ReasoningUse>,
    max_output: Option<u32>,
}

impl ConfiguredProvider {
    /// What people call it.
    pub fn title(&self) -> &str {
        self.known.map_or(&self.name, |known| known.title)
    }

    /// Whether a model of it could be asked: it has an address, and a key where one is needed.
    pub fn is_usable(&self) -> bool {
        self.base.as_ref().is_some_and(|base| self.key.is_some() || base.is_loopback())
    }

    /// All that asking its models takes.
    pub fn settings(&self, base: &Base) -> Provider {
        let (base, key) = (base.expose().to_string(), self.key.clone());
        let mut provider = match self.known {
            Some(known) => Provider::known(known, self.wire, &base, key),
            None => Provider::new(self.wire, &base, key),
        };
        provider.headers = self.headers.0.clone().into_iter().collect();
        provider.query.retain(|(name, _)| !self.query.0.contains_key(name));
        provider.query.extend(self.query.0.clone());
        provider.reasoning = self.reasoning.unwrap_or(provider.reasoning);
        provider.max_output = self.max_output;
        provider
    }
}

impl Values {
    /// Keeps the variables that some provider names, so that nothing else of the environment is kept.
    pub(super) fn keep_provider_env(&mut self, variables: &BTreeMap<String, String>) {
        let built_in = PROVIDERS.iter().flat_map(|known| [known.base_env, known.key_env]);
        let named = self.providers.values().filter_map(|fields| match fields.get("key_env") {
            Some(held) => match &held.value {
                Value::Text(name) => Some(name.as_str()),
                _ => None,
            },
            None => None,
        });
        let kept = built_in.chain(named).filter_map(|name| {
            let value = variables.get(name).map(|value| value.trim()).filter(|v| !v.is_empty())?;
            Some((name.to_owned(), SecretString::from(value)))
        });
        self.provider_env = kept.collect();
    }

    fn field(&self, provider: &str, field: &str) -> Option<&Value> {
        self.providers.get(provider)?.get(field).map(|held| &held.value)
    }
}

impl Config {
    /// Every provider that is built in or configured, in reading order.
    pub fn providers(&self) -> Vec<Result<ConfiguredProvider, ConfigError>> {
        let own = self.values.providers.keys().map(String::as_str);
        let own = own.filter(|name| KnownProvider::find(name).is_none());
        let names = PROVIDERS.iter().map(|known| known.name).chain(own);
        names.filter_map(|name| self.provider(name)).collect()
    }

    /// The provider of this name; `None` where there is none.
    pub fn provider(&self, name: &str) -> Option<Result<ConfiguredProvider, ConfigError>> {
        let known = KnownProvider::find(name);
        if known.is_none() && !self.values.providers.contains_key(name) {
            return None;
        }
        Some(self.read_provider(name, known))
    }

    fn read_provider(
        &self,
        name: &str,
        known: Option<&'static KnownProvider>,
    ) -> Result<ConfiguredProvider, ConfigError> {
        let values = &self.values;
        let base = self.provider_base(name, known)?;
        let at = base.as_ref().map(|base| base.expose().to_string()).unwrap_or_default();
        let by_base = known.map_or(Wire::Chat, |known| known.wire_at(&at));
        let word = |field: &str| match values.field(name, field) {
            Some(Value::Text(word)) => Some(word.clone()),
            _ => None,
        };
        let pairs = |field: &str| match values.field(name, field) {
            Some(Value::Pairs(pairs)) => pairs.clone(),
            _ => Pairs::default(),
        };
        let named = word("key_env");
        let key = match (&named, known) {
            (Some(variable), _) => values.provider_env.get(variable).cloned(),
            (None, Some(known)) => match Setting::of_variable(known.key_env) {
                Some(setting) => values.typed(setting.key),
                None => values.provider_env.get(known.key_env).cloned(),
            },
            (None, None) => None,
        };
        Ok(ConfiguredProvider {
            name: name.to_owned(),
            known,
            base,
            key,
            key_env: named.or_else(|| known.map(|known| known.key_env.to_owned())),
            wire: word("wire").and_then(|wire| wire.parse().ok()).unwrap_or(by_base),
            vision: match values.field(name, "vision") {
                Some(Value::Switch(on)) => Some(*on),
                _ => None,
            },
            headers: pairs("headers"),
            query: pairs("query"),
            reasoning: word("reasoning").and_then(|word| word.parse().ok()),
            max_output: match values.field(name, "max_output") {
                Some(Value::Whole(tokens)) => u32::try_from(*tokens).ok(),
                _ => None,
            },
        })
    }

    /// Where a provider is. A variable goes before the file, and its own table before the older settings.
    fn provider_base(
        &self,
        name: &str,
        known: Option<&'static KnownProvider>,
    ) -> Result<Option<Base>, ConfigError> {
        let values = &self.values;
        let setting = known.and_then(|known| Setting::of_variable(known.base_env));
        let by_variable =
            |key: &str| matches!(values.source(key), Source::Env(_) | Source::Flag(_));
        if let Some(setting) = setting.filter(|setting| by_variable(setting.key)) {
            return Ok(values.typed(setting.key));
        }
        if let (None, Some(known)) = (setting, known)
            && let Some(text) = values.provider_env.get(known.base_env)
        {
            return read_base(known.base_env, text).map(Some);
        }
        if let Some(Value::Url(base)) = values.field(name, "base") {
            return Ok(Some(base.clone()));
        }
        let built_in = || known.and_then(|known| known.base).and_then(|base| Url::parse(base).ok());
        Ok(match setting {
            Some(setting) => values.typed(setting.key),
            None => built_in().map(Base::new),
        })
    }

    /// The keys of providers: by the variables they come from, in headers and parameters with such names, and in
    /// addresses.
    pub(super) fn provider_secrets(&self) -> Vec<(String, String)> {
        let values = &self.values;
        let is_base = |name: &str| PROVIDERS.iter().any(|known| known.base_env == name);
        let (bases, keys): (Vec<_>, Vec<_>) =
            values.provider_env.iter().partition(|(name, _)| is_base(name));
        let mut found: Vec<_> = keys
            .into_iter()
            .map(|(name, key)| (name.clone(), key.expose_secret().to_owned()))
            .collect();
        for (name, text) in bases {
            let url = Url::parse(text.expose_secret()).ok();
            found.extend(url.iter().flat_map(|url| keys::find_in_address(name, url)));
        }
        for (provider, fields) in &values.providers {
            for field in ["headers", "query"] {
                if let Some(Value::Pairs(pairs)) = fields.get(field).map(|held| &held.value) {
                    let secret = pairs.0.iter().filter(|(name, _)| keys::names_key(name));
                    found.extend(secret.flat_map(|(name, value)| keys::spellings(name, value)));
                }
            }
            if let Some(base) = fields.get("base") {
                let name = format!("models.providers.{provider}.base");
                found.extend(keys::find_in_value(&name, &base.value));
            }
        }
        found
    }
}

fn read_base(variable: &str, text: &SecretString) -> Result<Base, ConfigError> {
    let url = Url::parse(text.expose_secret()).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.map(Base::new).ok_or_else(|| {
        let problem = "allowed: a URL that starts with `http://` or `https://`";
        ConfigError::at(variable, Source::Env(variable.to_owned()), problem)
    })
}

/// What is wrong with the efforts of model modes: each provider takes its own.
pub(super) fn refused_efforts(config: &Config) -> Vec<ConfigError> {
    let models = &config.models;
    let modes = [
        ("models.smart", &models.smart),
        ("models.fast", &models.fast),
        ("models.deep", &models.deep),
    ];
    let refused = |(key, mode): (&str, &Option<super::types::ModeModel>)| {
        let mode = mode.as_ref()?;
        let (effort, model) = (mode.effort?, mode.model.as_ref()?);
        // What follows another setting is refused there.
        let source = config.values.source(key);
        if matches!(source, Source::Follows(_)) {
            return None;
        }
        let super::ModelChoice::Served { provider, .. } = model else { return None };
        let provider = config.provider(provider)?.ok()?;
        let settings = provider.settings(&provider.base.clone()?);
        (!settings.can_take(effort)).then(|| {
            let takes = settings.efforts_in_words();
            let problem =
                format!("`{model}` does not take the effort `{effort}`; it takes {takes}");
            ConfigError::at(key, source, problem)
        })
    };
    modes.into_iter().filter_map(refused).collect()
}

/// A provider of one's own needs an address.
pub(super) fn missing_bases(config: &Config) -> Vec<ConfigError> {
    let own = config.values.providers.iter();
    let own = own.filter(|(name, _)| KnownProvider::find(name).is_none());
    let missing = own.filter(|(_, fields)| !fields.contains_key("base"));
    // A table of a project that is not approved yet is empty, and a notice says so.
    let missing = missing.filter_map(|(name, fields)| Some((name, fields.values().next()?)));
    let error = |(name, held): (&String, &super::values::Provenance)| {
        let source = held.sources.last().cloned().unwrap_or(Source::Default);
        ConfigError::at(
            provider_key(name, "base"),
            source,
            "it is missing: where is this provider?",
        )
    };
    missing.map(error).collect()
}
