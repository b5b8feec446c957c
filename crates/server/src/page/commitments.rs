//! Commitments: what is promised, who has claimed it, and what proves it (AX-071).

use maud::{Markup, html};
use serde_json::json;
use windlass_coordinator::{CommitmentFilter, CommitmentRow, Error};
use windlass_core::commitment::{Commitment, CommitmentState, Evidence, Party};
use windlass_core::id::CommitmentId;
use windlass_core::shown::{shown, shown_line};
use windlass_term::numbers;

use super::live::{Fragment, PageContent};
use super::pieces::{self, Action, Tone};
use super::view::{Reading, View};

/// The page that lists commitments.
pub struct CommitmentsPage;

impl View for CommitmentsPage {
    fn content(&mut self, reading: &Reading<'_>) -> Result<Option<PageContent>, Error> {
        let rows = reading.coordinator.commitments().list(&CommitmentFilter::default())?;
        let rows = rows.iter().filter(|row| reading.user.may_see(row.user_id.as_deref()));
        let fragments: Vec<Fragment> =
            rows.map(|one| Fragment::new(one.id.to_string(), row(one))).collect();
        let none = fragments.is_empty();
        let words = html! {
            "In the role " code { "/architect" } " an agent makes commitments of what you ask for."
        };
        Ok(Some(
            PageContent::new("Commitments")
                .with_fragment(
                    "no-commitments",
                    html! {
                        @if none { (pieces::nothing("Nothing is promised", words)) }
                    },
                )
                .with_list("commitments", fragments),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            header.page-head { div.page-title { h1 { "Commitments" } } }
            (live.place("no-commitments"))
            div.rows { (live.place("commitments")) }
        }
    }
}

/// One commitment with its evidence.
pub struct CommitmentPage {
    pub id: CommitmentId,
}

impl View for CommitmentPage {
    fn content(&mut self, reading: &Reading<'_>) -> Result<Option<PageContent>, Error> {
        let found = match reading.coordinator.commitments().get(self.id) {
            Ok(found) => found,
            Err(Error::Store(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        if !reading.user.may_see(found.user_id.as_deref()) {
            return Ok(None);
        }
        Ok(Some(
            PageContent::new(shown_line(&found.title))
                .with_fragment("commitment", whole(&found))
                .with_list(
                    "evidence",
                    found.evidence.iter().map(|one| evidence(self.id, one)).collect(),
                ),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            (live.place("commitment"))
            h2 { "Evidence" }
            div.rows { (live.place("evidence")) }
        }
    }
}

fn chip(state: CommitmentState) -> Markup {
    let tone = match state {
        CommitmentState::Open => Tone::Info,
        CommitmentState::Claimed => Tone::Quiet,
        CommitmentState::Submitted => Tone::Warning,
        CommitmentState::Approved => Tone::Good,
    };
    html! { span.chip.(tone.class()) { (state) } }
}

fn row(row: &CommitmentRow) -> Markup {
    html! {
        div.row {
            span.row-main {
                a.row-title dir="auto" href=(format!("/commitments/{}", row.id)) { (shown_line(&row.title)) }
                span.row-sub {
                    span { (numbers::plural(row.evidence_count as u64, "piece")) " of evidence" }
                    @if let Some(by) = &row.claimed_by { span { "claimed by " (party(by)) } }
                    @if let Some(reason) = &row.verdict_reason { span dir="auto" { (shown_line(reason)) } }
                    span { (pieces::time(row.created_at)) }
                }
            }
            (actions(row.id, row.state))
            (chip(row.state))
        }
    }
}

fn party(party: &Party) -> Markup {
    match party {
        Party::Agent(task) => html! { a href=(format!("/tasks/{task}")) { "an agent" } },
        Party::Person(name) => html! { (shown_line(name)) },
    }
}

/// What can be done with it now. Whoever has claimed it is refused by the ledger when they judge it.
fn actions(id: CommitmentId, state: CommitmentState) -> Markup {
    let action = |label: &'static str, verb: &str, class: &'static str| {
        let body = match verb {
            "reject" => json!({ "reason": "rejected on the page" }),
            "approve" => json!({ "reason": "" }),
            _ => json!({}),
        };
        Action { label, path: format!("/v1/commitments/{id}/{verb}"), body, class }.button()
    };
    html! {
        @match state {
            CommitmentState::Open => (action("Claim", "claim", "small")),
            CommitmentState::Submitted => {
                (action("Approve", "approve", "small primary"))
                (action("Reject", "reject", "small"))
            },
            CommitmentState::Claimed | CommitmentState::Approved => {},
        }
    }
}

fn whole(found: &Commitment) -> Markup {
    html! {
        header.page-head {
            div.page-title {
                h1 dir="auto" { (shown_line(&found.title)) }
                div.controls { (actions(found.id, found.state)) }
            }
            div.page-facts {
                (chip(found.state))
                span.fact { code { (found.id) } }
                span.fact { "opened by " (party(&found.opened_by)) ", " (pieces::time(found.created_at)) }
                @if let Some(by) = &found.claimed_by { span.fact { "claimed by " (party(by)) } }
            }
        }
        @if !found.body.is_empty() { p.question-context dir="auto" { (shown(found.body.trim())) } }
        @if let Some(summary) = &found.summary { p dir="auto" { "Handed in: " (shown_line(summary)) } }
        @if let (Some(verdict), Some(by)) = (found.verdict, &found.verdict_by) {
            p dir="auto" {
                "Verdict: " strong { (verdict) } " by " (party(by))
                @if let Some(reason) = &found.verdict_reason { ": " (shown_line(reason)) }
            }
        }
    }
}

fn evidence(commitment: CommitmentId, one: &Evidence) -> Fragment {
    let path = format!("/v1/commitments/{commitment}/evidence/{}", one.id);
    Fragment::new(
        one.id.to_string(),
        html! {
            div.row {
                span.row-main {
                    span.row-title dir="auto" {
                        (one.kind)
                        @if !one.description.is_empty() { ": " (shown_line(&one.description)) }
                    }
                    span.row-sub {
                        code.path { (shown_line(&one.uri)) }
                        span { "by " (party(&one.by)) }
                        span { "sha256 " code { (one.sha256) } }
                        @if one.bytes > 0 { a href=(path) download { (one.bytes) " bytes" } }
                    }
                }
            }
        },
    )
}
