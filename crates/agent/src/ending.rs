//! How a segment ends: what ends one, and what is journaled of it.

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use windlass_core::axes::RunControl;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::event::{Event, SandboxEnded, StatusChanged};
use windlass_core::schedule::Expiry;
use windlass_core::state::{Next, Signal, TaskState};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::Level;

use crate::billing::stopped_by_person;
use crate::journal::Journal;
use crate::report;
use crate::{Agent, Error};

/// How a segment ends.
#[derive(Debug)]
pub(crate) enum Ending {
    /// With a final reply.
    Done,
    /// On an open question, its own or one below it.
    Blocked,
    /// Nothing is left to spend.
    OverBudget,
    /// By its deadline or its monitor's patience, with what it has.
    Partial(String),
    /// By a person, a schedule or the end of the process.
    Paused(StatusReason),
    /// The model's server wants to be left alone until then, in its words.
    Held(Timestamp, String),
    /// For good, by a person.
    Cancelled(Option<String>),
    /// For good, by an error or a limit.
    Failed(ErrorDetails),
}

impl Agent {
    /// A task that waits for an answer is not started only to wait again.
    pub(crate) fn reason_not_to_start(&self, task: &Journal) -> Option<Ending> {
        match (&task.state().signal, task.state().next()) {
            (Some(Signal::Cancel(reason)), _) => Some(Ending::Cancelled(reason.clone())),
            (Some(Signal::Expired(action, why)), _) => Some(expired(task.state(), *action, why)),
            (_, Next::Wait(_)) => Some(Ending::Blocked),
            // A unit that waited for a person to look at it, and nothing was said against it.
            (_, Next::Finish(_)) if task.state().reason == StatusReason::AwaitingMessage => {
                Some(Ending::Done)
            }
            _ => None,
        }
    }

    /// A final reply ends the task; with assisted control a person looks first (MS-047).
    pub(crate) fn finished(&self, task: &Journal) -> Ending {
        if task.state().waits_for_schedule() {
            return Ending::Paused(StatusReason::Schedule);
        }
        match task.state().axes.run_control {
            RunControl::Assisted if task.state().created.depth == 0 => {
                Ending::Paused(StatusReason::AwaitingMessage)
            }
            RunControl::Assisted | RunControl::Manual | RunControl::Autonomous => Ending::Done,
        }
    }

    /// Signals in their order: cancelled, paused, out of time, out of rounds (ES-108).
    pub(crate) fn signalled(&self, task: &Journal, stop: &CancellationToken) -> Option<Ending> {
        let state = task.state();
        match &state.signal {
            Some(Signal::Cancel(reason)) => return Some(Ending::Cancelled(reason.clone())),
            Some(Signal::Pause) => return Some(Ending::Paused(StatusReason::User)),
            Some(Signal::Expired(action, why)) => return Some(expired(state, *action, why)),
            None => {}
        }
        if stop.is_cancelled() {
            return Some(Ending::Paused(StatusReason::Shutdown));
        }
        if let Some(error) = stopped_by_person(state).or_else(|| report::unfinished(state)) {
            return Some(Ending::Failed(error));
        }
        if self.time_limit.is_used_up(task) {
            return Some(Ending::Failed(self.time_limit.error()));
        }
        let rounds = state.attempt_rounds();
        if state.next() == Next::RunCalls && rounds >= self.parts.settings.max_iterations {
            let message = format!("the agent used up its {rounds} tool rounds");
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
        let until = match &ending {
            Ending::Held(until, _) => Some(*until),
            _ => None,
        };
        let (to, reason, detail, error) = match ending {
            Ending::Done => (TaskStatus::Done, StatusReason::Finished, None, None),
            Ending::Blocked if task.state().spending.hit.is_some() => {
                (TaskStatus::Blocked, StatusReason::Budget, None, None)
            }
            Ending::Blocked => (TaskStatus::Blocked, StatusReason::Question, None, None),
            Ending::OverBudget => (TaskStatus::Blocked, StatusReason::Budget, None, None),
            Ending::Partial(why) => (TaskStatus::Done, StatusReason::Deadline, Some(why), None),
            Ending::Paused(reason) => (TaskStatus::Paused, reason, None, None),
            Ending::Held(_, why) => {
                (TaskStatus::Paused, StatusReason::RateLimited, Some(why), None)
            }
            Ending::Cancelled(why) => (TaskStatus::Cancelled, StatusReason::User, why, None),
            Ending::Failed(error) => {
                let reason = match error.error_type {
                    ErrorType::Timeout => StatusReason::Timeout,
                    ErrorType::Deadline => StatusReason::Deadline,
                    _ => StatusReason::Error,
                };
                (TaskStatus::Failed, reason, Some(error.message.clone()), Some(error))
            }
        };
        let mut events = Vec::new();
        if to != task.state().status {
            let from = task.state().status;
            events.push(Event::StatusChanged(StatusChanged {
                from,
                to,
                reason,
                detail,
                error: error.clone(),
                until,
            }));
        }
        let mut result = report::result(task, to, reason, error);
        self.delegation.cancel_children(task.state(), to).await?;
        if result.status == ResultStatus::BlockedUser && result.hitl_request.is_none() {
            result.hitl_request = self.delegation.question_below(task.task())?;
        }
        if let Some(kind) =
            task.state().sandbox.kind.clone().filter(|_| task.state().created.depth == 0)
        {
            // Said first, done by who drives the task once this is kept.
            events.push(Event::SandboxEnded(SandboxEnded { kind }));
        }
        events.push(Event::AgentEnd(Box::new(result.clone())));
        task.commit(events, Level::Synced).await?;
        Ok(result)
    }
}

/// What becomes of a task whose time is up. One that has never begun has nothing to be done with.
fn expired(state: &TaskState, action: Expiry, why: &str) -> Ending {
    match action {
        Expiry::Complete if state.attempts.started => Ending::Partial(why.to_owned()),
        Expiry::Fail | Expiry::Complete => {
            Ending::Failed(ErrorDetails::new(ErrorType::Deadline, why))
        }
        Expiry::Pause => Ending::Paused(StatusReason::Deadline),
    }
}
