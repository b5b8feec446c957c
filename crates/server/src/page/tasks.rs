//! The overview: every task with its sub-agents as a tree, what waits, what is scheduled.

use std::collections::HashMap;

use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_coordinator::views::{Filter, ListPlace, ScheduleRow, TaskView};
use windlass_core::id::TaskId;
use windlass_core::schedule::ScheduleState;
use windlass_core::shown::shown_line;
use windlass_core::status::TaskStatus;
use windlass_term::numbers;

use super::live::{Fragment, PageContent};
use super::view::{PageSources, Query, View};
use super::{pieces, schedules, workflows};
use crate::place::{self, Place as _};

/// Tasks that are shown at once.
const SHOWN: usize = 100;

/// Which tasks are shown.
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

    fn name(self) -> &'static str {
        Self::EACH.iter().find(|(which, ..)| *which == self).map_or("all", |(_, name, _)| name)
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

    /// The statuses that it lets through; empty for more than that.
    fn statuses(self) -> Vec<TaskStatus> {
        match self {
            Self::Done => vec![TaskStatus::Done],
            Self::Failed => vec![TaskStatus::Failed],
            Self::All | Self::Live | Self::Waiting | Self::Stuck => Vec::new(),
        }
    }

    /// Whether only the views of tasks say what it lets through. All live tasks are looked at then.
    const fn is_of_views(self) -> bool {
        matches!(self, Self::Waiting | Self::Stuck)
    }
}

pub struct TasksPage {
    which: TaskFilter,
    search: String,
    /// The task behind which others are listed; the newest are without.
    after: Option<ListPlace>,
}

impl TasksPage {
    pub fn new(query: &Query<'_>) -> Self {
        let which = TaskFilter::read(&query.get("show"));
        let after = ListPlace::read(&query.get("after")).filter(|_| !which.is_of_views());
        Self { which, search: query.get("q"), after }
    }

    /// What the store is asked for.
    fn filter(&self, reading: &PageSources<'_>) -> Filter {
        let is_live = self.which == TaskFilter::Live || self.which.is_of_views();
        Filter {
            roots: true,
            live: is_live,
            statuses: self.which.statuses(),
            text: Some(self.search.clone()).filter(|text| !text.is_empty()),
            user: reading.user.limited_to(),
            after: self.after,
            ..Filter::default()
        }
    }

    /// The tasks of the list as trees, and how many older ones the list does not have.
    fn trees(&self, reading: &PageSources<'_>) -> Result<(Vec<Tree>, usize), Error> {
        let (tasks, filter) = (reading.coordinator.tasks(), self.filter(reading));
        let limit = (!self.which.is_of_views()).then_some(SHOWN);
        let mut trees = Vec::new();
        let rows = tasks.rows(&Filter { limit, ..filter.clone() })?;
        for row in &rows {
            let tree = Filter { root: Some(row.id), ..Filter::default() };
            let mut views = tasks.list(&tree)?;
            let root = views.iter().position(|one| one.row.id == row.id);
            if let Some(root) = root.map(|at| views.remove(at)) {
                trees.push(Tree::new(root, views));
            }
        }
        let hidden =
            if limit.is_some() { tasks.count(&filter)?.saturating_sub(rows.len()) } else { 0 };
        trees.retain(|tree| self.which.has(&tree.root));
        Ok((trees, hidden))
    }

    /// The address of the list after a place in it.
    fn address(&self, place: &str) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("show", self.which.name()).append_pair("q", &self.search);
        if !place.is_empty() {
            query.append_pair("after", place);
        }
        format!("/tasks?{}", query.finish())
    }

    /// What the list does not have, and where it is.
    fn older(&self, trees: &[Tree], hidden: usize) -> Markup {
        let last =
            trees.last().filter(|_| hidden > 0).map(|tree| place::after_task(&tree.root.row));
        html! {
            @if let Some(place) = last {
                p.earlier { (numbers::plural(hidden, "older task")) ": not shown here. " a href=(self.address(&place)) { "Show them" } }
            }
        }
    }

    fn newer(&self, is_empty: bool) -> Markup {
        html! {
            @if self.after.is_some() { p.earlier { "Newer tasks are not shown. " a href=(self.address("")) { "Show the newest" } } }
            @else if is_empty && self.which == TaskFilter::All && self.search.is_empty() {
                (pieces::nothing("No tasks yet", html! { "Begin one on the " a href="/" { "first page" } ", or with " code { "windlass run" } "." }))
            } @else if is_empty { (pieces::nothing("No such tasks", html! { "Tasks that fit the filter appear here." })) }
        }
    }
}

/// A task and the agents below it, each with the task that started it.
struct Tree {
    root: TaskView,
    below: HashMap<TaskId, Vec<TaskView>>,
}

impl Tree {
    fn new(root: TaskView, tasks: Vec<TaskView>) -> Self {
        let mut below: HashMap<TaskId, Vec<TaskView>> = HashMap::new();
        for task in tasks {
            below.entry(task.row.parent_id.unwrap_or(root.row.id)).or_default().push(task);
        }
        Self { root, below }
    }
}

impl View for TasksPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let (trees, hidden) = self.trees(reading)?;
        let drawn = trees
            .iter()
            .map(|one| Fragment::new(one.root.row.id.to_string(), tree(&one.root, &one.below)));
        let workers = match self.which {
            TaskFilter::All | TaskFilter::Live => workflows::workers(reading)?,
            TaskFilter::Waiting | TaskFilter::Stuck | TaskFilter::Done | TaskFilter::Failed => {
                Vec::new()
            }
        };
        let mut scheduled = Vec::new();
        if self.which.statuses().is_empty() {
            let mut rows = reading.coordinator.schedules().list()?;
            rows.retain(|row| {
                let owner = row.schedule.user_id.as_deref();
                row.state != ScheduleState::Ended && reading.user.may_see(owner)
            });
            let fragment =
                |row: &ScheduleRow| Fragment::new(row.schedule.id.to_string(), schedules::row(row));
            scheduled.extend(rows.iter().map(fragment));
        }
        Ok(Some(
            PageContent::new("Tasks")
                .with_fragment("newer", self.newer(trees.is_empty()))
                .with_list("tasks", drawn.collect())
                .with_fragment("older", self.older(&trees, hidden))
                .with_fragment("workers-title", html! { @if !workers.is_empty() { h2 { "Workers in worktrees" span.count { (workers.len()) } } } })
                .with_list("workers", workers)
                .with_fragment(
                    "schedules-title",
                    html! { @if !scheduled.is_empty() { h2 { "Scheduled" } } },
                )
                .with_list("schedules", scheduled),
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
                        input type="hidden" name="show" value=(self.which.name());
                        label.visually-hidden for="q" { "Search tasks" }
                        input.field #q type="search" name="q" value=(self.search) placeholder="Search goals, directories, ids";
                    }
                }
                (live.place("newer"))
                div.rows { (live.place("tasks")) }
                (live.place("older"))
                (live.place("workers-title"))
                div.rows { (live.place("workers")) }
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
