//! What a program uses is journaled as it comes and counts against the budget of its run.
//!
//! Invariant: a program begins, and continues, only while something of the budget is left. What one reply of it costs is
//! not known before, so it may exceed the budget once.

use std::sync::PoisonError;

use windlass_agent::ProgramCredit;
use windlass_core::ending::Ending;
use windlass_core::event::{Event, RunnerReported};
use windlass_core::status::StatusReason;

use super::Program;
use crate::engine::{Error, Trouble, Wait};
use crate::runner::{Activity, Usage};

impl Program<'_> {
    /// Journals what it has used since the last report. At its end, with what it does then, also that it was nothing.
    pub(super) async fn pay(&self, so_far: Usage, end: Option<Activity>) -> Result<(), Error> {
        let new = {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            so_far.since(std::mem::replace(&mut used, so_far))
        };
        if new.is_nothing() && end.is_none() {
            return Ok(());
        }
        let usage = windlass_core::message::Usage {
            input_tokens: new.input_tokens,
            output_tokens: new.output_tokens,
            cost_usd: new.cost_usd,
            ..Default::default()
        };
        let warning = self.attempt.engine.tree.charge(&usage);
        let reported = RunnerReported {
            activity: end.map(|activity| activity.to_string()),
            usage: Some(usage),
            runner: Some(self.runner.name().to_owned()),
            ..RunnerReported::default()
        };
        let reported = Event::RunnerReported(Box::new(reported));
        self.journal.commit(self.now(), [reported].into_iter().chain(warning).collect()).await
    }

    /// A program begins only while something of the budget is left.
    pub(super) async fn check_budget(&self) -> Result<(), Trouble> {
        match self.credit().await {
            ProgramCredit::Granted => Ok(()),
            ProgramCredit::UsedUp(_) => {
                self.ask_for_budget().await?;
                self.block(StatusReason::Budget).await?;
                Err(Trouble::Wait(Wait::Budget(self.journal.id())))
            }
            ProgramCredit::Stopped(error) => {
                let why = error.message.clone();
                let tree = &self.attempt.engine.tree;
                self.journal.end(tree, &Ending::Failed(error), None).await?;
                Err(Trouble::Failed(why))
            }
        }
    }

    /// Whether nothing of the budget is left.
    pub(super) async fn is_over_budget(&self) -> bool {
        matches!(self.credit().await, ProgramCredit::UsedUp(_))
    }

    /// Asks a person whether to raise the budget, once.
    pub(super) async fn ask_for_budget(&self) -> Result<(), Error> {
        match self.credit().await {
            ProgramCredit::UsedUp(asked) if !asked.is_empty() => {
                self.journal.commit(self.now(), asked).await
            }
            ProgramCredit::UsedUp(_) | ProgramCredit::Granted | ProgramCredit::Stopped(_) => Ok(()),
        }
    }

    async fn credit(&self) -> ProgramCredit {
        self.journal.read(|task, _| self.attempt.engine.tree.credit(task)).await
    }
}

impl Usage {
    /// What was used after `before`.
    fn since(self, before: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            cost_usd: self.cost_usd.map(|cost| (cost - before.cost_usd.unwrap_or(0.0)).max(0.0)),
        }
    }

    fn is_nothing(self) -> bool {
        self.input_tokens + self.output_tokens == 0 && self.cost_usd.is_none_or(|cost| cost <= 0.0)
    }
}
