//! Tokens and money, summed from events (MS-199). A price that is not known is never counted as zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::message::Usage;
use windlass_core::state::TaskState;

/// The name under which the summaries of compactions are listed.
const SUMMARIES: &str = "(summaries)";

/// The same for requests that a provider may have billed and whose replies never came.
const LOST: &str = "(requests without a reply)";

/// The same for programs that have worked on steps of workflows, where their names are not known.
const PROGRAMS: &str = "(other programs)";

/// The beginning of the names of scripts, which replace a model: their tokens and costs are made up.
const SCRIPTS: &str = "script:";

/// Whether what a model of this name took is made up.
pub fn is_simulated(model: &str) -> bool {
    model.starts_with(SCRIPTS)
}

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
    /// The cost of the replies whose price is known; `None` where no price is known.
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

    pub(crate) fn add(&mut self, used: &ModelUse<'_>) {
        let ModelUse { usage, is_reply, .. } = used;
        self.replies += u64::from(*is_reply);
        self.input_tokens += usage.input_tokens;
        self.cached_tokens += usage.cached_tokens;
        self.output_tokens += usage.output_tokens;
        match usage.cost_usd {
            Some(cost) => *self.cost_usd.get_or_insert(0.0) += cost,
            None => self.unpriced_replies += u64::from(*is_reply),
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
            models.into_iter().partition(|(model, _)| is_simulated(model));
        let mut report = Self { models, ..Self::default() };
        scripts.values().for_each(|sum| report.simulated.merge(sum));
        report.models.values().for_each(|sum| report.total.merge(sum));
        report
    }

    /// Whether every reply in it came from a script.
    pub(crate) fn is_simulated(&self) -> bool {
        !self.models.is_empty() && self.models.keys().all(|model| is_simulated(model))
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
        let Some(used) = used_by(&record.event) else { return };
        self.total.add(&used);
        self.models.entry(used.model.to_owned()).or_default().add(&used);
        self.tasks.entry(record.task).or_default().add(&used);
        let mut sum = CostSum::default();
        sum.add(&used);
        self.turns.push(CostTurn {
            task: record.task,
            seq: record.seq,
            model: used.model.to_owned(),
            sum,
        });
    }
}

/// What an event used.
pub(crate) struct ModelUse<'a> {
    /// The model, or what is listed in its place.
    pub(crate) model: &'a str,
    usage: &'a Usage,
    /// Whether it counts as one reply. Another program counts as one, at its end: only then its cost is known not to
    /// come.
    is_reply: bool,
}

/// What an event used, and of which model: the kinds of [`KINDS_WITH_USAGE`](windlass_core::event::KINDS_WITH_USAGE).
pub(crate) fn used_by(event: &Event) -> Option<ModelUse<'_>> {
    match event {
        Event::LlmResponse(response) => {
            Some(ModelUse { model: &response.model, usage: &response.usage, is_reply: true })
        }
        // Summaries are paid for too.
        Event::CompactionProgress(part) => {
            Some(ModelUse { model: SUMMARIES, usage: &part.usage, is_reply: true })
        }
        Event::RunnerReported(reported) => Some(ModelUse {
            model: reported.runner.as_deref().unwrap_or(PROGRAMS),
            usage: reported.usage.as_ref()?,
            is_reply: reported.activity.is_some(),
        }),
        _ => None,
    }
}
