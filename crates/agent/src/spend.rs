//! Paying for model calls: reserved before, settled after, a person asked when nothing is left.

use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::event::{BudgetHit, Event};
use windlass_core::id::QuestionId;
use windlass_core::message::Usage;
use windlass_core::question::{Question, QuestionKind};
use windlass_core::state::TaskState;
use windlass_model::Price;
use windlass_store::Level;

use crate::budget::{self, Reservation};
use crate::journal::Journal;
use crate::{Agent, Error};

impl Agent {
    /// Reserves what a call may cost. Nothing is reserved where nothing is bounded.
    pub(crate) async fn afford(
        &self,
        task: &Journal,
        price: Option<Price>,
        tokens: u64,
    ) -> Result<Option<Reservation<'_>>, BudgetHit> {
        let budget = self.tree.budget();
        if !budget.is_bounded() {
            return Ok(None);
        }
        budget.heard(task.task(), &task.state().spending);
        let expected = Usage {
            input_tokens: tokens,
            output_tokens: self.limits().reserve,
            ..Usage::default()
        };
        // Where money is not bounded, none is set aside.
        let price = price.filter(|_| budget.may_wait());
        let usd = price.map_or(0.0, |price| price.cost(&expected, 0));
        budget.reserve(usd).await.map(Some)
    }

    /// Settles what a call took, and tells when a budget is nearly used up.
    pub(crate) async fn paid(
        &self,
        task: &mut Journal,
        reserved: Option<Reservation<'_>>,
        usage: &Usage,
        turns: u32,
    ) -> Result<(), Error> {
        let Some(reserved) = reserved else { return Ok(()) };
        reserved.settle(usage, turns);
        match self.tree.budget().warning() {
            Some(hit) => task.commit(vec![Event::BudgetHit(hit)], Level::Written).await,
            None => Ok(()),
        }
    }

    /// Asks a person whether the work may go on; for the whole tree, at its root.
    pub(crate) async fn ask_about_budget(&self, task: &mut Journal) -> Result<(), Error> {
        let hit = self.tree.budget().hit();
        let Some(hit) = hit.filter(|_| task.state().created.parent.is_none()) else {
            return Ok(());
        };
        let (question, options) = budget::question(&hit);
        let id = QuestionId::new(task.now());
        let kind = QuestionKind::Budget;
        let (call, context, binding, grants) = (None, None, None, None);
        let asked = Question { id, kind, call, question, options, context, binding, grants };
        let events = vec![Event::BudgetHit(hit), Event::QuestionAsked(asked)];
        task.commit(events, Level::Synced).await
    }
}

/// Why a task ends whose budget a person did not want to raise.
pub(crate) fn stopped_at_budget(state: &TaskState) -> Option<ErrorDetails> {
    let kind = state.spending.stopped?;
    let message = format!("a person said stop when the {kind} budget was used up");
    Some(ErrorDetails::new(ErrorType::Budget, message).with_remedy(Remedy::RaiseBudget))
}
