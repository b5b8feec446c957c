//! Choosing a model and finding where it is.

use secrecy::SecretString;
use windlass_core::axes::ModelMode;
use windlass_model::KnownProvider;

use super::Config;
use super::error::{ConfigError, ConfigErrors};
use super::settings::{Models, Setting};
use super::types::{Base, ModelChoice};

/// The window of a model nothing is known about; small enough for any model in use for such work.
pub const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;
/// Where a served model is asked, and with what key.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Who serves it.
    pub provider: &'static KnownProvider,
    /// The base URL of its API.
    pub base: Base,
    /// The key; only a server on loopback may do without.
    pub key: Option<SecretString>,
}

impl Models {
    /// The model for a mode. An explicit choice wins over every mode (MS-073).
    pub fn for_mode(&self, mode: ModelMode) -> Result<&ModelChoice, ConfigErrors> {
        let by_mode = match mode {
            ModelMode::Fast => &self.fast,
            ModelMode::Smart => &self.smart,
            ModelMode::Deep => &self.deep,
        };
        self.model.as_ref().or(by_mode.as_ref()).or(self.smart.as_ref()).ok_or_else(|| {
            ConfigError::missing(
                "models.smart",
                "no model is configured",
                "set `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`, or `LITELLM_API_BASE` and \
                 `LITELLM_MODEL`; or try `windlass demo`",
            )
            .into()
        })
    }
}

impl Config {
    /// Where a model is; `None` for a script. Says what is missing before anything is sent (ES-351).
    pub fn endpoint(&self, model: &ModelChoice) -> Result<Option<Endpoint>, ConfigErrors> {
        let ModelChoice::Served { provider, .. } = model else { return Ok(None) };
        let (base, key) = (key_of(provider.base_env), key_of(provider.key_env));
        let configured: Option<Base> = self.values.typed(base);
        let base = configured.ok_or_else(|| {
            ConfigError::missing(
                base,
                format!("`{model}` needs to know where {} is", provider.title),
                format!("set `{}`, such as http://localhost:4000", provider.base_env),
            )
        })?;
        let secret: Option<SecretString> = self.values.typed(key);
        if secret.is_none() && !base.is_loopback() {
            let problem = format!("`{model}` at {base} needs a key");
            let hint = format!("set `{}`", provider.key_env);
            return Err(ConfigError::missing(key, problem, hint).into());
        }
        Ok(Some(Endpoint { provider, base, key: secret }))
    }
}

/// The name of the setting that a provider's variable sets.
fn key_of(variable: &str) -> &'static str {
    let setting = Setting::of_variable(variable);
    setting.expect("every provider's variables are declared in the table; a test reads all").key
}
