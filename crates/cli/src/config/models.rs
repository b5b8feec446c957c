//! Choosing a model and finding where it is.

use secrecy::SecretString;
use windlass_core::axes::ModelMode;
use windlass_model::Provider;

use super::Config;
use super::error::{ConfigError, ConfigErrors};
use super::providers::ConfiguredProvider;
use super::settings::Models;
use super::types::{Base, ModelChoice, ModelSelection};

/// The window of a model nothing is known about; small enough for any model in use for such work.
pub const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;

/// How a first model is set up and checked.
const SET_UP: &str = "\
give it a model, and check that it answers:
  export OPENAI_API_KEY=…        (or ANTHROPIC_API_KEY)
  windlass models --test
With LiteLLM set `LITELLM_API_BASE` and `LITELLM_MODEL`; with Ollama `--model ollama/NAME` is enough. \
`windlass models` lists the providers, and `windlass demo` needs none.";

/// Where a served model is asked, and with what.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Who serves it.
    pub name: String,
    /// The base URL of its API.
    pub base: Base,
    /// The key; only a server on loopback may do without.
    pub key: Option<SecretString>,
    /// All that asking takes.
    pub provider: Provider,
}

impl Models {
    /// The model for a mode, and its effort. An explicit choice wins over every mode (MS-073).
    pub fn for_mode(&self, mode: ModelMode) -> Result<ModelSelection, ConfigErrors> {
        let by_mode = match mode {
            ModelMode::Fast => &self.fast,
            ModelMode::Smart => &self.smart,
            ModelMode::Deep => &self.deep,
        };
        let of_mode = by_mode.as_ref().or(self.smart.as_ref());
        let model = self.model.as_ref().or(of_mode.and_then(|mode| mode.model.as_ref()));
        let Some(model) = model.cloned() else {
            return Err(ConfigError::missing("no model is configured", SET_UP).into());
        };
        // A mode's effort is for the mode's model.
        let same = of_mode.filter(|mode| mode.model.as_ref() == Some(&model));
        let effort = self.effort.or(same.and_then(|mode| mode.effort));
        Ok(ModelSelection { model, effort })
    }
}

impl Config {
    /// Where a model is; `None` for a script. Says what is missing before anything is sent (ES-351).
    pub fn endpoint(&self, model: &ModelChoice) -> Result<Option<Endpoint>, ConfigErrors> {
        let ModelChoice::Served { provider: name, model: short } = model else { return Ok(None) };
        let found = self.provider(name).ok_or_else(|| unknown_provider(name, short))?;
        let provider = found.map_err(ConfigErrors::from)?;
        let Some(base) = provider.base.clone() else {
            return Err(no_base(&provider, model, short).into());
        };
        if provider.key.is_none() && !base.is_loopback() {
            let problem = format!("`{model}` at {base} needs a key");
            // A provider without a base of its own is a server of the user's.
            let any = match provider.known.is_none_or(|known| known.base.is_none()) {
                true => "; if your server checks none, any text will do",
                false => "",
            };
            let hint = match &provider.key_env {
                Some(variable) => format!("set `{variable}`{any}"),
                None => format!(
                    "name the variable with its key: `key_env` in `[models.providers.{name}]`"
                ),
            };
            return Err(ConfigError::missing(problem, hint).into());
        }
        let settings = provider.settings(&base);
        let (name, key) = (provider.name, provider.key);
        Ok(Some(Endpoint { name, base, key, provider: settings }))
    }
}

/// Nobody of this name serves models.
pub(super) fn unknown_provider(name: &str, model: &str) -> ConfigError {
    ConfigError::missing(
        unknown_provider_text(name, model),
        "`windlass models` lists the providers",
    )
}

/// The same as the reason of a refused value.
pub(super) fn unknown_provider_text(name: &str, model: &str) -> String {
    format!(
        "unknown provider `{name}` (if LiteLLM serves it under this name: `litellm/{name}/{model}`; else describe \
         it in `[models.providers.{name}]`)"
    )
}

fn no_base(provider: &ConfiguredProvider, model: &ModelChoice, short: &str) -> ConfigError {
    let title = provider.title();
    let hint = match provider.known {
        Some(known) => format!(
            "set it, such as `{}=http://localhost:4000`; for another provider write `openai/{short}` or \
             `anthropic/{short}`",
            known.base_env
        ),
        None => format!("set `base` in `[models.providers.{}]`", provider.name),
    };
    let problem = format!("`{model}` is a model of {title}, and its address is not set");
    ConfigError::missing(problem, hint)
}
