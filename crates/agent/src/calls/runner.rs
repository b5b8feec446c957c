//! Preparing and running tool calls: started together, journaled in the order of the reply.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use windlass_core::event::Event;
use windlass_core::id::{CallId, TaskId};
use windlass_core::outcome::{CallEnding, FileChange, Outcome, Recovery};
use windlass_core::policy::Class;
use windlass_core::role::Role;
use windlass_core::state::{OpenCall, TaskState};
use windlass_skills::{Skill, Viewer};
use windlass_store::Level;
use windlass_tools::{Call, LiveOutput, Prepared, Signature, TaskFacts, ToolContext, output};

use super::{Run, result, versions};
use crate::gate::Gate;
use crate::interrupt::{Interrupt, TimeLimit};
use crate::journal::{Flushed, Journal};
use crate::prompt::INTERRUPTED;
use crate::spans;
use crate::{Error, Preview, PreviewContent};

pub(crate) struct Runner {
    pub gate: Arc<Gate>,
    /// What tools work with.
    pub world: ToolContext,
    /// Largest result in the context, in tokens.
    pub output_limit: u64,
    pub time_limit: TimeLimit,
    /// Where previews go; they are not journaled.
    pub previews: broadcast::Sender<Preview>,
}

/// A call, its outcome, and how long it took in milliseconds.
type Performed = (OpenCall, Outcome, u64);

impl Runner {
    /// Has a tool look at a call; changes nothing.
    pub async fn prepare(
        &self,
        state: &TaskState,
        open: &OpenCall,
        arguments: serde_json::Value,
        can_spawn: bool,
        stop: &CancellationToken,
    ) -> Result<Prepared, Outcome> {
        let Some(tool) = self.gate.tool(&open.request.name) else {
            return Err(Outcome::error(format!("There is no tool `{}`.", open.request.name)));
        };
        let facts = TaskFacts {
            known_files: state.files.known.clone(),
            working_directory: state.sandbox.working_directory.clone(),
            viewer: Viewer::of(&state.axes),
            may_spawn: can_spawn,
            signature: Some(signature(state)),
        };
        let call = Call {
            id: open.request.id,
            arguments,
            facts: Arc::new(facts),
            limit_tokens: self.output_limit,
            stop: stop.clone(),
            live: self.live_output(state.id(), open.request.id),
        };
        tool.prepare(&self.world, call).await
    }

    /// Shows what a call prints to whoever watches.
    fn live_output(&self, task: TaskId, call: CallId) -> LiveOutput {
        let previews = self.previews.clone();
        LiveOutput::new(move |text| {
            let _ = previews.send(Preview { task, live: PreviewContent::Output { call, text } });
        })
    }

    /// Runs calls side by side and journals their results in the order of the reply. Says what
    /// interrupted them, if anything did.
    pub async fn run(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
        end_calls: &CancellationToken,
        runs: Vec<Run>,
    ) -> Result<Option<Interrupt>, Error> {
        let mut started = Vec::new();
        let mut running = Vec::new();
        let mut level = Level::Written;
        for Run { open, check, call, prepared } in runs {
            if call.recovery.has_effects() {
                level = Level::Synced;
            }
            if let Some(check) = check {
                started.push(Event::RiskCheck(check));
                started.push(Event::ToolCall(call));
            }
            running.push((open, prepared));
        }
        let flushed = task.commit(started, level).await?;
        let (results, interrupt) = self.perform_all(&flushed, stop, end_calls, running).await?;
        let events = results.into_iter().flat_map(|(open, outcome, ms)| result(&open, outcome, ms));
        task.buffer(events.collect())?;
        Ok(interrupt)
    }

    async fn perform_all(
        &self,
        task: &Flushed<'_>,
        stop: &CancellationToken,
        end_calls: &CancellationToken,
        running: Vec<(OpenCall, Prepared)>,
    ) -> Result<(Vec<Performed>, Option<Interrupt>), Error> {
        let watch = self.time_limit.watch(task, stop);
        let (state, skills) = (task.state(), task.context().skills());
        let hooks = self.gate.matching_hooks(state, skills, running.iter().map(|(open, _)| open));
        let calls = join_all(
            running
                .into_iter()
                .map(|(open, prepared)| self.perform(task, open, prepared, &hooks, end_calls)),
        );
        tokio::pin!(calls);
        tokio::select! {
            results = &mut calls => Ok((results, None)),
            found = watch.wait_for_end_of_calls() => {
                // The calls are asked to stop and still awaited: nothing of theirs outlives them.
                let interrupt = found?;
                end_calls.cancel();
                let mut results = calls.await;
                if interrupt == Interrupt::Person {
                    results.iter_mut().for_each(say_interrupted);
                }
                Ok((results, Some(interrupt)))
            }
        }
    }

    async fn perform(
        &self,
        task: &Flushed<'_>,
        open: OpenCall,
        prepared: Prepared,
        hooks: &[Arc<Skill>],
        end_calls: &CancellationToken,
    ) -> Performed {
        let change = match &prepared.recovery {
            // What the agent writes for itself is not a change that a person looks for.
            Recovery::Verify { change, .. } if prepared.assessment.class != Class::Note => {
                Some(change.clone())
            }
            Recovery::Verify { .. }
            | Recovery::Rerun
            | Recovery::Reattach { .. }
            | Recovery::Unknown => None,
        };
        let (store, workspace) = (task.store(), &self.world.workspace);
        if let Some(FileChange { path, before: Some(before), .. }) = &change {
            versions::keep(store, workspace, path, before).await;
        }
        let begun = Instant::now();
        let span = spans::tool(&open.request.name, open.request.id);
        let mut outcome = (prepared.act)().instrument(span.clone()).await;
        spans::record_outcome(&span, &outcome);
        drop(span);
        if let Some(FileChange { path, after, .. }) = change.filter(|_| !outcome.is_error()) {
            versions::keep(store, workspace, &path, &after).await;
        }
        let remarks = tokio::select! {
            remarks = self.gate.run_after(hooks, task.task(), &open, &outcome) => remarks,
            () = end_calls.cancelled() => Vec::new(),
        };
        for remark in remarks {
            outcome.add_note(&remark);
        }
        if outcome.truncated.is_none() {
            // Redact before cutting: a key cut in half would no longer be recognized.
            outcome.text = task.store().secrets().known().redact(&outcome.text).into_owned();
            let (id, limit) = (open.request.id, self.output_limit);
            (outcome.text, outcome.truncated) =
                output::fit(outcome.text, id, limit, &self.world.workspace);
        }
        let duration_ms = begun.elapsed().as_millis() as u64;
        (open, outcome, duration_ms)
    }
}

/// The output of a call so far stays its result, with who ended it.
fn say_interrupted((_, outcome, _): &mut Performed) {
    if outcome.ending == CallEnding::Cancelled {
        outcome.add_note(INTERRUPTED.trim_end());
    }
}

/// Whose calls these are, as the ledger of commitments keeps it. An auditor that another agent started judges the work
/// of that one.
fn signature(state: &TaskState) -> Signature {
    let is_auditor = state.role == Some(Role::Auditor);
    Signature {
        session: state.command().session_id,
        task: state.id(),
        root: state.created.root,
        user: state.created.user_id.clone(),
        project: state.created.boundary().to_owned(),
        reviews: state.created.parent.filter(|_| is_auditor),
    }
}
