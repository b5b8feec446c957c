//! The first page: a place to begin, and the sessions there are.

use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_coordinator::views::{Filter, SessionPlace, TaskView};
use windlass_core::axes::{ModelMode, PermissionProfile, WorkMode};
use windlass_core::id::SessionId;
use windlass_term::numbers;

use super::drafts::Purpose;
use super::layout;
use super::live::{Fragment, PageContent};
use super::pieces;
use super::view::{PageSources, Query, View};
use crate::auth::Access;
use crate::place::{self, Place as _};

/// Sessions that are shown at once.
const SESSIONS: usize = 40;
/// Sessions that are read at once.
const READ: u32 = 100;

pub struct Home {
    /// A text to begin with: a link's, which is never sent without a person, or the reader's draft.
    prefill: String,
    /// The place behind which sessions are listed; the newest are without.
    after: Option<SessionPlace>,
    /// Who reads it, and so what is offered.
    access: Access,
    /// Whether `unrestricted` may be chosen.
    offers_unrestricted: bool,
}

impl Home {
    pub fn new(query: &Query<'_>) -> Self {
        let after = SessionPlace::read(&query.get("after"));
        let prefill = query.get("prompt");
        Self { prefill, after, access: Access::Viewer, offers_unrestricted: false }
    }

    /// The sessions of the list, and the place behind the last where there are more.
    fn sessions(
        &self,
        reading: &PageSources<'_>,
    ) -> Result<(Vec<Fragment>, Option<String>), Error> {
        let mut fragments = Vec::new();
        let (mut place, mut last) = (self.after, None);
        loop {
            let rows = reading.coordinator.sessions().newest_after(place, READ)?;
            for session in &rows {
                place = Some(SessionPlace { updated_at: session.updated_at, id: session.id });
                let is_shown =
                    !session.tasks.is_empty() && reading.user.may_see(session.user_id.as_deref());
                if !is_shown {
                    continue;
                }
                if fragments.len() == SESSIONS {
                    return Ok((fragments, last));
                }
                let filter = Filter { session: Some(session.id), roots: true, ..Filter::default() };
                let tasks = reading.coordinator.tasks().list_without_journals(&filter)?;
                fragments.push(Fragment::new(session.id.to_string(), row(session.id, &tasks)));
                last = Some(place::after_session(session));
            }
            if rows.len() < READ as usize {
                return Ok((fragments, None));
            }
        }
    }
}

impl View for Home {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        self.access = reading.user.access;
        self.offers_unrestricted = reading.coordinator.limits().unrestricted;
        if self.prefill.is_empty() {
            self.prefill = reading.drafts.read(&reading.user.name, Purpose::NewSession);
        }
        let (fragments, more) = self.sessions(reading)?;
        let none = fragments.is_empty() && self.after.is_none();
        Ok(Some(
            PageContent::new("Sessions")
                .with_fragment("no-sessions", html! {
                    @if none { (pieces::nothing("No sessions yet", html! { "Say above what you want done." })) }
                    @if self.after.is_some() { p.earlier { "Newer sessions are not shown. " a href="/" { "Show the newest" } } }
                })
                .with_list("sessions", fragments)
                .with_fragment("older", html! {
                    @if let Some(place) = more { p.earlier { "There are older sessions. " a href=(format!("/?after={place}")) { "Show them" } } }
                }),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        let may_change = self.access > Access::Viewer;
        html! {
            div.home {
                @if may_change { (self.composer()) }
                @if may_change { h2 { "Sessions" } } @else { h1 { "Sessions" } }
                (live.place("no-sessions"))
                div.rows { (live.place("sessions")) }
                (live.place("older"))
            }
        }
    }
}

impl Home {
    /// How the session begins. Only an admin chooses where it works.
    fn options(&self) -> Markup {
        let is_offered = |profile: &&PermissionProfile| {
            **profile != PermissionProfile::Unrestricted || self.offers_unrestricted
        };
        html! {
            div.fields {
                @if self.access == Access::Admin {
                    label { "Directory" input.field type="text" name="workspace" placeholder="a directory of its own" autocomplete="off"; }
                }
                label { "Mode"
                    select.field name="mode" {
                        option value="" { (WorkMode::Build) }
                        @for mode in WorkMode::ALL.iter().filter(|mode| **mode != WorkMode::Build) { option { (mode) } }
                    }
                }
                label { "Permissions"
                    select.field name="profile" {
                        option value="" { "as configured" }
                        @for profile in PermissionProfile::ALL.iter().filter(is_offered) { option { (profile) } }
                    }
                }
                label { "Model"
                    select.field name="model" {
                        option value="" { (ModelMode::Smart) }
                        @for mode in ModelMode::ALL.iter().filter(|mode| **mode != ModelMode::Smart) { option { (mode) } }
                    }
                }
                label { "Budget in $" input.field type="number" name="budget" min="0" step="0.01" inputmode="decimal" placeholder="none"; }
            }
        }
    }

    fn composer(&self) -> Markup {
        html! {
            h1 { "What should be done?" }
            form.composer.new #composer {
                label.visually-hidden for="message" { "Goal" }
                textarea #message name="message" rows="3" placeholder="Describe the goal. An agent plans, works and asks you when it must."
                    autocomplete="off" spellcheck="true" { (self.prefill) }
                div #attached.attached hidden {}
                div.composer-row {
                    (layout::attach())
                    details.options id="options" { summary { "Options" } (self.options()) }
                    button.primary type="submit" { "Start" }
                }
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
