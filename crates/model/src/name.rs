//! Names of models: `provider/model`, or `script:FILE`.

use std::{fmt, str::FromStr};

/// The provider that plays a file of replies.
pub(crate) const SCRIPT: &str = "script";

/// Names one model of one provider. Shown and parsed as `litellm/gpt-4o` or `script:FILE`.
///
/// Only the first slash parts: `litellm/openai/gpt-4o` is `openai/gpt-4o` at `litellm`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelName {
    provider: String,
    model: String,
}

/// Why a text is not the name of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the name of a model; write `provider/model`, as in `litellm/gpt-4o`, or `script:FILE`"
)]
pub struct NameError(String);

impl ModelName {
    /// A model of a provider, for names that come in two parts.
    pub fn new(provider: &str, model: &str) -> Result<Self, NameError> {
        let plain = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if plain(provider) && provider.chars().all(word) && plain(model) && model.trim() == model {
            return Ok(Self { provider: provider.to_owned(), model: model.to_owned() });
        }
        Err(NameError(format!("{provider}/{model}")))
    }

    /// Who serves it.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// What the provider calls it; the path, for a script.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The script's path, when this is one.
    pub fn script(&self) -> Option<&std::path::Path> {
        (self.provider == SCRIPT).then(|| self.model.as_ref())
    }
}

impl FromStr for ModelName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (provider, model) = match text.strip_prefix("script:") {
            Some(file) => (SCRIPT, file),
            None => text.split_once('/').ok_or_else(|| NameError(text.to_owned()))?,
        };
        if provider == SCRIPT && !text.starts_with("script:") {
            return Err(NameError(text.to_owned()));
        }
        Self::new(provider, model).map_err(|_| NameError(text.to_owned()))
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = if self.provider == SCRIPT { ':' } else { '/' };
        write!(f, "{}{part}{}", self.provider, self.model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_provider_and_a_model_and_prints_unchanged() {
        for (text, provider, model) in [
            ("litellm/gpt-4o", "litellm", "gpt-4o"),
            ("litellm/openai/gpt-4o", "litellm", "openai/gpt-4o"),
            ("anthropic/claude", "anthropic", "claude"),
            ("script:a/b c.yaml", "script", "a/b c.yaml"),
        ] {
            let name: ModelName = text.parse().unwrap();
            assert_eq!((name.provider(), name.model()), (provider, model));
            assert_eq!(name.to_string(), text);
        }
    }

    #[test]
    fn what_names_no_model_is_refused_with_an_example() {
        for text in
            ["", "gpt-4o", "/x", "litellm/", "script:", "script/x", "a b/c", "a/ b", "a/b\n"]
        {
            let error = text.parse::<ModelName>().unwrap_err().to_string();
            assert!(error.contains("litellm/gpt-4o"), "{error}");
        }
    }
}
