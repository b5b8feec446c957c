//! A question to a person: what is asked, everything that an answer approves, and a button for each answer.
//!
//! Invariant: nothing that a person approves is cut or dropped, and hidden characters are shown as escapes.

use maud::{Markup, html};
use serde_json::{Value, json};
use windlass_core::id::QuestionId;
use windlass_core::policy::PermissionPart;
use windlass_core::question::{Answer, PERMISSION_OPTIONS, Question, QuestionKind};
use windlass_core::shown::{shown, shown_line};
use windlass_core::tool_name;
use windlass_term::numbers;

use super::{diff, markdown, pieces};

/// The call that waits for a permission.
#[derive(Clone, Copy, Debug)]
pub struct AskedCall<'a> {
    pub tool: &'a str,
    pub arguments: &'a Value,
}

/// A question that is open, with its buttons.
pub fn open(question: &Question, call: Option<AskedCall<'_>>) -> Markup {
    html! {
        section.question aria-label="A question for you" {
            p.question-kind { (kind_words(question.kind)) }
            p.question-text dir="auto" { (pieces::with_code(&shown(question.question.trim()))) }
            (details(question, call))
            (answers(question))
        }
    }
}

/// A question that needs no answer any more, and why.
pub fn settled(question: &Question, call: Option<AskedCall<'_>>, words: Markup) -> Markup {
    html! {
        details.settled {
            summary { span.settled-question dir="auto" { (shown_line(first_line(&question.question))) } span.settled-words { (words) } }
            p.question-text dir="auto" { (pieces::with_code(&shown(question.question.trim()))) }
            (details(question, call))
        }
    }
}

/// Who answered what.
pub fn answer_words(answer: &Answer) -> Markup {
    html! {
        strong dir="auto" { (shown_line(&answer.text)) }
        " by " (shown_line(&answer.by)) ", " (pieces::time(answer.at))
    }
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

const fn kind_words(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::AskUser => "The agent asks",
        QuestionKind::Permission => "Permission",
        QuestionKind::Budget => "Budget",
        QuestionKind::Plan => "Plan to accept",
        QuestionKind::Review => "Work to review",
        QuestionKind::Runner => "A program asks",
        QuestionKind::Repair => "Something is wrong",
    }
}

/// What the answer is about.
fn details(question: &Question, call: Option<AskedCall<'_>>) -> Markup {
    html! {
        @match (question.kind, call) {
            (QuestionKind::Permission, Some(call)) => (permission(question, call)),
            (QuestionKind::Plan, _) => (plan(question)),
            (QuestionKind::Review, _) => @if let Some(work) = &question.context { (markdown::render(work)) },
            _ => @if let Some(context) = question.context.as_deref().filter(|text| !text.trim().is_empty()) {
                p.question-context dir="auto" { (shown(context.trim())) }
            },
        }
    }
}

/// The plan, whole, and what accepting it is bound to.
fn plan(question: &Question) -> Markup {
    let Some(plan) = &question.plan else {
        return html! { @if let Some(text) = &question.context { (markdown::render(text)) } };
    };
    html! {
        @if !plan.changed.is_empty() {
            p { "What has changed since you read it:" }
            ul { @for line in &plan.changed { li dir="auto" { (shown_line(line)) } } }
        }
        div.plan-text { (markdown::render(&plan.text)) }
        p.hint {
            @match plan.budget_usd {
                Some(budget) => { "It may cost " (numbers::dollars(budget)) " in all." },
                None => "It has no cost limit.",
            }
            " To change the plan yourself, edit " code { (shown_line(&plan.path)) } " before you answer."
        }
    }
}

/// The command, the change or the arguments, whole.
fn permission(question: &Question, call: AskedCall<'_>) -> Markup {
    let command = call.arguments.get("command").and_then(Value::as_str);
    let command = command.filter(|_| call.tool == tool_name::BASH);
    let cwd = question.binding.as_ref().map(|binding| binding.cwd.as_str());
    let cwd = cwd.filter(|cwd| !cwd.is_empty());
    let parts = question.asked.as_ref().map(|asked| asked.parts.as_slice()).unwrap_or_default();
    html! {
        @if let Some(command) = command {
            @if parts.len() > 1 || parts.iter().any(|part| part.command != command.trim()) {
                ul.asked-parts { @for part in parts { (asked_part(part)) } }
            }
            pre.command tabindex="0" { code { (shown(command)) } }
        } @else if let Some(change) = &question.diff {
            p.path { (shown_line(call.arguments.get("path").and_then(Value::as_str).unwrap_or_default())) }
            (diff::render(change))
        } @else {
            (arguments(call))
        }
        @if let Some(cwd) = cwd { p.cwd { "in " code { (shown_line(cwd)) } } }
        @if let Some(asked) = &question.asked {
            p.why { (pieces::risk_chip(asked.risk)) " " (asked.class) ": " (pieces::with_code(&shown_line(&asked.reason))) }
        }
    }
}

fn asked_part(part: &PermissionPart) -> Markup {
    html! {
        li { (pieces::risk_chip(part.risk)) " " code { (shown_line(&part.command)) } " " (pieces::with_code(&shown_line(&part.reason))) }
    }
}

/// The arguments of a call, one by one.
pub fn arguments(call: AskedCall<'_>) -> Markup {
    let text = |value: &Value| match value {
        Value::String(text) => shown(text),
        other => shown(&other.to_string()),
    };
    html! {
        dl.arguments {
            dt { "tool" } dd { code { (shown_line(call.tool)) } }
            @match call.arguments.as_object() {
                Some(given) => @for (name, value) in given {
                    dt { (shown_line(name)) } dd { pre tabindex="0" { (text(value)) } }
                },
                None => { dt { "arguments" } dd { pre tabindex="0" { (text(call.arguments)) } } },
            }
        }
    }
}

/// A button for each answer, and a field for one's own words where they are taken.
fn answers(question: &Question) -> Markup {
    let [allow, deny, allow_all] = PERMISSION_OPTIONS;
    let is_permission = question.kind == QuestionKind::Permission;
    let class = |option: &str| match option {
        _ if option == allow || question.options.first().is_some_and(|first| first == option) => {
            "primary"
        }
        _ if option == deny => "danger",
        _ => "",
    };
    let rule = question.grants.as_ref().map(|rule| shown_line(&rule.to_string()));
    // Without a rule to give there is nothing that the last option could do.
    let is_offered = |option: &&String| !is_permission || *option != allow_all || rule.is_some();
    html! {
        div.answers {
            @for option in question.options.iter().filter(is_offered) {
                (answer_button(question.id, option, class(option)))
            }
        }
        @if let Some(rule) = rule.filter(|_| is_permission) {
            p.hint { (allow_all) " also allows: " code { (rule) } }
        }
        form.own-words data-answer=(question.id) data-deny[is_permission] {
            label.visually-hidden for=(format!("own-{}", question.id)) { (own_words_label(question.kind)) }
            input.field type="text" id=(format!("own-{}", question.id)) name="text" autocomplete="off"
                placeholder=(own_words_label(question.kind));
            button type="submit" { @if is_permission { "Deny" } @else { "Answer" } }
        }
    }
}

const fn own_words_label(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::Permission => "Say what to do instead",
        QuestionKind::Budget => "Another amount, such as 2.50",
        QuestionKind::Plan => "What should be different",
        QuestionKind::Repair => "y or n",
        QuestionKind::Review => "Reject, and say why",
        QuestionKind::AskUser | QuestionKind::Runner => "In your own words",
    }
}

fn answer_button(question: QuestionId, option: &str, class: &'static str) -> Markup {
    let path = format!("/v1/questions/{question}/answer");
    pieces::Action { label: option, path, body: json!({ "answer": option }), class }.button()
}
