//! What models cost, for providers that do not say.

use std::collections::BTreeMap;

use windlass_core::message::Usage;

/// The price of one model, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Prompt tokens read from the provider's cache; as `input` when not given.
    pub cached: Option<f64>,
    /// Prompt tokens written to the provider's cache; as `input` when not given.
    pub cache_write: Option<f64>,
}

/// Prices by model, looked up by full name (`litellm/gpt-4o`), then by model alone (`gpt-4o`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// The price of a model, if the table has one.
    pub fn of(&self, name: &crate::ModelName) -> Option<Price> {
        let found = self.0.get(&name.to_string()).or_else(|| self.0.get(name.model()));
        found.copied()
    }
}

impl Price {
    /// What a call cost; `cache_written` tokens are part of the input.
    pub fn cost(&self, usage: &Usage, cache_written: u64) -> f64 {
        let elsewhere = usage.cached_tokens.saturating_add(cache_written);
        let plain = usage.input_tokens.saturating_sub(elsewhere);
        let part = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        part(plain, self.input)
            + part(usage.cached_tokens, self.cached.unwrap_or(self.input))
            + part(cache_written, self.cache_write.unwrap_or(self.input))
            + part(usage.output_tokens, self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_and_written_tokens_have_their_own_prices() {
        let price = Price { input: 3.0, output: 15.0, cached: Some(0.3), cache_write: Some(3.75) };
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 100,
            cached_tokens: 500_000,
            cost_usd: None,
        };
        let cost = price.cost(&usage, 100_000);
        assert!((cost - (1.2 + 0.15 + 0.375 + 0.0015)).abs() < 1e-9, "{cost}");
        let flat = Price { cached: None, cache_write: None, ..price };
        assert!((flat.cost(&usage, 100_000) - 3.0015).abs() < 1e-9);
    }
}
