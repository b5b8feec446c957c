//! Signs of work, of the end, and of failure.

use super::{Activity, Row, ScreenState};

/// How many rows at the end of a screen are looked at for signs.
const NEAR: usize = 8;

/// What spinners are drawn with.
const SPINNERS: &str = "✻✽✶✳✢✺✷◐◓◑◒◴◷◶◵▖▘▝▗◜◝◞◟∗";

/// Some are drawn with what also begins a line of text.
const WEAK_SPINNERS: &str = "·*|/-\\";

/// The last row that shows work, and what kind of work.
pub(super) fn working(rows: &[&Row]) -> Option<(usize, Activity)> {
    let near = &rows[rows.len().saturating_sub(NEAR)..];
    // A bar above a prompt that waits is a part of what the program has said.
    let prompt = near.iter().rposition(|row| is_idle(&row.text)).map(|at| near[at].at);
    let is_below_prompt = |row: &Row| prompt.is_none_or(|prompt| row.at > prompt);
    let is_sign =
        |row: &&&Row| is_working(&row.text) || is_progress(&row.text) && is_below_prompt(row);
    let found = near.iter().rev().find(is_sign)?;
    let activity =
        if is_progress(&found.text) { Activity::RunningCommand } else { activity_of(&found.text) };
    Some((found.at, activity))
}

fn is_working(text: &str) -> bool {
    let lower = text.to_lowercase();
    let says_so = [
        "esc to interrupt",
        "ctrl+c to interrupt",
        "ctrl-c to interrupt",
        "esc to stop",
        "to interrupt)",
    ];
    says_so.iter().any(|words| lower.contains(words)) || is_spinner(text)
}

/// A spinner and a word that stays: `⠋ Thinking…`, `░█  Waiting for the model`.
fn is_spinner(text: &str) -> bool {
    let unscanned = text.trim_start_matches(['░', '█']);
    let is_scanner = text.len() > unscanned.len() && unscanned.starts_with(' ');
    if is_scanner {
        let first = unscanned.split_whitespace().next().unwrap_or_default();
        return first.ends_with("ing");
    }
    let mut chars = text.chars();
    let Some(frame) = chars.next() else { return false };
    let Some(rest) = chars.as_str().strip_prefix(' ') else { return false };
    let goes_on = rest.contains('…') || rest.contains("...");
    let first = rest.split_whitespace().next().unwrap_or_default();
    let is_doing = first.trim_end_matches(['…', '.']).ends_with("ing");
    let is_braille = ('\u{2800}'..='\u{28ff}').contains(&frame);
    is_braille && !first.is_empty()
        || SPINNERS.contains(frame) && goes_on
        || WEAK_SPINNERS.contains(frame) && goes_on && is_doing
}

/// A bar, or a part of a whole, that is not full.
fn is_progress(text: &str) -> bool {
    let percent = percent(text).is_some_and(|percent| percent < 100.0);
    let bar = ["█", "▓", "▒", "░", "━", "■", "###", "===", "=>", "----", "⣿"];
    let has_bar = bar.iter().any(|part| text.contains(part)) || text.contains("[#");
    let says = [
        "downloading",
        "installing",
        "compiling",
        "building",
        "resolving",
        "fetching",
        "indexing",
        "receiving",
    ];
    let lower = text.to_lowercase();
    percent && (has_bar || says.iter().any(|word| lower.contains(word)))
        || has_bar && fraction(text).is_some_and(|(done, all)| done < all)
}

fn percent(text: &str) -> Option<f64> {
    let at = text.find('%')?;
    let before = text[..at].trim_end();
    let start = before
        .rfind(|char: char| !char.is_ascii_digit() && char != '.')
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    before[start..].parse().ok()
}

/// `3/10` in a line.
fn fraction(text: &str) -> Option<(u64, u64)> {
    text.split_whitespace().find_map(|word| {
        let word = word.trim_matches(|char: char| !char.is_ascii_digit());
        let (done, all) = word.split_once('/')?;
        Some((done.parse().ok()?, all.parse().ok()?))
    })
}

fn activity_of(text: &str) -> Activity {
    let lower = text.to_lowercase();
    let any = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if any(&[
        "running",
        "executing",
        "bash",
        "command",
        "install",
        "compil",
        "build",
        "test",
        "download",
        "fetch",
    ]) {
        Activity::RunningCommand
    } else if any(&["writ", "edit", "generat", "apply", "stream"]) {
        Activity::Writing
    } else {
        Activity::Thinking
    }
}

/// What a screen without work and without a question shows.
pub(super) fn rest(rows: &[&Row]) -> ScreenState {
    let near = &rows[rows.len().saturating_sub(NEAR)..];
    let last = near.iter().rev().find(|row| !is_idle(&row.text));
    let is_idle = near.iter().rev().take(4).any(|row| is_idle(&row.text));
    // Above a prompt, an error is how its work ended only where it is the last that the program says: a summary may
    // tell of one.
    let error = match is_idle {
        true => last.filter(|row| is_error(&row.text)),
        false => near.iter().rev().find(|row| is_error(&row.text)),
    };
    match error {
        Some(row) if is_idle => ScreenState::Stopped(row.text.clone()),
        Some(row) => ScreenState::Error(row.text.clone()),
        None if is_idle || near.iter().any(|row| is_done(&row.text)) => ScreenState::Finished,
        None => ScreenState::Nothing,
    }
}

fn is_error(text: &str) -> bool {
    let starts = [
        "error",
        "fatal",
        "traceback",
        "panic",
        "✗",
        "✘",
        "✖",
        "❌",
        "api error",
        "failed",
        "exception",
        "uncaught",
        "unhandled",
        "✕",
        "npm err",
        "e: ",
    ];
    let holds = [
        " error:",
        "panicked at",
        "command not found",
        "rate limit",
        "quota exceeded",
        "invalid api key",
        "connection refused",
        "timed out",
        "unauthorized",
        "out of credits",
        "no such file",
    ];
    let lower = text.to_lowercase();
    let lower = lower.trim_start_matches(['⎿', '●', '■', '⚠', '•', ' ', '\u{fe0f}']);
    let counts_none = lower.contains("0 error") || lower.contains("no error");
    !counts_none
        && (starts.iter().any(|word| lower.starts_with(word))
            || holds.iter().any(|word| lower.contains(word)))
}

fn is_done(text: &str) -> bool {
    let lower = text.to_lowercase();
    let starts = [
        "✔",
        "✓",
        "✅",
        "✨",
        "done",
        "finished",
        "completed",
        "all done",
        "task complete",
        "success",
    ];
    let holds = [
        "task completed",
        "task complete",
        "all tests pass",
        "done in ",
        "finished in ",
        "completed in ",
        "total cost:",
    ];
    starts.iter().any(|word| lower.starts_with(word))
        || holds.iter().any(|word| lower.contains(word))
}

/// An empty prompt of the program's own.
pub(super) fn is_idle(text: &str) -> bool {
    let lower = text.to_lowercase();
    let is_prompt = [">", "❯", "›", "$", "#", "»"].contains(&text.trim());
    let hints = [
        "? for shortcuts",
        "type your message",
        "type a message",
        "ask anything",
        "send a message",
        "/help",
        "context left",
        "shift+tab to cycle",
    ];
    is_prompt || hints.iter().any(|hint| lower.contains(hint)) || text.trim_end().ends_with('$')
}
