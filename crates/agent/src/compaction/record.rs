//! Turns as text: in pieces for the summarizer, complete for the file.

use std::fmt::Write as _;

use windlass_core::message::Message;
use windlass_core::text::{prefix, suffix};

use crate::context::{Turn, TurnMessage};
use crate::prompt::{ShortenedOutput, fill};

/// How much of one result the summarizer reads; the rest is in the file.
const PIECE_BYTES: usize = 6_000;

/// The messages of turns as text, one piece each, long ones cut.
pub(super) fn pieces(turns: &[&Turn]) -> Vec<String> {
    turns
        .iter()
        .flat_map(|turn| turn.retained())
        .map(|entry| shorten_piece(entry_text(entry)))
        .collect()
}

/// Cuts a text in the middle.
pub(super) fn cut_to(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let (head, tail) = (prefix(text, limit * 2 / 3), suffix(text, limit / 3));
    let left_out = text.len() - head.len() - tail.len();
    ShortenedOutput { head, tail, left_out }.text()
}

fn shorten_piece(text: String) -> String {
    cut_to(&text, PIECE_BYTES)
}

/// Everything a compaction drops, for reading later.
pub(super) fn file(
    number: u32,
    dropped: &[&Turn],
    kept: &[&Turn],
    shrink: Option<usize>,
) -> String {
    let number = number.to_string();
    let mut text = fill(include_str!("../prompts/dropped.md"), &[("number", &number)]);
    for (place, turn) in dropped.iter().enumerate() {
        let notes = if turn.flush { " (saving notes)" } else { "" };
        let _ = write!(text, "\n## Turn {}{notes}\n\n", place + 1);
        for entry in &turn.entries {
            let _ = writeln!(text, "{}\n", entry_text(entry));
        }
    }
    let shrunk = kept.iter().flat_map(|turn| &turn.entries).filter(|entry| {
        let long =
            |limit| matches!(&entry.message, Message::Tool { text, .. } if text.len() > limit);
        shrink.is_some_and(long)
    });
    for (place, entry) in shrunk.enumerate() {
        if place == 0 {
            let _ = writeln!(text, "\n{}", include_str!("../prompts/dropped_results.md"));
        }
        let _ = writeln!(text, "{}\n", entry_text(entry));
    }
    text
}

fn entry_text(entry: &TurnMessage) -> String {
    match &entry.message {
        Message::User { text, pictures } => {
            let pictures = pictures.iter().map(|picture| format!("\n[{picture}]"));
            format!("[user]\n{text}{}", pictures.collect::<String>())
        }
        // What it thought is not for the next epoch.
        Message::Assistant { text, calls, .. } => {
            let mut all = format!("[assistant]\n{text}");
            for call in calls {
                let _ = write!(all, "\n[call {} `{}`] {}", call.name, call.id, call.arguments);
            }
            all
        }
        Message::Tool { name, text, is_error, .. } => {
            let failed = if *is_error { ", failed" } else { "" };
            let call = entry.call.map(|of| format!(" `{}`", of.call)).unwrap_or_default();
            format!("[result of {name}{call}{failed}]\n{text}")
        }
    }
}
