//! Tool calls and their results in words a person reads at a glance.

use serde_json::Value;
use windlass_core::event::ToolCall;
use windlass_core::outcome::{CallEnding, Fact, Outcome};
use windlass_core::shown::shown;
use windlass_core::text::one_line;
use windlass_core::tool_name;

use crate::diff::{self, cut};
use crate::wrap::wrap;
use crate::{Detail, Paint, numbers, strip_controls};

/// Lines of a command's output that are shown, from its end.
const OUTPUT_LINES: usize = 6;
/// Lines of a command that are shown, from its beginning.
const COMMAND_LINES: usize = 10;
/// Characters of the reason of a failure.
const FAILURE_WIDTH: usize = 300;

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
        tool_name::BROWSER => browser(arguments),
        tool_name::SPAWN_AGENT => format!("start sub-agent {}", given("label")),
        tool_name::UPDATE_PLAN => "planning".to_owned(),
        _ => format!("{tool} {arguments}"),
    };
    one_line(&shown(line.trim_end()), width)
}

/// What the browser is asked to do, and with what.
fn browser(arguments: &Value) -> String {
    let given = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let element = match given("ref") {
        "" => String::new(),
        element => format!(" [{}]", element.trim_matches(['[', ']'])),
    };
    let words = [given("url"), given("text")].join(" ");
    format!("browser {}{element} {}", given("action"), words.trim())
}

/// A command as a person types it, all its lines; any other call is one line.
pub fn whole_call(tool: &str, arguments: &Value) -> Vec<String> {
    match (tool, arguments["command"].as_str()) {
        (tool_name::BASH, Some(command)) => {
            let command = shown(command.trim_end());
            let lines = command.lines().enumerate();
            lines.map(|(at, line)| format!("{}{line}", if at == 0 { "$ " } else { "  " })).collect()
        }
        _ => vec![call(tool, arguments, usize::MAX)],
    }
}

/// The lines of a call that starts; none where an event of its own shows what the call does.
pub fn start(call: &ToolCall, paint: Paint, width: usize, detail: Detail) -> Vec<String> {
    match call.tool.as_str() {
        tool_name::UPDATE_PLAN
        | tool_name::PUBLISH_DELIVERABLE
        | tool_name::ASK_USER
        | tool_name::SPAWN_AGENT => Vec::new(),
        tool_name::BASH => command(call, paint, width, detail),
        _ => {
            vec![format!("{} {}", paint.cyan("•"), self::call(&call.tool, &call.arguments, width))]
        }
    }
}

fn command(call: &ToolCall, paint: Paint, width: usize, detail: Detail) -> Vec<String> {
    let all = whole_call(&call.tool, &call.arguments);
    if detail == Detail::Full {
        return all.iter().map(|line| paint.bold(line)).collect();
    }
    // One line is not worth a fold.
    let most = if all.len() <= COMMAND_LINES + 1 { all.len() } else { COMMAND_LINES };
    let shown = all[..most].iter().map(|line| paint.bold(&cut(line, width)));
    let hidden = all.len() - most;
    let more =
        (hidden > 0).then(|| paint.dim(&format!("  … {}", numbers::plural(hidden, "more line"))));
    shown.chain(more).collect()
}

/// What names of tools begin with that an MCP server has: what they return is the output of a program.
const MCP: &str = "mcp__";

/// What a call came to, as indented lines; none where the call's own line says it all.
pub fn outcome(
    tool: &str,
    outcome: &Outcome,
    paint: Paint,
    width: usize,
    detail: Detail,
) -> Vec<String> {
    let mut lines = Vec::new();
    let whole = || output(&strip_controls(outcome.display_text()), paint, width, detail);
    if let Some(code) = outcome.exit_code {
        lines.extend(whole());
        if code != 0 {
            lines.push(format!("  {}", paint.red(&format!("exit {code}"))));
        }
    } else if outcome.ending != CallEnding::Ok {
        let failure = failure(outcome);
        // What was printed until then comes before the reason, as it does before an exit code.
        let (before, reason) = match has_output(tool, outcome) {
            true => failure.trim_end().rsplit_once('\n').unwrap_or(("", &failure)),
            false => ("", failure.as_str()),
        };
        lines.extend(output(before, paint, width, detail));
        let text = match detail {
            Detail::Brief => one_line(reason, FAILURE_WIDTH),
            Detail::Full => reason.to_owned(),
        };
        let text = wrap(&format!("{} {text}", paint.red(ending_words(outcome.ending))), width);
        lines.extend(text.lines().map(|line| format!("  {line}")));
    } else if tool == tool_name::BASH || detail == Detail::Full && tool.starts_with(MCP) {
        lines.extend(whole());
    }
    for fact in &outcome.facts {
        if let Fact::FileChanged { diff: Some(diff), .. } = fact {
            lines.extend(diff::lines(diff, paint, width, detail));
        }
    }
    lines
}

/// Whether a call is a command that ran and was ended: its text is what it printed, and in the last line why it ended.
fn has_output(tool: &str, outcome: &Outcome) -> bool {
    let is_ended = match outcome.ending {
        CallEnding::Cancelled | CallEnding::Unknown => true,
        CallEnding::Error => outcome.aborted_by.is_some(),
        CallEnding::Ok | CallEnding::Denied => false,
    };
    tool == tool_name::BASH && is_ended
}

const fn ending_words(ending: CallEnding) -> &'static str {
    match ending {
        CallEnding::Ok => "ok:",
        CallEnding::Error => "error:",
        CallEnding::Denied => "denied:",
        CallEnding::Cancelled => "cancelled:",
        CallEnding::Unknown => "outcome unknown:",
    }
}

/// Why a call did not do what it should.
pub fn failure(outcome: &Outcome) -> String {
    strip_controls(outcome.display_text())
}

/// The last lines of an output, with a fold above them where there are more.
pub fn output(text: &str, paint: Paint, width: usize, detail: Detail) -> Vec<String> {
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if detail == Detail::Full {
        return all.iter().map(|line| paint.dim(&format!("  {line}"))).collect();
    }
    let hidden = all.len().saturating_sub(OUTPUT_LINES);
    let hidden = if hidden == 1 { 0 } else { hidden };
    let more = (hidden > 0)
        .then(|| paint.dim(&format!("  … {}", numbers::plural(hidden, "earlier line"))));
    let shown = all[hidden..].iter().map(|line| paint.dim(&format!("  {}", cut(line, width))));
    more.into_iter().chain(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PLAIN: Paint = Paint { on: false };

    #[test]
    fn a_call_reads_as_what_it_does() {
        assert_eq!(call("read", &json!({"path": "src/lib.rs"}), 60), "read src/lib.rs");
        assert_eq!(call("bash", &json!({"command": "cargo test\nls"}), 60), "$ cargo test…");
        assert_eq!(call("grep", &json!({"pattern": "fn", "path": "src"}), 60), "search fn in src");
        let typing = json!({"action": "type", "ref": "t1", "text": "Ann"});
        assert_eq!(call("browser", &typing, 60), "browser type [t1] Ann");
        assert_eq!(call("mcp__x__y", &json!({"a": 1}), 60), r#"mcp__x__y {"a":1}"#);
        assert_eq!(call("read", &json!({"path": "\u{1b}[2Jx"}), 60), r"read \x1b[2Jx");
    }

    #[test]
    fn a_command_of_several_lines_is_shown_with_all_of_them() {
        let arguments = json!({"command": "python3 - <<'X'\nprint(1)\nX\n"});
        assert_eq!(whole_call("bash", &arguments), ["$ python3 - <<'X'", "  print(1)", "  X"]);
    }

    #[test]
    fn what_went_well_is_not_said_and_hidden_lines_are_earlier_ones() {
        let ran = |printed: &str| Outcome { exit_code: Some(0), ..Outcome::ok(printed) };
        let silent = Outcome { display: Some(String::new()), ..ran("(no output)") };
        assert_eq!(outcome("bash", &silent, PLAIN, 80, Detail::Brief), Vec::<String>::new());
        let long = ran("1\n2\n3\n4\n5\n6\n7\n8\n");
        let lines = outcome("bash", &long, PLAIN, 80, Detail::Brief);
        assert_eq!(lines[0], "  … 2 earlier lines");
        assert_eq!(lines.last().unwrap(), "  8");
        assert_eq!(outcome("bash", &long, PLAIN, 80, Detail::Full).len(), 8);
        let returned = Outcome::ok("4\n");
        assert_eq!(outcome("mcp__calc__add", &returned, PLAIN, 80, Detail::Full), ["  4"]);
        let brief = outcome("mcp__calc__add", &returned, PLAIN, 80, Detail::Brief);
        assert_eq!(brief, Vec::<String>::new());
    }

    #[test]
    fn an_interrupted_command_shows_its_last_output_and_who_ended_it() {
        let steps: Vec<String> = (1..=19).map(|step| format!("step {step}")).collect();
        let text = format!("{}\n\ninterrupted by the person", steps.join("\n"));
        let ended = Outcome::ended(CallEnding::Cancelled, text);
        let lines = outcome("bash", &ended, PLAIN, 80, Detail::Brief);
        assert_eq!(lines[0], "  … 13 earlier lines");
        assert_eq!(lines[1], "  step 14");
        assert_eq!(lines[6..], ["  step 19", "  cancelled: interrupted by the person"]);
        assert_eq!(outcome("bash", &ended, PLAIN, 80, Detail::Full).len(), 20);
        let silent = Outcome::ended(CallEnding::Cancelled, "\n\ninterrupted by the person");
        let lines = outcome("bash", &silent, PLAIN, 80, Detail::Brief);
        assert_eq!(lines, ["  cancelled: interrupted by the person"]);
    }

    #[test]
    fn a_long_reason_is_wrapped_between_words() {
        let failed = Outcome::error("such addresses are refused unless the user allows them");
        let lines = outcome("web_fetch", &failed, PLAIN, 40, Detail::Brief);
        assert!(lines.len() == 2 && lines.iter().all(|line| line.len() <= 42), "{lines:?}");
    }
}
