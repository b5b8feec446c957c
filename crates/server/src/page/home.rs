//! The first page: a place to begin, and the sessions there are.

use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_coordinator::views::{Filter, TaskView};
use windlass_core::id::SessionId;
use windlass_term::numbers;

use super::drafts::Purpose;
use super::layout;
use super::live::{Fragment, PageContent};
use super::pieces;
use super::view::{Query, Reading, View};

/// Tasks that are looked at for the newest sessions.
const NEWEST_TASKS: usize = 200;
/// Sessions that are shown.
const SESSIONS: usize = 40;

pub struct Home {
    /// A text to begin with: a link's, which is never sent without a person, or the reader's draft.
    prefill: String,
}

impl Home {
    pub fn new(query: &Query<'_>) -> Self {
        Self { prefill: query.get("prompt") }
    }
}

impl View for Home {
    fn content(&mut self, reading: &Reading<'_>) -> Result<Option<PageContent>, Error> {
        if self.prefill.is_empty() {
            self.prefill = reading.drafts.read(&reading.user.name, Purpose::NewSession);
        }
        let filter = Filter { roots: true, limit: Some(NEWEST_TASKS), ..Filter::default() };
        let mut sessions: Vec<(SessionId, Vec<TaskView>)> = Vec::new();
        for view in reading.coordinator.tasks().glance(&filter)? {
            let id = view.row.session_id;
            match sessions.iter_mut().find(|(known, _)| *known == id) {
                Some((_, tasks)) => tasks.push(view),
                None => sessions.push((id, vec![view])),
            }
        }
        let mut fragments = Vec::new();
        for (id, tasks) in sessions {
            if fragments.len() < SESSIONS && reading.may_see_session(id)? {
                fragments.push(Fragment::new(id.to_string(), row(id, &tasks)));
            }
        }
        let none = fragments.is_empty();
        Ok(Some(
            PageContent::new("Sessions")
                .with_fragment("no-sessions", html! { @if none { (pieces::nothing("No sessions yet", html! { "Say above what you want done." })) } })
                .with_list("sessions", fragments),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            div.home {
                h1 { "What should be done?" }
                form.composer.new #composer {
                    label.visually-hidden for="message" { "Goal" }
                    textarea #message name="message" rows="3" placeholder="Describe the goal. An agent plans, works and asks you when it must."
                        autocomplete="off" spellcheck="true" { (self.prefill) }
                    div #attached.attached hidden {}
                    div.composer-row {
                        (layout::attach())
                        details.options id="options" {
                            summary { "Options" }
                            div.fields {
                                label { "Directory" input.field type="text" name="workspace" placeholder="a directory of its own" autocomplete="off"; }
                                label { "Mode"
                                    select.field name="mode" {
                                        option value="" { "build" }
                                        option { "plan" } option { "research" } option { "review" }
                                    }
                                }
                                label { "Permissions"
                                    select.field name="profile" {
                                        option value="" { "as configured" }
                                        option { "restricted" } option { "normal" } option { "trusted" }
                                    }
                                }
                                label { "Budget in $" input.field type="number" name="budget" min="0" step="0.01" inputmode="decimal" placeholder="none"; }
                            }
                        }
                        button.primary type="submit" { "Start" }
                    }
                }
                h2 { "Sessions" }
                (live.place("no-sessions"))
                div.rows { (live.place("sessions")) }
            }
        }
    }
}

fn row(id: SessionId, tasks: &[TaskView]) -> Markup {
    let Some(newest) = tasks.first() else { return html! {} };
    let first = tasks.last().unwrap_or(newest);
    let cost = tasks.iter().filter_map(|task| task.cost_usd).reduce(|sum, cost| sum + cost);
    let tokens = tasks.iter().map(|task| task.row.usage.total_tokens).sum();
    html! {
        a.row href=(format!("/sessions/{id}")) {
            span.row-main {
                span.row-title dir="auto" { (pieces::goal_line(&first.row.goal)) }
                span.row-sub {
                    (pieces::time(newest.row.updated_at))
                    @if tasks.len() > 1 { span { (numbers::plural(tasks.len(), "task")) } }
                    span { (pieces::spent(cost, tokens)) }
                }
            }
            (pieces::status_chip(newest))
        }
    }
}
