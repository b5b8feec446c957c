//! A task and all agents below it: one owner, one budget, one count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;
use windlass_core::command::TaskResult;
use windlass_core::ending::Ending;
use windlass_core::error::ErrorDetails;
use windlass_core::event::{Event, QuestionClosed, StatusChanged, TaskCreated};
use windlass_core::id::TaskId;
use windlass_core::message::Usage;
use windlass_core::question::Question;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Filter, Level, Owner, QuestionState, Store, Stream, TaskRow};

use crate::Error;
use crate::billing::budget::{self, Budget};
use crate::billing::{Billing, stopped_by_person};
use crate::clock::Clock;
use crate::conclude::{Conclusion, TreeAt};
use crate::history::History;

/// How many agents there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// How deep they nest; the main agent is 0 (ES-365).
    pub max_depth: u32,
    /// How many one tree may start in all.
    pub max_agents: u32,
}

/// Whether another program may work on a task.
pub enum ProgramCredit {
    Granted,
    /// Nothing is left: what asks a person, unless that was asked before.
    UsedUp(Vec<Event>),
    /// A person did not want to raise the budget.
    Stopped(ErrorDetails),
}

/// A task and all agents below it, while one process drives them.
pub struct Tree {
    owner: Owner,
    store: Store,
    clock: Arc<dyn Clock>,
    limits: AgentLimits,
    budget: Arc<Budget>,
    started: AtomicU32,
}

impl Tree {
    /// Looks at what the tree has done and spent so far; `top` is the state of its root.
    pub fn open(
        owner: Owner,
        store: &Store,
        clock: Arc<dyn Clock>,
        limits: AgentLimits,
        budgets: budget::SpendingLimits,
        top: &TaskState,
    ) -> Result<Self, Error> {
        let root = owner.root();
        let rows = store.tasks().list(&Filter { root: Some(root), ..Filter::default() })?;
        let mut states = vec![top.clone()];
        for row in rows.iter().filter(|row| row.id != root) {
            states.push(History::read(store, row.id)?.into_state());
        }
        let started = u32::try_from(rows.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let budget = Arc::new(Budget::new(budgets, root, &states, clock.clone()));
        let (store, started) = (store.clone(), AtomicU32::new(started));
        Ok(Self { owner, store, clock, limits, budget, started })
    }

    /// What the tree may spend and has spent.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Counts what another program used; the event that warns when a budget is nearly used up.
    pub fn charge(&self, usage: &Usage) -> Option<Event> {
        self.billing().charge(usage)
    }

    /// Whether a task that another program works on may continue: what people have granted to it counts.
    pub fn credit(&self, task: &TaskState) -> ProgramCredit {
        let billing = self.billing();
        billing.sync_raises(task);
        if let Some(error) = stopped_by_person(task) {
            return ProgramCredit::Stopped(error);
        }
        if task.spending.hit.is_some() {
            return ProgramCredit::UsedUp(Vec::new());
        }
        match billing.question(task, self.now()) {
            asked if asked.is_empty() => ProgramCredit::Granted,
            asked => ProgramCredit::UsedUp(asked),
        }
    }

    fn billing(&self) -> Billing {
        // What a program's next reply may take is not known, so nothing is reserved.
        Billing::new(self.budget.clone(), 0)
    }

    /// How many agents there may be.
    pub fn limits(&self) -> AgentLimits {
        self.limits
    }

    /// The right to append to a task of the tree.
    pub fn stream(&self, task: TaskId) -> Result<Stream, Error> {
        Ok(self.owner.stream(task)?)
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Where the time comes from.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    /// Whether one more agent may start; counts it if so.
    pub(crate) fn admit(&self) -> bool {
        let most = self.limits.max_agents;
        let more = |now: u32| (now < most).then_some(now + 1);
        self.started.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Makes a task below another. One that was made before a crash is made once.
    pub async fn create(&self, created: TaskCreated) -> Result<TaskId, Error> {
        Ok(self.owner.create_child(self.now(), created).await?.task())
    }

    /// The store, for reading.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The tree now, for a task in it that ends.
    pub(crate) fn at_now(&self) -> TreeAt<'_> {
        TreeAt { owner: &self.owner, store: &self.store, now: self.now() }
    }

    /// Ends a segment of a task that no model works on: a run of a workflow, or another program's work.
    pub async fn end_segment(
        &self,
        stream: &mut Stream,
        state: &TaskState,
        ending: &Ending,
        message: Option<String>,
    ) -> Result<TaskResult, Error> {
        let active_ms = state.work().active_ms();
        let mut end = Conclusion::prepare(self.at_now(), state, ending, active_ms).await?;
        end.result.final_message = message.or(end.result.final_message);
        let (events, result) = end.into_segment_end(state).await;
        stream.append(self.now(), events, Level::Synced).await?;
        Ok(result)
    }

    /// The tasks below one that have not ended, oldest first.
    pub fn live_descendants(&self, task: TaskId) -> Result<Vec<TaskRow>, Error> {
        Ok(live_descendants(&self.store, self.owner.root(), task)?)
    }
}

/// The first question that waits for a person below a task.
pub(crate) fn question_below(
    store: &Store,
    root: TaskId,
    task: TaskId,
) -> Result<Option<Question>, Error> {
    for row in live_descendants(store, root, task)? {
        let asked = store.questions().of(row.id)?;
        if let Some(open) = asked.into_iter().find(|one| one.state == QuestionState::Open) {
            return Ok(Some(open.question));
        }
    }
    Ok(None)
}

/// Ends every task below one that has ended for good, and closes what they asked. From their rows alone, and without
/// a result: nobody waits for one, and a whole journal would be folded for each.
pub(crate) async fn cancel_below(
    tree: TreeAt<'_>,
    task: TaskId,
    why: &str,
) -> Result<(), windlass_store::Error> {
    let TreeAt { owner, store, now } = tree;
    for row in live_descendants(store, owner.root(), task)? {
        let asked = store.questions().of(row.id)?;
        let open = asked.into_iter().filter(|one| one.state == QuestionState::Open);
        let closed = open.map(|one| {
            let (question, reason) = (one.question.id, why.to_owned());
            Event::QuestionClosed(QuestionClosed { question, reason })
        });
        let moved = StatusChanged {
            detail: Some(why.to_owned()),
            ..StatusChanged::new(row.status, TaskStatus::Cancelled, StatusReason::User)
        };
        let events = closed.chain([Event::StatusChanged(moved)]).collect();
        owner.append_to(row.id, now, events, Level::Written).await?;
    }
    Ok(())
}

fn live_descendants(
    store: &Store,
    root: TaskId,
    task: TaskId,
) -> Result<Vec<TaskRow>, windlass_store::Error> {
    let mut rows = store.tasks().list(&Filter { root: Some(root), ..Filter::default() })?;
    rows.reverse();
    let parent = |id: TaskId| rows.iter().find(|row| row.id == id).and_then(|row| row.parent_id);
    let is_below = |row: &&TaskRow| {
        std::iter::successors(row.parent_id, |id| parent(*id)).any(|above| above == task)
    };
    let live = rows.iter().filter(|row| !row.status.is_terminal()).filter(is_below);
    Ok(live.cloned().collect())
}
