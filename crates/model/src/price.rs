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
    /// What a long request costs, where that differs.
    pub long: Option<LongPrice>,
}

/// The price of a request whose prompt is over a size, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongPrice {
    /// From how many prompt tokens on it holds.
    pub over: u64,
    pub input: f64,
    /// As that of a short request when not given.
    pub output: Option<f64>,
    /// As that of a short request when not given.
    pub cached: Option<f64>,
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
        let price = self.at(usage.input_tokens);
        let elsewhere = usage.cached_tokens.saturating_add(cache_written);
        let plain = usage.input_tokens.saturating_sub(elsewhere);
        let part = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        part(plain, price.input)
            + part(usage.cached_tokens, price.cached.unwrap_or(price.input))
            + part(cache_written, price.cache_write.unwrap_or(price.input))
            + part(usage.output_tokens, price.output)
    }

    /// The price that holds for a prompt of this size.
    fn at(&self, prompt_tokens: u64) -> Self {
        match self.long {
            Some(long) if prompt_tokens > long.over => Self {
                input: long.input,
                output: long.output.unwrap_or(self.output),
                cached: long.cached.or(self.cached),
                ..*self
            },
            _ => *self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_and_written_tokens_have_their_own_prices() {
        let price = Price {
            input: 3.0,
            output: 15.0,
            cached: Some(0.3),
            cache_write: Some(3.75),
            long: None,
        };
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 100,
            cached_tokens: 500_000,
            ..Usage::default()
        };
        let cost = price.cost(&usage, 100_000);
        assert!((cost - (1.2 + 0.15 + 0.375 + 0.0015)).abs() < 1e-9, "{cost}");
        let flat = Price { cached: None, cache_write: None, ..price };
        assert!((flat.cost(&usage, 100_000) - 3.0015).abs() < 1e-9);
    }

    #[test]
    fn a_long_prompt_has_the_price_of_long_prompts() {
        let long = LongPrice { over: 200_000, input: 2.5, output: Some(15.0), cached: None };
        let price =
            Price { input: 1.25, output: 10.0, cached: None, cache_write: None, long: Some(long) };
        let usage =
            |input_tokens| Usage { input_tokens, output_tokens: 1_000_000, ..Usage::default() };
        assert!((price.cost(&usage(200_000), 0) - 10.25).abs() < 1e-9);
        assert!((price.cost(&usage(400_000), 0) - 16.0).abs() < 1e-9);
    }
}
