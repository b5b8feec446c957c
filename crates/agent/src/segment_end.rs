//! How a segment ends: what ends it, and what is journaled then.

use std::path::Path;

use tokio_util::sync::CancellationToken;
use windlass_core::axes::RunControl;
use windlass_core::command::TaskResult;
use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::event::{CheckpointMade, Event, SandboxEnded, WorkflowPart};
use windlass_core::state::{Next, Signal, TaskState};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::Level;
use windlass_tools::workspace::checkpoint;

use crate::billing::stopped_by_person;
use crate::conclude::Conclusion;
use crate::journal::Journal;
use crate::notices::exit_event;
use crate::report;
use crate::{Agent, Error};

/// A task that waits for an answer is not started, because it would only wait again.
pub(crate) fn reason_not_to_start(state: &TaskState) -> Option<Ending> {
    match (&state.signal, state.next()) {
        (Some(Signal::Cancel(_) | Signal::Expired(..)), _) => Ending::from_signal(state),
        (_, Next::Wait(_)) => Some(Ending::Blocked),
        // A conversation waits for the next message; other work waited for a person to look at it, and
        // nothing was said against it.
        (_, Next::Finish(_)) if state.reason == StatusReason::AwaitingMessage => {
            Some(match state.created.conversation {
                true => Ending::paused(StatusReason::AwaitingMessage),
                false => Ending::Done,
            })
        }
        (
            Some(Signal::Pause | Signal::Interrupt) | None,
            Next::AskModel | Next::Compact | Next::RunCalls | Next::StartPlan | Next::Finish(_),
        ) => None,
    }
}

/// A final reply ends the task; in a conversation it waits for the next message, and with assisted control
/// a person looks first (MS-047).
pub(crate) fn finished_ending(state: &TaskState) -> Ending {
    if state.waits_for_schedule() {
        return Ending::paused(StatusReason::Schedule);
    }
    if state.before_repair.is_some() {
        // It is looked at once more before it continues.
        return Ending::paused(StatusReason::AwaitingMessage);
    }
    if state.created.conversation {
        return Ending::paused(StatusReason::AwaitingMessage);
    }
    match state.axes.run_control {
        RunControl::Assisted if state.created.depth == 0 => {
            Ending::paused(StatusReason::AwaitingMessage)
        }
        RunControl::Assisted | RunControl::Manual | RunControl::Autonomous => Ending::Done,
    }
}

impl Agent {
    /// Signals in their order: cancelled, paused, out of time, out of rounds (ES-108).
    pub(crate) fn ending_by_signal(
        &self,
        task: &Journal,
        stop: &CancellationToken,
    ) -> Option<Ending> {
        let state = task.state();
        if let Some(ending) = Ending::from_signal(state) {
            return Some(ending);
        }
        if stop.is_cancelled() {
            return Some(Ending::paused(StatusReason::Shutdown));
        }
        if let Some(error) =
            stopped_by_person(state).or_else(|| report::incomplete_reply_error(state))
        {
            return Some(Ending::Failed(error));
        }
        if self.time_limit.is_used_up(task) {
            return Some(Ending::Failed(self.time_limit.error()));
        }
        let rounds = state.work().attempt_rounds();
        if state.next() == Next::RunCalls && rounds >= self.parts.settings.round_limit() {
            let steps = if rounds == 1 { "step" } else { "steps" };
            let message = format!("it reached its limit of {rounds} {steps}");
            return Some(Ending::Failed(
                ErrorDetails::new(ErrorType::MaxIterationsExceeded, message)
                    .with_remedy(Remedy::RaiseRounds),
            ));
        }
        None
    }

    /// Journals the ending: the status it leaves the task in, and the result.
    pub(crate) async fn end(
        &self,
        task: &mut Journal,
        ending: Ending,
    ) -> Result<TaskResult, Error> {
        let (state, active_ms) = (task.state(), task.active_ms());
        let tree = self.delegation.tree().at_now();
        let mut end = Conclusion::prepare(tree, state, &ending, active_ms).await?;
        if end.events.is_empty() && !state.attempts.is_in_segment() {
            // It is still blocked and did not start: there is no segment to end.
            return Ok(end.result);
        }
        // Journaled first; they are ended, and the sandbox with them, after it.
        let ended = self.parts.world.shell.end_running(background_end(&ending));
        end.events.extend(ended.into_iter().map(exit_event));
        if let Some(kind) = state.sandbox.kind.clone().filter(|_| state.created.depth == 0) {
            end.events.push(Event::SandboxEnded(SandboxEnded { kind }));
        }
        let (events, result) = end.into_segment_end(state).await;
        task.commit(events, Level::Synced).await?;
        Ok(result)
    }
}

/// Ends the background commands of a segment: none outlives it.
fn background_end(ending: &Ending) -> &'static str {
    match ending {
        Ending::Paused { reason: StatusReason::AwaitingMessage, .. } => {
            "stopped at the end of the turn"
        }
        Ending::Paused { .. }
        | Ending::Blocked
        | Ending::OverBudget
        | Ending::Waiting { .. }
        | Ending::Stuck { .. } => "stopped because the task waits",
        Ending::Done | Ending::Partial(_) | Ending::Cancelled(_) | Ending::Failed(_) => {
            "stopped at the end of the task"
        }
    }
}

/// Keeps the state of the files under a git ref, where a task that had effects has ended (MS-133).
pub(crate) async fn checkpoint_of(state: &TaskState, to: TaskStatus) -> Option<CheckpointMade> {
    let had_effects = match state.created.workflow.as_deref() {
        // Nobody has seen what another program did.
        Some(WorkflowPart::Program { .. }) => true,
        // In a step's own worktree, every change belongs to the step.
        Some(WorkflowPart::Agent { .. }) => state.spending.usage.tool_calls > 0,
        Some(WorkflowPart::Run(_) | WorkflowPart::Script(_)) | None => {
            let files = &state.files;
            !files.changed.is_empty() || files.may_have_changed || !state.sub_agents.is_empty()
        }
    };
    if !to.is_terminal() || !had_effects || state.created.depth > 0 {
        return None;
    }
    let top = Path::new(state.created.boundary());
    let made = checkpoint::make(top, &state.id().to_string()).await?;
    Some(CheckpointMade { checkpoint_ref: made.reference, commit: made.commit })
}
