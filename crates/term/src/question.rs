//! A question to a person as lines: what is asked, everything that it approves, and how to answer.
//!
//! Invariant: nothing that a person approves is cut or dropped. Each line of a command, a change or an argument
//! begins with a bar, so that no text of theirs looks like a part of the question.

use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation as _;
use windlass_core::policy::PermissionPart;
use windlass_core::question::{ProposedPlan, Question, QuestionKind};
use windlass_core::shown::{marked, shown, shown_line};
use windlass_core::tool_name;

use crate::columns::grapheme_width;
use crate::wrap::wrap;
use crate::{Paint, numbers};

/// Where a question is shown.
#[derive(Clone, Copy, Debug)]
pub struct Canvas {
    pub paint: Paint,
    /// Lines are broken at this width; `None` where nobody reads them on a terminal.
    pub columns: Option<usize>,
}

/// The call that waits for a permission.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub tool: &'a str,
    pub arguments: &'a Value,
}

/// A question with everything that it approves, its options and how to answer it.
pub fn lines(question: &Question, call: Option<Call<'_>>, place: Canvas) -> Vec<String> {
    let mut lines = heading(question, place);
    lines.extend(details(question, call, place));
    lines
}

/// What is asked.
pub fn heading(question: &Question, place: Canvas) -> Vec<String> {
    let text = shown(question.question.trim_end());
    place.prose(&format!("{} {text}", place.paint.yellow("question:")), "")
}

/// What a question is about: everything that it approves, or what the person should know first.
pub fn about(question: &Question, call: Option<Call<'_>>, place: Canvas) -> Vec<String> {
    match (question.kind, call, &question.plan) {
        (QuestionKind::Permission, Some(call), _) => call_lines(question, call, place),
        (QuestionKind::Plan, _, Some(plan)) => plan_lines(plan, place),
        _ => {
            let context = question.context.as_deref().unwrap_or_default().trim_end();
            if context.is_empty() { Vec::new() } else { place.prose(&shown(context), "  ") }
        }
    }
}

/// What a question is about, its numbered options and how to answer, indented.
pub fn details(question: &Question, call: Option<Call<'_>>, place: Canvas) -> Vec<String> {
    let mut lines = about(question, call, place);
    for (number, option) in (1..).zip(&question.options) {
        let rule = question.grants.as_ref().filter(|_| option == ALLOW_ALL);
        let more = rule.map(|rule| format!(": {}", shown_line(&rule.to_string())));
        let option = format!("{number}. {}{}", shown_line(option), more.unwrap_or_default());
        lines.extend(place.prose(&option, "  "));
    }
    let hint = hint(question).map(|hint| place.prose(hint, "  ")).unwrap_or_default();
    lines.extend(hint.iter().map(|line| place.paint.dim(line)));
    lines
}

const ALLOW_ALL: &str = windlass_core::question::PERMISSION_OPTIONS[2];

/// What may be typed.
fn hint(question: &Question) -> Option<&'static str> {
    match question.kind {
        // About the commands of a file, not about a call of the agent.
        QuestionKind::Permission if question.call.is_none() && question.binding.is_some() => {
            Some("y, n or a number; `windlass trust` approves the file for good")
        }
        QuestionKind::Permission => {
            Some("y, n or a number; `no, …` tells the agent what to do instead")
        }
        QuestionKind::Budget => Some("a number of the list, or any amount, such as `0.50` or `$2`"),
        QuestionKind::Plan => Some("a number; any other words say what to revise"),
        QuestionKind::Repair => Some("a number, or y or n"),
        QuestionKind::Review => Some("y, or a number; any other words reject it and say why"),
        QuestionKind::AskUser | QuestionKind::Runner => {
            (!question.options.is_empty()).then_some("a number, or your own words")
        }
    }
}

/// A plan, whole, and what accepting it is bound to.
fn plan_lines(plan: &ProposedPlan, place: Canvas) -> Vec<String> {
    let mut lines = place.quoted(plan.text.trim());
    lines.extend(plan_terms(plan, place));
    lines
}

/// What accepting a plan is bound to.
pub fn plan_terms(plan: &ProposedPlan, place: Canvas) -> Vec<String> {
    let budget = match plan.budget_usd {
        Some(usd) => format!("it may cost {} in all", numbers::dollars(usd)),
        None => "it has no cost limit".to_owned(),
    };
    let path = shown_line(&plan.path);
    let bound = format!("{budget}; to change the plan yourself, edit {path} before you answer");
    place.prose(&bound, "  ").iter().map(|line| place.paint.dim(line)).collect()
}

/// The command, the change or the arguments, whole.
fn call_lines(question: &Question, call: Call<'_>, place: Canvas) -> Vec<String> {
    let mut lines = Vec::new();
    let given = call.arguments.as_object();
    let mut given: Vec<(&str, &Value)> =
        given.into_iter().flatten().map(|(name, value)| (name.as_str(), value)).collect();
    let command = call.arguments.get("command").and_then(Value::as_str);
    if let Some(command) = command.filter(|_| call.tool == tool_name::BASH) {
        given.retain(|(name, _)| *name != "command");
        lines.extend(part_lines(question, command, place));
        lines.extend(place.quoted(&format!("$ {command}")));
    } else if let Some(diff) = &question.diff {
        // The change says it all; the rest of the arguments is what it was made from.
        given.retain(|(name, _)| *name == "path");
        let path = given.drain(..).find_map(|(_, path)| path.as_str());
        lines.extend(place.quoted(path.unwrap_or_default()));
        lines.extend(place.diff(diff));
    }
    for (name, value) in given {
        match value {
            Value::String(text) => lines.extend(place.quoted(&format!("{name}: {text}"))),
            value => lines.extend(place.quoted(&format!("{name}: {value}"))),
        }
    }
    lines
}

/// The commands that raised the question, worst first; none where there is nothing beside them.
fn part_lines(question: &Question, command: &str, place: Canvas) -> Vec<String> {
    let parts = question.asked.as_ref().map(|asked| asked.parts.as_slice()).unwrap_or_default();
    let is_all = parts.len() < 2 && parts.iter().all(|part| part.command == command.trim());
    let parts = parts.iter().filter(|_| !is_all);
    let mark = place.paint.red("!");
    let line = |part: &PermissionPart| {
        let text = format!("{}: {}", part.command, part.reason);
        place.pieces(&text, &mark, &|text| text.to_owned())
    };
    parts.flat_map(line).collect()
}

impl Canvas {
    /// Prose, broken between words.
    fn prose(self, text: &str, indent: &str) -> Vec<String> {
        let wrapped = match self.columns {
            Some(columns) => wrap(text, columns.saturating_sub(indent.len())),
            None => text.to_owned(),
        };
        wrapped.split('\n').map(|line| format!("{indent}{line}")).collect()
    }

    /// Text of others, each of its lines with a bar, the rest of a long line with a dotted one.
    pub fn quoted(self, text: &str) -> Vec<String> {
        let bar = self.paint.dim("│");
        let lines = text.split('\n');
        lines.flat_map(|line| self.pieces(line, &bar, &|text| text.to_owned())).collect()
    }

    /// A change, coloured. Its first lines name the file, which is named already.
    fn diff(self, diff: &str) -> Vec<String> {
        let mut all: Vec<&str> = diff.strip_suffix('\n').unwrap_or(diff).split('\n').collect();
        if all.len() > 1 && all[0].starts_with("--- ") && all[1].starts_with("+++ ") {
            all.drain(..2);
        }
        let bar = self.paint.dim("│");
        let painted = |line: &str| {
            let mark = line.chars().next();
            let paint = |text: &str| match mark {
                Some('+') => self.paint.green(text),
                Some('-') => self.paint.red(text),
                Some('@') => self.paint.dim(text),
                _ => text.to_owned(),
            };
            // A lone space is an empty line of the file, not one that ends in a space.
            self.pieces(if line == " " { "" } else { line }, &bar, &paint)
        };
        all.into_iter().flat_map(painted).collect()
    }

    /// One line of others' text behind a bar. A line that does not fit is broken, and its rest stands behind a
    /// dotted bar, so that it does not look like a line of its own.
    fn pieces(self, line: &str, bar: &str, paint: &dyn Fn(&str) -> String) -> Vec<String> {
        let text = shown_line(line);
        let room = self.columns.map(|columns| columns.saturating_sub(4).max(20));
        let pieces = room.map_or_else(|| vec![text.clone()], |room| pieces(&text, room));
        if let [_] = pieces.as_slice() {
            // Escapes are marked where none of them can be torn.
            let text = marked(line, &|escape| self.paint.with("7", escape));
            return vec![format!("  {bar} {}", paint(&text)).trim_end().to_owned()];
        }
        let rest = self.paint.dim("┊");
        let bars = std::iter::once(bar).chain(std::iter::repeat(rest.as_str()));
        bars.zip(&pieces).map(|(bar, piece)| format!("  {bar} {}", paint(piece))).collect()
    }
}

/// A line in pieces of at most this many columns.
fn pieces(line: &str, columns: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for grapheme in line.graphemes(true) {
        let width = grapheme_width(grapheme);
        if used + width > columns {
            pieces.push(String::new());
            used = 0;
        }
        used += width;
        if let Some(last) = pieces.last_mut() {
            last.push_str(grapheme);
        }
    }
    pieces
}
