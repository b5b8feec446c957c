//! A task as lists and its own page show it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use windlass_agent::History;
use windlass_core::command::{TaskResult, UsageMetrics};
use windlass_core::compaction::{Gauge, WindowLimits};
use windlass_core::event::{BudgetKind, CompactionEnd, Event, Record};
use windlass_core::id::{CallId, TaskId};
use windlass_core::question::QuestionKind;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Filter, QuestionRow, RuntimeRow, SchedulerRow, TaskRow};

use super::{CostSum, NextAction};
use crate::tasks::Parents;
use crate::{Coordinator, Error};

/// A task and its current state.
#[derive(Clone, Debug)]
pub struct TaskView {
    /// Its row, as the journal says. While it is driven, its usage is live, and its budget is the current one.
    pub row: TaskRow,
    /// The process that drives it.
    pub driven_by: Option<u32>,
    /// Its place in the queue of its session, from 1, while it waits there.
    pub queue_place: Option<usize>,
    /// How many of the tasks that it waits for are not done.
    pub open_blockers: usize,
    /// Its state in the scheduler of the service.
    pub scheduler: Option<SchedulerRow>,
    /// How it runs: its model, how full its context is.
    pub worker: Option<RuntimeRow>,
    /// The open questions of the task and of every agent below it, oldest first.
    pub questions: Vec<QuestionRow>,
    /// Commands that run in its background.
    pub background: BTreeMap<CallId, String>,
    /// What it has cost; `None` if no price is known.
    pub cost_usd: Option<f64>,
}

impl TaskView {
    /// Whether it should be running and has lost its process (§15.5).
    pub fn is_interrupted(&self) -> bool {
        let running = matches!(
            self.row.status,
            TaskStatus::Running | TaskStatus::Verifying | TaskStatus::Retrying
        );
        running && self.driven_by.is_none()
    }

    /// What comes next: what a person can do, or what it waits for.
    pub fn next_action(&self) -> NextAction {
        NextAction::of(&self.row, self.driven_by.is_some(), self.open_blockers, &self.questions)
    }

    /// Whether it is stopped until a person resumes it (MS-125). One that asks something, or that a service
    /// or a clock starts, is not.
    pub fn is_resumable(&self) -> bool {
        let resumes = match self.next_action() {
            NextAction::Resume | NextAction::SendMessage | NextAction::Review => true,
            NextAction::Answer { .. }
            | NextAction::RaiseBudget { .. }
            | NextAction::WaitForTasks { .. }
            | NextAction::WaitForService
            | NextAction::WaitForCheck { .. }
            | NextAction::WaitForModel { .. }
            | NextAction::Retry { .. }
            | NextAction::Follow { .. }
            | NextAction::Nothing => false,
        };
        resumes && self.queue_place.is_none()
    }

    /// Whether something else will start it: a service, its turn in a session, other tasks, a clock.
    pub fn waits_for_start(&self) -> bool {
        let waits = matches!(
            self.next_action(),
            NextAction::WaitForService
                | NextAction::WaitForTasks { .. }
                | NextAction::WaitForCheck { .. }
                | NextAction::WaitForModel { .. }
        );
        waits || self.queue_place.is_some()
    }

    /// Whether it waits until a person answers what it, or an agent below it, asks.
    pub fn waits_for_answer(&self) -> bool {
        self.driven_by.is_none()
            && matches!(
                self.next_action(),
                NextAction::Answer { .. } | NextAction::RaiseBudget { .. }
            )
    }

    /// Whether it is a conversation that waits for the next message.
    pub fn waits_for_message(&self) -> bool {
        self.row.status == TaskStatus::Paused && self.row.reason == StatusReason::AwaitingMessage
    }

    /// Whether all that it asked is answered, and it has not been resumed since.
    pub fn is_answered(&self) -> bool {
        let asked = matches!(self.row.reason, StatusReason::Question | StatusReason::Budget);
        let waits = matches!(self.row.status, TaskStatus::Blocked | TaskStatus::Reviewing);
        waits && asked && self.questions.is_empty()
    }

    /// What the task itself asks.
    pub fn own_questions(&self) -> impl Iterator<Item = &QuestionRow> {
        self.questions.iter().filter(|one| one.task == self.row.id)
    }
}

/// A task as its own page shows it.
#[derive(Clone, Debug)]
pub struct TaskDetails {
    /// What lists show too.
    pub view: TaskView,
    /// The fold of its journal.
    pub state: TaskState,
    /// How full its context is (PL-034).
    pub gauge: Option<Gauge>,
    /// What it has cost, with its sub-agents, and whether part of that is unknown.
    pub cost: CostSum,
    /// What its last segment handed back.
    pub result: Option<TaskResult>,
    /// How many of its calls were refused: denied, or never run for wrong arguments.
    pub refused_calls: u32,
}

/// One compaction of a task: what was dropped from its context, when, and where it can be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Compaction {
    /// When it ended.
    pub at: Timestamp,
    /// What it did.
    pub end: CompactionEnd,
}

/// Tasks as lists show them, the newest first.
pub(crate) fn list(coordinator: &Coordinator, filter: &Filter) -> Result<Vec<TaskView>, Error> {
    let mut questions = OpenQuestions::open(coordinator)?;
    let mut views = Vec::new();
    let rows = coordinator.tasks().rows(filter)?;
    let done = done_blockers(coordinator, &rows)?;
    for row in rows {
        // The row gets the rest of these figures when the segment ends.
        let runs = row.status == TaskStatus::Running;
        let state = runs.then(|| coordinator.journals().sound_state(row.id)).transpose()?.flatten();
        views.push(view(coordinator, row, state.as_ref(), &done, &mut questions)?);
    }
    Ok(views)
}

/// The same without folding a journal.
pub(crate) fn list_without_journals(
    coordinator: &Coordinator,
    filter: &Filter,
) -> Result<Vec<TaskView>, Error> {
    let mut questions = OpenQuestions::open(coordinator)?;
    let rows = coordinator.tasks().rows(filter)?;
    let done = done_blockers(coordinator, &rows)?;
    rows.into_iter().map(|row| view(coordinator, row, None, &done, &mut questions)).collect()
}

/// One task as lists show it, from its row alone: cheap, and asked often.
pub(crate) fn one(coordinator: &Coordinator, task: TaskId) -> Result<TaskView, Error> {
    let unknown = || windlass_store::Error::UnknownTask(task.to_string());
    let row = coordinator.tasks().get(task)?.ok_or_else(unknown)?;
    let mut questions = OpenQuestions::open(coordinator)?;
    let done = done_blockers(coordinator, std::slice::from_ref(&row))?;
    view(coordinator, row, None, &done, &mut questions)
}

/// A task as its own page shows it.
pub(crate) fn details(coordinator: &Coordinator, task: TaskId) -> Result<TaskDetails, Error> {
    let history = History::read(&coordinator.store, task)?;
    let (records, state) = (history.records(), history.state());
    let unknown = || windlass_store::Error::UnknownTask(task.to_string());
    let row = coordinator.tasks().get(task)?.ok_or_else(unknown)?;
    let mut questions = OpenQuestions::open(coordinator)?;
    let done = done_blockers(coordinator, std::slice::from_ref(&row))?;
    let mut view = view(coordinator, row, Some(state), &done, &mut questions)?;
    let cost = coordinator.costs().of(task)?.total;
    view.cost_usd = cost.cost_usd.or_else(|| state.spending.known_cost());
    let gauge = gauge(records, state);
    let result = records.iter().rev().find_map(|record| match &record.event {
        Event::AgentEnd(result) => Some((**result).clone()),
        _ => None,
    });
    let refused_calls = refused_calls(records);
    Ok(TaskDetails { view, gauge, cost, result, refused_calls, state: history.into_state() })
}

/// Of the tasks that these wait for, those that are done.
fn done_blockers(coordinator: &Coordinator, rows: &[TaskRow]) -> Result<BTreeSet<TaskId>, Error> {
    let blockers = rows.iter().flat_map(|row| &row.dependency_blockers).copied().collect();
    Ok(coordinator.store.tasks().finished_of(&blockers)?)
}

/// The open questions of all tasks.
struct OpenQuestions {
    open: Vec<QuestionRow>,
    parents: Parents,
}

impl OpenQuestions {
    fn open(coordinator: &Coordinator) -> Result<Self, Error> {
        let open = coordinator.store.questions().open()?;
        Ok(Self { open, parents: Parents::default() })
    }

    fn of_tree(
        &mut self,
        coordinator: &Coordinator,
        task: TaskId,
    ) -> Result<Vec<QuestionRow>, Error> {
        let mut found = Vec::new();
        for row in &self.open {
            if self.parents.is_at_or_below(coordinator, row.task, task)? {
                found.push(row.clone());
            }
        }
        Ok(found)
    }
}

fn view(
    coordinator: &Coordinator,
    mut row: TaskRow,
    state: Option<&TaskState>,
    done: &BTreeSet<TaskId>,
    questions: &mut OpenQuestions,
) -> Result<TaskView, Error> {
    let (id, store) = (row.id, &coordinator.store);
    let driven_by = coordinator.tasks().driving_process(id)?;
    let mut background = BTreeMap::new();
    if let Some(state) = state.filter(|_| row.status == TaskStatus::Running) {
        let duration_ms = match driven_by {
            Some(_) => state.work().active_ms_at(coordinator.now()),
            None => state.work().active_ms(),
        };
        row.usage = UsageMetrics { duration_ms, ..state.spending.usage };
        // They end with the process that drives the task (MS-124).
        background = driven_by.map(|_| state.sandbox.background.clone()).unwrap_or_default();
    }
    add_raises(coordinator, &mut row)?;
    let mut is_priced = row.cost_spent > 0.0 || store.tasks().is_priced(id)?;
    is_priced |= add_sub_agents(coordinator, &mut row)?;
    // A server may report no usage at all.
    let is_unspent = row.usage.total_tokens == 0 && !store.tasks().has_replies(id)?;
    let is_priced = is_priced || is_unspent;
    Ok(TaskView {
        driven_by,
        queue_place: coordinator.queue().place(id)?,
        // A blocker that does not exist is not done either.
        open_blockers: row.dependency_blockers.iter().filter(|one| !done.contains(one)).count(),
        scheduler: store.scheduler().get(id)?,
        worker: store.owners().runtime().get(id)?,
        questions: questions.of_tree(coordinator, id)?,
        background,
        cost_usd: is_priced.then_some(row.cost_spent),
        row,
    })
}

/// What people have added to its budget counts as its budget. A journal is folded only where somebody was asked.
fn add_raises(coordinator: &Coordinator, row: &mut TaskRow) -> Result<(), Error> {
    let Some(budget) = &mut row.cost_budget else { return Ok(()) };
    let asked = coordinator.store.questions().of(row.id)?;
    let is_raise = |asked: &QuestionRow| {
        asked.question.kind == QuestionKind::Budget && asked.state.answer().is_some()
    };
    if asked.iter().any(is_raise) {
        let state = coordinator.journals().sound_state(row.id)?;
        let raised = state.and_then(|state| state.spending.raised.get(&BudgetKind::Cost).copied());
        *budget += raised.unwrap_or_default();
    }
    Ok(())
}

/// Results of calls that never started.
fn refused_calls(records: &[Record]) -> u32 {
    let mut started = BTreeSet::new();
    let mut refused = 0;
    for record in records {
        match &record.event {
            Event::ToolCall(call) => {
                started.insert(call.call);
            }
            Event::ToolResult(result) if !started.contains(&result.call) => refused += 1,
            _ => {}
        }
    }
    refused
}

/// Adds what the sub-agents have cost, and the tokens of those that have not ended: what an ended one used is
/// part of what its parent used. Returns whether a price of theirs is known.
fn add_sub_agents(coordinator: &Coordinator, parent: &mut TaskRow) -> Result<bool, Error> {
    let below = Filter { parent: Some(parent.id), ..Filter::default() };
    let mut is_priced = false;
    for mut row in coordinator.store.tasks().list(&below)? {
        let is_priced_below = add_sub_agents(coordinator, &mut row)?;
        is_priced |= row.cost_spent > 0.0 || is_priced_below;
        parent.cost_spent += row.cost_spent;
        if row.status.is_terminal() || parent.status.is_terminal() {
            continue;
        }
        let (used, more) = (&mut parent.usage, &row.usage);
        used.input_tokens += more.input_tokens;
        used.output_tokens += more.output_tokens;
        used.total_tokens += more.total_tokens;
    }
    Ok(is_priced)
}

fn gauge(records: &[Record], state: &TaskState) -> Option<Gauge> {
    let limits = records.iter().rev().find_map(|record| match &record.event {
        Event::AgentStart(start) => WindowLimits::of_segment(start),
        _ => None,
    })?;
    Some(limits.gauge(state.spending.last_tokens))
}
