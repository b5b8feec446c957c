//! `cost`: tokens and money, summed from the journal (MS-199). A price that is not known is said to be
//! unknown, never counted as zero.

use std::collections::BTreeMap;

use clap::Args;
use windlass_coordinator::views::{CostReport, CostSum, CostTurn};
use windlass_core::shown::shown_line;
use windlass_term::{Table, numbers};

use super::{AppContext, Execute, Start};
use crate::args::values::at_least_one;
use crate::failure::Failure;
use crate::show::{self, note, out, out_json};

/// Show tokens and cost of a task, or of all
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Cost {
    /// The task: its id or any unique suffix of it; all tasks without one
    pub task: Option<String>,
    /// Also print one line for each model reply
    #[arg(long, requires = "task")]
    pub turns: bool,
    /// List at most this many tasks, newest first; others are summed up
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = at_least_one, allow_hyphen_values = true, conflicts_with = "task")]
    pub limit: usize,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass cost                       by model and task
  windlass cost 7K2M --turns          of one task, reply by reply

An unknown price is shown as unknown, never as zero. Set prices in
[models.\"NAME\"].";

impl Execute for Cost {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        cost(&start.app()?, &self)
    }
}

fn cells(sum: &CostSum, name: String) -> Vec<String> {
    // A server that does not report tokens has used some all the same.
    let is_reported = sum.replies == 0 || sum.input_tokens + sum.output_tokens > 0;
    let tokens = [sum.input_tokens, sum.cached_tokens, sum.output_tokens];
    let tokens = tokens.map(|count| if is_reported { count.to_string() } else { "-".to_owned() });
    [name, sum.replies.to_string()].into_iter().chain(tokens).chain([words(sum)]).collect()
}

/// What was spent, and how much of that is not known.
pub(super) fn words(sum: &CostSum) -> String {
    match (sum.cost_usd, sum.unpriced_replies) {
        (None, 0) => numbers::dollars(0.0),
        (None, _) => "unknown".to_owned(),
        (Some(cost), 0) => numbers::dollars(cost),
        (Some(cost), unknown) => format!("{} + {unknown} unknown", numbers::dollars(cost)),
    }
}

pub(super) fn cost(app: &AppContext, args: &Cost) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let report = match &args.task {
        Some(task) => coordinator.costs().of(coordinator.tasks().find(task)?)?,
        None => {
            // Where nothing can be written it is added up again the next time.
            let _ = app.runtime.block_on(coordinator.costs().keep_costs());
            coordinator.costs().total(args.limit)?
        }
    };
    if args.json {
        out_json(&json(&report, args.turns));
    } else {
        page(&report, args);
    }
    Ok(0)
}

fn json(report: &CostReport, turns: bool) -> String {
    let turns = turns.then(|| {
        let turn = |turn: &CostTurn| {
            serde_json::json!({ "seq": turn.seq, "model": turn.model, "usage": turn.sum })
        };
        report.turns.iter().map(turn).collect::<Vec<_>>()
    });
    let tasks: BTreeMap<String, &CostSum> =
        report.tasks.iter().map(|(task, sum)| (task.to_string(), sum)).collect();
    let mut whole =
        serde_json::json!({ "total": report.total, "models": report.models, "tasks": tasks });
    if report.simulated.replies > 0 {
        whole["simulated"] = serde_json::to_value(report.simulated).unwrap_or_default();
    }
    if let Some(turns) = turns {
        whole["turns"] = turns.into();
    }
    whole.to_string()
}

fn page(report: &CostReport, args: &Cost) {
    let headings = |first| [first, "REPLIES", "INPUT", "CACHED", "OUTPUT", "COST"];
    let right = &[1, 2, 3, 4, 5];
    if args.turns {
        let mut table =
            Table::new(&["EVENT", "MODEL", "INPUT", "CACHED", "OUTPUT", "COST"], &[0, 2, 3, 4, 5]);
        for turn in &report.turns {
            let mut cells = cells(&turn.sum, shown_line(&turn.model));
            cells.remove(1);
            cells.insert(0, turn.seq.to_string());
            table.row(cells);
        }
        show::print_table(&table);
        out("");
    }
    if args.task.is_none() && !report.tasks.is_empty() {
        let mut table = Table::new(&headings("TASK"), right);
        for (task, sum) in report.tasks.iter().rev() {
            table.row(cells(sum, task.to_string()));
        }
        show::print_table(&table);
        if report.has_older_tasks {
            out("Older tasks are in the sums below; `--limit N` lists more.");
        }
        out("");
    }
    let mut table = Table::new(&headings("MODEL"), right);
    for (model, sum) in &report.models {
        table.row(cells(sum, shown_line(model)));
    }
    table.row(cells(&report.total, "total".to_owned()));
    show::print_table(&table);
    if report.simulated.replies > 0 {
        out(&format!(
            "\nNot counted: {} replies of scripts, whose cost of {} is simulated.",
            report.simulated.replies,
            words(&report.simulated)
        ));
    }
    if report.total.unpriced_replies > 0 {
        note("\nhint: set prices in [models.\"NAME\"] (`input`, `output` per million tokens)");
    }
}
