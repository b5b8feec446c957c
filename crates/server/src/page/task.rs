//! One task: where its time went, its events, what it changed, what it printed, what it hands over.

use maud::{Markup, html};
use windlass_coordinator::views::{Filter, TaskView};
use windlass_coordinator::{Error, JournalEntry};
use windlass_core::command::TaskResult;
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::outcome::CallEnding;
use windlass_core::shown::shown_line;
use windlass_term::{event_lines, numbers};

use super::conversation::Conversation;
use super::drafts::Purpose;
use super::live::{Fragment, PageContent};
use super::view::{PageSources, Query, View};
use super::{deliverable, diff, entry, markdown, pieces, processes, session, timeline};

/// Events of one page.
const EVENTS: usize = 300;
/// Columns of an event's words.
const WORDS: usize = 200;
/// Lines of a file's changes that are shown at once, and at most.
const DIFF_LINES: usize = 1500;
const MAX_DIFF_LINES: usize = 50_000;
/// The largest zoom of a timeline.
const MAX_ZOOM: u32 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    Timeline,
    Events,
    Changes,
    Outputs,
    Result,
}

impl Tab {
    const EACH: [(Self, &'static str, &'static str); 5] = [
        (Self::Timeline, "timeline", "Timeline"),
        (Self::Events, "events", "Events"),
        (Self::Changes, "changes", "Changes"),
        (Self::Outputs, "outputs", "Outputs"),
        (Self::Result, "result", "Result"),
    ];

    /// The tab of this name.
    pub fn read(name: &str) -> Option<Self> {
        Self::EACH.iter().find(|(_, word, _)| *word == name).map(|(tab, ..)| *tab)
    }
}

pub struct TaskPage {
    id: TaskId,
    tab: Tab,
    zoom: u32,
    failed_only: bool,
    /// Lines of a file's changes that are shown.
    diff_lines: usize,
    /// The event that the shown ones are around; the newest are shown without.
    at: Option<u64>,
    /// The reader's comments on the changes that are not sent yet.
    comments: String,
    journal: Vec<JournalEntry>,
    conversation: Conversation,
}

impl TaskPage {
    pub fn new(id: TaskId, tab: Tab, query: &Query<'_>) -> Self {
        Self {
            id,
            tab,
            zoom: query.get("zoom").parse().unwrap_or(1).clamp(1, MAX_ZOOM),
            failed_only: query.get("failed") == "1",
            diff_lines: if query.get("whole") == "1" { MAX_DIFF_LINES } else { DIFF_LINES },
            at: query.get("at").parse().ok(),
            comments: String::new(),
            journal: Vec::new(),
            conversation: Conversation::default(),
        }
    }

    fn catch_up(&mut self, reading: &PageSources<'_>) -> Result<(), Error> {
        let Self { conversation, journal, id, .. } = self;
        conversation.catch_up(reading.coordinator, *id, |entry| journal.push(entry))
    }

    /// The events that can be read.
    fn records(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.journal.iter().filter_map(JournalEntry::record)
    }

    fn tab_content(
        &self,
        reading: &PageSources<'_>,
        view: &TaskView,
        live: PageContent,
    ) -> Result<PageContent, Error> {
        Ok(match self.tab {
            Tab::Timeline => {
                let now = reading.coordinator.now();
                let look = timeline::TimelineStyle {
                    task: self.id,
                    zoom: self.zoom,
                    failed_only: self.failed_only,
                    now,
                };
                live.with_fragment(
                    "timeline",
                    timeline::draw(&timeline::spans(&self.journal), look),
                )
            }
            Tab::Events => live.with_list("events", self.events()),
            Tab::Changes => {
                let files = reading.coordinator.artifacts().changes().of(self.id)?;
                live.with_fragment("changes-head", changes_head(files.is_empty())).with_list(
                    "changes",
                    files.iter().map(|file| self.changed_file(file)).collect(),
                )
            }
            Tab::Outputs => {
                let outputs = reading.coordinator.artifacts().outputs().of(self.id)?;
                live.with_fragment("outputs", outputs_list(&outputs))
            }
            Tab::Result => live.with_fragment("result", self.result(reading, view)?),
        })
    }

    /// What a task hands over. Files are published while it works, long before its result.
    fn result(&self, reading: &PageSources<'_>, view: &TaskView) -> Result<Markup, Error> {
        let files = reading.coordinator.artifacts().deliverables().of(self.id)?;
        let result = self.records().rev().find_map(|record| match &record.event {
            Event::AgentEnd(result) => Some(&**result),
            _ => None,
        });
        let used = result.map(|result| self.used(reading, view, result)).transpose()?;
        Ok(html! {
            @match result {
                Some(result) => (answer(result)),
                None => (pieces::nothing("No result yet", html! { "It appears when a segment of the task ends." })),
            }
            @for (place, file) in files.iter().enumerate() { (deliverable::draw(self.id, file, &place.to_string())) }
            @if let Some(plan) = &self.conversation.plan { (session::plan_card(plan)) }
            @if let Some(used) = used { (used) }
        })
    }

    fn used(
        &self,
        reading: &PageSources<'_>,
        view: &TaskView,
        result: &TaskResult,
    ) -> Result<Markup, Error> {
        let cost = reading.coordinator.costs().of(self.id)?.total;
        let refused = self.conversation.refused_calls();
        Ok(html! {
            section.card {
                h2 { "Used" }
                dl.facts {
                    dt { "Steps" } dd { (result.usage.iterations) }
                    dt { "Tool calls" } dd { (result.usage.tool_calls) @if refused > 0 { ", " (refused) " refused" } }
                    dt { "Tokens" } dd { (numbers::count(result.usage.total_tokens)) }
                    dt { "Cached" } dd { (numbers::count(cost.cached_tokens)) }
                    dt { "Cost" } dd { (pieces::spent(cost.cost_usd, result.usage.total_tokens)) }
                    dt { "Compactions" } dd { (result.usage.compactions) }
                    @if let Some(checkpoint) = &view.row.checkpoint_ref { dt { "Last checkpoint" } dd { code { (shown_line(checkpoint)) } } }
                }
            }
        })
    }

    /// The events of the window, and how many there are on either side of it.
    fn events(&self) -> Vec<Fragment> {
        let wanted = |entry: &&JournalEntry| {
            !self.failed_only || entry.record().is_none_or(|record| is_failure(&record.event))
        };
        let found: Vec<&JournalEntry> = self.journal.iter().filter(wanted).collect();
        let (from, to) = window(&found, self.at);
        let mut fragments = Vec::new();
        if let Some(next) = found[..from].last() {
            fragments.push(self.more("earlier", from, next.seq()));
        }
        fragments.extend(found[from..to].iter().map(|one| match one {
            JournalEntry::Event(record) => Fragment::new(format!("e{}", record.seq), event(record)),
            JournalEntry::Damaged(damage) => {
                Fragment::new(format!("e{}", damage.first), entry::damaged(damage))
            }
        }));
        if let Some(next) = found[to..].first() {
            fragments.push(self.more("later", found.len() - to, next.seq()));
        }
        fragments
    }

    /// One file and its diff: a piece of its own, so that an edit of another leaves it as it is.
    fn changed_file(&self, one: &windlass_coordinator::views::FileDiff) -> Fragment {
        let content = html! {
            section.file {
                h2.path {
                    (shown_line(&one.file.path))
                    @if let Some((added, removed)) = one.file.lines {
                        span.lines { span.t-good { "+" (added) } " " span.t-bad { "−" (removed) } }
                    }
                    @if one.file.is_new { span.tag { "new" } }
                }
                @if let Some(text) = one.diff.as_ref().filter(|_| one.file.path.ends_with(".md")) {
                    details.preview id=(format!("preview-{}", one.file.path)) {
                        summary { "Preview" }
                        (markdown::render(&diff::after(text)))
                    }
                }
                @match &one.diff {
                    Some(text) => (diff::commentable(text, &one.file.path, self.diff_lines)),
                    None => p.hint { "Not shown: it is not text, is too large, or is no longer kept." },
                }
            }
        };
        Fragment::new(format!("file-{}", one.file.path), content)
    }

    /// A part of the journal that is not loaded never looks as if there were nothing.
    fn more(&self, side: &'static str, count: usize, seq: u64) -> Fragment {
        let failed = if self.failed_only { "&failed=1" } else { "" };
        let content = html! {
            p.earlier { (numbers::plural(count, &format!("{side} event"))) ". " a href=(format!("?at={seq}{failed}")) { "Show them" } }
        };
        Fragment::new(side, content)
    }
}

/// Where the events around one begin and end; the newest without one.
fn window(found: &[&JournalEntry], at: Option<u64>) -> (usize, usize) {
    let to = at.map_or(found.len(), |at| {
        let behind = found.partition_point(|entry| entry.seq() <= at);
        (behind + EVENTS / 2).clamp(EVENTS.min(found.len()), found.len())
    });
    (to.saturating_sub(EVENTS), to)
}

impl View for TaskPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let Some(row) = reading.coordinator.tasks().get(self.id)? else { return Ok(None) };
        if !reading.may_see_session(row.session_id)? {
            return Ok(None);
        }
        self.catch_up(reading)?;
        if self.tab == Tab::Changes {
            self.comments = reading.drafts.read(&reading.user.name, Purpose::Review(self.id));
        }
        let tree = Filter { root: Some(row.root_id), ..Filter::default() };
        let views = reading.coordinator.tasks().list_without_journals(&tree)?;
        let Some(view) = views.iter().find(|view| view.row.id == self.id) else { return Ok(None) };
        let children = views.iter().filter(|one| one.row.parent_id == Some(self.id));
        let children: Vec<&TaskView> = children.collect();
        let live = PageContent::new(pieces::title(view, &view.row.goal))
            .with_fragment("head", head(view, &self.conversation, &children))
            .with_fragment("processes", {
                let partial = reading.previews.of(self.id);
                processes::card(view, &self.conversation, partial.as_ref())
            });
        self.tab_content(reading, view, live).map(Some)
    }

    fn frame(&self, live: &PageContent) -> Markup {
        let base = format!("/tasks/{}", self.id);
        let zoom =
            |zoom: u32| format!("?zoom={zoom}{}", if self.failed_only { "&failed=1" } else { "" });
        html! {
            div.task {
                (live.place("head"))
                (live.place("processes"))
                nav.tabs aria-label="Parts of the task" {
                    @for (tab, name, words) in Tab::EACH {
                        a href=(format!("{base}/{name}")) aria-current=[(tab == self.tab).then_some("page")] { (words) }
                    }
                }
                @if matches!(self.tab, Tab::Timeline | Tab::Events) {
                    div.filters {
                        nav aria-label="Filter" {
                            a href="?" aria-current=[(!self.failed_only).then_some("true")] { "Everything" }
                            a href="?failed=1" aria-current=[self.failed_only.then_some("true")] { "Failed only" }
                        }
                        @if self.tab == Tab::Timeline {
                            nav aria-label="Zoom" {
                                a href=(zoom((self.zoom / 2).max(1))) aria-label="Zoom out" { "−" }
                                span { (self.zoom) "×" }
                                a href=(zoom((self.zoom * 2).min(MAX_ZOOM))) aria-label="Zoom in" { "+" }
                            }
                        }
                    }
                }
                @match self.tab {
                    Tab::Timeline => (live.place("timeline")),
                    Tab::Events => div.events { (live.place("events")) },
                    Tab::Changes => div data-review=(self.id) data-comments=(self.comments) {
                        (live.place("changes-head"))
                        (live.place("changes"))
                    },
                    Tab::Outputs => (live.place("outputs")),
                    Tab::Result => (live.place("result")),
                }
            }
        }
    }
}

fn head(view: &TaskView, conversation: &Conversation, children: &[&TaskView]) -> Markup {
    let row = &view.row;
    html! {
        header.page-head {
            div.page-title { h1 dir="auto" { (pieces::goal_line(&row.goal)) } div.controls { (session::controls(view)) } }
            div.page-facts data-state=(pieces::standing(view).1.class()) {
                (pieces::status_chip(view))
                span.chip.axes { (pieces::axes_words(&row.axes)) }
                @if let Some(gauge) = conversation.gauge() { (pieces::gauge(&gauge)) }
                span.fact { (pieces::spent(view.cost_usd, row.usage.total_tokens)) }
                span.fact { (numbers::count(row.usage.total_tokens)) " tokens" }
                @if let Some(model) = &row.model { span.fact.model { (shown_line(model)) } }
                span.links {
                    a href=(format!("/sessions/{}", row.session_id)) { "Conversation" }
                    a href=(format!("/v1/tasks/{}/trace", row.id)) download { "Trace" }
                    @if let Some(parent) = row.parent_id { a href=(format!("/tasks/{parent}")) { "Parent task" } }
                }
            }
            @for damage in conversation.damaged() {
                p.note.bad { span { (entry::damage_words(damage)) } a href=(format!("/tasks/{}/events?at={1}#e{1}", row.id, damage.first)) { "Its place among the events" } }
            }
            @if !children.is_empty() {
                p.page-facts { "Sub-agents:"
                    @for child in children {
                        a.fact href=(format!("/tasks/{}", child.row.id)) { (pieces::goal_line(&child.row.goal)) } (pieces::status_chip(child))
                    }
                }
            }
        }
    }
}

fn event(record: &Record) -> Markup {
    let (kind, body) = record.event.parts();
    let pretty = || {
        let value: serde_json::Value = serde_json::from_str(&body).ok()?;
        serde_json::to_string_pretty(&value).ok()
    };
    html! {
        details.event.failed[is_failure(&record.event)] id=(format!("v{}", record.seq)) {
            summary {
                span.seq { (record.seq) }
                (pieces::time(record.at))
                span.kind { (kind) }
                span.words dir="auto" { (pieces::with_code(&without_ids(&event_lines::words(&record.event, WORDS)))) }
            }
            p.permalink { a href=(format!("?at={0}#e{0}", record.seq)) { "Link to this event" } }
            pre tabindex="0" { (windlass_core::shown::shown_json(&pretty().unwrap_or_default())) }
        }
    }
}

/// The words of an event without the ids of calls, which stand in the event itself.
fn without_ids(words: &str) -> String {
    let is_id = |word: &&str| {
        let rest = word.strip_prefix("call_").unwrap_or_default();
        rest.len() == 26 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let kept: Vec<&str> = words.split(' ').filter(|word| !is_id(word)).collect();
    kept.join(" ").trim_end().to_owned()
}

/// Whether an event is about something that went wrong.
fn is_failure(event: &Event) -> bool {
    match event {
        Event::ToolResult(result) => {
            result.outcome.ending != CallEnding::Ok
                || result.outcome.exit_code.is_some_and(|code| code != 0)
        }
        Event::StatusChanged(change) => change.error.is_some(),
        Event::DoomLoopDetected(_) | Event::SandboxLost(_) | Event::BudgetHit(_) => true,
        Event::AgentEnd(result) => result.error_details.is_some(),
        _ => false,
    }
}

/// What stands above the changed files, or in their place.
fn changes_head(is_empty: bool) -> Markup {
    if is_empty {
        let words = html! { "Changes that commands make are not listed here." };
        return pieces::nothing("No files were changed", words);
    }
    html! { p.hint.comment-hint { "Press + beside a line to comment on it. Your comments become the next message." } }
}

fn outputs_list(outputs: &[windlass_coordinator::outputs::CallOutput]) -> Markup {
    if outputs.is_empty() {
        return pieces::nothing(
            "Nothing was printed",
            html! { "What commands print is kept for some days." },
        );
    }
    html! {
        div.rows {
            @for one in outputs {
                @let size: u64 = one.kept.iter().map(|(_, kept)| kept.original_size).sum();
                div.row {
                    span.row-main {
                        a.row-title href=(format!("/outputs/{}", one.call.call)) {
                            code { (windlass_term::tool_lines::call(&one.call.tool, &one.call.arguments, WORDS)) }
                        }
                        span.row-sub { (pieces::time(one.at)) span { (numbers::count(size)) " bytes" }
                            @if one.kept.iter().any(|(_, kept)| kept.truncated) { span { "kept whole in a file" } } }
                    }
                }
            }
        }
    }
}

fn answer(result: &TaskResult) -> Markup {
    html! {
        @if let Some(text) = &result.final_message { section.card { h2 { "Answer" } (markdown::render(text)) } }
        @if let Some(error) = &result.error_details { (entry::failure(error)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_calls_are_left_out_of_the_words() {
        let id = "call_01M7EWF4Y3E0M8H9SCVSWJX75T";
        assert_eq!(without_ids(&format!("echo one  {id}")), "echo one");
        assert_eq!(without_ids(&format!("{id} exit 0: one")), "exit 0: one");
        assert_eq!(without_ids("call_me later"), "call_me later");
    }
}
