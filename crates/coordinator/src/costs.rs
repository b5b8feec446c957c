//! What tasks have cost, and what the journal adds up to.

use windlass_core::event::Record;
use windlass_core::id::TaskId;
use windlass_core::trigger::TriggerStream;

use crate::metrics::Metrics;
use crate::views::CostReport;
use crate::{Coordinator, Error};

/// Events read at once.
const PAGE: usize = 1000;

/// Tokens and money.
#[derive(Clone, Copy)]
pub struct Costs<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Costs<'_> {
    /// What one task has cost, reply by reply.
    pub fn of(self, task: TaskId) -> Result<CostReport, Error> {
        let mut report = CostReport::default();
        self.coordinator.tasks().journal(task)?.iter().for_each(|record| report.add(record));
        Ok(report)
    }

    /// What all tasks have cost.
    pub fn total(self) -> Result<CostReport, Error> {
        let mut report = CostReport::default();
        self.each_page(|records| {
            records.iter().for_each(|record| report.add(record));
            report.turns.clear();
        })?;
        Ok(report)
    }

    /// The counters that monitoring reads.
    pub fn metrics(self) -> Result<Metrics, Error> {
        let mut metrics = Metrics::default();
        let stream = TriggerStream::UserMessageReceived.as_str();
        for text in self.coordinator.store.triggers().decisions(stream)? {
            let decision: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            metrics.routed(decision["decision"].as_str().unwrap_or("unknown"));
        }
        self.each_page(|records| records.iter().for_each(|record| metrics.apply(record)))?;
        Ok(metrics)
    }

    /// Every event there is, a page at a time.
    fn each_page(self, mut read: impl FnMut(&[Record])) -> Result<(), Error> {
        let mut pos = 0;
        loop {
            let records = self.coordinator.store.journal().since(pos, PAGE)?;
            let Some(last) = records.last() else { return Ok(()) };
            pos = last.pos;
            read(&records);
        }
    }
}
