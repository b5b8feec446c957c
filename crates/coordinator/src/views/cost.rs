//! Tokens and money, summed from events (MS-199). A price that is not known is never counted as zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::message::Usage;
use windlass_core::state::TaskState;

/// What stands in place of a model's name for the summaries that compactions make.
const SUMMARIES: &str = "(summaries)";

/// The same for requests that a provider may have billed and whose replies never came.
const LOST: &str = "(requests without a reply)";

/// How the names of scripts begin, which stand in for a model: their tokens and costs are made up.
const SCRIPTS: &str = "script:";

/// Less than this is the error of adding up.
const LEAST_USD: f64 = 1e-9;

/// What some replies took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostSum {
    pub replies: u64,
    pub input_tokens: u64,
    /// Of these, read from the provider's cache.
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// Of the replies whose price is known; `None` where that is none of them.
    pub cost_usd: Option<f64>,
    /// Replies whose price is not known.
    pub unpriced_replies: u64,
}

impl CostSum {
    /// Adds another sum.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.replies += other.replies;
        self.input_tokens += other.input_tokens;
        self.cached_tokens += other.cached_tokens;
        self.output_tokens += other.output_tokens;
        self.unpriced_replies += other.unpriced_replies;
        if let Some(cost) = other.cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
    }

    pub(crate) fn add(&mut self, usage: &Usage) {
        self.replies += 1;
        self.input_tokens += usage.input_tokens;
        self.cached_tokens += usage.cached_tokens;
        self.output_tokens += usage.output_tokens;
        match usage.cost_usd {
            Some(cost) => *self.cost_usd.get_or_insert(0.0) += cost,
            None => self.unpriced_replies += 1,
        }
    }
}

/// One reply and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct CostTurn {
    pub task: TaskId,
    /// The number of its event.
    pub seq: u64,
    pub model: String,
    /// What it took.
    pub sum: CostSum,
}

/// Sums by model and by task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostReport {
    pub total: CostSum,
    pub models: BTreeMap<String, CostSum>,
    /// Of all tasks: only the newest.
    pub tasks: BTreeMap<TaskId, CostSum>,
    /// Whether there are tasks that `tasks` does not have.
    pub has_older_tasks: bool,
    /// Reply by reply; only for a single task.
    pub turns: Vec<CostTurn>,
    /// What scripts in place of a model have made up, as those of `demo`; of all tasks it is in no other sum.
    pub simulated: CostSum,
}

impl CostReport {
    /// What all models have cost together. What scripts have made up is nobody's money.
    pub(crate) fn of_models(models: BTreeMap<String, CostSum>) -> Self {
        let (scripts, models): (BTreeMap<_, _>, BTreeMap<_, _>) =
            models.into_iter().partition(|(model, _)| model.starts_with(SCRIPTS));
        let mut report = Self { models, ..Self::default() };
        scripts.values().for_each(|sum| report.simulated.merge(sum));
        report.models.values().for_each(|sum| report.total.merge(sum));
        report
    }

    /// Whether every reply in it came from a script.
    pub(crate) fn is_simulated(&self) -> bool {
        !self.models.is_empty() && self.models.keys().all(|model| model.starts_with(SCRIPTS))
    }

    /// Counts what a task has reserved for requests without a reply, as its state does.
    pub(crate) fn add_lost(&mut self, task: TaskId, state: &TaskState) {
        let known = self.tasks.get(&task).and_then(|sum| sum.cost_usd).unwrap_or(0.0);
        let lost = state.spending.own_usd - known;
        if lost > LEAST_USD {
            let sums = [
                &mut self.total,
                self.models.entry(LOST.to_owned()).or_default(),
                self.tasks.entry(task).or_default(),
            ];
            sums.into_iter().for_each(|sum| *sum.cost_usd.get_or_insert(0.0) += lost);
        }
    }

    /// Counts an event.
    pub(crate) fn add(&mut self, record: &Record) {
        let Some((model, usage)) = usage_of(&record.event) else { return };
        self.total.add(usage);
        self.models.entry(model.to_owned()).or_default().add(usage);
        self.tasks.entry(record.task).or_default().add(usage);
        let mut sum = CostSum::default();
        sum.add(usage);
        self.turns.push(CostTurn {
            task: record.task,
            seq: record.seq,
            model: model.to_owned(),
            sum,
        });
    }
}

/// The kinds of events that [`usage_of`] knows something of.
pub(crate) const KINDS_WITH_USAGE: [&str; 2] = ["llm_response", "compaction_progress"];

/// What an event used, and of which model.
pub(crate) fn usage_of(event: &Event) -> Option<(&str, &Usage)> {
    match event {
        Event::LlmResponse(response) => Some((response.model.as_str(), &response.usage)),
        // Summaries are paid for too.
        Event::CompactionProgress(part) => Some((SUMMARIES, &part.usage)),
        _ => None,
    }
}
