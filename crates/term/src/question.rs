//! A question to a person as lines: what is asked, everything that it approves, and how to answer.
//!
//! Invariant: nothing that a person approves is cut or dropped. Each line of a command, a change or an argument
//! begins with a bar, so that no text of theirs looks like a part of the question.

use std::path::Path;

use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation as _;
use windlass_core::policy::PermissionPart;
use windlass_core::question::{
    AcceptedAnswers, Binding, BoundFile, ProposedPlan, Question, QuestionKind,
};
use windlass_core::shown::{marked, shown, shown_line, shown_once, shown_path};
use windlass_core::tool_name;

use crate::columns::grapheme_width;
use crate::wrap::wrap;
use crate::{Paint, numbers};

/// Missing files that are named one by one.
const MOST_MISSING: usize = 3;

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
        let rule = question.allow_all_description().filter(|_| option == ALLOW_ALL);
        let more = rule.map(|rule| format!(": {}", shown_line(&rule)));
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
        QuestionKind::Permission if question.is_of_program() && offers_all(question) => {
            Some("y, n or a number; `no, …` tells the program why")
        }
        // A program whose screen is read names its own answers.
        QuestionKind::Permission if question.is_of_program() && !names_commands(question) => {
            Some("a number, or your own words")
        }
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
        QuestionKind::AskUser | QuestionKind::Runner => match question.accepts {
            AcceptedAnswers::Words if question.options.is_empty() => None,
            AcceptedAnswers::Words | AcceptedAnswers::Dollars => {
                Some("a number, or your own words")
            }
            AcceptedAnswers::Options => Some("a number of the list"),
            AcceptedAnswers::YesNo => Some("a number, or y or n"),
            AcceptedAnswers::Rounds => Some("a number of the list, or such as `5 more rounds`"),
        },
    }
}

/// Whether it is about commands of a file: those are allowed or denied, once. A program asks in its directory.
fn names_commands(question: &Question) -> bool {
    let is_of_a_file = question.binding.as_ref().is_some_and(|binding| binding.cwd.is_empty());
    is_of_a_file && question.options == windlass_core::question::PERMISSION_OPTIONS[..2]
}

/// Whether a yes may count for later questions too: never for the commands of a file.
fn offers_all(question: &Question) -> bool {
    question.options.iter().any(|option| option == ALLOW_ALL)
}

/// A plan, whole, and what accepting it is bound to.
fn plan_lines(plan: &ProposedPlan, place: Canvas) -> Vec<String> {
    let mut lines = place.quoted_prose(plan.text.trim());
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

/// The directory and the files that a permission is bound to, for a task of this workspace.
pub fn binding_lines(binding: &Binding, workspace: &str) -> Vec<String> {
    let directory = Path::new(workspace).join(&binding.cwd);
    let mut lines = Vec::new();
    if !directory.as_os_str().is_empty() {
        lines.push(format!("in {}", shown_path(&directory).trim_end_matches('/')));
    }
    lines.extend(file_lines(&binding.files, workspace));
    lines
}

/// The files that a permission is bound to. Those that do not exist are counted where they are many: a command of git
/// is bound to the absence of every hook.
fn file_lines(files: &[BoundFile], workspace: &str) -> Vec<String> {
    let (there, missing): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.hash.is_some());
    // In a container the workspace has another name.
    let tops = [windlass_core::layout::WORKSPACE, workspace].map(|top| format!("{top}/"));
    let name = |file: &&BoundFile| {
        let inside = tops.iter().find_map(|top| file.path.strip_prefix(top.as_str()));
        shown_line(inside.unwrap_or(&file.path))
    };
    let mut lines: Vec<String> = there.iter().map(|file| format!("file {}", name(file))).collect();
    match missing.as_slice() {
        [first, .., last] if missing.len() > MOST_MISSING => lines.push(format!(
            "{} that do not exist: {} … {}",
            numbers::plural(missing.len(), "file"),
            name(first),
            name(last)
        )),
        few => lines.extend(few.iter().map(|file| format!("file {} (does not exist)", name(file)))),
    }
    lines
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
        let text = shown_once(&text);
        place.barred(&text, &text, &mark, Breaks::Anywhere, &|text| text.to_owned())
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

    /// The same for prose: long lines are broken between words.
    pub fn quoted_prose(self, text: &str) -> Vec<String> {
        let bar = self.paint.dim("│");
        let place = |line: &str| {
            let text = shown_line(line);
            self.barred(&text, &text, &bar, Breaks::BetweenWords, &|text| text.to_owned())
        };
        text.split('\n').flat_map(place).collect()
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

    /// One line of others' text after a bar. A line that does not fit is broken, and its rest follows a
    /// dotted bar, so that it does not look like a line of its own.
    fn pieces(self, line: &str, bar: &str, paint: &dyn Fn(&str) -> String) -> Vec<String> {
        // Escapes are marked where none of them can be torn.
        let marked = marked(line, &|escape| self.paint.with("7", escape));
        self.barred(&shown_line(line), &marked, bar, Breaks::Anywhere, paint)
    }

    /// The same for a line that is escaped already; `marked` is what it is where it fits.
    fn barred(
        self,
        text: &str,
        marked: &str,
        bar: &str,
        breaks: Breaks,
        paint: &dyn Fn(&str) -> String,
    ) -> Vec<String> {
        let room = self.columns.map(|columns| columns.saturating_sub(4).max(20));
        let pieces = room.map_or_else(|| vec![text.to_owned()], |room| pieces(text, room, breaks));
        if let [_] = pieces.as_slice() {
            return vec![format!("  {bar} {}", paint(marked)).trim_end().to_owned()];
        }
        let rest = self.paint.dim("┊");
        let bars = std::iter::once(bar).chain(std::iter::repeat(rest.as_str()));
        bars.zip(&pieces).map(|(bar, piece)| format!("  {bar} {}", paint(piece))).collect()
    }
}

/// Where a line may be broken. A command or a change is broken anywhere, so that each of its spaces is seen.
#[derive(Clone, Copy)]
enum Breaks {
    Anywhere,
    BetweenWords,
}

/// A line in pieces of at most this many columns.
fn pieces(line: &str, columns: usize, breaks: Breaks) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    let parts: Vec<&str> = match breaks {
        Breaks::Anywhere => vec![line],
        Breaks::BetweenWords => line.split_inclusive(' ').collect(),
    };
    for part in parts {
        let wide: usize = part.trim_end().graphemes(true).map(grapheme_width).sum();
        let is_next = used + wide > columns && wide <= columns && used > 0;
        if is_next {
            pieces.push(String::new());
            used = 0;
        }
        for grapheme in part.graphemes(true) {
            let width = grapheme_width(grapheme);
            let is_blank = matches!(breaks, Breaks::BetweenWords) && grapheme == " ";
            if used + width > columns && !is_blank {
                pieces.push(String::new());
                used = 0;
            }
            used += width;
            if let Some(last) = pieces.last_mut() {
                last.push_str(grapheme);
            }
        }
    }
    match breaks {
        Breaks::Anywhere => pieces,
        Breaks::BetweenWords => pieces.iter().map(|piece| piece.trim_end().to_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page and the terminal say the same: no file that exists is dropped, and no name can look like another line.
    #[test]
    fn what_a_permission_is_bound_to_is_named_whole() {
        let file = |path: &str, hash: Option<&str>| BoundFile {
            path: path.to_owned(),
            hash: hash.map(str::to_owned),
        };
        let hooks = (1..=5).map(|number| file(&format!("/w/.git/hooks/{number}"), None));
        let files = [file("/w/run.sh", Some("a")), file("/etc/x\nfile y", Some("b"))];
        let binding = Binding {
            arguments_hash: String::new(),
            cwd: "sub".to_owned(),
            files: files.into_iter().chain(hooks).collect(),
            mark: None,
        };
        let expected = [
            "in /w/sub",
            "file run.sh",
            "file /etc/x\\x0afile y",
            "5 files that do not exist: .git/hooks/1 … .git/hooks/5",
        ];
        assert_eq!(binding_lines(&binding, "/w"), expected);
        let one = Binding { files: vec![file("/w/a", None)], cwd: String::new(), ..binding };
        assert_eq!(binding_lines(&one, "/w"), ["in /w", "file a (does not exist)"]);
    }
}
