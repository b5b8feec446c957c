//! Paying for model calls: the cost is reserved before a call and settled after it; when nothing is left, a person is
//! asked.

pub mod budget;

use std::sync::Arc;

use jiff::Timestamp;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::event::{BudgetHit, BudgetKind, Event};
use windlass_core::id::QuestionId;
use windlass_core::message::Usage;
use windlass_core::question::{AcceptedAnswers, Question, QuestionKind};
use windlass_core::state::TaskState;
use windlass_model::Price;

use crate::Error;
use crate::journal::Journal;
use budget::{Budget, Reservation};

/// Pays for the model calls of one agent from the budget of its tree.
#[derive(Clone)]
pub(crate) struct Billing {
    budget: Arc<Budget>,
    /// What a reply may take, in tokens.
    reply_tokens: u64,
}

/// Whether a model call is paid for.
pub(crate) enum Credit<'a> {
    Granted(Reservation<'a>),
    UsedUp(BudgetHit),
}

impl Billing {
    /// Pays from this budget. A reply takes at most `reply_tokens`.
    pub fn new(budget: Arc<Budget>, reply_tokens: u64) -> Self {
        Self { budget, reply_tokens }
    }

    /// Takes over what people have granted to a task.
    pub fn sync_raises(&self, state: &TaskState) {
        self.budget.sync_raises(state.id(), &state.spending);
    }

    /// Reserves what a call with a prompt of this size may cost.
    pub async fn reserve(
        &self,
        task: &mut Journal,
        price: Option<Price>,
        tokens: u64,
    ) -> Result<Credit<'_>, Error> {
        if self.budget.can_wait() {
            // Others of the tree may have to settle first, and nothing stays buffered that long.
            task.flush().await?;
        }
        Ok(self.credit(task.state(), price, tokens).await)
    }

    async fn credit(&self, state: &TaskState, price: Option<Price>, tokens: u64) -> Credit<'_> {
        self.sync_raises(state);
        let output_tokens = self.reply_tokens;
        let expected = Usage { input_tokens: tokens, output_tokens, ..Usage::default() };
        // Where money has no limit, none is reserved.
        let price = price.filter(|_| self.budget.can_wait());
        let usd = price.map_or(0.0, |price| price.cost(&expected, 0));
        match self.budget.reserve(usd).await {
            Ok(reservation) => Credit::Granted(reservation),
            Err(hit) => Credit::UsedUp(hit),
        }
    }

    /// Settles what a call took; the event that warns when a budget is nearly used up.
    pub fn settle(&self, reserved: Reservation<'_>, usage: &Usage, turns: u32) -> Option<Event> {
        reserved.settle(usage, turns);
        self.budget.warning().map(Event::BudgetHit)
    }

    /// Counts what another program used, for which nothing was reserved; the event that warns.
    pub fn charge(&self, usage: &Usage) -> Option<Event> {
        self.budget.charge(usage, 0);
        self.budget.warning().map(Event::BudgetHit)
    }

    /// The events that ask a person whether to raise the budget: for the whole tree, at its root.
    pub fn question(&self, state: &TaskState, now: Timestamp) -> Vec<Event> {
        let hit = self.budget.hit().filter(|_| state.created.depth == 0);
        let Some(hit) = hit else { return Vec::new() };
        let (question, options) = budget::question(&hit);
        let accepts = match hit.budget {
            BudgetKind::Cost => AcceptedAnswers::Dollars,
            BudgetKind::Tokens | BudgetKind::Turns | BudgetKind::Time => AcceptedAnswers::Words,
        };
        let question = Question {
            id: QuestionId::new(now),
            kind: QuestionKind::Budget,
            call: None,
            question,
            options,
            context: None,
            binding: None,
            diff: None,
            grants: None,
            accepts,
            asked: None,
            plan: None,
        };
        vec![Event::BudgetHit(hit), Event::QuestionAsked(question)]
    }
}

/// Why a task ends whose budget a person did not want to raise.
pub(crate) fn stopped_by_person(state: &TaskState) -> Option<ErrorDetails> {
    let kind = state.spending.stopped?;
    let message = format!("You stopped it: the {kind} budget was used up");
    Some(ErrorDetails::new(ErrorType::Budget, message).with_remedy(Remedy::RaiseBudget))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// In dollars per million tokens.
    const PRICE: Price =
        Price { input: 1.0, output: 10.0, cached: None, cache_write: None, long: None };

    fn billing(limits: budget::SpendingLimits) -> (Billing, TaskState) {
        let state = testing::state("goal");
        let budget = Budget::new(
            limits,
            state.id(),
            std::slice::from_ref(&state),
            Arc::new(jiff::Timestamp::now),
        );
        (Billing::new(Arc::new(budget), 1_000), state)
    }

    fn usd(limit: f64) -> budget::SpendingLimits {
        budget::SpendingLimits { cost_usd: Some(limit), ..budget::SpendingLimits::default() }
    }

    async fn granted<'a>(billing: &'a Billing, state: &TaskState, tokens: u64) -> Reservation<'a> {
        match billing.credit(state, Some(PRICE), tokens).await {
            Credit::Granted(reservation) => reservation,
            Credit::UsedUp(hit) => panic!("{hit:?}"),
        }
    }

    #[tokio::test]
    async fn the_prompt_and_the_longest_reply_are_reserved() {
        let (billing, state) = billing(usd(1.0));
        let usd = granted(&billing, &state, 100_000).await.known_usd().unwrap();
        assert!((usd - 0.11).abs() < 1e-9, "{usd}");
    }

    #[tokio::test]
    async fn nothing_is_reserved_where_money_has_no_limit() {
        let (billing, state) =
            billing(budget::SpendingLimits { turns: Some(3), ..Default::default() });
        assert_eq!(granted(&billing, &state, 100_000).await.known_usd(), None);
    }

    #[tokio::test]
    async fn a_used_up_budget_is_asked_about_at_the_root() {
        let (billing, mut state) = billing(usd(0.5));
        let reserved = granted(&billing, &state, 10).await;
        let usage = Usage { cost_usd: Some(0.5), ..Usage::default() };
        assert_eq!(billing.settle(reserved, &usage, 1), None, "used up is more than nearly");
        assert!(matches!(billing.credit(&state, None, 10).await, Credit::UsedUp(_)));
        let asked = billing.question(&state, Timestamp::UNIX_EPOCH);
        assert!(matches!(asked.as_slice(), [Event::BudgetHit(_), Event::QuestionAsked(_)]));
        state.created.depth = 1;
        assert!(billing.question(&state, Timestamp::UNIX_EPOCH).is_empty());
    }

    #[tokio::test]
    async fn a_warning_is_given_once() {
        let (billing, state) = billing(usd(1.0));
        let usage = Usage { cost_usd: Some(0.45), ..Usage::default() };
        let mut warnings = Vec::new();
        for usage in [usage, usage, Usage::default()] {
            let reserved = granted(&billing, &state, 10).await;
            warnings.push(billing.settle(reserved, &usage, 1).is_some());
        }
        assert_eq!(warnings, [false, true, false]);
    }

    #[tokio::test]
    async fn an_unsettled_reservation_is_given_back() {
        let (billing, state) = billing(usd(0.12));
        drop(granted(&billing, &state, 100_000).await);
        let first = granted(&billing, &state, 100_000).await;
        let mut second = std::pin::pin!(billing.credit(&state, Some(PRICE), 100_000));
        assert!(futures_util::poll!(&mut second).is_pending(), "it does not fit beside the first");
        drop(first);
        assert!(matches!(second.await, Credit::Granted(_)));
    }
}
