//! The inbox: every question that waits for a person, one tap each, and who answered the last ones.

use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_coordinator::skill_proposals::Proposal;
use windlass_coordinator::views::{OpenQuestion, QuestionRow, QuestionState};
use windlass_core::shown::shown_line;

use super::live::{Fragment, PageContent};
use super::question;
use super::view::{PageSources, View};
use super::{pieces, proposal};
use crate::auth::Access;

/// Answers that are shown below the open questions.
const ANSWERED: usize = 10;
/// Answers that are read to find those that the reader may see.
const READ: u32 = 200;

pub struct InboxPage;

impl View for InboxPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let mut open = Vec::new();
        for one in reading.coordinator.inbox().open()? {
            if reading.may_see_task(one.row.task)? {
                open.push(Fragment::new(one.row.question.id.to_string(), card(&one)));
            }
        }
        let mut answered = Vec::new();
        let sees_all = reading.user.limited_to().is_none();
        let read = if sees_all { ANSWERED as u32 } else { READ };
        for row in reading.coordinator.inbox().recently_answered(read)? {
            if answered.len() < ANSWERED && reading.may_see_task(row.task)? {
                answered.push(Fragment::new(format!("a-{}", row.question.id), answered_row(&row)));
            }
        }
        let decides = reading.user.access == Access::Admin;
        let mut proposed = Vec::new();
        for one in reading.coordinator.skill_proposals().open()? {
            if is_visible(reading, &one)? {
                proposed
                    .push(Fragment::new(format!("s-{}", one.number), proposal_row(&one, decides)));
            }
        }
        let none = open.is_empty() && proposed.is_empty();
        let (has_answers, has_proposals) = (!answered.is_empty(), !proposed.is_empty());
        Ok(Some(
            PageContent::new("Inbox")
                .with_fragment("no-questions", html! {
                    @if none { (pieces::nothing("Nothing waits for you", html! { "Questions of all tasks appear here." })) }
                })
                .with_list("questions", open)
                .with_fragment("proposals-title", html! { @if has_proposals { h2 { "Proposed skills" } } })
                .with_list("proposals", proposed)
                .with_fragment("answered-title", html! { @if has_answers { h2 { "Answered" } } })
                .with_list("answered", answered),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            div.inbox {
                header.page-head {
                    div.page-title {
                        h1 { "Inbox" }
                        div.controls { button type="button" data-notify hidden { "Notify me" } }
                    }
                }
                (live.place("no-questions"))
                (live.place("questions"))
                (live.place("proposals-title"))
                div.rows { (live.place("proposals")) }
                (live.place("answered-title"))
                div.rows { (live.place("answered")) }
            }
        }
    }
}

/// Whether somebody may see every task that a proposal was made of: it shows what all of them did.
pub fn is_visible(reading: &PageSources<'_>, proposal: &Proposal) -> Result<bool, Error> {
    for task in proposal.evidence.iter().flat_map(|finding| &finding.tasks) {
        if !reading.may_see_task(*task)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A proposed skill: what tasks have in common. What would be written, and accepting it, is on a page of its own.
fn proposal_row(proposal: &Proposal, decides: bool) -> Markup {
    let page = format!("/skills/proposals/{}", proposal.number);
    html! {
        div.row {
            span.row-main {
                a.row-title href=(page) dir="auto" { (pieces::with_code(&shown_line(&proposal.summary()))) }
                span.row-sub {
                    @for reason in proposal.reasons() { span { (pieces::with_code(&shown_line(&reason))) } }
                }
            }
            (pieces::time(proposal.made_at))
            a.button.small href=(page) { "See the skill" }
            @if decides { (proposal::decline(proposal.number).button()) }
        }
    }
}

fn card(open: &OpenQuestion) -> Markup {
    html! {
        article.ask {
            header {
                @if let Some(task) = &open.asker {
                    a href=(format!("/sessions/{}", task.session_id)) dir="auto" { (pieces::goal_line(&task.goal)) }
                }
                @if let Some(label) = &open.label { span { "sub-agent " (shown_line(label)) } }
                (pieces::time(open.row.asked_at))
            }
            (question::asked(open))
        }
    }
}

fn answered_row(row: &QuestionRow) -> Markup {
    let QuestionState::Answered(answer) = &row.state else { return html! {} };
    html! {
        div.row {
            span.row-main {
                span.row-title dir="auto" { (pieces::with_code(&pieces::goal_line(&row.question.question))) }
                span.row-sub { span { (question::answer_words(answer)) } }
            }
            a href=(format!("/tasks/{}", row.task)) { "Task" }
        }
    }
}
