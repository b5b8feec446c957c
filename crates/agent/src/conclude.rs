//! Ends or parks a task, from its loop or from outside: journals its status and result. Whatever depends on a task
//! that ends is ended first.
//!
//! Invariant: the agents below a task and its schedules are ended before the task itself. After a crash in
//! between, the task still lives and is ended again; the other way round they would be forgotten.

use jiff::Timestamp;
use windlass_core::ending::{Ending, transition};
use windlass_core::event::Event;
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;
use windlass_core::status::TaskStatus;
use windlass_store::{Level, Owner, Store};

use crate::{Error, report, tree};

/// Ends or pauses a task that no loop runs; returns the status that it then has.
pub async fn conclude(
    owner: &Owner,
    store: &Store,
    now: Timestamp,
    state: &TaskState,
    ending: &Ending,
) -> Result<TaskStatus, Error> {
    let mut events = transition(state, ending);
    if events.is_empty() {
        return Ok(state.status);
    }
    let to = ending.status_change(state).to;
    if to.is_terminal() {
        let traces = store.dir().traces();
        let result = report::result_of(state, state.work().active_ms(), ending, &traces);
        events.push(Event::AgentEnd(Box::new(result)));
    }
    end_dependents(owner, store, now, state.id(), to).await?;
    owner.append_to(state.id(), now, events, Level::Synced).await?;
    Ok(to)
}

/// Ends the agents below a task that ends for good, and its schedules.
pub(crate) async fn end_dependents(
    owner: &Owner,
    store: &Store,
    now: Timestamp,
    task: TaskId,
    to: TaskStatus,
) -> Result<(), Error> {
    if !to.is_terminal() {
        return Ok(());
    }
    tree::cancel_below(owner, store, now, task, &format!("the agent above it is {to}")).await?;
    for row in store.schedules().of(task)? {
        store.schedules().end(row.schedule.id, "its task has ended").await?;
    }
    Ok(())
}
