//! Commitments: what is promised, who has claimed it, and what proves it (AX-071).

use maud::{Markup, html};
use serde_json::json;
use windlass_coordinator::{CommitmentFilter, CommitmentPlace, CommitmentRow, Error};
use windlass_core::commitment::{Commitment, CommitmentState, Evidence, Party};
use windlass_core::id::CommitmentId;
use windlass_core::shown::{shown, shown_line};
use windlass_term::numbers;

use super::live::{Fragment, PageContent};
use super::pieces::{self, Action, Tone};
use super::view::{PageSources, Query, View};
use crate::auth::{Access, User};
use crate::place::{self, Place as _};

/// Commitments that are shown at once.
const SHOWN: usize = 100;
/// Digits of a hash that are shown; all of them can be copied.
const SHOWN_DIGITS: usize = 12;

/// The page that lists commitments.
pub struct CommitmentsPage {
    /// The place behind which commitments are listed; the newest are without.
    after: Option<CommitmentPlace>,
}

impl CommitmentsPage {
    pub fn new(query: &Query<'_>) -> Self {
        Self { after: CommitmentPlace::read(&query.get("after")) }
    }
}

impl View for CommitmentsPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let filter = CommitmentFilter {
            user: reading.user.limited_to(),
            after: self.after,
            // One more says whether there are more.
            limit: Some(SHOWN as u32 + 1),
            ..CommitmentFilter::default()
        };
        let mut rows = reading.coordinator.commitments().list(&filter)?;
        let more = place::cut(&mut rows, SHOWN, place::after_commitment);
        let fragments: Vec<Fragment> = rows
            .iter()
            .map(|one| Fragment::new(one.id.to_string(), row(one, reading.user)))
            .collect();
        let none = fragments.is_empty() && self.after.is_none();
        let words = html! {
            "In the role " code { "/architect" } " an agent makes commitments of what you ask for."
        };
        Ok(Some(
            PageContent::new("Commitments")
                .with_fragment("no-commitments", html! {
                    @if none { (pieces::nothing("Nothing is promised", words)) }
                    @if self.after.is_some() { p.earlier { "Newer commitments are not shown. " a href="/commitments" { "Show the newest" } } }
                })
                .with_list("commitments", fragments)
                .with_fragment("older", html! {
                    @if let Some(place) = more { p.earlier { "There are older commitments. " a href=(format!("/commitments?after={place}")) { "Show them" } } }
                }),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            header.page-head { div.page-title { h1 { "Commitments" } } }
            (live.place("no-commitments"))
            div.rows { (live.place("commitments")) }
            (live.place("older"))
        }
    }
}

/// One commitment with its evidence.
pub struct CommitmentPage {
    pub id: CommitmentId,
}

impl View for CommitmentPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
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
                .with_fragment("commitment", whole(&found, reading.user))
                .with_fragment(
                    "no-evidence",
                    html! { @if found.evidence.is_empty() { p.hint { "None yet. What proves the work is added before it is handed in." } } },
                )
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
            (live.place("no-evidence"))
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
    pieces::chip(tone, state.as_str())
}

/// Work that was handed in is judged on its own page, where its evidence is.
fn row(row: &CommitmentRow, reader: &User) -> Markup {
    let page = format!("/commitments/{}", row.id);
    html! {
        div.row {
            span.row-main {
                a.row-title dir="auto" href=(page) { (shown_line(&row.title)) }
                span.row-sub {
                    span { (numbers::plural(row.evidence_count as u64, "piece")) " of evidence" }
                    @if let Some(by) = &row.claimed_by { span { "claimed by " (party(by)) } }
                    @if let Some(reason) = &row.verdict_reason { span dir="auto" { (shown_line(reason)) } }
                    span { (pieces::time(row.created_at)) }
                }
            }
            @match row.state {
                CommitmentState::Submitted => a.button.small href=(page) { "Review" },
                CommitmentState::Open | CommitmentState::Claimed | CommitmentState::Approved => {
                    (actions(row.id, row.state, row.claimed_by.as_ref(), reader))
                },
            }
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
fn actions(
    id: CommitmentId,
    state: CommitmentState,
    claimed_by: Option<&Party>,
    reader: &User,
) -> Markup {
    let action = |label: &'static str, verb: &str, class: &'static str| {
        let body = if verb == "claim" { json!({}) } else { json!({ "reason": "" }) };
        Action { label, path: format!("/v1/commitments/{id}/{verb}"), body, class }.button()
    };
    let is_own = claimed_by == Some(&Party::Person(reader.name.clone()));
    html! {
        @match state {
            CommitmentState::Open => (action("Claim", "claim", "small")),
            CommitmentState::Claimed => @if is_own { (action("Give back", "release", "small")) },
            CommitmentState::Submitted => @if !is_own { (action("Approve", "approve", "small primary")) },
            CommitmentState::Approved => {},
        }
    }
}

/// Sends work back. Its reason is what the next attempt has to go by, so there is no button without one.
fn rejection(id: CommitmentId) -> Markup {
    html! {
        form.own-words data-reason=(format!("/v1/commitments/{id}/reject")) {
            label.visually-hidden for="reason" { "Why it goes back" }
            input.field #reason type="text" name="text" required autocomplete="off" placeholder="Say what is missing";
            button.danger type="submit" { "Reject" }
        }
    }
}

fn whole(found: &Commitment, reader: &User) -> Markup {
    let is_own = found.claimed_by == Some(Party::Person(reader.name.clone()));
    let is_judged_here =
        found.state == CommitmentState::Submitted && !is_own && reader.access > Access::Viewer;
    html! {
        header.page-head {
            div.page-title {
                h1 dir="auto" { (shown_line(&found.title)) }
                div.controls { (actions(found.id, found.state, found.claimed_by.as_ref(), reader)) }
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
        @if is_judged_here { (rejection(found.id)) }
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
                        span title=(one.sha256) { "sha256 " code { (one.sha256.to_string().chars().take(SHOWN_DIGITS).collect::<String>()) "…" } }
                        button.small type="button" data-copy=(one.sha256) { "Copy" }
                        @if one.bytes > 0 { a href=(path) download { "Download (" (one.bytes) " bytes)" } }
                    }
                }
            }
        },
    )
}
