//! Runs of workflows: what their steps came to.

use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_coordinator::workflows::{RunView, StepView};
use windlass_core::shown::{shown, shown_line};
use windlass_core::status::TaskStatus;

use super::live::{Live, Part};
use super::pieces::{self, Tone};
use super::view::{Reading, View};

/// How many runs the page shows.
const RUNS: u32 = 50;

pub struct WorkflowsPage;

impl View for WorkflowsPage {
    fn live(&mut self, reading: &Reading<'_>) -> Result<Option<Live>, Error> {
        let workflows = reading.coordinator.workflows();
        let mut parts = Vec::new();
        for row in workflows.runs(RUNS)? {
            let origin = reading.coordinator.tasks().origin(row.run)?;
            if origin.is_some_and(|origin| reading.user.may_see(origin.user.as_deref())) {
                parts.push(Part::new(row.run.to_string(), run(&workflows.status(row.run)?)));
            }
        }
        let none = parts.is_empty();
        Ok(Some(
            Live::new("Workflows")
                .part("no-runs", html! {
                    @if none {
                        (pieces::nothing("No workflow has run", html! { "Run one with " code { "windlass workflow run" } "." }))
                    }
                })
                .list("runs", parts),
        ))
    }

    fn frame(&self, live: &Live) -> Markup {
        html! {
            header.page-head { div.page-title { h1 { "Workflows" } } }
            (live.place("no-runs"))
            div.rows { (live.place("runs")) }
        }
    }
}

/// A run with its steps and worktrees.
fn run(view: &RunView) -> Markup {
    html! {
        section.run {
            h2 {
                a href=(format!("/tasks/{}", view.run)) { (shown_line(&view.workflow)) }
                " " span.chip.(tone(view.status).class()) { (view.status) }
            }
            @if !view.title.is_empty() { p dir="auto" { (shown_line(&view.title)) } }
            @if let Some(detail) = &view.detail { p.hint { (shown_line(detail)) } }
            div.scroll tabindex="0" {
                table.figures-table {
                    thead { tr { th { "Step" } th { "Type" } th { "Status" } th { "Error" } } }
                    tbody { @for one in &view.steps { (step(one)) } }
                }
            }
            @for tree in &view.worktrees {
                p.hint { "Worktree " (tree.state) ": " code { (shown_line(&tree.path)) } " on " code { (shown_line(&tree.branch)) } }
            }
        }
    }
}

fn step(step: &StepView) -> Markup {
    html! {
        tr {
            td {
                @if let Some(task) = step.task {
                    a href=(format!("/tasks/{task}")) { (shown_line(&step.step)) }
                } @else { (shown_line(&step.step)) }
            }
            td { (step.kind) }
            td { (step.status) }
            td { (shown(step.error.as_deref().unwrap_or_default())) }
        }
    }
}

fn tone(status: TaskStatus) -> Tone {
    match status {
        TaskStatus::Done => Tone::Good,
        TaskStatus::Failed | TaskStatus::Blocked => Tone::Bad,
        TaskStatus::Todo
        | TaskStatus::Running
        | TaskStatus::Verifying
        | TaskStatus::Reviewing
        | TaskStatus::Paused
        | TaskStatus::Retrying
        | TaskStatus::Cancelled => Tone::Quiet,
    }
}
