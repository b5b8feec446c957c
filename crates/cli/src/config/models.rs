//! Choosing a model and finding where it is.

use secrecy::SecretString;
use windlass_core::axes::ModelMode;
use windlass_model::{KnownProvider, PROVIDERS};

use super::Config;
use super::error::{ConfigError, ConfigErrors};
use super::settings::{Models, Setting};
use super::types::{Base, ModelChoice};

/// The window of a model nothing is known about; small enough for any model in use for such work.
pub const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;

/// How a first model is set up and checked.
const SET_UP: &str = "\
give it a model, and check that it answers:
  export OPENAI_API_KEY=…        (or ANTHROPIC_API_KEY)
  windlass models --test
With LiteLLM, Ollama and the like set `LITELLM_API_BASE` and `LITELLM_MODEL`. `windlass demo` needs none.";

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
        self.model
            .as_ref()
            .or(by_mode.as_ref())
            .or(self.smart.as_ref())
            .ok_or_else(|| ConfigError::missing("no model is configured", SET_UP).into())
    }
}

impl Config {
    /// Where a model is; `None` for a script. Says what is missing before anything is sent (ES-351).
    pub fn endpoint(&self, model: &ModelChoice) -> Result<Option<Endpoint>, ConfigErrors> {
        let ModelChoice::Served { provider, model: name } = model else { return Ok(None) };
        let (base, key) = (key_of(provider.base_env), key_of(provider.key_env));
        let configured: Option<Base> = self.values.typed(base);
        let base = configured.ok_or_else(|| {
            let others = PROVIDERS.iter().filter(|other| other.name != provider.name);
            let others: Vec<_> = others.map(|other| format!("`{}/{name}`", other.name)).collect();
            ConfigError::missing(
                format!("`{model}` is a model of {}, and its address is not set", provider.title),
                format!(
                    "set it, such as `{}=http://localhost:4000`; for another provider write {}",
                    provider.base_env,
                    others.join(" or ")
                ),
            )
        })?;
        let secret: Option<SecretString> = self.values.typed(key);
        if secret.is_none() && !base.is_loopback() {
            let problem = format!("`{model}` at {base} needs a key");
            // A provider without a base of its own is a server of the user's.
            let any = match provider.base {
                None => "; if your server checks none, any text will do",
                Some(_) => "",
            };
            let hint = format!("set `{}`{any}", provider.key_env);
            return Err(ConfigError::missing(problem, hint).into());
        }
        Ok(Some(Endpoint { provider, base, key: secret }))
    }
}

/// The name of the setting that a provider's variable sets.
fn key_of(variable: &str) -> &'static str {
    let setting = Setting::of_variable(variable);
    setting.expect("every provider's variables are declared in the table; a test reads all").key
}
