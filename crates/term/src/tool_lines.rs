//! Tool calls and their results in words a person reads at a glance.

use serde_json::Value;
use windlass_core::event::ToolCall;
use windlass_core::outcome::{Ending, Fact, Outcome};
use windlass_core::shown::shown;
use windlass_core::text::one_line;

use crate::diff::{self, cut};
use crate::{Paint, numbers, strip_controls};

/// Lines of a command's output that are shown, from its end.
const OUTPUT_LINES: usize = 6;

/// A call as one line: what is done, to what.
pub fn call(tool: &str, arguments: &Value, width: usize) -> String {
    let given = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let line = match tool {
        "bash" => format!("$ {}", given("command")),
        "read" | "edit" | "write" => format!("{tool} {}", given("path")),
        "glob" => format!("find {}", given("pattern")),
        "grep" => match given("path") {
            "" => format!("search {}", given("pattern")),
            path => format!("search {} in {path}", given("pattern")),
        },
        "save_memo" => format!("note {}", given("filename")),
        "search_memo" => format!("search notes for {}", given("query")),
        "publish_deliverable" => format!("publish {}", given("filepath")),
        "ask_user" => format!("ask {}", given("question")),
        "read_skill" => format!("read skill {}", given("name")),
        "list_skills" => "list skills".to_owned(),
        "web_fetch" => format!("fetch {}", given("url")),
        "web_search" => format!("search the web for {}", given("query")),
        "update_plan" => "planning".to_owned(),
        _ => format!("{tool} {arguments}"),
    };
    one_line(&shown(line.trim_end()), width)
}

/// The line of a call that starts; none where an event of its own shows what the call does.
pub fn start(call: &ToolCall, paint: Paint, width: usize) -> Option<String> {
    let line = || self::call(&call.tool, &call.arguments, width);
    match call.tool.as_str() {
        "update_plan" | "publish_deliverable" | "ask_user" | "spawn_agent" => None,
        "bash" => Some(paint.bold(&line())),
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
    } else if outcome.ending != Ending::Ok {
        let text = one_line(&failure(outcome), width);
        lines.push(format!("  {} {text}", paint.red(&format!("{}:", outcome.ending))));
    } else if tool == "bash" {
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
