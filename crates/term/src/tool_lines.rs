//! Tool calls and their results in words a person reads at a glance.

use serde_json::Value;
use windlass_core::event::ToolCall;
use windlass_core::outcome::{CallEnding, Fact, Outcome};
use windlass_core::shown::shown;
use windlass_core::text::one_line;
use windlass_core::tool_name;

use crate::diff::{self, cut};
use crate::{Paint, numbers, strip_controls};

/// Lines of a command's output that are shown, from its end.
const OUTPUT_LINES: usize = 6;

/// A call as one line: what is done, to what.
pub fn call(tool: &str, arguments: &Value, width: usize) -> String {
    let given = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let line = match tool {
        tool_name::BASH => format!("$ {}", given("command")),
        tool_name::READ | tool_name::EDIT | tool_name::WRITE => format!("{tool} {}", given("path")),
        tool_name::GLOB => format!("find {}", given("pattern")),
        tool_name::GREP => match given("path") {
            "" => format!("search {}", given("pattern")),
            path => format!("search {} in {path}", given("pattern")),
        },
        tool_name::SAVE_MEMO => format!("note {}", given("filename")),
        tool_name::SEARCH_MEMO => format!("search notes for {}", given("query")),
        tool_name::PUBLISH_DELIVERABLE => format!("publish {}", given("filepath")),
        tool_name::ASK_USER => format!("ask {}", given("question")),
        tool_name::READ_SKILL => format!("read skill {}", given("name")),
        tool_name::LIST_SKILLS => "list skills".to_owned(),
        tool_name::WEB_FETCH => format!("fetch {}", given("url")),
        tool_name::WEB_SEARCH => format!("search the web for {}", given("query")),
        tool_name::UPDATE_PLAN => "planning".to_owned(),
        _ => format!("{tool} {arguments}"),
    };
    one_line(&shown(line.trim_end()), width)
}

/// The line of a call that starts; none where an event of its own shows what the call does.
pub fn start(call: &ToolCall, paint: Paint, width: usize) -> Option<String> {
    let line = || self::call(&call.tool, &call.arguments, width);
    match call.tool.as_str() {
        tool_name::UPDATE_PLAN
        | tool_name::PUBLISH_DELIVERABLE
        | tool_name::ASK_USER
        | tool_name::SPAWN_AGENT => None,
        tool_name::BASH => Some(paint.bold(&line())),
        _ => Some(format!("{} {}", paint.cyan("•"), line())),
    }
}

/// What a call came to, as indented lines; none where the call's own line says it all.
pub fn outcome(tool: &str, outcome: &Outcome, paint: Paint, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(code) = outcome.exit_code {
        let exit = format!("exit {code}");
        lines.extend(last_lines(&strip_controls(outcome.display_text()), paint, width));
        lines.push(format!("  {}", if code == 0 { paint.green(&exit) } else { paint.red(&exit) }));
    } else if outcome.ending != CallEnding::Ok {
        let text = one_line(&failure(outcome), width);
        lines.push(format!("  {} {text}", paint.red(&format!("{}:", outcome.ending))));
    } else if tool == tool_name::BASH {
        lines.extend(last_lines(&strip_controls(outcome.display_text()), paint, width));
    }
    for fact in &outcome.facts {
        if let Fact::FileChanged { diff: Some(diff), .. } = fact {
            lines.extend(diff::lines(diff, paint, width));
        }
    }
    lines
}

/// Why a call did not do what it should.
pub fn failure(outcome: &Outcome) -> String {
    strip_controls(outcome.display_text())
}

fn last_lines(text: &str, paint: Paint, width: usize) -> Vec<String> {
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let hidden = all.len().saturating_sub(OUTPUT_LINES);
    let more =
        (hidden > 0).then(|| paint.dim(&format!("  … {}", numbers::plural(hidden, "more line"))));
    let shown = all[hidden..].iter().map(|line| paint.dim(&format!("  {}", cut(line, width))));
    more.into_iter().chain(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_reads_as_what_it_does() {
        assert_eq!(call("read", &json!({"path": "src/lib.rs"}), 60), "read src/lib.rs");
        assert_eq!(call("bash", &json!({"command": "cargo test\nls"}), 60), "$ cargo test…");
        assert_eq!(call("grep", &json!({"pattern": "fn", "path": "src"}), 60), "search fn in src");
        assert_eq!(call("mcp__x__y", &json!({"a": 1}), 60), r#"mcp__x__y {"a":1}"#);
        assert_eq!(call("read", &json!({"path": "\u{1b}[2Jx"}), 60), r"read \x1b[2Jx");
    }
}
