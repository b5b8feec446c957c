//! Tokens and money, summed from events (MS-199). A price that is not known is never counted as zero.

use std::collections::BTreeMap;

use serde::Serialize;
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::message::Usage;

/// What stands in place of a model's name for the summaries that compactions make.
const SUMMARIES: &str = "(summaries)";

/// What some replies took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
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
    /// The sum of a journal.
    pub(super) fn of(records: &[Record]) -> Self {
        let mut report = CostReport::default();
        records.iter().for_each(|record| report.add(record));
        report.total
    }

    fn add(&mut self, usage: &Usage) {
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
    pub tasks: BTreeMap<TaskId, CostSum>,
    /// Reply by reply; only for a single task.
    pub turns: Vec<CostTurn>,
}

impl CostReport {
    /// Counts an event.
    pub(crate) fn add(&mut self, record: &Record) {
        let (model, usage) = match &record.event {
            Event::LlmResponse(response) => (response.model.as_str(), &response.usage),
            // Summaries are paid for too.
            Event::CompactionProgress(part) => (SUMMARIES, &part.usage),
            _ => return,
        };
        self.total.add(usage);
        self.models.entry(model.to_owned()).or_default().add(usage);
        self.tasks.entry(record.task).or_default().add(usage);
        let mut sum = CostSum::default();
        sum.add(usage);
        self.turns.push(CostTurn { seq: record.seq, model: model.to_owned(), sum });
    }
}
