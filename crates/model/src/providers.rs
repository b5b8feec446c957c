//! The providers that we know by name, as data: one that speaks a dialect we know is one entry here, and the
//! rows of its settings where they are declared.

use crate::Dialect;

/// A provider that is known by name.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownProvider {
    /// What stands before the slash in a model's name.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// What it speaks.
    pub dialect: Dialect,
    /// Where it is, unless it is configured; `None` where everybody runs their own.
    pub base: Option<&'static str>,
    /// The environment variable with its base.
    pub base_env: &'static str,
    /// The environment variable with its key.
    pub key_env: &'static str,
    /// The model that is asked where none is named.
    pub default_model: &'static str,
}

/// All of them. Where several are configured and no model is named, the first is asked; it also serves the
/// models whose names have no provider.
pub const PROVIDERS: [KnownProvider; 3] = [
    KnownProvider {
        name: "litellm",
        title: "LiteLLM",
        dialect: Dialect::OpenAi,
        base: None,
        base_env: "LITELLM_API_BASE",
        key_env: "LITELLM_API_KEY",
        default_model: "gpt-4o",
    },
    KnownProvider {
        name: "openai",
        title: "OpenAI",
        dialect: Dialect::OpenAi,
        base: Some("https://api.openai.com/v1"),
        base_env: "OPENAI_BASE_URL",
        key_env: "OPENAI_API_KEY",
        default_model: "gpt-5.5",
    },
    KnownProvider {
        name: "anthropic",
        title: "Anthropic",
        dialect: Dialect::Anthropic,
        base: Some("https://api.anthropic.com"),
        base_env: "ANTHROPIC_BASE_URL",
        key_env: "ANTHROPIC_API_KEY",
        default_model: "claude-sonnet-5",
    },
];

impl KnownProvider {
    /// The provider of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }
}
