//! A session: the conversation of its tasks, what the active one does right now, and what can be said to it.

use std::collections::{HashMap, HashSet};

use maud::{Markup, html};
use serde_json::{Value, json};
use windlass_coordinator::views::{Filter, OpenQuestion, TaskView};
use windlass_coordinator::{Error, SkillCommand};
use windlass_core::axes::Axes;
use windlass_core::id::{CallId, QuestionId, SessionId, TaskId};
use windlass_core::plan::{StepStatus, WorkingPlan};
use windlass_core::role::Role;
use windlass_core::shown::{shown, shown_line};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_term::{numbers, strip_controls};

use super::conversation::{Body, Conversation, Doing};
use super::drafts::Purpose;
use super::entry::{self, Around};
use super::live::{Fragment, PageContent};
use super::mode::Mode;
use super::pieces::{self, Action, Tone};
use super::previews::Partial;
use super::question;
use super::view::{PageSources, Query, View};
use super::{layout, processes, queue};
use crate::auth::Access;

/// Entries that are shown at first; the rest is a link away.
const WINDOW: usize = 200;

/// Tasks that are named beside the conversation.
const TASKS: usize = 20;

/// The longest address that is linked to.
const MAX_ADDRESS: usize = 4000;

/// The page of one session.
pub struct SessionPage {
    id: SessionId,
    /// How many entries are shown.
    window: usize,
    /// A text to begin with: a link's, which is never sent without a person, or the reader's draft.
    prefill: String,
    /// The skills that the reader may call, read once.
    skills: Option<Vec<SkillCommand>>,
    /// Who reads it, and so what is offered.
    access: Access,
    /// Whether the reader has opened what is beside the conversation.
    shows_side: bool,
    /// The tasks, oldest first.
    tasks: Vec<(TaskId, Conversation)>,
}

/// What a drawing of the page is made from.
struct Drawn<'a> {
    id: SessionId,
    /// The axes of the session; a task takes them over at its next step.
    axes: Axes,
    may_change: bool,
    offers_unrestricted: bool,
    active: Option<&'a TaskView>,
    views: &'a [TaskView],
    questions: &'a [OpenQuestion],
    /// The sub-agents of tasks that wait for some, and where each stands.
    sub_agents: &'a HashMap<TaskId, (&'static str, Tone)>,
    partial: Option<Partial>,
    role: Option<Role>,
    /// Whether a commitment is claimed for it.
    has_claim: bool,
}

impl SessionPage {
    pub fn new(id: SessionId, query: &Query<'_>) -> Self {
        let window = query.get("entries").parse().unwrap_or(WINDOW).clamp(WINDOW, 100_000);
        let prefill = query.get("prompt");
        Self {
            id,
            window,
            prefill,
            skills: None,
            access: Access::Viewer,
            shows_side: false,
            tasks: Vec::new(),
        }
    }

    /// Folds what was committed since the last time.
    fn catch_up(&mut self, reading: &PageSources<'_>, tasks: &[TaskView]) -> Result<(), Error> {
        for view in tasks {
            let id = view.row.id;
            if !self.tasks.iter().any(|(known, _)| *known == id) {
                self.tasks.push((id, Conversation::default()));
            }
            let known = self.tasks.iter_mut().find(|(known, _)| *known == id);
            let Some((_, conversation)) = known else { continue };
            if conversation.seq >= view.row.last_seq {
                continue;
            }
            conversation.catch_up(reading.coordinator, id, drop)?;
        }
        Ok(())
    }

    /// What the tasks and their sub-agents ask. It is read after the journal: a question that was asked in between is
    /// open then, and does not look as if it had been answered.
    fn open_questions(
        &self,
        reading: &PageSources<'_>,
        views: &[TaskView],
    ) -> Result<Vec<OpenQuestion>, Error> {
        let mut questions = Vec::new();
        for view in views {
            let task = view.row.id;
            let is_asking = |(id, one): &(TaskId, Conversation)| *id == task && one.is_asking();
            if !view.questions.is_empty() || self.tasks.iter().any(is_asking) {
                questions.extend(reading.coordinator.inbox().open_in_tree(task)?);
            }
        }
        Ok(questions)
    }

    /// Where the sub-agents stand that some task waits for.
    fn sub_agents(
        &self,
        reading: &PageSources<'_>,
    ) -> Result<HashMap<TaskId, (&'static str, Tone)>, Error> {
        let mut standings = HashMap::new();
        for (task, _) in self.tasks.iter().filter(|(_, one)| one.waits_for_sub_agents()) {
            let below = Filter { root: Some(*task), ..Filter::default() };
            let views = reading.coordinator.tasks().list_without_journals(&below)?;
            standings.extend(views.iter().map(|view| (view.row.id, pieces::standing(view))));
        }
        Ok(standings)
    }

    /// The newest entries of all tasks, oldest first, and how many there are in all.
    fn log(&mut self, drawn: &Drawn<'_>) -> (Vec<Fragment>, usize) {
        let total: usize = self.tasks.iter().map(|(_, one)| one.len()).sum();
        let mut skip = total.saturating_sub(self.window);
        let open: HashSet<QuestionId> =
            drawn.questions.iter().map(|open| open.row.question.id).collect();
        let is_open = |id: QuestionId| open.contains(&id);
        let mut fragments = Vec::new();
        if skip > 0 {
            fragments.push(Fragment::new("earlier", earlier(self.id, skip, total, self.window)));
        }
        for (task, conversation) in &mut self.tasks {
            let view = drawn.views.iter().find(|view| view.row.id == *task);
            let has_ended = view.is_some_and(|view| view.row.status.is_terminal());
            let from = skip.min(conversation.len());
            skip -= from;
            let calls = asked_calls(conversation);
            let call = |id: CallId| calls.get(&id).cloned();
            let workspace = view.map_or("", |view| view.row.workspace.as_str());
            let sub_agent = |id: TaskId| drawn.sub_agents.get(&id).copied();
            let around = Around {
                is_open: &is_open,
                has_ended,
                call: &call,
                workspace,
                sub_agent: &sub_agent,
            };
            let depends =
                |body: &Body| matches!(body, Body::Question(_) | Body::SubAgent { end: None, .. });
            fragments
                .extend(conversation.fragments(from, depends, |one| entry::draw(one, &around)));
        }
        (fragments, total)
    }
}

/// The calls that questions are about.
fn asked_calls(conversation: &Conversation) -> HashMap<CallId, (String, Value)> {
    let asked: HashSet<CallId> = conversation
        .entries()
        .iter()
        .filter_map(|entry| match &entry.body {
            Body::Question(asking) => asking.question.call,
            _ => None,
        })
        .collect();
    let call = |body: &Body| match body {
        Body::Call(call) if asked.contains(&call.id) => {
            Some((call.id, (call.tool.clone(), call.arguments.clone())))
        }
        _ => None,
    };
    conversation.entries().iter().filter_map(|entry| call(&entry.body)).collect()
}

impl View for SessionPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let session = reading.coordinator.sessions().view(self.id)?;
        if session.tasks.is_empty() || !reading.may_see_session(self.id)? {
            return Ok(None);
        }
        self.access = reading.user.access;
        if self.prefill.is_empty() {
            self.prefill = reading.drafts.read(&reading.user.name, Purpose::Session(self.id));
        }
        let panel = Purpose::Panel(self.id);
        self.shows_side = !reading.drafts.read(&reading.user.name, panel).is_empty();
        let filter = Filter { session: Some(self.id), roots: true, ..Filter::default() };
        let mut views = reading.coordinator.tasks().list_without_journals(&filter)?;
        views.reverse();
        if self.skills.is_none() {
            let workspace = views.last().map(|view| view.row.workspace.as_str());
            self.skills = Some(reading.coordinator.skills(workspace)?);
        }
        self.catch_up(reading, &views)?;
        let active = views.last();
        let questions = self.open_questions(reading, &views)?;
        let sub_agents = self.sub_agents(reading)?;
        let partial = active.and_then(|view| reading.previews.of(view.row.id));
        let state = reading.coordinator.session(self.id).state()?;
        let has_claim = !reading.coordinator.commitments().claimed_in(self.id)?.is_empty();
        let (views, questions) = (views.as_slice(), questions.as_slice());
        let drawn = Drawn {
            id: self.id,
            axes: state.axes,
            may_change: reading.may_change(),
            offers_unrestricted: reading.coordinator.limits().unrestricted,
            role: state.role,
            has_claim,
            active,
            views,
            questions,
            sub_agents: &sub_agents,
            partial,
        };
        let (log, _) = self.log(&drawn);
        let current = self.tasks.last().map(|(_, conversation)| conversation);
        let title = active.zip(views.first());
        let title = title.map(|(active, first)| pieces::title(active, &first.row.goal));
        Ok(Some(
            PageContent::new(title.unwrap_or_default())
                .with_fragment("head", head(&drawn, current))
                .with_fragment("bar", bar(&drawn))
                .with_list("log", log)
                .with_fragment("tail", tail(&drawn, current))
                .with_list("asks", asks(&drawn))
                .with_list("queue", queue::fragments(self.id, &reading.queues.of(self.id)))
                .with_fragment("side", side(&drawn, current)),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            div.session.show-side[self.shows_side] {
                (live.place("head"))
                (live.place("bar"))
                div.columns {
                    section.conversation aria-label="Conversation" {
                        h2.visually-hidden { "Conversation" }
                        (live.place("log"))
                        (live.place("tail"))
                        (live.place("asks"))
                        (live.place("queue"))
                        @if self.access > Access::Viewer {
                            (layout::composer(&self.id.to_string(), &self.prefill, &layout::commands(self.access, self.skills.as_deref().unwrap_or_default())))
                        }
                    }
                    aside aria-label="About this session" { (live.place("side")) }
                }
            }
        }
    }
}

/// History that is not loaded never looks complete.
fn earlier(session: SessionId, hidden: usize, total: usize, window: usize) -> Markup {
    html! {
        p.earlier {
            "Showing the last " (window) " of " (total) " entries. "
            a href=(format!("/sessions/{session}?entries={}", window + hidden.min(1000))) { "Show earlier ones" }
        }
    }
}

fn head(drawn: &Drawn<'_>, current: Option<&Conversation>) -> Markup {
    let Some(active) = drawn.active else { return html! {} };
    let first = drawn.views.first().unwrap_or(active);
    let cost = drawn.views.iter().filter_map(|view| view.cost_usd).reduce(|sum, cost| sum + cost);
    let tokens: u64 = drawn.views.iter().map(|view| view.row.usage.total_tokens).sum();
    html! {
        header.page-head {
            div.page-title {
                h1 dir="auto" { (pieces::goal_line(&first.row.goal)) }
                @if drawn.may_change { div.controls { (duplicate(&first.row.goal)) } }
            }
            div.page-facts {
                button.small.toggle-side type="button" data-toggle-side=(format!("panel-{}", drawn.id)) { "Plan and details" }
                @if let Some(gauge) = current.and_then(Conversation::gauge) { (pieces::gauge(&gauge)) }
                span.fact title="Cost of this session" { (pieces::spent(cost, tokens)) }
                @if let Some(model) = &active.row.model { span.fact.model { (shown_line(model)) } }
                @let next = pieces::next_words(&active.next_action());
                @if !next.0.is_empty() { span.fact.next { "next: " (next) } }
            }
        }
    }
}

/// What stays in sight however long the conversation is: where the session stands, its mode, what can be done (MS-002).
fn bar(drawn: &Drawn<'_>) -> Markup {
    let Some(active) = drawn.active else { return html! {} };
    let mode = Mode {
        session: drawn.id,
        axes: &drawn.axes,
        role: drawn.role,
        has_claim: drawn.has_claim,
        may_change: drawn.may_change,
        offers_unrestricted: drawn.offers_unrestricted,
    };
    html! {
        div.session-bar data-state=(pieces::standing(active).1.class()) {
            (pieces::status_chip(active))
            (mode.draw())
            div.controls { (controls(active)) }
        }
    }
}

/// A link to the first page with this goal in its field; a person sends it. One too long for an address has none.
fn duplicate(goal: &str) -> Markup {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let address = format!("/?{}", query.append_pair("prompt", goal).finish());
    html! {
        @if address.len() <= MAX_ADDRESS {
            a.button href=(address) title="Begin another session with the same goal" { "Duplicate" }
        }
    }
}

/// What can be done with a task right now.
pub fn controls(task: &TaskView) -> Markup {
    let path = |verb: &str| format!("/v1/tasks/{}/{verb}", task.row.id);
    let action = |label: &'static str, verb: &str, class: &'static str| {
        Action { label, path: path(verb), body: json!({}), class }.button()
    };
    let runs = task.driven_by.is_some() || task.waits_for_start();
    html! {
        @match task.row.status {
            TaskStatus::Done | TaskStatus::Cancelled => {},
            TaskStatus::Failed => (action("Try again", "retry", "primary")),
            _ => {
                @if runs { (action("Pause", "pause", "")) }
                @else if task.questions.is_empty() { (action("Resume", "resume", "primary")) }
                (action("Stop", "cancel", "danger quiet"))
            }
        }
    }
}

/// What happens right now, and is not committed yet.
fn tail(drawn: &Drawn<'_>, current: Option<&Conversation>) -> Markup {
    let (Some(active), Some(current)) = (drawn.active, current) else { return html! {} };
    // While it works, the script queues what is written.
    let busy = html! { @if is_busy(active) { span data-busy hidden {} } };
    if active.driven_by.is_none() {
        return busy;
    }
    let mut partial = drawn.partial.clone().unwrap_or_default();
    if !matches!(current.doing, Doing::Thinking { request, .. } if partial.request == Some(request))
    {
        partial.drop_reply();
    }
    let running: Vec<CallId> = current.running_calls().collect();
    html! {
        (busy)
        @if !partial.text.trim().is_empty() || !partial.thought.trim().is_empty() { (entry::preview(&partial.thought, &partial.text)) }
        @for call in running.iter().filter_map(|call| partial.outputs.get(call)) {
            div.output.live { pre tabindex="0" { (strip_controls(call).trim_end()) } }
        }
        @if let Some(reason) = &partial.retry {
            p.doing { "The model is asked again: " (shown_line(reason)) }
        } @else if !partial.calls.is_empty() {
            p.doing { span.spinner aria-hidden="true" {} "Calling " (shown_line(&partial.calls.join(", "))) }
        } @else {
            @match current.doing {
                Doing::Thinking { since, .. } => p.doing { span.spinner aria-hidden="true" {} "Thinking " (pieces::since(since)) },
                Doing::Compacting { since } => p.doing { span.spinner aria-hidden="true" {} "Summarizing its context " (pieces::since(since)) },
                Doing::Nothing => {},
            }
        }
    }
}

/// Whether a message would have to wait, or go into what is being done.
fn is_busy(task: &TaskView) -> bool {
    let awaits = (TaskStatus::Paused, StatusReason::AwaitingMessage);
    !task.row.status.is_terminal() && (task.row.status, task.row.reason) != awaits
}

/// Questions of sub-agents, which are in no entry of the session's own tasks.
fn asks(drawn: &Drawn<'_>) -> Vec<Fragment> {
    let is_own = |task: TaskId| drawn.views.iter().any(|view| view.row.id == task);
    let below = drawn.questions.iter().filter(|open| !is_own(open.row.task));
    let draw = |open: &OpenQuestion| {
        html! {
            @if let Some(label) = &open.label { p.asker { "Sub-agent " strong { (shown_line(label)) } } }
            (question::asked(open))
        }
    };
    below.map(|open| Fragment::new(open.row.question.id.to_string(), draw(open))).collect()
}

fn side(drawn: &Drawn<'_>, current: Option<&Conversation>) -> Markup {
    html! {
        @if let Some(plan) = current.and_then(|one| one.plan.as_ref()) { (plan_card(plan)) }
        @if let (Some(active), Some(current)) = (drawn.active, current) {
            (processes::card(active, current, drawn.partial.as_ref()))
        }
        @if let Some(files) = current.map(|one| &one.changed_files).filter(|files| !files.is_empty()) {
            section.card {
                h2 { "Changed files" }
                ul.files {
                    @for (path, (added, removed)) in files {
                        li { span.path { (shown_line(path)) } span.lines { span.t-good { "+" (added) } " " span.t-bad { "−" (removed) } } }
                    }
                }
                @if let Some(active) = drawn.active {
                    p { a href=(format!("/tasks/{}/changes", active.row.id)) { "Review the changes" } }
                }
            }
        }
        @if let Some(active) = drawn.active { (task_card(active, drawn.views)) }
        p.export { a href=(format!("/v1/sessions/{}/export", drawn.id)) download { "Export this session" } }
    }
}

/// The working plan, step by step.
pub fn plan_card(plan: &WorkingPlan) -> Markup {
    html! {
        section.card.plan {
            h2 { "Plan" span.count { (plan.done()) " of " (plan.steps.len()) } }
            ol {
                @for step in &plan.steps {
                    li.(step_class(step.status)) {
                        span.visually-hidden { (step.status) ": " }
                        span dir="auto" { (shown(&step.description)) }
                    }
                }
            }
        }
    }
}

const fn step_class(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pending => "pending",
        StepStatus::InProgress => "current",
        StepStatus::Done => "done",
        StepStatus::Blocked => "blocked",
        StepStatus::Skipped => "skipped",
    }
}

fn task_card(active: &TaskView, views: &[TaskView]) -> Markup {
    let row = &active.row;
    html! {
        section.card {
            h2 { @if views.len() > 1 { "Tasks" span.count { (views.len()) } } @else { "Task" } }
            @if views.len() > 1 {
                ul.tasks {
                    @for view in views.iter().rev().take(TASKS) {
                        li { (pieces::status_chip(view)) a href=(format!("/tasks/{}", view.row.id)) { (pieces::goal_line(&view.row.goal)) } }
                    }
                }
                @if views.len() > TASKS { p.hint { "The newest " (TASKS) " are shown." } }
            } @else {
                p { a href=(format!("/tasks/{}", row.id)) { "Timeline, events and outputs" } }
            }
            dl.facts {
                dt { "Started" } dd { (pieces::time(row.created_at)) }
                dt { "Directory" } dd { code.path { (shown_line(&row.workspace)) } }
                dt { "Tokens" } dd { (numbers::count(row.usage.total_tokens)) }
                @if let Some(budget) = row.cost_budget { dt { "Budget" } dd { (numbers::dollars(budget)) } }
            }
        }
    }
}
