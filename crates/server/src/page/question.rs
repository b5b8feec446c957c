//! A question to a person: what is asked, everything that an answer approves, and a button for each answer.
//!
//! Invariant: nothing that a person approves is cut or dropped, and hidden characters are shown as escapes.

use maud::{Markup, html};
use serde_json::{Value, json};
use windlass_coordinator::views::OpenQuestion;
use windlass_core::id::QuestionId;
use windlass_core::policy::PermissionPart;
use windlass_core::question::{
    AcceptedAnswers, Answer, Binding, PERMISSION_OPTIONS, Question, QuestionKind,
};
use windlass_core::shown::{shown, shown_line, shown_once};
use windlass_core::tool_name;
use windlass_term::numbers;
use windlass_term::question::binding_lines;

use super::{diff, pieces};

/// Missing files that are named one by one.
const MOST_MISSING: usize = 3;

/// Letters of an answer that fits into half of a phone's width.
const SHORT_ANSWER: usize = 20;

/// The call that waits for a permission.
#[derive(Clone, Copy, Debug)]
pub struct AskedCall<'a> {
    pub tool: &'a str,
    pub arguments: &'a Value,
    /// The directory of the task that asks.
    pub workspace: &'a str,
}

/// A question of the inbox, with its buttons.
pub fn asked(asked: &OpenQuestion) -> Markup {
    let workspace = asked.asker.as_ref().map_or("", |task| task.workspace.as_str());
    let call = asked.call.as_ref();
    let call =
        call.map(|call| AskedCall { tool: &call.tool, arguments: &call.arguments, workspace });
    open(&asked.row.question, call)
}

/// A question that is open, with its buttons.
pub fn open(question: &Question, call: Option<AskedCall<'_>>) -> Markup {
    html! {
        section.question aria-label=(format!("A question for you: {}", shown_line(first_line(&question.question)))) {
            p.question-kind { (kind_words(question)) }
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
            summary { span.settled-question dir="auto" { (pieces::with_code(&shown_line(first_line(&question.question)))) } span.settled-words { (words) } }
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

fn kind_words(question: &Question) -> &'static str {
    match question.kind {
        // What takes no words of one's own is asked by a run of a workflow.
        QuestionKind::AskUser if question.accepts != AcceptedAnswers::Words => "Decision",
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
            (QuestionKind::Review, _) => @if let Some(work) = &question.context { pre.plan-text dir="auto" { (shown(work)) } },
            _ => @if let Some(context) = question.context.as_deref().filter(|text| !text.trim().is_empty()) {
                p.question-context dir="auto" { (pieces::with_code(&shown(context.trim()))) }
            },
        }
    }
}

/// The plan, whole, and what accepting it is bound to.
fn plan(question: &Question) -> Markup {
    let Some(plan) = &question.plan else {
        return html! { @if let Some(text) = &question.context { pre.plan-text dir="auto" { (shown(text)) } } };
    };
    html! {
        @if !plan.changed.is_empty() {
            p { "What has changed since you read it:" }
            ul { @for line in &plan.changed { li dir="auto" { (shown_line(line)) } } }
        }
        // Not drawn as Markdown, which leaves out addresses of links, comments and definitions.
        pre.plan-text dir="auto" { (shown(&plan.text)) }
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
    let places = question.binding.as_ref();
    let places = places.map(|binding| bound_to(binding, call.workspace)).unwrap_or_default();
    let parts = question.asked.as_ref().map(|asked| asked.parts.as_slice()).unwrap_or_default();
    let shows_parts =
        parts.len() > 1 || parts.iter().any(|part| Some(&*part.command) != command.map(str::trim));
    html! {
        @if let Some(command) = command {
            @if shows_parts {
                ul.asked-parts { @for part in parts { (asked_part(part)) } }
            }
            pre.command tabindex="0" { code { (shown(command)) } }
            @let others = others(call.arguments);
            @if !others.is_empty() { dl.arguments { @for (name, value) in &others { dt { (name) } dd { code { (value) } } } } }
        } @else if let Some(change) = &question.diff {
            p.path { (shown_line(call.arguments.get("path").and_then(Value::as_str).unwrap_or_default())) }
            (diff::render(change))
        } @else {
            (arguments(call.tool, call.arguments))
        }
        @if !places.is_empty() { ul.bound { @for line in &places { li dir="auto" { (line) } } } }
        // The parts say it already, each with its own reason.
        @if let Some(asked) = question.asked.as_ref().filter(|_| command.is_none() || !shows_parts || parts.is_empty()) {
            p.why { (pieces::risk_chip(asked.risk)) " " (asked.class) ": " (pieces::with_code(&shown_line(&asked.reason))) }
        }
    }
}

/// Where a command would run and the files that the answer is bound to. A command of git is bound to the absence of
/// every hook: many names of files that do not exist say nothing to a person, so their number is said in a sentence.
fn bound_to(binding: &Binding, workspace: &str) -> Vec<String> {
    let missing = binding.files.iter().filter(|file| file.hash.is_none()).count();
    if missing <= MOST_MISSING {
        return binding_lines(binding, workspace);
    }
    let mut there = binding.clone();
    there.files.retain(|file| file.hash.is_some());
    let mut lines = binding_lines(&there, workspace);
    lines.push(format!(
        "You are asked again if one of {missing} files that the command would use, and that do not exist now, appears"
    ));
    lines
}

fn asked_part(part: &PermissionPart) -> Markup {
    html! {
        li { (pieces::risk_chip(part.risk)) " " code { (shown_once(&part.command)) } " " (pieces::with_code(&shown_once(&part.reason))) }
    }
}

/// What else a command is called with, such as its time limit and whether it runs in the background.
fn others(arguments: &Value) -> Vec<(String, String)> {
    let given = arguments.as_object().into_iter().flatten();
    given
        .filter(|(name, _)| *name != "command")
        .map(|(name, value)| match value {
            Value::String(text) => (shown_line(name), shown_line(text)),
            other => (shown_line(name), shown_line(&other.to_string())),
        })
        .collect()
}

/// The arguments of a call, one by one.
pub fn arguments(tool: &str, arguments: &Value) -> Markup {
    let text = |value: &Value| match value {
        Value::String(text) => shown(text),
        other => shown(&other.to_string()),
    };
    html! {
        dl.arguments {
            dt { "tool" } dd { code { (shown_line(tool)) } }
            @match arguments.as_object() {
                Some(given) => @for (name, value) in given {
                    dt { (shown_line(name)) } dd { pre tabindex="0" { (text(value)) } }
                },
                None => { dt { "arguments" } dd { pre tabindex="0" { (text(arguments)) } } },
            }
        }
    }
}

/// A button for each answer, and a field for one's own words where they are taken.
fn answers(question: &Question) -> Markup {
    let [allow, deny, allow_all] = PERMISSION_OPTIONS;
    let is_permission = question.kind == QuestionKind::Permission;
    let is_first = |option: &str| question.options.first().is_some_and(|first| first == option);
    let is_long = |option: &str| option.chars().count() > SHORT_ANSWER;
    let class = |option: &str| match option {
        _ if option == allow || is_first(option) => {
            if is_long(option) {
                "primary long"
            } else {
                "primary"
            }
        }
        _ if option == deny => "danger",
        _ if is_long(option) => "long",
        _ => "",
    };
    let rule = question.allow_all_description().map(|rule| shown_line(&rule));
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
        @if let Some(label) = own_words_label(question) {
            form.own-words data-answer=(question.id) data-deny[is_permission] {
                label.visually-hidden for=(format!("own-{}", question.id)) { (label) }
                input.field type="text" id=(format!("own-{}", question.id)) name="text" autocomplete="off"
                    placeholder=(label);
                button type="submit" { @if is_permission { "Deny" } @else { "Answer" } }
            }
        }
    }
}

/// What a person may write; `None` where only the options count.
const fn own_words_label(question: &Question) -> Option<&'static str> {
    Some(match question.kind {
        QuestionKind::Permission => "Say what to do instead",
        QuestionKind::Budget => "Another amount, such as 2.50",
        QuestionKind::Plan => "What should be different",
        QuestionKind::Repair => "y or n",
        QuestionKind::Review => "Reject, and say why",
        QuestionKind::AskUser | QuestionKind::Runner => match question.accepts {
            AcceptedAnswers::Words | AcceptedAnswers::Dollars => "In your own words",
            AcceptedAnswers::Rounds => "Another count, such as 5 more rounds",
            AcceptedAnswers::Options | AcceptedAnswers::YesNo => return None,
        },
    })
}

fn answer_button(question: QuestionId, option: &str, class: &'static str) -> Markup {
    let path = format!("/v1/questions/{question}/answer");
    let label = &shown_line(option);
    pieces::Action { label, path, body: json!({ "answer": option }), class }.button()
}

#[cfg(test)]
mod tests {
    use windlass_core::question::{BoundFile, PLAN_OPTIONS, REVIEW_OPTIONS};

    use super::*;

    /// Names of hooks that nobody has made say nothing to a person; a file that exists is always named.
    #[test]
    fn many_missing_files_are_said_in_a_sentence() {
        let file =
            |path: String, hash: Option<&str>| BoundFile { path, hash: hash.map(str::to_owned) };
        let hooks = (0..10).map(|number| file(format!("/w/.git/hooks/{number}"), None));
        let there = file("/w/run.sh".to_owned(), Some("a"));
        let binding = Binding {
            arguments_hash: String::new(),
            cwd: String::new(),
            files: std::iter::once(there).chain(hooks).collect(),
            mark: None,
        };
        let lines = bound_to(&binding, "/w");
        assert_eq!(&lines[..2], ["in /w", "file run.sh"]);
        assert!(lines[2].contains("one of 10 files") && !lines[2].contains(".git"), "{lines:?}");
        let few = Binding { files: vec![file("/w/a".to_owned(), None)], ..binding };
        assert_eq!(bound_to(&few, "/w"), ["in /w", "file a (does not exist)"]);
    }

    /// Whatever kind of question it is, each of its answers is one press away, and the words of those who say more are
    /// taken where they count.
    #[test]
    fn every_kind_of_question_has_its_buttons() {
        for &kind in QuestionKind::ALL {
            let options: &[&str] = match kind {
                QuestionKind::Permission => &PERMISSION_OPTIONS[..2],
                QuestionKind::Plan => &PLAN_OPTIONS,
                QuestionKind::Review => &REVIEW_OPTIONS,
                QuestionKind::AskUser
                | QuestionKind::Budget
                | QuestionKind::Runner
                | QuestionKind::Repair => &["this", "that"],
            };
            let question = Question {
                id: QuestionId::derived("a", kind.as_str()),
                kind,
                call: None,
                question: "what now?".to_owned(),
                options: options.iter().map(|&option| option.to_owned()).collect(),
                accepts: AcceptedAnswers::Words,
                context: Some("in `data/`".to_owned()),
                binding: None,
                diff: None,
                grants: None,
                asked: None,
                plan: None,
            };
            let drawn = open(&question, None).0;
            for option in options {
                assert!(drawn.contains(&format!(">{option}</button>")), "{kind}: {drawn}");
            }
            assert!(drawn.contains("<form class=\"own-words\""), "{kind}: {drawn}");
            // Work to review is shown as it was written, and a plan too.
            let shows_words = !matches!(kind, QuestionKind::Plan | QuestionKind::Review);
            let has_code = drawn.contains("in <code>data/</code>");
            assert_eq!(has_code, shows_words, "{kind}: {drawn}");
        }
    }

    #[test]
    fn all_arguments_of_a_command_are_shown() {
        let given = serde_json::json!({
            "command": "make", "background": true, "timeout": 9, "no\u{202e}te": "a\u{1b}"
        });
        let shown = [("background", "true"), ("no\\u{202E}te", r"a\x1b"), ("timeout", "9")];
        let shown = shown.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(others(&given), shown);
    }

    /// Letters stand in the order in which they are stored wherever a person decides by them.
    #[test]
    fn what_a_person_decides_by_is_not_reordered() {
        let style = include_str!("assets/style.css");
        let rule = style.lines().find(|line| line.contains("isolate-override")).unwrap();
        for place in ["code", ".path", "pre", "td.code", ".bound li"] {
            assert!(rule.contains(&format!(".question {place}")), "{place}: {rule}");
        }
        assert!(rule.contains(".draft-file pre.scroll"), "{rule}");
    }
}
