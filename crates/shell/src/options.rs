//! Options whose value is a command, of programs that nobody has listed: `--exec`, `--filter`, `--pager` …
//!
//! A program that is known has its options in the table. This is the rule for all others, and for the options
//! that mean a command wherever they are.

use super::classify::opaque;
use super::invocation::Invocation;
use super::paths::Place;
use super::state::Arg;
use super::walk::Walk;
use super::{ShellCommand, code, shell, table, wrapper};
use windlass_core::policy::class::{Assessment, Class};
use windlass_core::policy::pattern::glob;

/// Names of options, without their dashes, that take a command in most programs that have them.
const RUNS: &[&str] = &[
    "exec",
    "exec-*",
    "*-exec",
    "execute",
    "command",
    "*-command",
    "cmd",
    "*-cmd",
    "rsh",
    "pager",
    "editor",
    "*-editor",
    "hook",
    "*-hook",
    "on-*",
    "preview",
    "*-program",
    "prog",
    "rsync-path",
    "toolexec",
    "vettool",
    "script-shell",
    "shell",
    "eval",
    "wrapper",
    "*-wrapper",
    "launcher",
    "*-launcher",
    "preprocessor",
    "pre",
    "browser",
    "opener",
    "askpass",
    "*-askpass",
    "filter",
    "run",
    "script",
    "callback",
    "handler",
    "transport",
    "converter",
    "DCMAKE_*_LAUNCHER",
    "DCMAKE_*_COMPILER",
];

/// Letters that mean a command in many programs, so that a value which looks like one counts.
const LETTERS: &[&str] = &["c", "e", "x", "u", "r", "s", "E", "S", "C", "P"];

/// Options that load code from a file.
const LOADS: &[&str] = &[
    "plugin",
    "*-plugin",
    "fplugin",
    "load",
    "load-*",
    "require",
    "import",
    "preload",
    "rulesdir",
    "init-file",
    "rcfile",
    "module",
    "extension",
    "library",
    "agentpath",
    "javaagent",
];

/// Options whose value is prose.
const PROSE: &[&str] = &[
    "message",
    "m",
    "title",
    "t",
    "body",
    "b",
    "description",
    "desc",
    "d",
    "comment",
    "text",
    "msg",
    "note",
    "notes",
    "subject",
    "summary",
    "reason",
    "name",
    "n",
    "label",
    "query",
    "q",
    "search",
    "grep",
    "pattern",
    "goal",
    "prompt",
    "p",
    "author",
    "header",
    "H",
];

/// Programs that say themselves what their options mean.
const EXEMPT: &[&str] = &[
    "git",
    "hub",
    "docker",
    "podman",
    "kubectl",
    "oc",
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "sqlite",
    "duckdb",
    "redis-cli",
    "mongosh",
    "clickhouse-client",
    "sqlcmd",
    "bq",
    "gh",
    "glab",
    "aws",
    "gcloud",
    "az",
    "echo",
    "printf",
    "grep",
    "egrep",
    "fgrep",
    "test",
    "[",
    "find",
    "gfind",
    "sed",
    "gsed",
    "jq",
];

/// What the options of a program run; commands in them are recorded.
pub(super) fn judge(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Option<Assessment> {
    if EXEMPT.contains(&program) || wrapper::is_wrapper(program) {
        return None;
    }
    let known = table::knows(program);
    let mut judged = None;
    for (name, value) in pairs(args) {
        let runs = RUNS.iter().any(|pattern| glob(pattern, &name));
        let letter = !known && LETTERS.contains(&&*name);
        // `--filter` more often takes a name or a place than a command.
        let place = name == "filter" && !value.contains(' ') && value.contains('/');
        if runs && !place || letter && (value.contains(' ') || value.contains('/')) {
            judged = option_command(walk, program, &value).or(judged);
        } else if LOADS.iter().any(|pattern| glob(pattern, &name))
            && value.contains('/')
            && walk.paths().place(&value) > Place::Workspace
        {
            judged = Some(opaque(format!("loads `{value}`, code from outside the workspace")));
        } else if !known && !PROSE.contains(&&*name) {
            judged = hidden_command(walk, program, &value).or(judged);
        }
    }
    judged
}

/// The value of an option that means a command.
fn option_command(walk: &mut Walk<'_>, program: &str, value: &str) -> Option<Assessment> {
    if !looks_like_command(value) {
        return None;
    }
    walk.follow_argument(value, program);
    // A program's bare name is what it is: `--pager less`.
    let bare = !value.contains(|c: char| c.is_whitespace() || "/$`;|&<>(".contains(c));
    (!bare).then(|| opaque("runs a command that is the value of an option"))
}

/// A word of an unknown program that would destroy something if it were run.
fn hidden_command(walk: &mut Walk<'_>, program: &str, value: &str) -> Option<Assessment> {
    if !value.contains(' ') || !looks_like_command(value) {
        return None;
    }
    let outer = walk.findings.open_level(Vec::new());
    walk.follow_argument(value, program);
    let found = walk.findings.close_level(outer);
    if !found.iter().any(destroys) {
        return None;
    }
    walk.findings.commands.extend(found);
    Some(opaque(format!("gives `{program}` a command, and what it does with it is not known")))
}

fn destroys(command: &ShellCommand) -> bool {
    command.assessment.class >= Class::Destructive || command.commands.iter().any(destroys)
}

/// Whether a text reads like a command: it begins with a program that is known, or with a path.
pub(super) fn looks_like_command(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let first = first.trim_start_matches(['(', '{', '!']);
    let base = first.rsplit('/').next().unwrap_or_default();
    let is_path = first.starts_with("./") || first.starts_with("../") || first.starts_with('/');
    let known = table::knows(base)
        || shell::SHELLS.contains(&base)
        || code::is_interpreter(base)
        || wrapper::is_wrapper(base)
        || matches!(base, "eval" | "source" | ".");
    known || (is_path && !base.is_empty() && !text.contains("://"))
}

/// Every option with what may be its value, and every operand with an empty name.
fn pairs(args: &[Arg]) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut after = None;
    for arg in args {
        let text = &*arg.text;
        let Some(option) = text.strip_prefix('-').filter(|option| !option.is_empty()) else {
            pairs.push((after.take().unwrap_or_default(), text.to_owned()));
            continue;
        };
        let long = option.trim_start_matches('-');
        match long.split_once('=') {
            Some((name, value)) => {
                pairs.push((name.to_owned(), value.to_owned()));
                after = None;
            }
            None => {
                // `-c'rm x'` is a letter with its value.
                let glued = !option.starts_with('-') && option.contains(' ');
                if let Some(letter) = option.chars().next().filter(|_| glued) {
                    pairs.push((letter.to_string(), option[letter.len_utf8()..].to_owned()));
                }
                after = Some(long.to_owned());
            }
        }
    }
    pairs
}

/// `fzf --bind 'enter:execute(rm x)'`: commands between the parentheses of actions.
pub(super) fn bindings(walk: &mut Walk<'_>, call: &Invocation) -> Option<Assessment> {
    let mut judged = None;
    for (name, value) in pairs(call.args) {
        if name != "bind" {
            continue;
        }
        for action in ["execute(", "execute-silent(", "become(", "reload(", "transform("] {
            if let Some((_, rest)) = value.split_once(action) {
                let inner = rest.rsplit_once(')').map_or(rest, |(inner, _)| inner).to_owned();
                walk.follow_argument(&inner, call.program);
                judged = Some(opaque("runs a command that is the value of an option"));
            }
        }
    }
    judged
}
