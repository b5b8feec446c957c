//! Journals and contexts as text for a reader, without what varies from run to run.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use windlass_core::event::Event;
use windlass_core::text::one_line;

/// How wide the words of an event may be.
const EVENT_WIDTH: usize = 80;
/// The longest result that a context shows whole.
const MAX_RESULT_LINES: usize = 24;

/// The events worth reading, numbered.
pub(super) fn journal<'a>(events: impl Iterator<Item = &'a Event>) -> String {
    let lines: Vec<String> = events.filter_map(event).collect();
    let width = lines.len().to_string().len();
    let numbered = (1..).zip(&lines);
    numbered.map(|(number, line): (usize, _)| format!("{number:>width$} {line}\n")).collect()
}

/// Reads the event as it is on the wire: those names last, while the types may be rearranged.
fn event(event: &Event) -> Option<String> {
    let (kind, body) = event.parts();
    let data: &Value = &serde_json::from_str(&body).expect("an event's body is JSON");
    let word = |name: &str| match &data[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let words = match kind {
        "task_created" | "llm_request" | "sandbox_started" | "compaction_progress" => return None,
        "agent_start" => word("goal"),
        "llm_response" => reply(data),
        "risk_check" => format!("{} {} {}", word("tool"), word("class"), word("decision")),
        "tool_call" => word("tool"),
        "tool_result" => format!("{}: {}", word("ending"), word("text")),
        "injection_received" => word("content"),
        "question_asked" => word("question"),
        "question_answered" => data["answer"]["text"].as_str().unwrap_or_default().to_owned(),
        "status_changed" => format!("{} → {} ({})", word("from"), word("to"), word("reason")),
        "agent_end" => match data["error_details"]["message"].as_str() {
            Some(error) => format!("{}: {error}", word("status")),
            None => word("status"),
        },
        "sub_agent_spawn" => word("task"),
        "sub_agent_complete" => word("status"),
        "compaction_start" => word("trigger"),
        "compaction_end" => word("source"),
        "question_closed" => word("reason"),
        "plan_accepted" => word("by"),
        "mode_changed" => word("reason"),
        "budget_hit" => format!("{} {}", word("budget"), word("level")),
        "deliverable_published" => word("filepath"),
        _ => word("message"),
    };
    let words = one_line(&words, EVENT_WIDTH);
    Some(format!("{kind:<18} {words}").trim_end().to_owned())
}

fn reply(data: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let calls = data["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said = Some(text(&data["text"])).filter(|said| !said.is_empty());
    let said = said.map(|said| format!("say: {said}"));
    let calls =
        calls.iter().map(|call| format!("{}: {}", text(&call["name"]), text(&call["arguments"])));
    said.into_iter().chain(calls).collect::<Vec<_>>().join(" + ")
}

/// How much of the system prompt is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Whole,
    Headings,
}

/// A request of the Chat Completions wire as a reader wants to see it.
pub(super) fn context(request: &Value, system: System) -> String {
    let mut text = String::new();
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for message in request["messages"].as_array().expect("a request has messages") {
        let role = message["role"].as_str().expect("a message has a role");
        let content = &content(&message["content"]);
        match role {
            "system" if system == System::Headings => {
                let headings = content.lines().filter_map(|line| line.strip_prefix("# "));
                let headings: Vec<_> = headings.collect();
                text.push_str(&format!(">>> system: {}\n", headings.join(" · ")));
                continue;
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let name = names.get(id).copied().unwrap_or("unknown");
                text.push_str(&format!(">>> tool {name}\n"));
            }
            role => text.push_str(&format!(">>> {role}\n")),
        }
        if !content.is_empty() {
            let shown = if role == "tool" { shorten(content) } else { content.to_owned() };
            text.push_str(&format!("{}\n", shown.trim_end()));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let name = call["function"]["name"].as_str().unwrap_or_default();
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            names.insert(call["id"].as_str().unwrap_or_default(), name);
            text.push_str(&format!("calls {name} {arguments}\n"));
        }
    }
    if system == System::Whole {
        let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names: Vec<_> = tools.iter().filter_map(|it| it["function"]["name"].as_str()).collect();
        text.push_str(&format!(">>> tools: {}\n", names.join(", ")));
    }
    text
}

/// What a message says, with a mark for each picture.
fn content(content: &Value) -> String {
    let Some(blocks) = content.as_array() else {
        return content.as_str().unwrap_or_default().to_owned();
    };
    let blocks = blocks.iter().map(|block| match block["type"].as_str() {
        Some("image_url") => "(a picture)",
        _ => block["text"].as_str().unwrap_or_default(),
    });
    blocks.collect::<Vec<_>>().join("\n")
}

/// The first and the last lines of a long result.
fn shorten(result: &str) -> String {
    let lines: Vec<&str> = result.lines().collect();
    if lines.len() <= MAX_RESULT_LINES {
        return result.to_owned();
    }
    let (first, last) = (&lines[..2], &lines[lines.len() - 2..]);
    format!("{}\n(more lines)\n{}", first.join("\n"), last.join("\n"))
}

/// Replaces what varies: the stage's directory, ids (numbered as they appear), times, hashes, and what
/// sub-agents report of their time and tokens.
pub(super) fn mask(text: &str, root: &Path) -> String {
    let text = text.replace(&root.display().to_string(), "/stage");
    let text = text.lines().map(|line| format!("{}\n", mask_usage(line))).collect::<String>();
    let mut masked = String::with_capacity(text.len());
    let mut ids: Vec<&str> = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let end = rest.find(|char: char| !is_word(char)).unwrap_or(rest.len());
        if end == 0 {
            let next = rest.find(is_word).unwrap_or(rest.len());
            masked.push_str(&rest[..next]);
            rest = &rest[next..];
            continue;
        }
        let (word, after) = rest.split_at(end);
        masked.push_str(&match kind(word) {
            WordKind::Id(prefix) => {
                let place = ids.iter().position(|id| *id == word).unwrap_or_else(|| {
                    ids.push(word);
                    ids.len() - 1
                });
                format!("{prefix}{}", place + 1)
            }
            WordKind::Hash => "HASH".to_owned(),
            WordKind::Time => "TIME".to_owned(),
            WordKind::Plain => word.to_owned(),
        });
        rest = after;
    }
    masked
}

/// `… in 0s (9,871 tokens).` without the numbers.
fn mask_usage(line: &str) -> String {
    let masked = line.split_once("s (").and_then(|(before, after)| {
        let (said, seconds) = before.rsplit_once(' ')?;
        let (tokens, rest) = after.split_once(" tokens)")?;
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
        let both = number(seconds) && number(tokens);
        both.then(|| format!("{said} SECONDS (TOKENS){rest}"))
    });
    masked.unwrap_or_else(|| line.to_owned())
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || "_:".contains(char)
}

enum WordKind<'a> {
    Id(&'a str),
    Hash,
    Time,
    Plain,
}

fn kind(word: &str) -> WordKind<'_> {
    let upper = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    if let Some(at) = word.rfind('_')
        && word.len() - at - 1 == 26
        && word[at + 1..].bytes().all(upper)
    {
        return WordKind::Id(&word[..=at]);
    }
    if word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return WordKind::Hash;
    }
    // The day and the time of `2026-11-16T03:33:08.123Z` are one word.
    let time: String = word.chars().map(|it| if it.is_ascii_digit() { '0' } else { it }).collect();
    if time == "00T00:00:00" {
        return WordKind::Time;
    }
    WordKind::Plain
}
