//! Statements given to database clients: whether they only look, change rows, or drop things.

use crate::classify::{is_unknown, opaque, worse};
use crate::invocation::Invocation;
use crate::state::Input;
use crate::walk::Walk;
use windlass_core::policy::class::{Assessment, Class};

/// Words that start a statement which removes what cannot be restored.
const REMOVES: &[&str] =
    &["drop", "truncate", "delete", "alter", "grant", "revoke", "replace", "vacuum", "attach"];

/// Words that start a statement which changes rows.
const CHANGES: &[&str] = &[
    "update", "insert", "create", "merge", "call", "exec", "execute", "do", "set", "copy", "load",
    "import",
];

pub(super) fn check(walk: &mut Walk<'_>, call: &Invocation) -> Option<Assessment> {
    let mut texts: Vec<String> =
        call.values("-c|--command|-e|--execute|-Q|--query|-cmd").map(str::to_owned).collect();
    if matches!(call.program, "sqlite3" | "sqlite" | "duckdb" | "bq") {
        texts.extend(call.operands.iter().skip(1).map(|arg| arg.text.clone()));
    }
    if call.has("-init") || call.args.iter().any(|arg| arg.text == "-init") {
        return Some(opaque("runs statements of a file"));
    }
    match walk.state.input.clone() {
        Input::Text(text) => texts.push(text),
        Input::File(_) | Input::Pipe if texts.is_empty() => {
            return Some(opaque("runs statements that are only known when it runs"));
        }
        Input::File(_) | Input::Pipe | Input::Inherited => {}
    }
    let mut judged: Option<Assessment> = None;
    for text in texts {
        let found = statement(walk, call.program, &text);
        judged = Some(judged.map_or(found.clone(), |old| worse(old, found)));
    }
    judged
}

fn statement(walk: &mut Walk<'_>, program: &str, text: &str) -> Assessment {
    if is_unknown(text) {
        return opaque("runs a statement that is only known when it runs");
    }
    // A client's own escape to the shell: `\!`, `.shell`, `system`.
    for part in text.lines() {
        let part = part.trim();
        let escape =
            ["\\!", ".shell ", ".system ", "system ", "\\copy ", ".output ", ".import ", ".once "]
                .iter()
                .find_map(|escape| part.strip_prefix(escape));
        if let Some(command) = escape {
            walk.follow_argument(command, program);
            return opaque("runs a command from a database client");
        }
    }
    let lower = text.to_ascii_lowercase();
    if let Some((_, command)) = lower.split_once(" program '") {
        let length = command.find('\'').unwrap_or(command.len());
        let start = text.len() - command.len();
        walk.follow_argument(&text[start..start + length], program);
        return opaque("runs a command from a database client");
    }
    const LOADS: &[&str] =
        &["load_extension", "into outfile", "into dumpfile", "lo_export", "pg_read_file"];
    if LOADS.iter().any(|word| lower.contains(word)) {
        return opaque("loads code into the database or reaches files through it");
    }
    let starts = first_words(&without_texts(&text.to_ascii_lowercase()));
    if starts.iter().any(|word| REMOVES.contains(&&**word)) {
        return Assessment::of(Class::Destructive, "removes or restructures what a database holds");
    }
    if starts.iter().any(|word| CHANGES.contains(&&**word)) {
        return Assessment::of(Class::LocalCommand, "changes what a database holds");
    }
    Assessment::of(Class::LocalCommand, "asks a database")
}

/// The statement without the text between single quotes.
fn without_texts(text: &str) -> String {
    text.split('\'').step_by(2).collect::<Vec<_>>().join(" ")
}

/// The first word of each statement, and of each statement after a common table expression.
fn first_words(text: &str) -> Vec<String> {
    let mut starts = Vec::new();
    for statement in text.split([';', ')', '(']) {
        let word: String =
            statement.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
        if !word.is_empty() {
            starts.push(word);
        }
    }
    starts
}
