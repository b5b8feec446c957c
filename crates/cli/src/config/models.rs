//! Choosing a model and finding where it is.

use secrecy::SecretString;
use windlass_core::axes::ModelMode;

use super::error::{ConfigError, ConfigErrors};
use super::settings::Models;
use super::types::{Base, ModelChoice, Provider};

/// The window of a model nothing is known about; small enough for any model in use for such work.
pub const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;
/// The model that is used where a provider is configured and no model named (ES-295).
pub(super) const DEFAULT_MODEL: &str = "gpt-4o";
/// The same where Anthropic's is the only key.
pub(super) const DEFAULT_ANTHROPIC_MODEL: &str = "claude-sonnet-4-5";

/// Where a served model is asked, and with what key.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint<'a> {
    /// Who serves it.
    pub provider: Provider,
    /// Where.
    pub base: &'a Base,
    /// The key; only a server on loopback may do without.
    pub key: Option<&'a SecretString>,
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

    /// Where a model is; `None` for a script. Says what is missing before anything is sent (ES-351).
    pub fn endpoint(&self, model: &ModelChoice) -> Result<Option<Endpoint<'_>>, ConfigErrors> {
        let ModelChoice::Served { provider, .. } = model else { return Ok(None) };
        let (base, key) = match provider {
            Provider::Litellm => (self.litellm_api_base.as_ref(), self.litellm_api_key.as_ref()),
            Provider::Openai => (Some(&self.openai_base_url), self.openai_api_key.as_ref()),
            Provider::Anthropic => {
                (Some(&self.anthropic_base_url), self.anthropic_api_key.as_ref())
            }
        };
        let base = base.ok_or_else(|| {
            ConfigError::missing(
                "models.litellm_api_base",
                format!("`{model}` needs to know where LiteLLM is"),
                "set `LITELLM_API_BASE`, such as http://localhost:4000",
            )
        })?;
        if key.is_none() && !base.is_loopback() {
            let (setting, variable) = match provider {
                Provider::Litellm => ("models.litellm_api_key", "LITELLM_API_KEY"),
                Provider::Openai => ("models.openai_api_key", "OPENAI_API_KEY"),
                Provider::Anthropic => ("models.anthropic_api_key", "ANTHROPIC_API_KEY"),
            };
            let problem = format!("`{model}` at {base} needs a key");
            return Err(ConfigError::missing(setting, problem, format!("set `{variable}`")).into());
        }
        Ok(Some(Endpoint { provider: *provider, base, key }))
    }
}
