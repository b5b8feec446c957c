//! A proposed skill: what several tasks did, what accepting it would write, and the buttons that decide.

use maud::{Markup, html};
use serde_json::json;
use windlass_coordinator::Error;
use windlass_coordinator::skill_proposals::{Finding, Proposal, ProposalStatus};
use windlass_core::shown::{shown, shown_line};
use windlass_term::numbers;

use super::inbox;
use super::live::PageContent;
use super::pieces::{self, Action, Tone};
use super::view::{PageSources, View};
use crate::auth::Access;
use crate::skill_drafts::{DraftFile, SkillDraft, Trial};

pub struct ProposalPage {
    pub number: i64,
}

impl View for ProposalPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let found = reading.coordinator.skill_proposals().get(self.number)?;
        let Some(proposal) = found else { return Ok(None) };
        if !inbox::is_visible(reading, &proposal)? {
            return Ok(None);
        }
        let is_open = proposal.status == ProposalStatus::Open;
        let writer = reading.about.skill_writer.as_ref().filter(|_| is_open);
        let known = writer.map(|writer| writer.find_draft(&proposal));
        let decides = is_open && reading.user.access == Access::Admin;
        let trial = reading.trials.of(&proposal);
        let draft = known.as_ref().and_then(|known| known.as_ref().ok()?.as_ref());
        let actions = decides.then(|| actions(&proposal, known.as_ref(), trial.as_ref()));
        Ok(Some(
            PageContent::new(format!("Skill {}", shown_line(&proposal.name)))
                .with_fragment("head", head(&proposal, actions.as_ref()))
                .with_fragment("trial", how_it_stands(&proposal, trial.as_ref()))
                .with_fragment("evidence", evidence(&proposal))
                .with_fragment("draft", match (draft, &known) {
                    (Some(draft), _) => written(draft),
                    (None, Some(Ok(_))) => note("The fast model writes this skill. Have it drafted to see what would be written."),
                    (None, Some(Err(why))) => note(why),
                    (None, None) => html! {},
                }),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            @for part in ["head", "trial", "evidence", "draft"] { (live.place(part)) }
        }
    }
}

fn note(words: &str) -> Markup {
    html! { p.note { span { (shown(words)) } } }
}

/// The button that declines a proposal.
pub fn decline(number: i64) -> Action<'static> {
    Action {
        label: "Decline",
        path: format!("/v1/skills/proposals/{number}/reject"),
        body: json!({ "reason": "declined on the page" }),
        class: "small",
    }
}

/// What can be decided now. What is accepted is named by its mark: the draft that this page shows.
fn actions(
    proposal: &Proposal,
    known: Option<&Result<Option<SkillDraft>, String>>,
    trial: Option<&Trial>,
) -> Markup {
    if matches!(trial, Some(Trial::Running { .. })) {
        return html! {};
    }
    let path = |verb: &str| format!("/v1/skills/proposals/{}/{verb}", proposal.number);
    let accept = |label: &'static str, mark: &str, commit: bool, class: &'static str| {
        let body = json!({ "mark": mark, "commit": commit });
        Action { label, path: path("accept"), body, class }.button()
    };
    html! {
        @match known {
            Some(Ok(Some(draft))) => {
                (accept("Try and write", &draft.mark(), false, "small primary"))
                (accept("Try, write and commit", &draft.mark(), true, "small"))
            },
            Some(Ok(None)) => (Action { label: "Have it drafted", path: path("draft"), body: json!({}), class: "small primary" }.button()),
            Some(Err(_)) | None => {},
        }
        (decline(proposal.number).button())
    }
}

fn head(proposal: &Proposal, actions: Option<&Markup>) -> Markup {
    let tone = match proposal.status {
        ProposalStatus::Open => Tone::Warning,
        ProposalStatus::Accepted => Tone::Good,
        ProposalStatus::Rejected => Tone::Quiet,
    };
    html! {
        header.page-head {
            div.page-title {
                h1 dir="auto" { "Proposed skill " code { (shown_line(&proposal.name)) } }
                div.controls { @if let Some(actions) = actions { (actions) } }
            }
            div.page-facts {
                (pieces::chip(tone, &proposal.status.to_string()))
                span.fact { "for " code.path { (shown_line(&proposal.project)) } }
                span.fact { "proposed " (pieces::time(proposal.made_at)) }
            }
        }
    }
}

fn how_it_stands(proposal: &Proposal, trial: Option<&Trial>) -> Markup {
    html! {
        @if !proposal.note.is_empty() { p.note { span { (proposal.status) ": " (shown_line(&proposal.note)) } } }
        @match trial {
            Some(Trial::Running { since }) => p.note role="status" {
                span { "It is being tried: its eval case without the skill, then with it. Nothing is written before that. " (pieces::since(*since)) }
            },
            Some(Trial::Refused(why)) => p.note.warn { span { (pieces::with_code(&shown(why))) } },
            None => {},
        }
    }
}

fn evidence(proposal: &Proposal) -> Markup {
    let reason = |finding: &Finding| {
        html! {
            div.row {
                span.row-main {
                    span.row-title dir="auto" { (pieces::with_code(&shown_line(&finding.words()))) }
                    span.row-sub {
                        span { "in " (numbers::plural(finding.tasks.len(), "task")) }
                        @for task in &finding.tasks { a href=(format!("/tasks/{task}")) { (pieces::short_id(task)) } }
                    }
                }
            }
        }
    };
    html! {
        h2 { "Why" }
        div.rows { @for finding in &proposal.evidence { (reason(finding)) } }
    }
}

fn written(draft: &SkillDraft) -> Markup {
    let file = |file: &DraftFile| {
        html! {
            section.card.draft-file {
                h3 { code.path { (shown_line(&file.path)) } }
                pre.scroll tabindex="0" dir="auto" { (shown(file.text.trim_end())) }
            }
        }
    };
    html! {
        h2 { "What would be written" }
        p { "Into " code.path { (shown_line(&draft.directory)) } ", if its eval case fails without the skill and passes with it:" }
        @for one in &draft.files { (file(one)) }
        @if !draft.copies.is_empty() {
            p { "With copies of these files of the project for the case: " @for name in &draft.copies { code.path { (shown_line(name)) } " " } }
        }
    }
}
