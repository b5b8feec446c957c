//! A summary without a model: what the journal itself says was done, decided and failed.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;
use windlass_core::id::CallId;
use windlass_core::message::{Message, ToolRequest};
use windlass_core::text::{BYTES_PER_TOKEN, one_line, prefix};
use windlass_tools::{Registry, Subject};

use super::record::cut_to;
use crate::context::Turn;
use crate::prompt::fill;

/// How much of an error is quoted.
const ERROR_BYTES: usize = 400;
/// How wide a line about anything else is.
const LINE: usize = 200;

/// A summary of turns in at most `limit_tokens`.
pub(super) fn extract(
    registry: &Registry,
    turns: &[&Turn],
    earlier: Option<&str>,
    limit_tokens: u64,
) -> String {
    let mut found = Extracts::default();
    for turn in turns {
        let refused = denied_calls(turn);
        for entry in turn.retained() {
            match &entry.message {
                Message::Assistant { text, calls, .. } => {
                    if !text.trim().is_empty() {
                        found.decisions.push(one_line(text, LINE));
                    }
                    // A refused call did nothing.
                    let done = calls.iter().filter(|call| !refused.contains(&call.id));
                    done.for_each(|call| found.call(registry, call));
                }
                // A call that was refused while notes were saved may succeed now.
                Message::Tool { is_error: true, .. } if turn.flush => {}
                Message::Tool { name, text, is_error: true, .. } => {
                    found.failures.push(format!("`{name}`: {}", prefix(text.trim(), ERROR_BYTES)));
                }
                Message::Tool { .. } | Message::User { .. } => {}
            }
        }
    }
    let limit = usize::try_from(limit_tokens * BYTES_PER_TOKEN).unwrap_or(usize::MAX);
    found.text(earlier, limit)
}

/// The calls of a turn that were refused and never ran.
fn denied_calls(turn: &Turn) -> HashSet<CallId> {
    let results = turn.retained().filter_map(|entry| entry.call);
    results.filter(|result| result.denied).map(|result| result.call).collect()
}

#[derive(Default)]
struct Extracts {
    failures: Vec<String>,
    files: Vec<String>,
    decisions: Vec<String>,
    notes: Vec<String>,
    commands: Vec<String>,
}

impl Extracts {
    fn call(&mut self, registry: &Registry, call: &ToolRequest) {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let Some(tool) = registry.get(&call.name) else { return };
        match tool.subject(&arguments) {
            Subject::Command(command) => {
                self.commands.push(format!("`{}`", one_line(&command, LINE)));
            }
            Subject::Note { name, content } => {
                let (name, content) = (one_line(&name, LINE), one_line(&content, LINE));
                self.notes.push(format!("memo `{name}`: {content}"));
            }
            Subject::File(path) => {
                self.files.push(format!("{} `{}`", call.name, one_line(&path, LINE)));
            }
            Subject::Other => {}
        }
    }

    /// All sections, each cut from its beginning so that the newest stays.
    fn text(self, earlier: Option<&str>, limit: usize) -> String {
        let mut text = String::new();
        if let Some(earlier) = earlier {
            let _ = write!(text, "{}\n\n", cut_to(earlier, limit / 2));
        }
        let sections = [
            ("failures", self.failures),
            ("files", self.files),
            ("decisions", self.decisions),
            ("notes", self.notes),
            ("commands", self.commands),
        ];
        let share = limit.saturating_sub(text.len()) / (sections.len() + 1);
        let sections = sections.map(|(name, lines)| (name, newest(lines, share)));
        let values = sections.each_ref().map(|(name, lines)| (*name, lines.as_str()));
        text.push_str(&fill(include_str!("../prompts/extract.md").trim_end(), &values));
        text
    }
}

/// The newest lines that fit, without repetitions.
fn newest(mut lines: Vec<String>, limit: usize) -> String {
    let mut seen = HashSet::new();
    lines.reverse();
    lines.retain(|line| seen.insert(line.clone()));
    let mut used = 0;
    let fitting = lines.iter().take_while(|line| {
        used += line.len() + 3;
        used <= limit
    });
    let mut kept: Vec<_> = fitting.map(|line| format!("- {line}")).collect();
    let skipped = lines.len() - kept.len();
    if skipped > 0 {
        let skipped = skipped.to_string();
        let line = include_str!("../prompts/extract_earlier.md").trim_end();
        kept.push(fill(line, &[("count", &skipped)]));
    }
    kept.reverse();
    if kept.is_empty() { "- none".to_owned() } else { kept.join("\n") }
}
