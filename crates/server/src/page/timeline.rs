//! Where a task's time went: the model, tools, waiting for people, compaction; from its events, as a picture.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use maud::{Markup, html};
use windlass_coordinator::JournalEntry;
use windlass_core::event::{Event, Record};
use windlass_core::id::{CallId, QuestionId, TaskId};
use windlass_core::outcome::CallEnding;
use windlass_core::shown::shown_line;
use windlass_core::status::TaskStatus;
use windlass_core::text::one_line;
use windlass_term::{numbers, tool_lines};

/// Spans that are drawn; a browser is slow with more.
const MOST: usize = 600;
/// Height of a lane, and of the axis below them.
const LANE: f64 = 34.0;
const AXIS: f64 = 22.0;
/// Parts of the axis between its times.
const TICKS: u32 = 4;
/// Attempts of one group that are listed, from the last.
const ATTEMPTS: usize = 50;
/// Columns of a span's words.
const WORDS: usize = 120;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    Model,
    Tools,
    Waiting,
    Compaction,
}

impl Lane {
    const ALL: [Self; 4] = [Self::Model, Self::Tools, Self::Waiting, Self::Compaction];

    const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tools => "tools",
            Self::Waiting => "waiting",
            Self::Compaction => "compaction",
        }
    }
}

/// A stretch of time in which a task did one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub lane: Lane,
    /// The event that it began with.
    pub seq: u64,
    pub from: Timestamp,
    /// `None` while it lasts.
    pub to: Option<Timestamp>,
    pub words: String,
    /// What was attempted: the same again after a failure is another attempt at it.
    pub what: String,
    pub failed: bool,
    /// Its end may have stood where the journal is damaged.
    pub is_cut: bool,
}

impl Span {
    fn took(&self, now: Timestamp) -> Duration {
        Duration::try_from(self.to.unwrap_or(now).duration_since(self.from)).unwrap_or_default()
    }
}

/// What a task did, in the order in which each began.
pub fn spans(journal: &[JournalEntry]) -> Vec<Span> {
    let mut builder = TimelineBuilder::default();
    for entry in journal {
        match entry {
            JournalEntry::Event(record) => builder.read(record),
            JournalEntry::Damaged(_) => builder.cut(),
        }
    }
    builder.spans
}

#[derive(Default)]
struct TimelineBuilder {
    spans: Vec<Span>,
    request: Option<usize>,
    calls: HashMap<CallId, usize>,
    questions: HashMap<QuestionId, usize>,
    parked: Option<usize>,
    compaction: Option<usize>,
    /// Whether the task stands still, and may be resumed.
    stands: bool,
}

impl TimelineBuilder {
    fn open(&mut self, record: &Record, lane: Lane, words: String) -> usize {
        let Record { seq, at, .. } = *record;
        let what = words.clone();
        self.spans.push(Span {
            lane,
            seq,
            from: at,
            to: None,
            words,
            what,
            failed: false,
            is_cut: false,
        });
        self.spans.len() - 1
    }

    fn close(&mut self, index: Option<usize>, at: Timestamp, failed: bool) {
        if let Some(span) = index.and_then(|index| self.spans.get_mut(index)) {
            span.to = span.to.filter(|_| !span.is_cut).or(Some(at));
            span.is_cut = false;
            span.failed |= failed;
        }
    }

    /// What has begun may have ended where the journal is damaged. It is not said to last, unless its end follows.
    fn cut(&mut self) {
        let open = self.request.iter().chain(&self.compaction).chain(&self.parked);
        let open: Vec<usize> =
            open.chain(self.calls.values()).chain(self.questions.values()).copied().collect();
        for index in open {
            let span = &mut self.spans[index];
            (span.to, span.is_cut) = (Some(span.from), true);
        }
    }

    /// Closes what came to no end that the journal knows.
    fn lose(&mut self, index: usize, at: Timestamp) {
        if !self.spans[index].is_cut {
            self.close(Some(index), at, true);
        }
    }

    fn read(&mut self, record: &Record) {
        let at = record.at;
        match &record.event {
            Event::LlmRequest(request) => {
                if let Some(lost) = self.request.take() {
                    self.lose(lost, at);
                }
                self.request = Some(self.open(record, Lane::Model, shown_line(&request.model)));
            }
            Event::LlmResponse(response) => {
                let open = self.request.take();
                if let Some(span) = open.and_then(|open| self.spans.get_mut(open)) {
                    let tokens = response.usage.output_tokens;
                    span.words = format!("{}, {tokens} tokens", span.words);
                }
                self.close(open, at, false);
            }
            Event::ToolCall(call) => {
                let words = tool_lines::call(&call.tool, &call.arguments, WORDS);
                let index = self.open(record, Lane::Tools, words);
                self.spans[index].what = format!("{} {}", call.tool, call.arguments);
                self.calls.insert(call.call, index);
            }
            Event::ToolResult(result) => {
                let open = self.calls.remove(&result.call);
                let failed = result.outcome.ending != CallEnding::Ok
                    || result.outcome.exit_code.is_some_and(|code| code != 0);
                self.close(open, at, failed);
            }
            Event::QuestionAsked(question) => {
                let words = one_line(&shown_line(&question.question), WORDS);
                let index = self.open(record, Lane::Waiting, words);
                self.questions.insert(question.id, index);
            }
            Event::QuestionAnswered(answered) => {
                let open = self.questions.remove(&answered.question);
                self.close(open, at, false);
            }
            Event::QuestionClosed(closed) => {
                let open = self.questions.remove(&closed.question);
                self.close(open, at, false);
            }
            Event::StatusChanged(change) => {
                let parked = self.parked.take();
                self.close(parked, at, false);
                self.stands = matches!(change.to, TaskStatus::Paused | TaskStatus::Blocked);
                if self.stands && self.questions.is_empty() {
                    let words = format!("{}: {}", change.to, change.reason);
                    self.parked = Some(self.open(record, Lane::Waiting, words));
                }
            }
            Event::CompactionStart(start) => {
                let words = format!("summarizes {} turns", start.summarized_turns);
                self.compaction = Some(self.open(record, Lane::Compaction, words));
            }
            Event::CompactionEnd(_) => {
                let open = self.compaction.take();
                self.close(open, at, false);
            }
            Event::AgentEnd(_) => self.end_segment(at),
            _ => {}
        }
    }

    /// What a segment left open did not outlast it, but for the calls of a task that stands still: when it is resumed,
    /// they come to their results.
    fn end_segment(&mut self, at: Timestamp) {
        let mut open: Vec<usize> = self.request.take().into_iter().collect();
        open.extend(self.compaction.take());
        if !self.stands {
            open.extend(self.calls.drain().map(|(_, index)| index));
        }
        open.into_iter().for_each(|index| self.lose(index, at));
    }
}

/// How a timeline is looked at.
#[derive(Clone, Copy, Debug)]
pub struct TimelineStyle {
    pub task: TaskId,
    /// How many times wider than the page it is.
    pub zoom: u32,
    pub failed_only: bool,
    pub now: Timestamp,
}

/// The picture, and below it each span in words. Attempts at the same thing are one row that opens.
pub fn draw(spans: &[Span], look: TimelineStyle) -> Markup {
    let shown: Vec<&Span> = spans.iter().filter(|span| !look.failed_only || span.failed).collect();
    let hidden = shown.len().saturating_sub(MOST);
    let shown = &shown[hidden..];
    let Some(first) = shown.first() else {
        let words = if look.failed_only { "Nothing failed." } else { "Nothing has happened yet." };
        return html! { p.nothing { (words) } };
    };
    let is_shown = |group: &Vec<&Span>| group.iter().any(|span| span.seq >= first.seq);
    let wanted = |group: &Vec<&Span>| !look.failed_only || group.iter().any(|span| span.failed);
    let groups = attempts(spans).into_iter().filter(is_shown).filter(wanted);
    html! {
        @if hidden > 0 { p.earlier { "The last " (MOST) " of " (hidden + MOST) " steps." } }
        div.timeline { (picture(shown, first.from, look)) }
        ol.spans { @for group in groups { (group_row(&group, look)) } }
    }
}

/// The spans in groups of attempts at the same thing: each but the last of a group has failed.
fn attempts(spans: &[Span]) -> Vec<Vec<&Span>> {
    let mut groups: Vec<Vec<&Span>> = Vec::new();
    // The groups whose last attempt failed, so that another may follow.
    let mut failing: HashMap<(Lane, &str), usize> = HashMap::new();
    for span in spans {
        let what = (span.lane, span.what.as_str());
        let at = failing.remove(&what).unwrap_or(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(span),
            None => groups.push(vec![span]),
        }
        if span.failed {
            failing.insert(what, at);
        }
    }
    groups
}

fn group_row(group: &[&Span], look: TimelineStyle) -> Markup {
    let [first, .., last] = group else {
        return html! { @for span in group { (row(span, look)) } };
    };
    let failed = group.iter().filter(|span| span.failed).count();
    let took = group.iter().map(|span| span.took(look.now)).sum();
    let count = group.len();
    html! {
        li.attempts {
            details id=(format!("attempts-{}", first.seq)) {
                summary.span.failed[last.failed] {
                    span.swatch.(first.lane.name()) aria-hidden="true" {}
                    span.lane { (first.lane.name()) }
                    span.words dir="auto" { (first.words) }
                    span.t-bad[last.failed] { (count) " attempts, " (if failed == count { "all".to_owned() } else { failed.to_string() }) " failed" }
                    span.took { @if last.to.is_some() { (took_alone(took)) } @else { "running" } }
                }
                ol { @for span in group.iter().rev().take(ATTEMPTS).rev() { (row(span, look)) } }
            }
        }
    }
}

/// The lanes beside each other in time. It is measured in parts of the page's width, so that the whole is in sight on a
/// phone too; the names of the lanes stay while the rest is scrolled.
fn picture(spans: &[&Span], start: Timestamp, look: TimelineStyle) -> Markup {
    let seconds = |at: Timestamp| at.duration_since(start).as_secs_f64();
    let end = spans.iter().map(|span| seconds(span.to.unwrap_or(look.now))).fold(0.1, f64::max);
    let part = |at: Timestamp| seconds(at) / end * 100.0;
    let lanes: Vec<Lane> =
        Lane::ALL.into_iter().filter(|lane| spans.iter().any(|span| span.lane == *lane)).collect();
    let height = LANE * lanes.len() as f64 + AXIS;
    html! {
        ul.lanes aria-hidden="true" { @for lane in &lanes { li { (lane.name()) } } }
        div.scroll tabindex="0" {
            svg width=(format!("{}%", look.zoom * 100)) height=(height) role="group"
                aria-label="Timeline of the task; the list below has the same in words" {
                @for (number, lane) in lanes.iter().enumerate() {
                    @let y = LANE * number as f64;
                    line.grid x1="0" x2="100%" y1=(y + LANE - 1.0) y2=(y + LANE - 1.0) {}
                    @for span in spans.iter().filter(|span| span.lane == *lane) {
                        @let from = part(span.from);
                        @let wide = part(span.to.unwrap_or(look.now)) - from;
                        a href=(format!("#s{}", span.seq)) aria-label=(format!("{}: {}", lane.name(), span.words)) {
                            rect.bar.(lane.name()).failed[span.failed].running[span.to.is_none()]
                                x=(format!("{from:.3}%")) y=(y + 7.0) width=(format!("{wide:.3}%")) height=(LANE - 15.0) rx="3" {
                                title { (span.words) ", " (took(span.took(look.now), end)) }
                            }
                        }
                    }
                }
                @for tick in 0..=TICKS {
                    text.tick x=(format!("{}%", 100 * tick / TICKS)) y=(height - 6.0)
                        text-anchor=(if tick == 0 { "start" } else if tick == TICKS { "end" } else { "middle" }) {
                        (took(Duration::from_secs_f64(end * f64::from(tick) / f64::from(TICKS)), end))
                    }
                }
            }
        }
    }
}

/// How long something took, on a scale that ends at `end` seconds: a short one counts milliseconds.
fn took(time: Duration, end: f64) -> String {
    if end < 1.0 { format!("{} ms", time.as_millis()) } else { numbers::took(time) }
}

/// The same in a list, where each has its own scale.
fn took_alone(time: Duration) -> String {
    let is_short = time < Duration::from_millis(100);
    if is_short { format!("{} ms", time.as_millis()) } else { numbers::took(time) }
}

fn row(span: &Span, look: TimelineStyle) -> Markup {
    html! {
        li.span.failed[span.failed] id=(format!("s{}", span.seq)) {
            span.swatch.(span.lane.name()) aria-hidden="true" {}
            span.lane { (span.lane.name()) }
            a.words href=(format!("/tasks/{0}/events?at={1}#e{1}", look.task, span.seq)) dir="auto" { (span.words) }
            @if span.failed { span.t-bad { "failed" } }
            span.took {
                @match (span.to, span.lane) {
                    (Some(_), _) if span.is_cut => "end not known",
                    (Some(_), _) => (took_alone(span.took(look.now))),
                    (None, Lane::Waiting) => "waiting",
                    (None, Lane::Model | Lane::Tools | Lane::Compaction) => "running",
                }
            }
        }
    }
}
