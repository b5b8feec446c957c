//! One run of a workflow: its steps, its worktrees, what it merged, what it asks, and tries side by side.

use std::time::Duration;

use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::Value;
use windlass_coordinator::Error;
use windlass_coordinator::parallel::TryView;
use windlass_coordinator::views::{Filter, OpenQuestion};
use windlass_coordinator::workflows::{
    AttemptStatus, MergeView, RunView, Standing, StepView, WorktreeView,
};
use windlass_core::id::TaskId;
use windlass_core::shown::{shown, shown_line};
use windlass_term::{numbers, strip_controls};

use super::live::{Fragment, PageContent};
use super::pieces::Tone;
use super::question;
use super::view::{PageSources, View};
use super::workflows::{may_see_run, standing_chip, step_tone};
use super::{diff, pieces, session};

pub struct WorkflowRunPage {
    pub id: TaskId,
}

impl View for WorkflowRunPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        if !may_see_run(reading, self.id)? {
            return Ok(None);
        }
        let view = match reading.coordinator.workflows().status(self.id) {
            Ok(view) => view,
            Err(Error::NotARun { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let filter = Filter { root: Some(self.id), roots: true, ..Filter::default() };
        let tasks = reading.coordinator.tasks().list_without_journals(&filter)?;
        let task = tasks.iter().find(|task| task.row.id == self.id);
        let asked = reading.coordinator.inbox().open_in_tree(self.id)?;
        let tries = reading.coordinator.parallel().results(self.id)?;
        let steps = view.steps.iter();
        let steps =
            steps.map(|one| Fragment::new(format!("s-{}-{}", one.step, one.attempt), step(one)));
        Ok(Some(
            PageContent::new(format!("Workflow {}", shown_line(&view.workflow)))
                .with_fragment("head", html! { (head(&view)) @if let Some(task) = task { div.controls { (session::controls(task)) } } })
                .with_list("asks", asked.iter().map(ask).collect())
                .with_fragment("no-steps", html! { @if view.steps.is_empty() { p.hint { "No step has begun yet." } } })
                .with_list("steps", steps.collect())
                .with_list("tries", tries.iter().map(|one| Fragment::new(format!("try-{}", one.name), tried(one))).collect())
                .with_fragment("places", html! { (worktrees(&view.worktrees)) (merges(&view.merges)) }),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            (live.place("head"))
            (live.place("asks"))
            h2 { "Steps" }
            div.rows { (live.place("steps")) }
            (live.place("no-steps"))
            (live.place("tries"))
            (live.place("places"))
        }
    }
}

fn head(view: &RunView) -> Markup {
    let title = if view.title.is_empty() { &view.workflow } else { &view.title };
    html! {
        header.page-head {
            div.page-title { h1 dir="auto" { (pieces::goal_line(title)) } }
            div.page-facts {
                (standing_chip(view.status, view.standing))
                span.fact { "workflow " code { (shown_line(&view.workflow)) } }
                @if let Some(does) = &view.activity { span.fact { (shown_line(does)) } }
                @if let Some(detail) = &view.detail { span.fact dir="auto" { (pieces::goal_line(detail)) } }
                @for link in &view.pull_requests { a.fact href=(link) rel="noreferrer" { "Pull request " (shown_line(last_part(link))) } }
                a.fact href=(format!("/tasks/{}", view.run)) { "Timeline and events" }
                a.fact href="/workflows" { "All runs" }
            }
        }
    }
}

/// The number of a pull request, as its address ends.
fn last_part(link: &str) -> &str {
    link.trim_end_matches('/').rsplit('/').next().unwrap_or(link)
}

fn ask(open: &OpenQuestion) -> Fragment {
    Fragment::new(open.row.question.id.to_string(), question::asked(open))
}

/// One attempt at a step, with what it left for later ones.
fn step(step: &StepView) -> Markup {
    let is_inner = step.step.contains(['.', '[']);
    html! {
        div.row.step.inner[is_inner] {
            span.mark.(step_tone(step.status).class()) aria-hidden="true" {}
            div.row-main {
                span.row-title {
                    @match step.task {
                        Some(task) => a href=(format!("/tasks/{task}")) { (shown_line(&step.step)) },
                        None => (shown_line(&step.step)),
                    }
                }
                span.row-sub {
                    span { (step.kind_word()) }
                    span { (step.status) }
                    @if step.attempt > 1 { span { "attempt " (step.attempt) } }
                    // Of an interrupted one nobody knows when it ended.
                    @if step.status != AttemptStatus::Interrupted { (took(step.started_at, step.ended_at)) }
                }
                @if let Some(error) = &step.error { p.exit dir="auto" { (shown(error.trim())) } }
                (output(step))
            }
        }
    }
}

/// How long it took, or since when it runs.
fn took(started: Option<Timestamp>, ended: Option<Timestamp>) -> Markup {
    let between = |from: Timestamp, to: Timestamp| {
        Duration::try_from(to.duration_since(from)).unwrap_or_default()
    };
    html! {
        @match (started, ended) {
            (Some(from), Some(to)) => span { (numbers::took(between(from, to))) },
            (Some(from), None) => (pieces::since(from)),
            (None, _) => {},
        }
    }
}

/// What later steps find under its name, folded.
fn output(step: &StepView) -> Markup {
    let whole = || serde_json::to_string_pretty(&step.output).unwrap_or_default();
    let text = match &step.output {
        Value::Null => return html! {},
        Value::Object(fields) if fields.is_empty() => return html! {},
        Value::String(text) => text.clone(),
        // What a command printed, a person answered or an agent summed up says it best.
        Value::Object(fields) => words(fields).unwrap_or_else(whole),
        _ => whole(),
    };
    html! {
        details.more id=(format!("out-{}-{}", step.step, step.attempt)) {
            summary { "Output" }
            pre tabindex="0" { (shown(&strip_controls(&text))) }
        }
    }
}

fn words(fields: &serde_json::Map<String, Value>) -> Option<String> {
    let texts =
        ["output", "answer", "summary"].iter().filter_map(|name| fields.get(*name)?.as_str());
    texts.map(str::trim).find(|text| !text.is_empty()).map(str::to_owned)
}

/// What one runner made of the prompt: in a card, so that several stand side by side.
fn tried(one: &TryView) -> Markup {
    html! {
        section.card.try {
            h2 {
                span { (shown_line(&one.name)) }
                (pieces::chip(step_tone(one.status), &one.status.to_string()))
            }
            @if !one.summary.is_empty() { p dir="auto" { (shown(&one.summary)) } }
            @if let Some(error) = &one.error { p.exit dir="auto" { (shown(error.trim())) } }
            dl.facts {
                dt { "Changed files" } dd { (one.changed_files.len()) }
                dt { "Tokens" } dd { (numbers::count(one.input_tokens + one.output_tokens)) }
                dt { "Cost" } dd { (numbers::known_dollars(one.cost_usd)) }
                @if let Some(branch) = &one.branch { dt { "Branch" } dd { code { (shown_line(branch)) } } }
            }
            @for check in &one.checks {
                details.more id=(format!("check-{}-{}", one.name, check.name)) {
                    summary { span.mark.(step_tone(check.status).class()) aria-hidden="true" {} " " (shown_line(&check.name)) ", " (check.status) }
                    pre tabindex="0" { (shown(&strip_controls(&check.output))) }
                }
            }
            @if !one.diff.is_empty() {
                details.more id=(format!("diff-{}", one.name)) { summary { "What it changed" } (diff::render(&one.diff)) }
            }
            @if let Some(task) = one.task { p { a href=(format!("/tasks/{task}")) { "Task" } } }
        }
    }
}

fn worktrees(trees: &[WorktreeView]) -> Markup {
    html! {
        @if !trees.is_empty() {
            h2 { "Worktrees" }
            div.rows {
                @for tree in trees {
                    div.row {
                        div.row-main {
                            span.row-title { code { (shown_line(if tree.branch.is_empty() { &tree.path } else { &tree.branch })) } }
                            span.row-sub {
                                code.path { (shown_line(&tree.path)) }
                                @for remark in tree.remarks() { span { (shown_line(&remark)) } }
                                @if let Some(port) = tree.port { span { "port " (port) } }
                                @if let Some(detail) = &tree.detail { span dir="auto" { (shown_line(detail)) } }
                            }
                        }
                        (pieces::chip(Tone::Quiet, &tree.state))
                        @if let Some(remark) = tree.standing.remark() { (pieces::chip(Tone::Warning, remark)) }
                    }
                }
            }
            @if trees.iter().any(|tree| tree.standing == Standing::LeftOver) {
                p.hint { code { "windlass workflow prune --dry-run" } " says which of them can go, and why the rest stays." }
            }
        }
    }
}

fn merges(merges: &[MergeView]) -> Markup {
    html! {
        @if !merges.is_empty() {
            h2 { "Merges" }
            div.rows {
                @for merge in merges {
                    div.row {
                        div.row-main {
                            span.row-title { code { (shown_line(&merge.branch)) } " into " code { (shown_line(&merge.target)) } }
                            span.row-sub {
                                span { "step " code { (shown_line(&merge.step)) } }
                                @if let Some(commit) = &merge.commit { code { (shown_line(commit)) } }
                                @if !merge.files.is_empty() { span { "in conflict:" } @for file in &merge.files { code { (shown_line(file)) } } }
                            }
                        }
                        (pieces::chip(Tone::Quiet, &merge.state))
                    }
                }
            }
        }
    }
}
