//! One entry of a conversation, drawn.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::Value;
use windlass_coordinator::Damage;
use windlass_core::command::TaskResult;
use windlass_core::error::ErrorDetails;
use windlass_core::event::{
    LlmResponse, RiskCheck, SubAgentComplete, SubAgentSpawn, SubAgentStatus,
};
use windlass_core::id::TaskId;
use windlass_core::outcome::{CallEnding, Fact, Outcome};
use windlass_core::picture::Picture;
use windlass_core::policy::{Decision, Risk};
use windlass_core::shown::{shown, shown_line};
use windlass_core::tool_name;
use windlass_term::{numbers, strip_controls, tool_lines};

use super::conversation::{Abandoned, Asking, AskingState, Body, Call, Entry, Saying};
use super::pieces::{self, Tone};
use super::question::AskedCall;
use super::{deliverable, diff, markdown, question};

/// Lines of an output that are shown before it is opened.
const OUTPUT_LINES: usize = 12;
/// Lines of a diff that are shown without being opened.
const OPEN_DIFF_LINES: usize = 40;
/// Columns of a call's line.
const CALL_WIDTH: usize = 160;

/// What an entry needs to know besides itself.
pub struct Around<'a> {
    /// Whether a question still waits for a person.
    pub is_open: &'a dyn Fn(windlass_core::id::QuestionId) -> bool,
    /// Whether the task of the entry has ended: it waits for nobody.
    pub has_ended: bool,
    /// The call that a question is about.
    pub call: &'a dyn Fn(windlass_core::id::CallId) -> Option<(String, Value)>,
    /// The directory of the task of the entry.
    pub workspace: &'a str,
    /// Where a sub-agent stands that has not come to its end for the task that started it.
    pub sub_agent: &'a dyn Fn(TaskId) -> Option<(&'static str, Tone)>,
}

/// An entry as people see it; empty where another entry shows the same.
pub fn draw(entry: &Entry, around: &Around<'_>) -> Markup {
    match &entry.body {
        Body::Said { by, text, kind, pictures } => html! {
            (said(entry, by, text, *kind)) (self::pictures(entry.task, pictures))
        },
        Body::Reply(response) => reply(entry, response),
        Body::Call(call) => html! {
            (self::call(call))
            @if let Some(outcome) = &call.outcome { (pictures(entry.task, &outcome.pictures)) }
        },
        Body::Question(asking) => asked(asking, around),
        Body::Note { tone, text, detail } => note(entry, *tone, text, detail.as_deref()),
        Body::Failure(error) => failure(error),
        Body::Deliverable(file) => deliverable::draw(entry.task, file, &entry.pos.to_string()),
        Body::SubAgent { spawn, end } => sub_agent(spawn, end.as_deref(), around),
        Body::Ended(result) => ended(result),
        Body::Damaged(damage) => damaged(damage),
    }
}

/// Names what cannot be read, in its place.
pub fn damaged(damage: &Damage) -> Markup {
    html! { div.note.bad { span { (damage_words(damage)) } span.detail { (pieces::with_code("`windlass doctor` names all damage.")) } } }
}

/// Which events cannot be read, and why.
pub fn damage_words(damage: &Damage) -> String {
    let Damage { first, last, problem, .. } = damage;
    match last - first {
        0 => format!("Event {first} is damaged: {problem}"),
        _ => format!("Events {first} to {last} are missing"),
    }
}

/// Pictures that a task was shown or has seen. They come from this server, which has checked them.
fn pictures(task: TaskId, pictures: &[Picture]) -> Markup {
    let path = |picture: &Picture| format!("/v1/tasks/{task}/pictures/{}", picture.hash);
    html! {
        @if !pictures.is_empty() {
            div.pictures {
                @for picture in pictures {
                    a href=(path(picture)) {
                        img src=(path(picture)) alt=(shown_line(&picture.name)) width=(picture.width) height=(picture.height) loading="lazy";
                    }
                }
            }
        }
    }
}

fn said(entry: &Entry, by: &str, text: &str, kind: Saying) -> Markup {
    let who = match (kind, by) {
        (Saying::Event, "") => "Event".to_owned(),
        (Saying::Event, by) => format!("Event from {}", shown_line(by)),
        (Saying::Goal | Saying::Message, "") => "You".to_owned(),
        (Saying::Goal | Saying::Message, by) => shown_line(by),
    };
    let class = if kind == Saying::Event { "said event" } else { "said" };
    html! {
        article class=(class) data-user[kind != Saying::Event] {
            header { span.who { (who) } (pieces::time(entry.at)) }
            div.bubble dir="auto" { (shown(text.trim())) }
        }
    }
}

fn reply(entry: &Entry, response: &LlmResponse) -> Markup {
    html! {
        article.reply {
            @if let Some(text) = response.reasoning.as_ref().map(|one| one.text()).filter(|text| !text.is_empty()) {
                (thoughts(&format!("t-{}", entry.pos), &text))
            }
            @if !response.text.trim().is_empty() {
                (markdown::render(&response.text))
                footer {
                    (pieces::time(entry.at))
                    span.meta { (shown_line(&response.model)) " · " (took(response.latency_ms)) }
                    button.copy type="button" data-copy=(response.text) { "Copy" }
                }
            }
        }
    }
}

/// What the model thought before it answered, folded.
fn thoughts(id: &str, text: &str) -> Markup {
    html! { details.thoughts id=(id) { summary { "Thoughts" } (markdown::render(text)) } }
}

/// What the model has said so far of a reply that is not committed yet.
pub fn preview(thought: &str, text: &str) -> Markup {
    html! {
        article.reply.preview aria-busy="true" {
            @if !thought.trim().is_empty() { (thoughts("t-now", thought)) }
            (markdown::render(text))
            footer { span.meta { "writing …" } }
        }
    }
}

fn took(ms: u64) -> String {
    numbers::took(Duration::from_millis(ms))
}

/// A call: one line that opens to everything that is known of it.
pub fn call(call: &Call) -> Markup {
    let shows_itself = [
        tool_name::UPDATE_PLAN,
        tool_name::PUBLISH_DELIVERABLE,
        tool_name::ASK_USER,
        tool_name::SPAWN_AGENT,
    ];
    let failed = call.outcome.as_ref().is_some_and(Outcome::is_error);
    if shows_itself.contains(&&*call.tool) && !failed {
        return html! {};
    }
    let (state, tone) = call_state(call);
    let change = change_of(call);
    html! {
        details.call.(tone.class()) id=(format!("d-{}", call.id)) {
            summary {
                span.mark.(tone.class()).pulse[call.is_running()] title=(state) {
                    span.visually-hidden { (state) ": " }
                }
                span.line { code { (tool_lines::call(&call.tool, &call.arguments, CALL_WIDTH)) } }
                span.facts {
                    @if let Some((_, added, removed)) = &change {
                        span.t-good { "+" (added) } " " span.t-bad { "−" (removed) }
                    }
                    @if let Some(check) = call.check.as_ref().filter(|check| check.risk > Risk::Low) {
                        (pieces::risk_chip(check.risk))
                    }
                    @if call.outcome.is_some() { span.took { (took(call.duration_ms)) } }
                    @else if let Some(at) = call.started_at.filter(|_| call.is_running()) { (pieces::since(at)) }
                    @else { span { (state) } }
                }
            }
            div.call-body {
                @if let Some(check) = &call.check { (why(check, call)) }
                (whole(call))
            }
        }
        @if let Some((change, ..)) = change.filter(|(text, ..)| text.lines().count() <= OPEN_DIFF_LINES) {
            (diff::render(change))
        }
        @if let Some(outcome) = &call.outcome { (output(call, outcome)) }
    }
}

/// The change that a call made to a file, and how many lines came and went.
fn change_of(call: &Call) -> Option<(&str, usize, usize)> {
    let facts = &call.outcome.as_ref()?.facts;
    let diff = facts.iter().find_map(|fact| match fact {
        Fact::FileChanged { diff, .. } => diff.as_deref(),
        _ => None,
    })?;
    let (added, removed) = diff::counts(diff);
    Some((diff, added, removed))
}

fn call_state(call: &Call) -> (&'static str, Tone) {
    match &call.outcome {
        None if call.is_running() => ("running", Tone::Info),
        None => match (call.abandoned, call.started_at) {
            (None, _) => ("waiting", Tone::Quiet),
            (Some(Abandoned::Damaged), _) => ("end not known", Tone::Quiet),
            (Some(Abandoned::TaskEnded), Some(_)) => ("not finished", Tone::Quiet),
            (Some(Abandoned::TaskEnded), None) => ("not started", Tone::Quiet),
        },
        Some(outcome) => match outcome.ending {
            CallEnding::Ok if outcome.exit_code.is_some_and(|code| code != 0) => {
                ("failed", Tone::Bad)
            }
            CallEnding::Ok => ("done", Tone::Good),
            CallEnding::Error => ("failed", Tone::Bad),
            CallEnding::Denied => ("denied", Tone::Warning),
            CallEnding::Cancelled => ("cancelled", Tone::Quiet),
            CallEnding::Unknown => ("outcome unknown", Tone::Warning),
        },
    }
}

/// Why a call may run, or may not.
fn why(check: &RiskCheck, call: &Call) -> Markup {
    let decided = match check.decision {
        Decision::Allow => "Allowed",
        Decision::Deny => "Denied",
        Decision::Ask => "A person decides",
    };
    html! {
        p.why {
            strong { (decided) } ": " (check.class) ", " (check.risk) " risk"
            @if !check.reason.is_empty() { ". " (pieces::with_code(&shown_line(&check.reason))) }
            " (" (check.axes.permission_profile) ", " (check.axes.run_control) ")"
            @if let Some(answer) = &call.answered { br; "Answered: " (question::answer_words(answer)) }
        }
    }
}

/// The command or the arguments, whole.
fn whole(call: &Call) -> Markup {
    let command = call.arguments.get("command").and_then(Value::as_str);
    html! {
        @match command.filter(|_| call.tool == tool_name::BASH) {
            Some(command) => pre.command tabindex="0" { code { (shown(command)) } },
            None => (question::arguments(&call.tool, &call.arguments)),
        }
    }
}

/// What a call printed: its first lines, and where the whole is (AX-087, AX-112).
fn output(call: &Call, outcome: &Outcome) -> Markup {
    let shows = call.tool == tool_name::BASH || outcome.is_error() || outcome.exit_code.is_some();
    let text = strip_controls(outcome.display_text());
    let text = text.trim_end();
    if !shows || text.is_empty() {
        return html! {};
    }
    let mut lines = text.lines();
    let head: Vec<&str> = lines.by_ref().take(OUTPUT_LINES).collect();
    let rest: Vec<&str> = lines.collect();
    let is_cut = outcome.truncated.is_some();
    if outcome.ending == CallEnding::Denied {
        return html! { div.output.bad { p.refused dir="auto" { (pieces::with_code(text)) } } };
    }
    html! {
        div.output.bad[outcome.is_error()] {
            pre tabindex="0" { (head.join("\n")) @if is_cut || !rest.is_empty() { "\n..." } }
            @if !rest.is_empty() && !is_cut {
                details.more id=(format!("o-{}", call.id)) {
                    summary { (numbers::plural(rest.len(), "more line")) }
                    pre tabindex="0" { (rest.join("\n")) }
                }
            }
            @if is_cut {
                p.truncated { "[Output truncated]  " a href=(format!("/outputs/{}", call.id)) { "[View full output]" } }
            }
            @if let Some(code) = outcome.exit_code.filter(|code| *code != 0) {
                p.exit { "exit " (code) }
            }
        }
    }
}

fn asked(asking: &Asking, around: &Around<'_>) -> Markup {
    let question = &asking.question;
    let call = question.call.and_then(around.call);
    let workspace = around.workspace;
    let call = call.as_ref().map(|(tool, arguments)| AskedCall { tool, arguments, workspace });
    match &asking.state {
        AskingState::Open if (around.is_open)(question.id) => question::open(question, call),
        AskingState::Open if around.has_ended => {
            question::settled(question, call, html! { "closed: its task has ended" })
        }
        // Accepted, and not read by the task yet.
        AskingState::Open => question::settled(question, call, html! { "answered" }),
        AskingState::Answered(answer) => {
            question::settled(question, call, question::answer_words(answer))
        }
        AskingState::Closed(reason) => {
            question::settled(question, call, html! { "closed: " (shown_line(reason)) })
        }
    }
}

fn note(entry: &Entry, tone: Tone, text: &str, detail: Option<&str>) -> Markup {
    html! {
        div.note.(tone.class()) {
            span { (pieces::with_code(&shown_line(text))) }
            @match detail.map(str::trim) {
                Some(detail) if detail.contains('\n') || detail.len() > 160 => {
                    details id=(format!("n-{}", entry.pos)) { summary { "more" } (markdown::render(detail)) }
                }
                Some(detail) => span.detail dir="auto" { (pieces::with_code(&shown_line(detail))) },
                None => {},
            }
            (pieces::time(entry.at))
        }
    }
}

/// Why a task could not continue, and what to do about it.
pub fn failure(error: &ErrorDetails) -> Markup {
    html! {
        section.failure {
            p.failure-title { "It could not continue" }
            p dir="auto" { (pieces::with_code(&shown(&error.message))) }
            @if let Some(hint) = error.hint.as_deref().filter(|hint| !hint.is_empty()) {
                p.hint dir="auto" { (pieces::with_code(&shown(hint))) }
            }
        }
    }
}

fn sub_agent(spawn: &SubAgentSpawn, end: Option<&SubAgentComplete>, around: &Around<'_>) -> Markup {
    let standing = || (around.sub_agent)(spawn.task_id).unwrap_or(("Working", Tone::Info));
    let (words, tone) = match end.map(|end| end.status) {
        None => standing(),
        Some(SubAgentStatus::Completed) => ("Done", Tone::Good),
        Some(SubAgentStatus::Failed) => ("Failed", Tone::Bad),
        Some(SubAgentStatus::Timeout) => ("Out of time", Tone::Warning),
    };
    html! {
        details.call.sub.(tone.class()) id=(format!("s-{}", spawn.task_id)) {
            summary {
                span.mark.(tone.class()).pulse[tone == Tone::Info] title=(words) { span.visually-hidden { (words) ": " } }
                span.line { "sub-agent " strong { (shown_line(&spawn.label)) } }
                span.facts {
                    @if let Some(end) = end { span.took { (took(end.duration_ms)) } } @else { span { (words) } }
                }
            }
            div.call-body {
                p dir="auto" { (shown(&spawn.task)) }
                p { a href=(format!("/tasks/{}", spawn.task_id)) { "Open its page" } }
                @if let Some(end) = end { (markdown::render(&end.output)) }
            }
        }
    }
}

fn ended(result: &TaskResult) -> Markup {
    let usage = &result.usage;
    html! {
        div.ended {
            span.chip.good { @if result.partial { "Partial result" } @else { "Done" } }
            span.meta {
                (took(usage.duration_ms)) " · " (numbers::plural(usage.iterations, "step"))
                " · " (numbers::count(usage.total_tokens)) " tokens"
                @if let Some(cost) = result.cost_usd { " · " (numbers::dollars(cost)) }
            }
            a href=(format!("/tasks/{}", result.task_id)) { "Details" }
        }
    }
}
