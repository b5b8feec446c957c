//! How an Anthropic model is asked to think: newer ones decide themselves how much, older ones take a budget.

use serde_json::{Value, json};
use windlass_core::reasoning::Effort;

use crate::{Efforts, KnownModel, ModelName};

/// What a request says about thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinking {
    Off,
    /// The model decides, within an effort.
    Adaptive(Option<&'static str>),
    /// At most this many tokens.
    Budget(u32),
}

/// What is added to the limit of a reply for a model that decides itself how much it thinks.
const ROOM: u32 = 16_384;

/// The smallest budget that the provider takes.
const LEAST_BUDGET: u32 = 1_024;

impl Thinking {
    /// What a model is asked for.
    pub fn of(name: &ModelName, effort: Option<Effort>, words: Efforts) -> Self {
        let word = |effort: Effort| words.iter().find(|(known, _)| *known == effort);
        match (effort, is_adaptive(name.model())) {
            (Some(Effort::None), _) => Self::Off,
            (Some(effort), true) => Self::Adaptive(word(effort).map(|(_, word)| *word)),
            (Some(effort), false) => Self::Budget(budget(effort)),
            // A model that can think does so unless the request turns it off. A budget costs money: one is sent only if
            // a person asks for it.
            (None, true) if KnownModel::find(name).is_some_and(|known| known.reasons) => {
                Self::Adaptive(None)
            }
            (None, _) => Self::Off,
        }
    }

    /// Makes room for the thoughts: the limit of a reply counts them. `most` is what the model can write at all.
    pub fn fit_limit(self, max_tokens: u32, most: Option<u32>) -> (Self, u32) {
        let most = most.unwrap_or(u32::MAX);
        let budget = match self {
            Self::Off => return (self, max_tokens.min(most)),
            Self::Adaptive(_) => return (self, max_tokens.saturating_add(ROOM).min(most)),
            Self::Budget(budget) => budget,
        };
        let tokens = max_tokens.saturating_add(budget).min(most);
        // The limit must lie above the budget.
        match budget.min(tokens.saturating_sub(LEAST_BUDGET)) {
            budget if budget >= LEAST_BUDGET => (Self::Budget(budget), tokens),
            _ => (Self::Off, max_tokens.min(most)),
        }
    }

    /// Adds it to the head of a request.
    pub fn write(self, head: &mut Value) {
        match self {
            Self::Off => {}
            Self::Adaptive(effort) => {
                // Newer models leave their thoughts out unless asked for them.
                head["thinking"] = json!({"type": "adaptive", "display": "summarized"});
                if let Some(effort) = effort {
                    head["output_config"] = json!({ "effort": effort });
                }
            }
            Self::Budget(tokens) => {
                head["thinking"] = json!({"type": "enabled", "budget_tokens": tokens});
            }
        }
    }
}

fn budget(effort: Effort) -> u32 {
    match effort {
        Effort::None | Effort::Minimal => LEAST_BUDGET,
        Effort::Low => 4_096,
        Effort::Medium => 8_192,
        Effort::High => 16_384,
        Effort::Max => 32_768,
    }
}

/// Claude decides itself from version 4.6 on. Other models with this wire format take a budget.
pub(super) fn is_adaptive(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let Some(rest) = name.find("claude-").map(|at| &name[at + "claude-".len()..]) else {
        return false;
    };
    // `opus-4-5-20251101`, `3-7-sonnet-20250219`, `sonnet-5`: a date is not a part of the version.
    let mut numbers = rest
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|part| part.parse::<u32>().ok().filter(|_| part.len() < 3));
    let version = (numbers.next(), numbers.next().unwrap_or(0));
    version >= (Some(4), 6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Wire;

    #[test]
    fn a_model_is_asked_in_the_form_it_takes() {
        let asked = |name: &str, effort| {
            Thinking::of(&name.parse().unwrap(), effort, Wire::Anthropic.efforts())
        };
        let high = Some(Effort::High);
        for name in
            ["claude-3-7-sonnet-20250219", "claude-opus-4-5-20251101", "claude-sonnet-4-20250514"]
        {
            assert_eq!(
                asked(&format!("anthropic/{name}"), high),
                Thinking::Budget(16_384),
                "{name}"
            );
        }
        for name in
            ["claude-opus-4-6", "claude-sonnet-5", "claude-opus-4-10", "anthropic.claude-opus-5-5"]
        {
            let form = asked(&format!("anthropic/{name}"), high);
            assert_eq!(form, Thinking::Adaptive(Some("high")), "{name}");
        }
        assert_eq!(asked("litellm/kimi-k2", high), Thinking::Budget(16_384));
        assert_eq!(asked("anthropic/claude-sonnet-5", None), Thinking::Adaptive(None));
        assert_eq!(asked("anthropic/claude-sonnet-5", Some(Effort::None)), Thinking::Off);
        assert_eq!(asked("anthropic/claude-opus-4-5", None), Thinking::Off);
        assert_eq!(asked("test/m", None), Thinking::Off);
    }

    #[test]
    fn the_limit_of_a_reply_lies_above_the_budget() {
        let budget = Thinking::Budget(32_768);
        assert_eq!(budget.fit_limit(16_384, None), (budget, 49_152));
        assert_eq!(budget.fit_limit(16_384, Some(8_192)), (Thinking::Budget(7_168), 8_192));
        assert_eq!(budget.fit_limit(256, Some(1_500)), (Thinking::Off, 256));
        let adaptive = Thinking::Adaptive(None);
        assert_eq!(adaptive.fit_limit(256, None), (adaptive, 16_640));
        assert_eq!(adaptive.fit_limit(256, Some(8_192)), (adaptive, 8_192));
    }
}
