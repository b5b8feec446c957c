//! The overview: every task with its sub-agents as a tree, what waits, what is scheduled.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_coordinator::views::{Filter, Overview, TaskView};
use windlass_core::id::TaskId;
use windlass_core::shown::shown_line;
use windlass_core::status::TaskStatus;
use windlass_term::numbers;

use super::live::{Fragment, PageContent};
use super::view::{Query, Reading, View};
use super::{pieces, schedules};

/// Tasks that are looked at.
const LIMIT: usize = 500;
/// Tasks that are shown.
const SHOWN: usize = 100;

/// TaskFilter tasks are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskFilter {
    All,
    Live,
    Waiting,
    Stuck,
    Done,
    Failed,
}

impl TaskFilter {
    const EACH: [(Self, &'static str, &'static str); 6] = [
        (Self::All, "all", "All"),
        (Self::Live, "live", "Live"),
        (Self::Waiting, "waiting", "Waiting for you"),
        (Self::Stuck, "stuck", "Stuck or resumable"),
        (Self::Done, "done", "Done"),
        (Self::Failed, "failed", "Failed"),
    ];

    fn read(word: &str) -> Self {
        Self::EACH.iter().find(|(_, name, _)| *name == word).map_or(Self::All, |(one, ..)| *one)
    }

    fn has(self, task: &TaskView) -> bool {
        match self {
            Self::All => true,
            Self::Live => !task.row.status.is_terminal(),
            Self::Waiting => !task.questions.is_empty() && !task.row.status.is_terminal(),
            Self::Stuck => task.is_resumable() || task.is_interrupted(),
            Self::Done => task.row.status == TaskStatus::Done,
            Self::Failed => task.row.status == TaskStatus::Failed,
        }
    }
}

pub struct TasksPage {
    which: TaskFilter,
    search: String,
}

impl TasksPage {
    pub fn new(query: &Query<'_>) -> Self {
        Self { which: TaskFilter::read(&query.get("show")), search: query.get("q") }
    }

    fn wants(&self, task: &TaskView) -> bool {
        let words = self.search.to_lowercase();
        let row = &task.row;
        let is_found = words.is_empty()
            || row.goal.to_lowercase().contains(&words)
            || row.workspace.to_lowercase().contains(&words)
            || row.id.to_string().to_lowercase().ends_with(&words);
        is_found && self.which.has(task)
    }
}

impl View for TasksPage {
    fn content(&mut self, reading: &Reading<'_>) -> Result<Option<PageContent>, Error> {
        let filter = Filter { limit: Some(LIMIT), ..Filter::default() };
        let overview = Overview::read(reading.coordinator, &filter)?;
        let mut seen = HashMap::new();
        let mut below: HashMap<TaskId, Vec<TaskView>> = HashMap::new();
        let mut roots = Vec::new();
        for task in overview.tasks {
            let session = task.row.session_id;
            if let Entry::Vacant(entry) = seen.entry(session) {
                entry.insert(reading.may_see_session(session)?);
            }
            match task.row.parent_id {
                _ if seen.get(&session) != Some(&true) => {}
                Some(parent) => below.entry(parent).or_default().push(task),
                None => roots.push(task),
            }
        }
        let found: Vec<_> = roots.iter().filter(|task| self.wants(task)).collect();
        let (count, more) = (found.len(), found.len().saturating_sub(SHOWN));
        let trees = found.into_iter().take(SHOWN);
        let trees = trees.map(|task| Fragment::new(task.row.id.to_string(), tree(task, &below)));
        let trees: Vec<Fragment> = trees.collect();
        let scheduled = overview
            .schedules
            .iter()
            .map(|row| Fragment::new(row.schedule.id.to_string(), schedules::row(row)));
        let scheduled: Vec<Fragment> = scheduled.collect();
        let has_schedules = !scheduled.is_empty()
            && self.which != TaskFilter::Done
            && self.which != TaskFilter::Failed;
        Ok(Some(
            PageContent::new("Tasks")
                .with_fragment("counts", html! {
                    @if count == 0 { (pieces::nothing("No such tasks", html! { "Tasks that fit the filter appear here." })) }
                    @else if more > 0 { p.earlier { "The newest " (SHOWN) " of " (count) " tasks. Search to find others." } }
                })
                .with_list("tasks", trees)
                .with_fragment("schedules-title", html! { @if has_schedules { h2 { "Scheduled" } } })
                .with_list("schedules", if has_schedules { scheduled } else { Vec::new() }),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            div.tasks-page {
                header.page-head { div.page-title { h1 { "Tasks" } } }
                div.filters {
                    nav aria-label="Filter" {
                        @for (which, name, words) in TaskFilter::EACH {
                            a href=(format!("/tasks?show={name}")) aria-current=[(which == self.which).then_some("true")] { (words) }
                        }
                    }
                    form role="search" action="/tasks" method="get" {
                        @let shown = TaskFilter::EACH.iter().find(|(which, ..)| *which == self.which).map_or("all", |(_, name, _)| name);
                        input type="hidden" name="show" value=(shown);
                        label.visually-hidden for="q" { "Search tasks" }
                        input.field #q type="search" name="q" value=(self.search) placeholder="Search goals, directories, ids";
                    }
                }
                (live.place("counts"))
                div.rows { (live.place("tasks")) }
                (live.place("schedules-title"))
                div.rows { (live.place("schedules")) }
            }
        }
    }
}

/// A task and the agents below it.
fn tree(task: &TaskView, below: &HashMap<TaskId, Vec<TaskView>>) -> Markup {
    html! {
        (row(task))
        @if let Some(children) = below.get(&task.row.id) {
            div.children { @for child in children.iter().rev() { (tree(child, below)) } }
        }
    }
}

fn row(task: &TaskView) -> Markup {
    let row = &task.row;
    let next = pieces::next_words(&task.next_action());
    html! {
        div.row {
            span.row-main {
                a.row-title href=(format!("/tasks/{}", row.id)) dir="auto" { (pieces::goal_line(&row.goal)) }
                span.row-sub {
                    code { (pieces::short_id(&row.id)) }
                    (pieces::time(row.updated_at))
                    @if let Some(model) = &row.model { span.model { (shown_line(model)) } }
                    span { (pieces::spent(task.cost_usd, row.usage.total_tokens)) }
                    @if row.usage.tool_calls > 0 { span { (numbers::plural(row.usage.tool_calls, "call")) } }
                    @if let Some(plan) = &row.plan { span { "plan " (plan.done()) "/" (plan.steps.len()) } }
                    @if let Some(process) = task.driven_by { span { "process " (process) } }
                    @if let Some(place) = task.queue_place { span { "place " (place) " in its queue" } }
                    @if row.parent_id.is_none() { a href=(format!("/sessions/{}", row.session_id)) { "session" } }
                    @if !next.0.is_empty() { span.next { (next) } }
                }
                @for command in task.background.values() {
                    span.row-sub { span { "runs in the background: " code { (shown_line(command)) } } }
                }
            }
            (pieces::status_chip(task))
        }
    }
}
