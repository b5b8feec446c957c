//! How commitments look in a terminal.

use jiff::Timestamp;
use windlass_coordinator::CommitmentRow;
use windlass_core::commitment::{Commitment, Party};
use windlass_core::shown::{shown, shown_line};
use windlass_term::{Table, numbers};

use crate::commands::tasks;
use crate::show::{self, out};

pub(super) fn print_list(rows: &[CommitmentRow], now: Timestamp, home: &str) {
    let headings = ["COMMITMENT", "STATE", "CLAIMED BY", "EVIDENCE", "AGE", "PROJECT", "TITLE"];
    let mut table = Table::new(&headings, &[3]);
    for row in rows {
        let claimed = row.claimed_by.as_ref().map(Party::to_string);
        table.row(vec![
            row.id.to_string(),
            row.state.to_string(),
            shown_line(&claimed.unwrap_or_default()),
            row.evidence_count.to_string(),
            numbers::age(row.created_at, now),
            row.project.as_deref().map_or_else(|| "-".to_owned(), |at| tasks::directory(at, home)),
            shown_line(&row.title),
        ]);
    }
    show::print_table(&table);
}

/// Where a commitment stands, in a few words.
pub(super) fn state_words(commitment: &Commitment) -> String {
    let claimed = commitment.claimed_by.as_ref().map(|by| format!(", claimed by {by}"));
    shown_line(&format!("{}{}", commitment.state, claimed.unwrap_or_default()))
}

pub(super) fn print(commitment: &Commitment, now: Timestamp) {
    let field = |name: &str, value: &str| out(&format!("{name:<12}{}", shown_line(value)));
    out(&shown_line(&format!("{}  {}", commitment.id, commitment.title)));
    field("state", &state_words(commitment));
    field(
        "opened by",
        &format!("{}, {} ago", commitment.opened_by, numbers::age(commitment.created_at, now)),
    );
    if let Some(project) = &commitment.project {
        field("project", project);
    }
    if let Some(summary) = &commitment.summary {
        field("submitted", summary);
    }
    if let (Some(verdict), Some(by)) = (commitment.verdict, &commitment.verdict_by) {
        let reason = commitment.verdict_reason.as_ref().map(|reason| format!(": {reason}"));
        field("verdict", &format!("{verdict} by {by}{}", reason.unwrap_or_default()));
    }
    if !commitment.body.is_empty() {
        out("");
        out(&shown(commitment.body.trim_end()));
    }
    for evidence in &commitment.evidence {
        out("");
        let words = format!("{}  {}  {}", evidence.id, evidence.kind, evidence.uri);
        out(&shown_line(&words));
        out(&format!("  sha256 {}  {} bytes", evidence.sha256, evidence.bytes));
        if !evidence.description.is_empty() {
            out(&format!("  {}", shown_line(&evidence.description)));
        }
    }
}
