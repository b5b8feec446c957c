//! Plans: a picture of their phases, and the state of each task.

use maud::{Markup, html};
use serde_json::json;
use windlass_coordinator::Error;
use windlass_coordinator::plans::{PhaseStatus, PlanState, PlanStatus, PlanTaskStatus};
use windlass_core::shown::shown_line;
use windlass_core::status::TaskStatus;
use windlass_term::numbers;

use super::live::{Fragment, PageContent};
use super::pieces::{self, Action, Tone};
use super::view::{PageSources, View};

pub struct PlansPage;

impl View for PlansPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let plans = reading.coordinator.plans();
        let mut fragments = Vec::new();
        let rows = plans.list()?;
        for row in rows.iter().filter(|row| reading.user.may_see(Some(&row.activated_by))) {
            fragments.push(Fragment::new(row.id.to_string(), plan(&plans.status_of(row)?)));
        }
        let none = fragments.is_empty();
        Ok(Some(
            PageContent::new("Plans")
                .with_fragment("no-plans", html! {
                    @if none {
                        (pieces::nothing("No plan is active", html! { "Begin one with " code { "windlass plan new" } "." }))
                    }
                })
                .with_list("plans", fragments),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            header.page-head { div.page-title { h1 { "Plans" } } }
            (live.place("no-plans"))
            div.rows { (live.place("plans")) }
        }
    }
}

fn plan(status: &PlanStatus) -> Markup {
    let run = Action {
        label: if status.session_id.is_some() { "Continue" } else { "Run" },
        path: format!("/v1/plans/{}/run", status.plan_id),
        body: json!({}),
        class: "small",
    };
    html! {
        section.whole-plan {
            div.row {
                span.row-main {
                    span.row-title dir="auto" { (shown_line(&status.title)) }
                    span.row-sub {
                        span { (shown_line(&status.name)) }
                        span { (format!("{} of {} done", status.done, status.total)) }
                        @if status.open_issues > 0 { span { (numbers::plural(status.open_issues, "open issue")) } }
                        @if !status.active { span { "not active" } }
                        @if let Some(session) = status.session_id { a href=(format!("/sessions/{session}")) { "session" } }
                    }
                }
                @if status.active && status.state != PlanState::Done { (run.button()) }
                (pieces::chip(tone(status.state), status.state.as_str()))
            }
            @for phase in &status.phases { (self::phase(phase)) }
        }
    }
}

/// A phase: its name, how much of it is done, and its tasks.
fn phase(phase: &PhaseStatus) -> Markup {
    let label = format!("{} of {} tasks done", phase.done, phase.total);
    html! {
        div.row.phase {
            div.row-main {
                span.row-title dir="auto" { (shown_line(&phase.title)) }
                ul.phase-tasks { @for task in &phase.tasks { (self::task(task)) } }
            }
            progress max=(phase.total.max(1)) value=(phase.done) aria-label=(label) { (label) }
            (pieces::chip(tone(phase.state), phase.state.as_str()))
        }
    }
}

fn task(task: &PlanTaskStatus) -> Markup {
    let tone = match task.status {
        TaskStatus::Done => Tone::Good,
        TaskStatus::Failed | TaskStatus::Cancelled => Tone::Bad,
        TaskStatus::Running | TaskStatus::Verifying | TaskStatus::Retrying => Tone::Info,
        TaskStatus::Blocked | TaskStatus::Reviewing => Tone::Warning,
        TaskStatus::Todo | TaskStatus::Paused => Tone::Quiet,
    };
    html! {
        li {
            span.mark.(tone.class()) aria-hidden="true" {}
            code { (shown_line(&task.id)) }
            span.words dir="auto" {
                @match task.task_id {
                    Some(id) => a href=(format!("/tasks/{id}")) { (shown_line(&task.title)) },
                    None => (shown_line(&task.title)),
                }
            }
            span.hint { (shown_line(&task.words())) }
        }
    }
}

fn tone(state: PlanState) -> Tone {
    match state {
        PlanState::Done => Tone::Good,
        PlanState::Failed => Tone::Bad,
        PlanState::Blocked | PlanState::Running | PlanState::Waiting => Tone::Quiet,
    }
}
