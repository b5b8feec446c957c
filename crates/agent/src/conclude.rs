//! Ends or parks a task, from its loop or from outside: journals its status and result. Whatever depends on a task
//! that ends is ended first.
//!
//! Invariant: the agents below a task and its schedules are ended before the task itself. After a crash in
//! between, the task still lives and is ended again; the other way round they would be forgotten.

use jiff::Timestamp;
use windlass_core::command::{HitlRequest, ResultStatus, TaskResult};
use windlass_core::ending::{Ending, transition};
use windlass_core::event::Event;
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;
use windlass_core::status::TaskStatus;
use windlass_store::{Level, Owner, Store};

use crate::segment_end::checkpoint_of;
use crate::{Error, report, tree};

/// The tree in which a task ends, and when.
#[derive(Clone, Copy)]
pub(crate) struct TreeAt<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) store: &'a Store,
    pub(crate) now: Timestamp,
}

/// How a task ends, before that is journaled.
pub(crate) struct Conclusion {
    /// The change of its status; `None` if the status stays.
    pub(crate) events: Vec<Event>,
    pub(crate) result: TaskResult,
    to: TaskStatus,
}

impl Conclusion {
    /// Ends what depends on the task, and works out its result.
    pub(crate) async fn prepare(
        tree: TreeAt<'_>,
        state: &TaskState,
        ending: &Ending,
        active_ms: u64,
    ) -> Result<Self, Error> {
        let traces = tree.store.dir().traces();
        let mut result = report::result_of(state, active_ms, ending, &traces);
        let to = ending.status_change(state).to;
        end_dependents(tree, state.id(), to).await?;
        if result.status == ResultStatus::BlockedUser && result.hitl_request.is_none() {
            let below = tree::question_below(tree.store, tree.owner.root(), state.id())?;
            result.hitl_request = below.as_ref().map(HitlRequest::from);
        }
        Ok(Self { events: transition(state, ending), result, to })
    }

    /// Everything that is journaled at the end of a segment; the result comes last.
    pub(crate) async fn into_segment_end(self, state: &TaskState) -> (Vec<Event>, TaskResult) {
        let Self { mut events, result, to } = self;
        events.extend(checkpoint_of(state, to).await.map(Event::CheckpointMade));
        events.push(Event::AgentEnd(Box::new(result.clone())));
        (events, result)
    }
}

/// Ends or pauses a task that no loop runs; returns the status that it then has.
pub async fn conclude(
    owner: &Owner,
    store: &Store,
    now: Timestamp,
    state: &TaskState,
    ending: &Ending,
) -> Result<TaskStatus, Error> {
    if transition(state, ending).is_empty() {
        return Ok(state.status);
    }
    let tree = TreeAt { owner, store, now };
    let active_ms = state.work().active_ms();
    let Conclusion { mut events, result, to } =
        Conclusion::prepare(tree, state, ending, active_ms).await?;
    // No segment has ended: a task that is only parked has no result, and its files are as the last one left them.
    if to.is_terminal() {
        events.push(Event::AgentEnd(Box::new(result)));
    }
    owner.append_to(state.id(), now, events, Level::Synced).await?;
    Ok(to)
}

/// Ends the agents below a task that ends for good, and its schedules.
async fn end_dependents(tree: TreeAt<'_>, task: TaskId, to: TaskStatus) -> Result<(), Error> {
    if !to.is_terminal() {
        return Ok(());
    }
    tree::cancel_below(tree, task, &format!("the agent above it is {to}")).await?;
    for row in tree.store.schedules().of(task)? {
        tree.store.schedules().end(row.schedule.id, "its task has ended").await?;
    }
    Ok(())
}
