//! How large a conversation is in tokens: the provider's last report plus what came after it (O-17).

use windlass_core::message::Usage;
use windlass_core::text::BYTES_PER_TOKEN;

/// Fewer tokens per byte than this are not believed: an estimate must not be too small.
const MIN_RATE: f64 = 1.0 / BYTES_PER_TOKEN as f64;
/// More tokens per byte than this are impossible.
const MAX_RATE: f64 = 1.0;

/// What is known of how the provider counts.
pub struct Estimate {
    /// The provider's last count, and how many bytes the conversation had with it.
    counted: Option<(u64, usize)>,
    /// Tokens per byte, as the provider last counted.
    rate: f64,
}

impl Default for Estimate {
    fn default() -> Self {
        Self { counted: None, rate: MIN_RATE }
    }
}

impl Estimate {
    /// Estimates the tokens of a conversation with this many bytes.
    pub fn conversation(&self, bytes: usize) -> u64 {
        match self.counted {
            Some((tokens, then)) => tokens + self.tokens(bytes.saturating_sub(then)),
            None => self.tokens(bytes),
        }
    }

    /// Converts bytes to tokens, by the provider's last count.
    pub fn tokens(&self, bytes: usize) -> u64 {
        (bytes as f64 * self.rate).ceil() as u64
    }

    /// Converts tokens to bytes, by the provider's last count.
    pub fn bytes(&self, tokens: u64) -> usize {
        (tokens as f64 / self.rate) as usize
    }

    /// Learns from a reply how the provider counts. `prompt` and `conversation` are bytes before and after it.
    pub fn learn(&mut self, usage: &Usage, prompt: usize, conversation: usize) {
        if usage.input_tokens == 0 {
            return;
        }
        if prompt > 0 {
            let rate = usage.input_tokens as f64 / prompt as f64;
            self.rate = rate.clamp(MIN_RATE, MAX_RATE);
        }
        self.counted = Some((usage.input_tokens + usage.output_tokens, conversation));
    }

    /// Forgets the last count: the conversation is another one now. The rate stays.
    pub fn forget_count(&mut self) {
        self.counted = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    #[test]
    fn what_came_after_the_last_report_is_estimated_by_its_rate() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.conversation(4_000), 1_000);
        estimate.learn(&usage(2_000, 100), 4_000, 4_200);
        assert_eq!(estimate.conversation(4_200), 2_100);
        assert_eq!(estimate.conversation(4_400), 2_200);
        estimate.forget_count();
        assert_eq!(estimate.conversation(4_400), 2_200);
    }

    #[test]
    fn a_report_that_cannot_be_is_not_believed() {
        let mut estimate = Estimate::default();
        estimate.learn(&usage(1, 1), 4_000, 4_000);
        assert_eq!(estimate.tokens(4_000), 1_000);
        estimate.learn(&usage(9_000, 0), 4_000, 4_000);
        assert_eq!(estimate.tokens(4_000), 4_000);
        estimate.learn(&usage(0, 0), 4_000, 4_000);
        assert_eq!(estimate.conversation(4_000), 9_000, "a provider that reports nothing");
    }
}
