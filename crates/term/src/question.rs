//! A question to a person as lines: what is asked, about what, and the numbered options.

use serde_json::Value;
use windlass_core::command::HitlRequest;
use windlass_core::shown::{shown, shown_line};

use crate::{TerminalStyle, numbers};

/// Lines of a question's context; `windlass events` has the rest.
const CONTEXT_LINES: usize = 20;

/// A question with its context and options.
pub fn lines(asked: &HitlRequest, style: TerminalStyle) -> Vec<String> {
    let text = shown(&asked.question);
    let mut lines = vec![style.wrap_note(&format!("{} {text}", style.notes.yellow("question:")))];
    lines.extend(details(asked.context.as_deref(), &asked.options));
    lines
}

/// What a question is about and its numbered options, indented.
pub fn details(context: Option<&str>, options: &[String]) -> Vec<String> {
    let context = context.map(readable).unwrap_or_default();
    let all: Vec<&str> = context.lines().collect();
    let shown = all.iter().take(CONTEXT_LINES).map(|line| format!("  {line}"));
    let hidden = all.len().saturating_sub(CONTEXT_LINES);
    let more = (hidden > 0).then(|| format!("  … {}", numbers::plural(hidden, "more line")));
    let options = (1..).zip(options);
    let options = options.map(|(number, option)| format!("  {number}. {}", shown_line(option)));
    shown.chain(more).chain(options).collect()
}

/// The arguments of a call as lines, a command as a person types it; any other text unchanged.
fn readable(context: &str) -> String {
    let (first, more) = context.split_once('\n').unwrap_or((context, ""));
    let Ok(Value::Object(arguments)) = serde_json::from_str::<Value>(first) else {
        return shown(context);
    };
    let line = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("command", Value::String(text)) => format!("$ {text}"),
        (_, Value::String(text)) => format!("{name}: {}", text.trim_end()),
        (_, value) => format!("{name}: {value}"),
    };
    let lines: Vec<_> = arguments.iter().map(line).chain([more.to_owned()]).collect();
    shown(lines.join("\n").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_to_be_allowed_reads_as_a_person_types_it() {
        let context = "{\"command\":\"git add .\\ngit push\",\"timeout\":5}\nAllow All: `git`";
        let shown = ["  $ git add .", "  git push", "  timeout: 5", "  Allow All: `git`"];
        assert_eq!(details(Some(context), &[]), shown);
        assert_eq!(details(Some("for the door"), &["red".into()]), ["  for the door", "  1. red"]);
        assert_eq!(details(Some("\u{1b}[2Jx"), &[]), [r"  \x1b[2Jx"]);
        let long = "line\n".repeat(50);
        assert_eq!(details(Some(&long), &[]).last().unwrap(), "  … 30 more lines");
    }
}
