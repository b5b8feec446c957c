//! What a task has used and paid, and what people have said about its budgets, as a fold of its events.
//!
//! Invariant: a request whose reply was never journaled counts as spent, once the next segment starts:
//! the provider may have billed it.

use std::collections::{BTreeMap, BTreeSet};

use crate::command::UsageMetrics;
use crate::event::{BudgetHit, BudgetKind, BudgetLevel, SubAgentComplete};
use crate::message::Usage;

/// The answer that ends a task at its budget.
pub const STOP: &str = "Stop";

/// What a task has spent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spending {
    /// Tokens, rounds and calls so far, of sub-agents too; `duration_ms` counts ended segments only.
    pub usage: UsageMetrics,
    /// What it has cost so far, as far as that is known; of sub-agents too.
    pub cost_usd: f64,
    /// Whether the price of anything is known; without, nothing is known of its cost.
    pub is_priced: bool,
    /// Prompt and reply tokens of the last reply.
    pub last_tokens: u64,
    /// What its own model calls cost, in US dollars.
    pub own_usd: f64,
    /// Tokens of its own model calls.
    pub own_tokens: u64,
    /// Its own model replies.
    pub own_turns: u64,
    /// Budgets that were reported as nearly used up.
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
    /// What it has cost; `None` if something was spent and its price is unknown.
    pub fn known_cost(&self) -> Option<f64> {
        let is_unspent = self.own_turns == 0 && self.usage.total_tokens == 0;
        (self.is_priced || is_unspent).then_some(self.cost_usd)
    }

    /// The model is asked.
    pub fn on_request(&mut self, reserved: Option<f64>) {
        self.in_flight = reserved;
    }

    /// What a request without a reply may have cost, while it is not counted yet.
    pub fn lost_usd(&self) -> f64 {
        self.in_flight.unwrap_or(0.0)
    }

    /// The model answered, or the summarizer did.
    pub fn on_usage(&mut self, usage: &Usage) {
        self.in_flight = None;
        self.own_usd += usage.cost_usd.unwrap_or(0.0);
        self.own_tokens += usage.input_tokens + usage.output_tokens;
        self.add(usage.input_tokens, usage.output_tokens, usage.cost_usd);
    }

    /// What a sub-agent used is part of what its parent used; its rounds and calls are its own.
    pub fn on_sub_agent_end(&mut self, complete: &SubAgentComplete) {
        let SubAgentComplete { usage, cost_usd, .. } = complete;
        self.add(usage.input_tokens, usage.output_tokens, *cost_usd);
        self.usage.sub_agents_spawned += usage.sub_agents_spawned;
    }

    fn add(&mut self, input_tokens: u64, output_tokens: u64, cost_usd: Option<f64>) {
        self.usage.input_tokens += input_tokens;
        self.usage.output_tokens += output_tokens;
        self.usage.total_tokens = self.usage.input_tokens + self.usage.output_tokens;
        self.cost_usd += cost_usd.unwrap_or(0.0);
        self.is_priced |= cost_usd.is_some();
    }

    /// A segment begins: a request without a reply counts as spent from now on.
    pub fn on_segment_start(&mut self) {
        let lost = self.in_flight.take().unwrap_or(0.0);
        self.own_usd += lost;
        self.cost_usd += lost;
    }

    /// A budget is nearly or wholly used up.
    pub fn on_budget_hit(&mut self, hit: &BudgetHit) {
        match hit.level {
            BudgetLevel::Warning => {
                self.warned.insert(hit.budget);
            }
            BudgetLevel::Exceeded => self.hit = Some(hit.budget),
        }
    }

    /// A person answered the question about the budget.
    pub fn on_answer(&mut self, text: &str) {
        let Some(kind) = self.hit.take() else { return };
        match raise(text) {
            Some(by) => {
                *self.raised.entry(kind).or_default() += by;
                self.warned.remove(&kind);
            }
            None => self.stopped = Some(kind),
        }
    }

    /// The task is retried: a stop at the last end no longer counts.
    pub fn on_retry(&mut self) {
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
    fn a_request_without_a_reply_counts_as_spent_when_the_task_resumes() {
        let mut spending = Spending::default();
        spending.on_request(Some(0.25));
        for _ in 0..2 {
            spending.on_segment_start();
            assert_eq!((spending.own_usd, spending.cost_usd), (0.25, 0.25));
        }
    }
}
