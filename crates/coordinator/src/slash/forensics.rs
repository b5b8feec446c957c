//! Why a task is in its current state: what `/forensics` and `windlass forensics` show.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use windlass_core::event::Record;
use windlass_core::id::TaskId;
use windlass_core::text::one_line;

use super::Block;
use crate::{Coordinator, Error};

/// Events that are shown, the newest.
const LOG_EVENTS: usize = 30;
/// Characters of an event or a goal in a row.
const WIDTH: usize = 80;

/// The newest events of a task, a row each.
pub(super) fn log(coordinator: &Coordinator, task: TaskId) -> Result<Vec<Block>, Error> {
    let records = coordinator.journals().of(task)?;
    let from = records.len().saturating_sub(LOG_EVENTS);
    let row = |record: &Record| {
        let words = one_line(&record.event.words(), WIDTH);
        vec![clock(record.at), record.event.kind().to_owned(), words]
    };
    let rows = records[from..].iter().map(row).collect();
    Ok(vec![Block::heading(task.to_string()), Block::table(&["TIME", "EVENT", "WHAT"], &[], rows)])
}

/// Everything about a task that explains its state, then its newest events.
pub fn forensics(coordinator: &Coordinator, task: TaskId) -> Result<Vec<Block>, Error> {
    let details = coordinator.tasks().details(task)?;
    let (state, row) = (&details.state, &details.view.row);
    let mut fields = vec![
        ("task", task.to_string()),
        ("goal", one_line(&row.goal, WIDTH)),
        ("status", format!("{} ({})", row.status, row.reason)),
        ("axes", state.axes.to_string()),
        ("model", state.attempts.model.clone().unwrap_or_else(|| "none yet".to_owned())),
        ("turns", row.turns.to_string()),
        ("calls", state.spending.usage.tool_calls.to_string()),
        ("refused calls", details.refused_calls.to_string()),
        ("compactions", state.spending.usage.compactions.to_string()),
        ("retries", state.attempts.retries.to_string()),
        (
            "driven by",
            details
                .view
                .driven_by
                .map_or_else(|| "nobody".to_owned(), |pid| format!("process {pid}")),
        ),
    ];
    fields.extend(row.detail.clone().map(|detail| ("why", detail)));
    if let Some(error) = &state.error {
        fields.push(("error", format!("{}: {}", error.error_type, error.message)));
        fields.extend(error.diagnostic.clone().map(|text| ("diagnostic", text)));
    }
    let asked = details.view.questions.iter().map(|row| ("asks", row.question.question.clone()));
    fields.extend(asked);
    let mut blocks = vec![Block::fields(fields)];
    blocks.extend(log(coordinator, task)?);
    Ok(blocks)
}

fn clock(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}
