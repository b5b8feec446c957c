//! Small things that every page draws in the same way: times, statuses, chips, ids, pictures.

use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};
use windlass_coordinator::views::{NextAction, TaskView};
use windlass_core::axes::{Axes, ModelMode, PermissionProfile, RunControl, WorkMode};
use windlass_core::compaction::{Gauge, Level};
use windlass_core::policy::Risk;
use windlass_core::shown::{shown, shown_line};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_core::text::one_line;
use windlass_term::numbers;

/// How much of a goal a list shows.
const GOAL_WIDTH: usize = 140;

/// A moment. The script shows it by the reader's own clock.
pub fn time(at: Timestamp) -> Markup {
    let text = at.strftime("%F %H:%M UTC").to_string();
    html! { time datetime=(format!("{at:.0}")) data-time { (text) } }
}

/// A moment that the script counts the seconds from.
pub fn since(at: Timestamp) -> Markup {
    html! { span.since data-since=(format!("{at:.0}")) {} }
}

/// The end of an id, by which people tell tasks apart.
pub fn short_id(id: &dyn std::fmt::Display) -> String {
    let id = id.to_string();
    let start = id.len().saturating_sub(7);
    id.get(start..).unwrap_or(&id).to_owned()
}

/// A goal in one line.
pub fn goal_line(goal: &str) -> String {
    one_line(&shown(goal.trim()), GOAL_WIDTH)
}

/// A sentence with what stands between two backticks as code. One backtick alone is a letter.
pub fn with_code(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if at % 2 == 1 && at + 1 < parts.len() { code { (part) } }
            @else if at % 2 == 1 { "`" (part) }
            @else { (part) }
        }
    }
}

/// How a thing stands, as a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Quiet,
    Info,
    Good,
    Warning,
    Bad,
}

impl Tone {
    pub const fn class(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Info => "info",
            Self::Good => "good",
            Self::Warning => "warn",
            Self::Bad => "bad",
        }
    }
}

/// Where a task stands, in a word or two and a colour.
pub fn standing(task: &TaskView) -> (&'static str, Tone) {
    if !task.questions.is_empty() && !task.row.status.is_terminal() {
        return ("Waiting for you", Tone::Warning);
    }
    if task.is_interrupted() {
        return ("Interrupted", Tone::Warning);
    }
    if task.queue_place.is_some() {
        return ("Queued", Tone::Quiet);
    }
    match (task.row.status, task.row.reason) {
        (TaskStatus::Todo, _) => ("Not started", Tone::Quiet),
        (TaskStatus::Running, _) => ("Working", Tone::Info),
        (TaskStatus::Verifying, _) => ("Checking", Tone::Info),
        (TaskStatus::Reviewing, _) => ("In review", Tone::Warning),
        (TaskStatus::Blocked, _) if task.is_answered() => ("Answered", Tone::Info),
        (TaskStatus::Blocked, _) => ("Blocked", Tone::Warning),
        (TaskStatus::Paused, StatusReason::AwaitingMessage) => ("Your turn", Tone::Good),
        (TaskStatus::Paused, StatusReason::Schedule) => ("Watching", Tone::Quiet),
        (TaskStatus::Paused, reason) if reason.resumes_at_a_time() => {
            ("Waiting for the model", Tone::Warning)
        }
        (TaskStatus::Paused, _) => ("Paused", Tone::Quiet),
        (TaskStatus::Retrying, _) => ("Retrying", Tone::Info),
        (TaskStatus::Done, _) => ("Done", Tone::Good),
        (TaskStatus::Failed, _) => ("Failed", Tone::Bad),
        (TaskStatus::Cancelled, _) => ("Cancelled", Tone::Quiet),
    }
}

/// Where a task stands, as a chip.
pub fn status_chip(task: &TaskView) -> Markup {
    let (words, tone) = standing(task);
    let moves = task.driven_by.is_some() && task.row.status == TaskStatus::Running;
    html! {
        span.chip.(tone.class()) { span.dot.pulse[moves] aria-hidden="true" {} (words) }
    }
}

/// The title of a page about a task. A tab has little room, so the state comes first.
pub fn title(task: &TaskView, goal: &str) -> String {
    let mark = match standing(task).1 {
        Tone::Quiet => "‖",
        Tone::Info => "▶",
        Tone::Good => "✓",
        Tone::Warning => "!",
        Tone::Bad => "✗",
    };
    format!("{mark} {}", goal_line(goal))
}

/// How a thing stands, in a word of ours or of a file. Every chip begins with a capital letter.
pub fn chip(tone: Tone, words: &str) -> Markup {
    let words = shown_line(words);
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    html! { span.chip.(tone.class()) { (first) (letters.as_str()) } }
}

/// What comes next for a task, in words; empty for nothing.
pub fn next_words(action: &NextAction) -> Markup {
    html! {
        @match action {
            NextAction::Answer { .. } => "answer its question",
            NextAction::RaiseBudget { .. } => "raise its budget, or stop it",
            NextAction::WaitForTasks { count } => {
                "waits for " (numbers::plural(*count, "task"))
            }
            NextAction::WaitForService => "starts as soon as there is a place",
            NextAction::WaitForCheck { at } => { "checked at " (time(at.timestamp())) }
            NextAction::WaitForModel { at } => { "tried again at " (time(at.timestamp())) }
            NextAction::SendMessage => "send a message",
            NextAction::Resume => "resume it",
            NextAction::Retry { .. } => "try it again",
            NextAction::Review => "review what it did",
            NextAction::Follow { deadline: Some(deadline) } => { "due " (time(*deadline)) }
            NextAction::Follow { deadline: None } | NextAction::Nothing => {}
        }
    }
}

/// The axes of a session, colour by colour (MS-104, MS-107…119).
pub fn axes_words(axes: &Axes) -> Markup {
    html! {
        span.(work_class(axes.work_mode)) { (axes.work_mode) }
        span.sep aria-hidden="true" { "|" }
        span.(control_class(axes.run_control)) { (axes.run_control) }
        span.sep aria-hidden="true" { "|" }
        span.(profile_class(axes.permission_profile)) { (axes.permission_profile) }
        span.sep aria-hidden="true" { "|" }
        span.(model_class(axes.model_mode)) { (axes.model_mode) }
    }
}

const fn work_class(mode: WorkMode) -> &'static str {
    match mode {
        WorkMode::Chat => "t-quiet",
        WorkMode::Plan => "t-accent",
        WorkMode::Build => "t-good",
        WorkMode::Review => "t-warn",
        WorkMode::Repair => "t-bad",
        WorkMode::Research => "t-info",
    }
}

const fn control_class(control: RunControl) -> &'static str {
    match control {
        RunControl::Manual => "t-quiet",
        RunControl::Assisted => "t-warn",
        RunControl::Autonomous => "t-good slow-pulse",
    }
}

const fn profile_class(profile: PermissionProfile) -> &'static str {
    match profile {
        PermissionProfile::Restricted => "t-good",
        PermissionProfile::Normal => "t-quiet",
        PermissionProfile::Trusted => "t-warn",
        PermissionProfile::Unrestricted => "t-bad",
    }
}

const fn model_class(mode: ModelMode) -> &'static str {
    match mode {
        ModelMode::Fast | ModelMode::Smart | ModelMode::Deep => "t-quiet",
    }
}

/// How bad a call could be.
pub fn risk_chip(risk: Risk) -> Markup {
    let tone = match risk {
        Risk::Low => Tone::Quiet,
        Risk::Medium => Tone::Info,
        Risk::High => Tone::Warning,
        Risk::Critical => Tone::Bad,
    };
    html! { span.risk.(tone.class()) title="Risk of this call" { (risk) } }
}

/// How full a context is: a bar and a number.
pub fn gauge(gauge: &Gauge) -> Markup {
    let tone = match gauge.level {
        Level::Ok => Tone::Good,
        Level::Warning => Tone::Warning,
        Level::Critical => Tone::Bad,
    };
    let percent = gauge.percent.floor();
    let label = format!("Context {percent:.0} % full: {}", gauge.recommendation);
    html! {
        span.gauge.(tone.class()) title=(label) {
            svg viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label=(label) {
                rect.track width="100" height="6" rx="3" {}
                rect.fill width=(format!("{:.0}", percent.clamp(1.0, 100.0))) height="6" rx="3" {}
            }
            span { (format!("{percent:.0} %")) }
        }
    }
}

/// What was spent: a price that nobody knows is not zero.
pub fn spent(dollars: Option<f64>, tokens: u64) -> String {
    match dollars {
        Some(dollars) => numbers::dollars(dollars),
        None if tokens > 0 => format!("{} tokens", numbers::count(tokens)),
        None => "cost unknown".to_owned(),
    }
}

/// A button that makes one request to the API: the script sends it, and shows what went wrong.
pub struct Action<'a> {
    /// What the button says.
    pub label: &'a str,
    /// Where the request goes.
    pub path: String,
    /// What it says.
    pub body: serde_json::Value,
    /// How the button looks.
    pub class: &'static str,
}

impl Action<'_> {
    pub fn button(&self) -> Markup {
        html! {
            button.(self.class) type="button" data-post=(self.path) data-body=(self.body.to_string()) {
                (self.label)
            }
        }
    }
}

/// An empty list says what would be there.
pub fn nothing(title: &str, words: Markup) -> Markup {
    html! { div.nothing { p.nothing-title { (title) } p { (words) } } }
}

/// The picture of a name in the navigation. Paths of a 20 × 20 grid.
pub fn icon(paths: &'static str) -> Markup {
    html! {
        svg.icon viewBox="0 0 20 20" aria-hidden="true" { (PreEscaped(paths)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MS-104, MS-107…119
    #[test]
    fn the_axes_have_their_colours() {
        let mut axes = Axes::headless();
        insta::assert_snapshot!(axes_words(&axes).0, @r#"<span class="t-good">build</span><span class="sep" aria-hidden="true">|</span><span class="t-good slow-pulse">autonomous</span><span class="sep" aria-hidden="true">|</span><span class="t-warn">trusted</span><span class="sep" aria-hidden="true">|</span><span class="t-quiet">smart</span>"#);
        let modes = WorkMode::ALL.iter().map(|mode| work_class(*mode));
        let modes: Vec<_> = modes.collect();
        assert_eq!(modes, ["t-quiet", "t-accent", "t-good", "t-warn", "t-bad", "t-info"]);
        let profiles: Vec<_> =
            PermissionProfile::ALL.iter().map(|one| profile_class(*one)).collect();
        assert_eq!(profiles, ["t-good", "t-quiet", "t-warn", "t-bad"]);
        axes.run_control = RunControl::Manual;
        assert!(axes_words(&axes).0.contains(r#"<span class="t-quiet">manual</span>"#));
    }

    #[test]
    fn what_stands_between_backticks_is_code() {
        let drawn = with_code("`a <b>` is run, ` is not, nor `").0;
        assert_eq!(drawn, "<code>a &lt;b&gt;</code> is run, <code> is not, nor </code>");
        assert_eq!(with_code("one ` alone").0, "one ` alone");
    }

    #[test]
    fn an_id_is_told_apart_by_its_end() {
        assert_eq!(short_id(&"task_01M7EWF4Y3E0M8H9SCVSWJX75T"), "SWJX75T");
        assert_eq!(short_id(&"x"), "x");
    }
}
