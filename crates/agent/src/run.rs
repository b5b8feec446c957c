//! The agent loop: ask the model, run what it asks for, journal both, repeat.
//!
//! Invariants:
//! - State is a fold: the loop remembers nothing. What comes next is a question to the state, so a
//!   resumed task and an unbroken one behave the same. (ES-045)
//! - Journal first: a reply is committed before any of its calls starts.
//! - Bounded: it ends by a final reply, a limit, a question or a signal. (ES-104, ES-105)

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use windlass_core::command::TaskResult;
use windlass_core::ending::Ending;
use windlass_core::state::Next;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::Level;

use crate::billing::Billing;
use crate::calls::Runner;
use crate::compaction::{Compactor, Room};
use crate::delegation::{Delegation, tree::Tree};
use crate::gate::Gate;
use crate::interrupt::TimeLimit;
use crate::journal::Journal;
use crate::{Error, Parts, spans};

/// One agent: what it is made from, and who does what in its loop.
pub struct Agent {
    pub(crate) parts: Parts,
    /// What may be called, and why.
    pub(crate) gate: Arc<Gate>,
    /// Runs the calls of tools.
    pub(crate) runner: Runner,
    /// Pays for model calls.
    pub(crate) billing: Billing,
    /// Keeps the context within its window.
    pub(crate) compactor: Compactor,
    pub(crate) delegation: Delegation,
    pub(crate) time_limit: TimeLimit,
}

impl Agent {
    /// Puts an agent together.
    pub fn new(parts: Parts, tree: Arc<Tree>) -> Self {
        let time_limit = TimeLimit(parts.settings.timeout);
        let gate = Arc::new(Gate::new(&parts));
        let runner = Runner {
            gate: gate.clone(),
            world: parts.world.clone(),
            output_limit: parts.settings.tool_output_max_tokens,
            previews: parts.previews.clone(),
            time_limit,
        };
        let billing = Billing::new(tree.budget().clone(), parts.reply_tokens());
        let compactor = Compactor::new(&parts, billing.clone());
        let delegation = Delegation::new(parts.clone(), tree);
        Self { parts, gate, runner, billing, compactor, delegation, time_limit }
    }

    /// Works on the task until the segment ends, and journals how.
    pub async fn run(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        let span = spans::agent(task.task(), self.parts.model.name());
        let result = self.segment(task, stop).instrument(span.clone()).await?;
        span.record("windlass.status", result.status.to_string());
        Ok(result)
    }

    /// Ends what its commands left running, and its sandbox.
    pub async fn close(&self) {
        self.parts.world.shell.close().await;
    }

    async fn segment(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        task.drain().await?;
        // Sub-agents may spend what a person has just granted, before this agent asks again.
        self.billing.sync_raises(task.state());
        let ending = match self.reason_not_to_start(task) {
            Some(ending) => ending,
            None => self.start_and_work(task, stop).await?,
        };
        self.conclude(task, ending, stop).await
    }

    async fn start_and_work(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Ending, Error> {
        match self.start(task).await? {
            Some(ending) => Ok(ending),
            None => self.work(task, stop).await,
        }
    }

    async fn work(&self, task: &mut Journal, stop: &CancellationToken) -> Result<Ending, Error> {
        loop {
            task.drain().await?;
            self.report_exits(task).await?;
            self.report_news(task).await?;
            if let Some(ending) = self.report_sandbox(task).await? {
                return Ok(ending);
            }
            if let Some(ending) = self.signalled(task, stop) {
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
                Next::RunCalls => self.run_calls(task, stop).await?,
                Next::Wait(_) => return Ok(Ending::Blocked),
                Next::Finish(_) => return Ok(self.finished(task)),
            };
            if let Some(ending) = step {
                return Ok(ending);
            }
            if let Some(ending) = self.guard(task).await? {
                return Ok(ending);
            }
        }
    }

    /// Ends the segment. Mail may come between the last look into the mailbox and the end; what was
    /// accepted is delivered, so the work continues then.
    async fn conclude(
        &self,
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
                        TaskStatus::Running => self.work(task, stop).await?,
                        _ => self.start_and_work(task, stop).await?,
                    };
                }
                ended => return ended,
            }
        }
    }
}
