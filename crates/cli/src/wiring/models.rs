//! From configuration to models that can be asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_model::{Model, ModelName, Models, Price, Prices, Retry, Settings};

use crate::config::{Config, ModelChoice, ModelSelection};

/// A model, ready to be asked, or what is missing.
pub fn open(config: &Config, chosen: &ModelSelection) -> Result<Arc<dyn Model>, ErrorDetails> {
    let refused = |message: String| ErrorDetails::new(ErrorType::ModelUnavailable, message);
    let name: ModelName =
        chosen.model.to_string().parse().map_err(|error| refused(format!("{error}")))?;
    let models = Models::new(settings(config, &chosen.model)?);
    models.open_with(&name, chosen.effort).map_err(|error| refused(error.to_string()))
}

fn settings(config: &Config, choice: &ModelChoice) -> Result<Settings, ErrorDetails> {
    let models = &config.models;
    let endpoint = config.endpoint(choice).map_err(|errors| {
        let first = errors.0.first();
        let hint = first.and_then(|error| error.hint.clone()).unwrap_or_default();
        let message = first.map_or_else(|| errors.to_string(), |error| error.problem.clone());
        ErrorDetails::new(ErrorType::ModelUnavailable, message).with_hint(hint)
    })?;
    let mut providers = BTreeMap::new();
    if let Some(endpoint) = endpoint {
        providers.insert(endpoint.name, endpoint.provider);
    }
    Ok(Settings {
        providers,
        retry: Retry {
            max_retries: models.max_retries,
            base: models.backoff_base_ms,
            multiplier: models.backoff_multiplier,
            cap: models.max_backoff_ms,
            ..Retry::default()
        },
        stall: models.stall_seconds,
        vision: config
            .facts(choice)
            .vision
            .map(|sees| (choice.to_string(), sees))
            .into_iter()
            .collect(),
        prices: Prices(
            price(config, choice).map(|price| (choice.to_string(), price)).into_iter().collect(),
        ),
    })
}

/// What a model costs, where the configuration or the built-in table says it.
pub fn price(config: &Config, choice: &ModelChoice) -> Option<Price> {
    config.facts(choice).price
}
