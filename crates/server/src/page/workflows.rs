//! Runs of workflows, and who works in worktrees now.

use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_coordinator::parallel::WorkerView;
use windlass_coordinator::views::ListPlace;
use windlass_coordinator::workflows::{AttemptStatus, RunView, Standing, StepView};
use windlass_core::id::TaskId;
use windlass_core::shown::shown_line;
use windlass_core::status::TaskStatus;
use windlass_term::numbers;

use super::live::{Fragment, PageContent};
use super::pieces::{self, Tone};
use super::view::{PageSources, Query, View};
use crate::place::{self, Place as _};

/// How many runs the page shows.
const RUNS: u32 = 50;

pub struct WorkflowsPage {
    /// The run behind which others are listed; the newest are without.
    after: Option<ListPlace>,
}

impl WorkflowsPage {
    pub fn new(query: &Query<'_>) -> Self {
        Self { after: ListPlace::read(&query.get("after")) }
    }
}

impl View for WorkflowsPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let workflows = reading.coordinator.workflows();
        let mut runs = Vec::new();
        // One more says whether there are more.
        let mut rows = workflows.runs_after(self.after, RUNS + 1)?;
        let has_more = rows.len() > RUNS as usize;
        rows.truncate(RUNS as usize);
        let more = rows.last().filter(|_| has_more).map(place::after_run);
        for row in rows {
            if may_see_run(reading, row.run)? {
                let view = workflows.status(row.run)?;
                runs.push(Fragment::new(row.run.to_string(), run(&view, row.updated_at)));
            }
        }
        let workers = workers(reading)?;
        let (none, at_work) = (runs.is_empty(), workers.len());
        let start = html! {
            "Run one with " code { "windlass workflow run NAME" } ", or tasks side by side with "
            code { "windlass parallel run" } "."
        };
        Ok(Some(
            PageContent::new("Workflows")
                .with_fragment("workers-title", html! {
                    @if at_work > 0 { h2 { "At work in worktrees" span.count { (at_work) } } }
                })
                .with_list("workers", workers)
                .with_fragment("no-runs", html! {
                    @if self.after.is_some() { p.earlier { "Newer runs are not shown. " a href="/workflows" { "Show the newest" } } }
                    @if !none { h2 { "Runs" } } @else if more.is_none() { (pieces::nothing("No workflow has run", start)) }
                })
                .with_list("runs", runs)
                .with_fragment("older", html! {
                    @if let Some(place) = more { p.earlier { "There are older runs. " a href=(format!("/workflows?after={place}")) { "Show them" } } }
                }),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            header.page-head { div.page-title { h1 { "Workflows" } } }
            (live.place("workers-title"))
            div.rows { (live.place("workers")) }
            (live.place("no-runs"))
            div.rows { (live.place("runs")) }
            (live.place("older"))
        }
    }
}

/// Who is at work in a worktree now, as far as the reader may see it.
pub fn workers(reading: &PageSources<'_>) -> Result<Vec<Fragment>, Error> {
    let mut workers = Vec::new();
    for view in reading.coordinator.parallel().workers()? {
        if may_see_run(reading, view.run)? {
            workers.push(Fragment::new(format!("worker-{}", view.task), worker(&view)));
        }
    }
    Ok(workers)
}

/// Whether the reader may see a run.
pub fn may_see_run(reading: &PageSources<'_>, run: TaskId) -> Result<bool, Error> {
    let origin = reading.coordinator.tasks().origin(run)?;
    Ok(origin.is_some_and(|origin| reading.user.may_see(origin.user.as_deref())))
}

/// A run in the list: what it is for, how far it is, what it left behind.
fn run(view: &RunView, updated_at: jiff::Timestamp) -> Markup {
    let title = match view.title.is_empty() {
        true => view.workflow.clone(),
        false => format!("{}: {}", view.workflow, view.title),
    };
    // Those that are still there.
    let left = view.worktrees.iter().filter(|tree| tree.standing != Standing::Ended).count();
    html! {
        a.row href=(format!("/workflows/{}", view.run)) {
            span.row-main {
                span.row-title dir="auto" { (pieces::goal_line(&title)) }
                (steps_bar(&view.steps))
                span.row-sub {
                    (pieces::time(updated_at))
                    @if let Some(last) = view.steps.last() { span { "last step " code { (shown_line(&last.step)) } ", " (last.status) } }
                    @if left > 0 { span { (numbers::plural(left, "worktree")) } }
                    @if let Some(detail) = &view.detail { span dir="auto" { (pieces::goal_line(detail)) } }
                }
            }
            (standing_chip(view.status, view.standing))
        }
    }
}

/// The steps as a row of marks, one for each attempt.
fn steps_bar(steps: &[StepView]) -> Markup {
    let ended = steps.iter().filter(|step| step.status != AttemptStatus::Running).count();
    let label = format!("{ended} of {} steps ended", steps.len());
    html! {
        @if !steps.is_empty() {
            span.steps-bar role="img" aria-label=(label) {
                @for step in steps { span.step-mark.(step_tone(step.status).class()) title=(shown_line(&step.step)) {} }
            }
        }
    }
}

/// How a step ended, as a colour.
pub fn step_tone(status: AttemptStatus) -> Tone {
    match status {
        AttemptStatus::Succeeded => Tone::Good,
        AttemptStatus::Failed => Tone::Bad,
        AttemptStatus::Running => Tone::Info,
        AttemptStatus::Skipped | AttemptStatus::Interrupted | AttemptStatus::Stopped => Tone::Quiet,
    }
}

/// Where a run stands.
pub fn status_chip(status: TaskStatus) -> Markup {
    let tone = match status {
        TaskStatus::Done => Tone::Good,
        TaskStatus::Failed => Tone::Bad,
        TaskStatus::Blocked => Tone::Warning,
        TaskStatus::Running
        | TaskStatus::Verifying
        | TaskStatus::Reviewing
        | TaskStatus::Retrying => Tone::Info,
        TaskStatus::Todo | TaskStatus::Paused | TaskStatus::Cancelled => Tone::Quiet,
    };
    pieces::chip(tone, status.as_str())
}

/// Where a run stands: its status, or what that does not say by itself.
pub fn standing_chip(status: TaskStatus, standing: Standing) -> Markup {
    html! {
        // It waits as a task does that asks, in the same words.
        @if standing == Standing::Waiting { (pieces::chip(Tone::Warning, "Waiting for you")) }
        @else { (status_chip(status)) }
        @if let Some(remark) = standing.remark() { (pieces::chip(Tone::Warning, remark)) }
    }
}

/// A worker in its worktree: what it does, what it will edit, and whether it gives signs of life.
fn worker(view: &WorkerView) -> Markup {
    let (words, tone) = match view.alive {
        true => (view.activity.as_deref().unwrap_or("at work"), Tone::Info),
        false => ("silent", Tone::Warning),
    };
    html! {
        div.row {
            span.row-main {
                a.row-title href=(format!("/tasks/{}", view.task)) dir="auto" { (shown_line(&view.goal)) }
                span.row-sub {
                    span { (shown_line(&view.runner)) }
                    span { "sign of life " (pieces::time(view.last_heartbeat_at)) }
                    span { (numbers::known_dollars(view.cost_usd)) }
                    a href=(format!("/workflows/{}", view.run)) { "run" }
                }
                span.row-sub { code.path { (shown_line(&view.worktree_path)) } }
                @if !view.claims.is_empty() {
                    span.row-sub { "will edit" @for claim in &view.claims { code { (shown_line(claim)) } } }
                }
            }
            (pieces::chip(tone, words))
        }
    }
}
