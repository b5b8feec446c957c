//! What a task has spent of its budgets, and what people have said about that, as a fold of its events.
//!
//! Invariant: a request whose reply was never journaled counts as spent, once the next segment starts:
//! the provider may have billed it.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{BudgetHit, BudgetKind, BudgetLevel};
use crate::message::Usage;

/// The answer that ends a task at its budget.
pub const STOP: &str = "Stop";

/// What a task has spent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spending {
    /// By its own model calls, in US dollars.
    pub own_usd: f64,
    /// By its own model calls.
    pub own_tokens: u64,
    /// Its own model replies.
    pub own_turns: u64,
    /// Budgets of which it has told that they run out.
    pub warned: BTreeSet<BudgetKind>,
    /// By how much people have raised each.
    pub raised: BTreeMap<BudgetKind, f64>,
    /// The budget that a person is asked about.
    pub hit: Option<BudgetKind>,
    /// The budget at which a person said stop.
    pub stopped: Option<BudgetKind>,
    in_flight: Option<f64>,
}

impl Spending {
    /// Takes in that a model is asked.
    pub fn requested(&mut self, reserved: Option<f64>) {
        self.in_flight = reserved;
    }

    /// What a request without a reply may have cost, while it is not counted yet.
    pub fn lost_usd(&self) -> f64 {
        self.in_flight.unwrap_or(0.0)
    }

    /// Takes in that it answered.
    pub fn settled(&mut self, usage: &Usage) {
        self.in_flight = None;
        self.own_usd += usage.cost_usd.unwrap_or(0.0);
        self.own_tokens += usage.input_tokens + usage.output_tokens;
    }

    /// Takes in that a segment begins; returns what a lost request may have cost.
    pub fn segment_begun(&mut self) -> f64 {
        let lost = self.in_flight.take().unwrap_or(0.0);
        self.own_usd += lost;
        lost
    }

    /// Takes in that a budget runs out.
    pub fn hit(&mut self, hit: &BudgetHit) {
        match hit.level {
            BudgetLevel::Warning => {
                self.warned.insert(hit.budget);
            }
            BudgetLevel::Exceeded => self.hit = Some(hit.budget),
        }
    }

    /// Takes in what a person said about it.
    pub fn answered(&mut self, text: &str) {
        let Some(kind) = self.hit.take() else { return };
        match raise(text) {
            Some(by) => {
                *self.raised.entry(kind).or_default() += by;
                self.warned.remove(&kind);
            }
            None => self.stopped = Some(kind),
        }
    }

    /// Takes in that the task is tried again: what was said at the last end does not hold any more.
    pub fn retried(&mut self) {
        self.stopped = None;
    }
}

/// By how much an answer raises a budget: `Raise by 2.50`, `raise by 5`, `3`.
pub fn raise(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let number = text.strip_prefix("raise by").unwrap_or(&text).trim().trim_start_matches('$');
    number.parse().ok().filter(|by: &f64| by.is_finite() && *by > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raise_is_a_positive_number_and_anything_else_stops() {
        assert_eq!(raise("Raise by 1.50"), Some(1.5));
        assert_eq!(raise(" raise by $3"), Some(3.0));
        assert_eq!(raise("2"), Some(2.0));
        for text in ["Stop", "raise by -1", "raise by nan", "raise by inf", "", "0"] {
            assert_eq!(raise(text), None, "{text}");
        }
    }

    #[test]
    fn a_request_without_a_reply_counts_as_spent_when_the_task_goes_on() {
        let mut spending = Spending::default();
        spending.requested(Some(0.25));
        assert_eq!(spending.segment_begun(), 0.25);
        assert_eq!(spending.own_usd, 0.25);
        assert_eq!(spending.segment_begun(), 0.0);
    }
}
