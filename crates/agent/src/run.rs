//! The agent loop: ask the model, run what it asks for, journal both, repeat.
//!
//! Invariants:
//! - State is a fold: the loop remembers nothing. What comes next is a question to the state, so a
//!   resumed task and an unbroken one behave the same. (ES-045)
//! - Journal first: a reply is committed before any of its calls starts.
//! - Bounded: it ends by a final reply, a limit, a question or a signal. (ES-104, ES-105)

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use windlass_core::command::TaskResult;
use windlass_core::ending::Ending;
use windlass_core::id::TaskId;
use windlass_core::state::Next;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::Level;

use crate::billing::Billing;
use crate::calls::{Calls, Runner, drop_interrupted};
use crate::claims::EditClaims;
use crate::compaction::{Compactor, Room};
use crate::delegation::{Delegation, tree::Tree};
use crate::executor::check_claim;
use crate::gate::Gate;
use crate::interrupt::TimeLimit;
use crate::journal::Journal;
use crate::notices::Notices;
use crate::plan_review::PlanReview;
use crate::segment_end::{finished_ending, reason_not_to_start};
use crate::start_approval::ask_to_start;
use crate::verify::{Verification, leave_verifying};
use crate::{Error, Parts, Preview, PreviewContent, spans};

/// One agent: its parts, and who does what in its loop.
pub struct Agent {
    pub(crate) parts: Parts,
    /// What may be called, and why.
    pub(crate) gate: Arc<Gate>,
    calls: Calls,
    /// Pays for model calls.
    pub(crate) billing: Billing,
    /// Keeps the context within its window.
    pub(crate) compactor: Compactor,
    pub(crate) delegation: Arc<Delegation>,
    verification: Verification,
    plan_review: PlanReview,
    notices: Notices,
    pub(crate) time_limit: TimeLimit,
}

impl Agent {
    /// Puts an agent together.
    pub fn new(parts: Parts, tree: Arc<Tree>) -> Self {
        let time_limit = TimeLimit(parts.settings.timeout);
        let gate = Arc::new(Gate::new(&parts));
        let runner = Arc::new(Runner {
            gate: gate.clone(),
            world: parts.world.clone(),
            output_limit: parts.settings.tool_output_max_tokens,
            previews: parts.previews.clone(),
            time_limit,
        });
        let billing = Billing::new(tree.budget().clone(), parts.reply_tokens());
        let compactor = Compactor::new(&parts, billing.clone());
        let plan_review = PlanReview::new(&parts);
        let notices = Notices { world: parts.world.clone() };
        let edits = EditClaims { workspace: parts.world.workspace.clone(), tree: tree.clone() };
        let delegation = Arc::new(Delegation::new(parts.clone(), tree));
        let calls = Calls {
            gate: gate.clone(),
            runner: runner.clone(),
            delegation: delegation.clone(),
            edits,
        };
        let verification = Verification::new(&parts, gate.clone(), runner, delegation.clone());
        Self {
            parts,
            gate,
            calls,
            billing,
            compactor,
            delegation,
            verification,
            plan_review,
            notices,
            time_limit,
        }
    }

    /// Works on the task until the segment ends, and journals how.
    pub async fn run(
        &mut self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        let span = spans::agent(task.task(), self.parts.model.name());
        let _end = EndOfPreviews { task: task.task(), previews: self.parts.previews.clone() };
        let result = self.segment(task, stop).instrument(span.clone()).await?;
        span.record("windlass.status", result.status.to_string());
        Ok(result)
    }

    /// Ends what its commands left running, and its sandbox.
    pub async fn close(&self) {
        self.parts.world.shell.close().await;
    }

    async fn segment(
        &mut self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        task.drain().await?;
        // Sub-agents may spend what a person has just granted, before this agent asks again.
        self.billing.sync_raises(task.state());
        if task.state().next() == Next::StartPlan && task.state().signal.is_none() {
            self.plan_review.start(task).await?;
        }
        self.plan_review.report_edits(task).await?;
        let refused = ask_to_start(task).await?;
        let ending = match refused.or_else(|| reason_not_to_start(task.state())) {
            Some(ending) => ending,
            None => self.start_and_work(task, stop).await?,
        };
        self.conclude(task, ending, stop).await
    }

    async fn start_and_work(
        &mut self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Ending, Error> {
        if let Err(ending) = self.renew_model(task) {
            return Ok(*ending);
        }
        match self.start(task).await? {
            Some(ending) => Ok(ending),
            None => self.work(task, stop).await,
        }
    }

    async fn work(
        &mut self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Ending, Error> {
        loop {
            task.drain().await?;
            self.notices.report_exits(task).await?;
            self.notices.report_news(task).await?;
            if let Some(ending) = self.notices.report_sandbox(task).await? {
                return Ok(ending);
            }
            drop_interrupted(task)?;
            if let Some(ending) = self.ending_by_signal(task, stop) {
                return Ok(ending);
            }
            check_claim(task).await?;
            leave_verifying(task).await?;
            if task.state().next() == Next::AskModel
                && let Some(ending) = self.renew_epoch(task).await?
            {
                return Ok(ending);
            }
            let step = match task.state().next() {
                Next::AskModel => match self.compactor.room(task.state(), task.context()) {
                    Room::Enough => self.ask(task, stop).await?,
                    Room::SaveNotes => self.compactor.save_notes(task).await?,
                    Room::Needed(_) if self.compactor.should_pause(task.state()) => {
                        return Ok(Ending::paused(StatusReason::ContextFull));
                    }
                    Room::Needed(trigger) => self.compactor.begin(task, trigger).await?,
                },
                Next::Compact => self.compactor.run(task, stop).await?,
                Next::RunCalls => self.calls.run(task, stop).await?,
                Next::Wait(_) => return Ok(Ending::Blocked),
                Next::StartPlan => self.plan_review.start(task).await?,
                Next::Finish(_) if PlanReview::ends_in_proposal(task.state()) => {
                    self.plan_review.propose(task).await?
                }
                Next::Finish(_) if self.verification.is_due(task) => {
                    self.verification.step(task, stop).await?
                }
                Next::Finish(_) => return Ok(finished_ending(task.state())),
            };
            if let Some(ending) = step {
                return Ok(ending);
            }
            if let Some(ending) = self.notices.guard(task).await? {
                return Ok(ending);
            }
        }
    }

    /// Ends the segment. Mail may come between the last look into the mailbox and the end; what was
    /// accepted is delivered, so the work continues then.
    async fn conclude(
        &mut self,
        task: &mut Journal,
        mut ending: Ending,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        loop {
            if matches!(ending, Ending::OverBudget) {
                let question = self.billing.question(task.state(), task.now());
                task.commit(question, Level::Synced).await?;
            }
            // On its own, because an end that is refused takes nothing else back.
            task.flush().await?;
            match self.end(task, ending).await {
                Err(Error::Store(windlass_store::Error::MailPending(_))) => {
                    ending = match task.state().status {
                        TaskStatus::Running | TaskStatus::Verifying => {
                            self.work(task, stop).await?
                        }
                        TaskStatus::Todo
                        | TaskStatus::Reviewing
                        | TaskStatus::Blocked
                        | TaskStatus::Paused
                        | TaskStatus::Retrying
                        | TaskStatus::Done
                        | TaskStatus::Failed
                        | TaskStatus::Cancelled => self.start_and_work(task, stop).await?,
                    };
                }
                ended => return ended,
            }
        }
    }
}

/// Tells those who show previews that no more follow, however the segment ends.
struct EndOfPreviews {
    task: TaskId,
    previews: broadcast::Sender<Preview>,
}

impl Drop for EndOfPreviews {
    fn drop(&mut self) {
        // It does not matter if nobody listens.
        let _ = self.previews.send(Preview { task: self.task, live: PreviewContent::Ended });
    }
}
