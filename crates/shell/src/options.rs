//! Options whose value is a command, of programs that nobody has listed: `--exec`, `--filter`, `--pager` …
//!
//! A program that is known has its options in the table. This is the rule for all others, and for the options
//! that mean a command wherever they are.

use super::classify::opaque;
use super::invocation::Invocation;
use super::paths::Zone;
use super::state::Arg;
use super::walk::Walk;
use super::{ShellCommand, Via, code, shell, table, wrapper};
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
    "globalSetup",
    "globalTeardown",
    "setupFiles*",
    "rootdir",
    "confcutdir",
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
    "k",
    "g",
    "match",
    "testNamePattern",
];

/// Names of programs that are subcommands of many others.
const SUBCOMMANDS: &[&str] = &[
    "init", "login", "logout", "format", "shutdown", "reboot", "halt", "poweroff", "mount",
    "umount", "service", "install", "link", "unlink", "truncate", "passwd", "reset", "open", "at",
    "batch", "op", "pass", "age", "please", "super", "security", "vault",
];

/// How many words of one unknown program are tried as the beginning of a command.
const MOST_TAILS: usize = 8;

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
    let known = table::is_known(program);
    let mut judged = None;
    for (name, value) in pairs(args) {
        let runs = RUNS.iter().any(|pattern| glob(pattern, &name));
        let letter = !known && LETTERS.contains(&&*name);
        // `--filter` more often takes a name or a place than a command.
        let place = name == "filter" && !value.contains(' ') && value.contains('/');
        if runs && !place || letter && (value.contains(' ') || value.contains('/')) {
            judged = option_command(walk, program, &value).or(judged);
        } else if (LOADS.iter().any(|pattern| glob(pattern, &name))
            || is_code_config(&name, &value))
            && value.contains('/')
            && walk.paths().place(&value) > Zone::Workspace
        {
            judged = Some(opaque(format!("loads `{value}`, code from outside the workspace")));
        } else if !known && !PROSE.contains(&&*name) {
            judged = hidden_command(walk, program, &value).or(judged);
        }
    }
    match known {
        true => judged,
        false => judged.or_else(|| tail_command(walk, program, args)),
    }
}

/// `--config x.js`: a configuration that is a program.
fn is_code_config(name: &str, value: &str) -> bool {
    let endings = [".js", ".cjs", ".mjs", ".ts", ".py", ".rb"];
    matches!(name, "config" | "c") && endings.iter().any(|ending| value.ends_with(ending))
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

/// A word of a program that would destroy something if it were run.
fn hidden_command(walk: &mut Walk<'_>, program: &str, value: &str) -> Option<Assessment> {
    let text = value.trim_start_matches('!');
    // `CC='rm -rf x'` is a command for a variable or a setting.
    let assigned = text.split_once('=').filter(|(name, _)| !name.contains(' '));
    let assigned = assigned.map(|(_, text)| text.trim_start_matches('!'));
    let text =
        [Some(text), assigned].into_iter().flatten().find(|text| looks_like_command(text))?;
    if !text.contains(' ') {
        return None;
    }
    destructive_only(walk, program, |walk| walk.follow_argument(text, program))
}

/// The words of an unknown program from one that is a command's name on: `tool -x rm -r a`.
fn tail_command(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Option<Assessment> {
    // A name alone is more likely a word than a command.
    let starts = args.iter().enumerate().rev().skip(1).rev().filter(|(_, arg)| {
        let text = &*arg.text;
        !text.starts_with('-')
            && !text.contains(' ')
            && !SUBCOMMANDS.contains(&text)
            && looks_like_command(text)
            && !text.starts_with('.')
    });
    let starts: Vec<usize> = starts.map(|(at, _)| at).take(MOST_TAILS).collect();
    starts.into_iter().find_map(|at| {
        let via = Via::Wrapper(program.to_owned());
        destructive_only(walk, program, |walk| walk.follow_words(via, &args[at..]))
    })
}

/// Keeps what `follow` finds only where it would destroy something.
fn destructive_only(
    walk: &mut Walk<'_>,
    program: &str,
    follow: impl FnOnce(&mut Walk<'_>),
) -> Option<Assessment> {
    let outer = walk.findings.open_level(Vec::new());
    follow(walk);
    let found = walk.findings.close_level(outer);
    if !found.iter().any(destroys) {
        return None;
    }
    walk.findings.commands.extend(found);
    Some(opaque(format!("gives `{program}` a command, and what it does with it is not known")))
}

/// Commands in the words of a known program that builds, tests or runs: `make CC='rm -rf x'`.
pub(super) fn hidden(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Option<Assessment> {
    if EXEMPT.contains(&program) || wrapper::is_wrapper(program) {
        return None;
    }
    // What follows two dashes is for the program that it builds or runs.
    let own = args.iter().position(|arg| arg.text == "--").unwrap_or(args.len());
    let words = pairs(&args[..own]).into_iter().filter(|(name, _)| !PROSE.contains(&&**name));
    words.fold(None, |judged, (_, value)| hidden_command(walk, program, &value).or(judged))
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
    let known = table::is_known(base)
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
