//! What tasks have cost, and what the journal adds up to.
//!
//! The sums are kept up to an event, so that each event is added up once, and still counts when it was removed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use windlass_core::event::{Event, KINDS_WITH_USAGE, Record};
use windlass_core::id::TaskId;
use windlass_store::{Filter, Sum};

use crate::metrics::Metrics;
use crate::trigger::TriggerStream;
use crate::views::cost::used_by;
use crate::views::{CostReport, CostSum};
use crate::{Coordinator, Error};

/// Events read at once.
const PAGE: usize = 1000;

/// The names of the sums in the store: of everything that is counted, and of costs alone, which need few events.
const ALL_SUMS: &str = "usage";
const COST_SUMS: &str = "cost";

/// Tokens and money.
#[derive(Clone, Copy)]
pub struct Costs<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

/// The sums that this process has added up, so that it adds each event up once.
pub(crate) type KnownSums = Arc<Mutex<Option<(Sums, i64)>>>;

/// What all events up to one add up to. What it holds does not grow with the number of tasks.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Sums {
    #[serde(flatten)]
    costs: CostSums,
    metrics: Metrics,
}

impl Sums {
    fn add(&mut self, record: &Record) {
        self.metrics.apply(record);
        self.costs.add(&record.event);
    }
}

/// The part of them that is money.
#[derive(Clone, Default, Serialize, Deserialize)]
struct CostSums {
    models: BTreeMap<String, CostSum>,
}

impl CostSums {
    fn add(&mut self, event: &Event) {
        if let Some(used) = used_by(event) {
            self.models.entry(used.model.to_owned()).or_default().add(&used);
        }
    }
}

impl Costs<'_> {
    /// What one task has cost with every agent below it; its own replies one by one.
    pub fn of(self, task: TaskId) -> Result<CostReport, Error> {
        let mut report = CostReport::default();
        for id in self.coordinator.tasks().at_or_below(task)? {
            let journals = self.coordinator.journals();
            match journals.sound_history(id)? {
                Some(history) => {
                    history.records().iter().for_each(|record| report.add(record));
                    report.add_lost(id, history.state());
                }
                // What is known of a damaged one.
                None => journals.readable(id)?.iter().for_each(|record| report.add(record)),
            }
        }
        report.turns.retain(|turn| turn.task == task);
        Ok(report)
    }

    /// What all tasks have cost, with the newest ones by themselves, at most `limit`.
    pub fn total(self, limit: usize) -> Result<CostReport, Error> {
        let (sums, _) = self.cost_sums()?;
        let mut report = CostReport::of_models(sums.models);
        // A task counts with the agents below it.
        let limit_and_one = Some(limit.saturating_add(1));
        let filter = Filter { roots: true, limit: limit_and_one, ..Filter::default() };
        let rows = self.coordinator.tasks().rows(&filter)?;
        report.has_older_tasks = rows.len() > limit;
        for row in rows.iter().take(limit) {
            let of_task = self.of(row.id)?;
            if !of_task.models.is_empty() && !of_task.is_simulated() {
                report.tasks.insert(row.id, of_task.total);
            }
        }
        Ok(report)
    }

    /// The counters that monitoring reads. A process that is asked again adds up only what is new (MS-198).
    pub fn metrics(self) -> Result<Metrics, Error> {
        let mut metrics = {
            let mut known = self.coordinator.sums.lock().unwrap_or_else(PoisonError::into_inner);
            let (sums, pos) = match known.take() {
                Some((sums, pos)) => self.add_new_events(sums, pos)?,
                None => self.sums()?,
            };
            let metrics = sums.metrics.clone();
            *known = Some((sums, pos));
            metrics
        };
        let stream = TriggerStream::UserMessageReceived.as_str();
        for (decision, count) in self.coordinator.store.triggers().counts(stream)? {
            metrics.count_routed(&decision, count);
        }
        Ok(metrics)
    }

    /// Keeps the sums up to now, so that they need not be added up again, and outlast their events.
    pub async fn keep_sums(self) -> Result<(), Error> {
        let (sums, pos) = self.sums()?;
        self.keep(ALL_SUMS, &sums, pos).await
    }

    /// Keeps those of costs alone.
    pub async fn keep_costs(self) -> Result<(), Error> {
        let (sums, pos) = self.cost_sums()?;
        self.keep(COST_SUMS, &sums, pos).await
    }

    async fn keep(self, name: &'static str, sums: &impl Serialize, pos: i64) -> Result<(), Error> {
        let body = serde_json::to_string(sums).unwrap_or_default();
        Ok(self.coordinator.store.journal().sums().keep(name, Sum { pos, body }).await?)
    }

    /// The kept sums of a name, and the position of the last event in them.
    fn read_sums<T: Default + DeserializeOwned>(self, name: &str) -> Result<(T, i64), Error> {
        let Some(Sum { pos, body }) = self.coordinator.store.journal().sums().get(name)? else {
            return Ok((T::default(), 0));
        };
        let malformed = |_| windlass_store::Error::Malformed { table: "sums", value: body.clone() };
        Ok((serde_json::from_str(&body).map_err(malformed)?, pos))
    }

    /// The kept sums and what came after them; and the position of the last event in them.
    fn sums(self) -> Result<(Sums, i64), Error> {
        let (sums, pos) = self.read_sums(ALL_SUMS)?;
        self.add_new_events(sums, pos)
    }

    /// The same of costs alone. Only events that cost something are read.
    fn cost_sums(self) -> Result<(CostSums, i64), Error> {
        let (of_all, of_costs) = (self.read_sums(ALL_SUMS)?, self.read_sums(COST_SUMS)?);
        let (mut sums, mut pos): (CostSums, i64) =
            if of_all.1 > of_costs.1 { of_all } else { of_costs };
        // What is appended from here on counts the next time.
        let end = self.coordinator.store.journal().end()?;
        loop {
            match self.coordinator.store.journal().since_of_kinds(&KINDS_WITH_USAGE, pos, PAGE) {
                Ok(events) => {
                    let Some((last, _)) = events.last() else { return Ok((sums, pos.max(end))) };
                    pos = *last;
                    events.iter().for_each(|(_, event)| sums.add(event));
                }
                // `doctor` names it; the others still count.
                Err(windlass_store::Error::DamagedEvent { pos: damaged, .. }) if damaged > pos => {
                    pos = damaged;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The same from sums that are known already.
    fn add_new_events(self, mut sums: Sums, mut pos: i64) -> Result<(Sums, i64), Error> {
        loop {
            match self.coordinator.store.journal().since(pos, PAGE) {
                Ok(records) => {
                    let Some(last) = records.last() else { return Ok((sums, pos)) };
                    pos = last.pos;
                    records.iter().for_each(|record| sums.add(record));
                }
                // `doctor` names it; the others still count.
                Err(windlass_store::Error::DamagedEvent { pos: damaged, .. }) if damaged > pos => {
                    pos = damaged;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
