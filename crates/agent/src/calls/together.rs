//! Running calls side by side: started together, journaled in the order of the reply.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use windlass_core::event::Event;
use windlass_core::id::TaskId;
use windlass_core::outcome::Outcome;
use windlass_core::state::OpenCall;
use windlass_skills::Skill;
use windlass_store::Level;
use windlass_tools::{Prepared, output};

use super::{Plan, result};
use crate::ending::Ending;
use crate::interrupt::{Interrupt, Watch};
use crate::journal::Journal;
use crate::spans;
use crate::{Agent, Error};

/// Who is told how calls went, and what ends the telling.
struct Hooks<'a> {
    skills: &'a [Arc<Skill>],
    task: TaskId,
    end_calls: &'a CancellationToken,
}

impl Agent {
    /// Runs calls side by side and journals their results in the order of the reply.
    pub(super) async fn run_together(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
        end_calls: &CancellationToken,
        batch: Vec<(OpenCall, Plan)>,
    ) -> Result<Option<Ending>, Error> {
        let mut started = Vec::new();
        let mut running = Vec::new();
        let mut level = Level::Written;
        for (open, plan) in batch {
            let (check, call, prepared) = match plan {
                Plan::Run { check, call, prepared } => (check, call, prepared),
                Plan::Settled { .. }
                | Plan::Ask { .. }
                | Plan::AskUser { .. }
                | Plan::Spawn { .. } => continue,
            };
            if call.recovery.has_effects() {
                level = Level::Synced;
            }
            if let Some(check) = check {
                started.push(Event::RiskCheck(check));
                started.push(Event::ToolCall(call));
            }
            running.push((open, prepared));
        }
        task.commit(started, level).await?;
        let watch = Watch::over(task, self.parts.settings.timeout, stop);
        let hooked = self.hooked(task, running.iter().map(|(open, _)| open));
        let hooks = Hooks { skills: &hooked, task: task.task(), end_calls };
        let calls = join_all(
            running.into_iter().map(|(open, prepared)| self.perform(open, prepared, &hooks)),
        );
        tokio::pin!(calls);
        let mut interrupt = None;
        let results = tokio::select! {
            results = &mut calls => results,
            found = interrupting(&watch) => {
                // The calls are told to stop and still awaited: nothing of theirs outlives them.
                interrupt = Some(found?);
                end_calls.cancel();
                calls.await
            }
        };
        let events = results.into_iter().flat_map(|(open, outcome, ms)| result(&open, outcome, ms));
        task.note(events.collect())?;
        Ok(match interrupt {
            Some(Interrupt::Timeout) => Some(Ending::Failed(self.timed_out())),
            Some(Interrupt::Cancel | Interrupt::Shutdown) | None => None,
        })
    }

    async fn perform(
        &self,
        open: OpenCall,
        prepared: Prepared,
        hooks: &Hooks<'_>,
    ) -> (OpenCall, Outcome, u64) {
        let begun = Instant::now();
        let span = spans::tool(&open.request.name, open.request.id);
        let mut outcome = (prepared.act)().instrument(span).await;
        let remarks = tokio::select! {
            remarks = self.remarks(hooks.skills, hooks.task, &open, &outcome) => remarks,
            () = hooks.end_calls.cancelled() => Vec::new(),
        };
        for remark in remarks {
            outcome.add_note(&remark);
        }
        if outcome.truncated.is_none() {
            let (id, limit) = (open.request.id, self.parts.settings.tool_output_max_tokens);
            (outcome.text, outcome.truncated) =
                output::fit(outcome.text, id, limit, &self.parts.world.workspace);
        }
        let duration_ms = begun.elapsed().as_millis() as u64;
        (open, outcome, duration_ms)
    }
}

/// A pause and a shutdown let running calls finish; only a cancel and the time limit end them.
pub(crate) async fn interrupting(watch: &Watch) -> Result<Interrupt, Error> {
    match watch.interrupted().await? {
        Interrupt::Shutdown => std::future::pending().await,
        interrupt @ (Interrupt::Cancel | Interrupt::Timeout) => Ok(interrupt),
    }
}
