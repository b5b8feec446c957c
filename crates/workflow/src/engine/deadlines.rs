//! How long steps may still work.
//!
//! Invariants:
//! - The time of an agent or a command is its task's own. That of a step which has none is read from the journal: it
//!   begins with the first step inside, and once more when the run is resumed after it has stopped.
//! - Time in which the run stands still or a question of it waits is not counted.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;

use super::{Engine, Error, Trouble};
use crate::definition::{Step, Work};
use crate::next::Leaf;
use crate::state::{is_below, is_stuck, name_of};

/// What changes whether the time of a step is counted.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    /// The step starts to work.
    Begin,
    /// It has ended, or the run has stopped: the next time begins at nothing.
    Reset,
    /// The run stands still.
    Halt,
    /// A process works on the run again; what happened since the last mark is not known.
    Continue,
    /// A question waits.
    Ask,
    Settle,
    /// Something else was journaled.
    Tick,
}

/// The time limits of a run's steps.
#[derive(Clone, Copy)]
pub(super) struct Deadlines<'e> {
    pub engine: &'e Engine<'e>,
}

impl Deadlines<'_> {
    /// The loops and parallel steps whose time is up. One that is joining ends by itself.
    pub(super) async fn overdue(
        self,
        is_at_work: impl Fn(&str) -> bool,
    ) -> Result<BTreeSet<String>, Error> {
        let mut overdue = BTreeSet::new();
        if !self.engine.workflow.all_steps().iter().any(|step| is_timed_by_us(step)) {
            return Ok(overdue);
        }
        let records = self.engine.tree.store().journal().of(self.engine.id())?;
        let paths: BTreeSet<&str> = records.iter().flat_map(|record| begun(record)).collect();
        for path in paths.into_iter().filter(|path| !is_at_work(path)) {
            if self.left_of(path, &records)? == Some(Duration::ZERO) {
                overdue.insert(path.to_owned());
            }
        }
        Ok(overdue)
    }

    /// How long a step may work by what the steps around it leave, and by its own limit where nobody else counts that.
    fn time_left(self, path: &str) -> Result<Option<Duration>, Error> {
        let all = self.engine.workflow.all_steps();
        let is_limited =
            |path: &&str| step_of(&all, path).is_some_and(|step| step.timeout.is_some());
        if !around(path).iter().any(is_limited) {
            return Ok(None);
        }
        let records = self.engine.tree.store().journal().of(self.engine.id())?;
        let mut least: Option<Duration> = None;
        for path in around(path) {
            let left = self.left_of(path, &records)?;
            least = [least, left].into_iter().flatten().min();
        }
        Ok(least)
    }

    /// What is left of the time of one step; `None` where it has no limit of which we keep account.
    fn left_of(self, path: &str, records: &[Record]) -> Result<Option<Duration>, Error> {
        let all = self.engine.workflow.all_steps();
        let Some(step) = step_of(&all, path).filter(|step| is_timed_by_us(step)) else {
            return Ok(None);
        };
        let mut marks: Vec<(Timestamp, Mark)> =
            records.iter().map(|record| (record.at, mark_of(record, path))).collect();
        for task in tasks_below(records, path) {
            let events = self.engine.tree.store().journal().of(task)?;
            marks.extend(events.iter().filter_map(waits).collect::<Vec<_>>());
        }
        marks.sort_by_key(|(at, _)| *at);
        let limit = step.timeout.unwrap_or_default();
        Ok(Some(limit.saturating_sub(worked(&marks, self.engine.now()))))
    }

    /// The step with no more time than it has left.
    pub(super) fn limited(self, mut leaf: Leaf) -> Result<Leaf, Error> {
        let left = self.time_left(&leaf.path)?;
        // A limit of nothing would be none.
        let left = left.map(|left| left.max(Duration::from_secs(1)));
        leaf.step.timeout = [leaf.step.timeout, left].into_iter().flatten().min();
        Ok(leaf)
    }

    /// What is left for a part of a step that has several; none is begun where nothing is left.
    pub(super) fn time_for_more(self, leaf: &Leaf) -> Result<Option<Duration>, Trouble> {
        match self.time_left(&leaf.path)? {
            Some(Duration::ZERO) => Err(Trouble::TimedOut("it took too long".to_owned())),
            left => Ok(left),
        }
    }
}

/// Whether the limit of a step is not that of a task.
fn is_timed_by_us(step: &Step) -> bool {
    step.timeout.is_some()
        && match step.work {
            Work::Loop(_) | Work::Parallel(_) | Work::Merge(_) => true,
            Work::Agent(_) | Work::Script { .. } | Work::PullRequest(_) | Work::Ask { .. } => false,
        }
}

fn step_of<'s>(all: &[&'s Step], path: &str) -> Option<&'s Step> {
    all.iter().copied().find(|step| step.name == name_of(path))
}

/// A step and those around it: `fix[2].test` and `fix`.
fn around(path: &str) -> Vec<&str> {
    let outer = path.match_indices('.').map(|(at, _)| {
        let part = &path[..at];
        part.rfind('[').filter(|_| part.ends_with(']')).map_or(part, |at| &part[..at])
    });
    outer.chain([path]).collect()
}

/// The steps that work when a record says that one begins.
fn begun(record: &Record) -> Vec<&str> {
    match &record.event {
        Event::WorkflowStepStarted(started) => around(&started.step),
        _ => Vec::new(),
    }
}

fn is_within(path: &str, outer: &str) -> bool {
    path == outer || is_below(path, outer)
}

fn mark_of(record: &Record, path: &str) -> Mark {
    match &record.event {
        Event::WorkflowStepStarted(started) if is_within(&started.step, path) => Mark::Begin,
        Event::WorkflowStepEnded(ended) if ended.step == path => Mark::Reset,
        Event::StatusChanged(moved) if is_stuck(moved) => Mark::Reset,
        Event::StatusChanged(moved) if moved.to == TaskStatus::Running => Mark::Continue,
        Event::StatusChanged(_) => Mark::Halt,
        Event::AgentStart(_) => Mark::Continue,
        Event::QuestionAsked(_) => Mark::Ask,
        Event::QuestionAnswered(_) | Event::QuestionClosed(_) => Mark::Settle,
        _ => Mark::Tick,
    }
}

/// The tasks of the steps inside another.
fn tasks_below(records: &[Record], path: &str) -> BTreeSet<TaskId> {
    let task = |record: &Record| match &record.event {
        Event::WorkflowStepStarted(started) if is_within(&started.step, path) => started.task,
        _ => None,
    };
    records.iter().filter_map(task).collect()
}

/// When a step's task starts or stops waiting for a person.
fn waits(record: &Record) -> Option<(Timestamp, Mark)> {
    let Event::StatusChanged(moved) = &record.event else { return None };
    let mark = match (moved.from == TaskStatus::Blocked, moved.to == TaskStatus::Blocked) {
        (false, true) => Mark::Ask,
        (true, false) => Mark::Settle,
        (true, true) | (false, false) => return None,
    };
    Some((record.at, mark))
}

/// How long a step has worked.
fn worked(marks: &[(Timestamp, Mark)], now: Timestamp) -> Duration {
    let (mut worked, mut has_begun, mut is_halted, mut open) =
        (Duration::ZERO, false, false, 0_u32);
    let mut last = None;
    for (at, mark) in marks.iter().copied().chain([(now, Mark::Tick)]) {
        if let Some(last) = last
            && has_begun
            && !is_halted
            && open == 0
            && mark != Mark::Continue
        {
            worked += Duration::try_from(at.duration_since(last)).unwrap_or_default();
        }
        last = Some(at);
        match mark {
            Mark::Begin => has_begun = true,
            Mark::Reset => (worked, has_begun) = (Duration::ZERO, false),
            Mark::Halt => is_halted = true,
            Mark::Continue => is_halted = false,
            Mark::Ask => open += 1,
            Mark::Settle => open = open.saturating_sub(1),
            Mark::Tick => {}
        }
    }
    worked
}
