//! `cost`: tokens and money, summed from the journal (MS-199). A price nobody knows is said to be
//! unknown, never counted as zero.

use std::collections::BTreeMap;

use serde::Serialize;
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::message::Usage;
use windlass_core::trigger::TriggerStream;
use windlass_term::{Table, numbers, strip_controls};

use super::Setting;
use crate::args::Cost;
use crate::failure::Failure;
use crate::show::{note, out};

/// What stands in place of a model's name for the summaries that compactions make.
const SUMMARIES: &str = "(summaries)";

/// Events read at once.
const PAGE: usize = 1000;

/// What some replies took together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Sum {
    replies: u64,
    input_tokens: u64,
    cached_tokens: u64,
    output_tokens: u64,
    /// Of the replies whose price is known; `None` where that is none of them.
    cost_usd: Option<f64>,
    unpriced_replies: u64,
}

impl Sum {
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

    fn cells(&self, name: String) -> Vec<String> {
        let numbers = [self.replies, self.input_tokens, self.cached_tokens, self.output_tokens];
        let numbers = numbers.iter().map(u64::to_string);
        [name].into_iter().chain(numbers).chain([self.money()]).collect()
    }

    fn money(&self) -> String {
        match (self.cost_usd, self.unpriced_replies) {
            (None, 0) => numbers::dollars(0.0),
            (None, _) => "unknown".to_owned(),
            (Some(cost), 0) => numbers::dollars(cost),
            (Some(cost), unknown) => format!("{} + {unknown} unknown", numbers::dollars(cost)),
        }
    }
}

#[derive(Default)]
struct Sums {
    total: Sum,
    models: BTreeMap<String, Sum>,
    tasks: BTreeMap<TaskId, Sum>,
    turns: Vec<(u64, Sum, String)>,
}

impl Sums {
    fn take(&mut self, record: &Record) {
        let (model, usage) = match &record.event {
            Event::LlmResponse(response) => (strip_controls(&response.model), &response.usage),
            // Summaries are paid for too.
            Event::CompactionProgress(part) => (SUMMARIES.to_owned(), &part.usage),
            _ => return,
        };
        self.total.add(usage);
        self.models.entry(model.clone()).or_default().add(usage);
        self.tasks.entry(record.task).or_default().add(usage);
        let mut turn = Sum::default();
        turn.add(usage);
        self.turns.push((record.seq, turn, model));
    }
}

/// What a task has cost, sub-agents included, and how much of that is not known.
pub(super) fn words(records: &[Record], spent: Option<f64>) -> String {
    let mut sums = Sums::default();
    records.iter().for_each(|record| sums.take(record));
    Sum { cost_usd: spent, ..sums.total }.money()
}

pub(super) fn cost(setting: &Setting, args: &Cost) -> Result<u8, Failure> {
    let store = setting.coordinator.store();
    let mut sums = Sums::default();
    match &args.task {
        Some(task) => {
            let task = store.ids().task(task)?;
            store.journal().of(task)?.iter().for_each(|record| sums.take(record));
        }
        None => {
            let mut pos = 0;
            loop {
                let records = store.journal().since(pos, PAGE)?;
                let Some(last) = records.last() else { break };
                pos = last.pos;
                records.iter().for_each(|record| sums.take(record));
                sums.turns.clear();
            }
        }
    }
    if args.json {
        out(&json(&sums, args.turns));
    } else {
        page(setting, &sums, args);
    }
    Ok(0)
}

fn json(sums: &Sums, turns: bool) -> String {
    let turns = turns.then(|| {
        let turn = |(seq, sum, model): &(u64, Sum, String)| {
            serde_json::json!({ "seq": seq, "model": model, "usage": sum })
        };
        sums.turns.iter().map(turn).collect::<Vec<_>>()
    });
    let tasks: BTreeMap<String, &Sum> =
        sums.tasks.iter().map(|(task, sum)| (task.to_string(), sum)).collect();
    let mut whole =
        serde_json::json!({ "total": sums.total, "models": sums.models, "tasks": tasks });
    if let Some(turns) = turns {
        whole["turns"] = turns.into();
    }
    whole.to_string()
}

fn page(setting: &Setting, sums: &Sums, args: &Cost) {
    let headings = |first| [first, "REPLIES", "INPUT", "CACHED", "OUTPUT", "COST"];
    let right = &[1, 2, 3, 4, 5];
    if args.turns {
        let mut table =
            Table::new(&["EVENT", "MODEL", "INPUT", "CACHED", "OUTPUT", "COST"], &[0, 2, 3, 4, 5]);
        for (seq, sum, model) in &sums.turns {
            let mut cells = sum.cells(model.clone());
            cells.remove(1);
            cells.insert(0, seq.to_string());
            table.row(cells);
        }
        print(setting, &table);
        out("");
    }
    if args.task.is_none() && !sums.tasks.is_empty() {
        let mut table = Table::new(&headings("TASK"), right);
        for (task, sum) in sums.tasks.iter().rev() {
            table.row(sum.cells(task.to_string()));
        }
        print(setting, &table);
        out("");
    }
    let mut table = Table::new(&headings("MODEL"), right);
    for (model, sum) in &sums.models {
        table.row(sum.cells(model.clone()));
    }
    table.row(sums.total.cells("total".to_owned()));
    print(setting, &table);
    if sums.total.unpriced_replies > 0 {
        note("\nhint: set prices in [models.\"NAME\"] (`input`, `output` per million tokens)");
    }
}

fn print(setting: &Setting, table: &Table) {
    for (number, line) in table.lines().iter().enumerate() {
        out(&if number == 0 { setting.style.results.dim(line) } else { line.clone() });
    }
}

/// `metrics`: what the journal adds up to.
pub(super) fn metrics(setting: &Setting) -> Result<u8, Failure> {
    let store = setting.coordinator.store();
    let mut metrics = windlass_coordinator::metrics::Metrics::default();
    for text in store.triggers().decisions(TriggerStream::UserMessageReceived.as_str())? {
        let decision: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        metrics.routed(decision["decision"].as_str().unwrap_or("unknown"));
    }
    let mut pos = 0;
    loop {
        let records = store.journal().since(pos, PAGE)?;
        let Some(last) = records.last() else { break };
        pos = last.pos;
        records.iter().for_each(|record| metrics.apply(record));
    }
    out(metrics.prometheus().trim_end());
    Ok(0)
}
