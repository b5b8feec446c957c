//! Git's operands: which branch a push reaches, what a setting makes git run.

use crate::classify::{opaque, worse};
use crate::invocation::Invocation;
use crate::paths::{Resolver, Use, Zone};
use crate::state::Arg;
use crate::table;
use crate::walk::Walk;
use windlass_core::policy::class::{Assessment, Class};
use windlass_core::policy::pattern::glob;

/// Settings whose value git runs as a command.
const RUN_BY_GIT: &[&str] = &[
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.gitproxy",
    "core.askpass",
    "core.alternaterefscommand",
    "sequence.editor",
    "pager.*",
    "alias.*",
    "credential.*",
    "diff.external",
    "diff.*.command",
    "diff.*.textconv",
    "difftool.*.cmd",
    "mergetool.*.cmd",
    "merge.*.driver",
    "filter.*",
    "gpg.program",
    "gpg.*.program",
    "remote.*.uploadpack",
    "remote.*.receivepack",
    "uploadpack.packobjectshook",
    "interactive.difffilter",
    "submodule.*.update",
    "sendemail.*",
    "browser.*",
    "man.*",
    "web.browser",
    "trailer.*.command",
    "trailer.*.cmd",
    "guitool.*",
    "imap.tunnel",
];

/// Settings that decide where other code comes from.
const OBEYED_BY_GIT: &[&str] = &[
    "core.hookspath",
    "core.worktree",
    "include.*",
    "includeif.*",
    "url.*",
    "protocol.*",
    "init.templatedir",
    "http.proxy",
    "safe.directory",
    "core.attributesfile",
];

pub(super) fn check(walk: &mut Walk<'_>, call: &Invocation) -> Option<Assessment> {
    let mut judged: Option<Assessment> = None;
    let mut add = |found: Option<Assessment>| {
        if let Some(found) = found {
            judged = Some(judged.take().map_or(found.clone(), |old| worse(old, found)));
        }
    };
    let subcommand = call.word(0).unwrap_or_default();
    if call.operands.first().is_some_and(|arg| arg.known().is_none()) {
        add(Some(opaque("runs a git subcommand that is only known when it runs")));
    }
    // Before the subcommand `-c` is a setting; after `commit`, `switch` and others it is not.
    let globals =
        call.args.iter().position(|arg| arg.text == subcommand).unwrap_or(call.args.len());
    for pair in call.args[..globals].windows(2).filter(|pair| pair[0].text == "-c") {
        let (key, value) = pair[1].text.split_once('=').unwrap_or((&pair[1].text, ""));
        add(setting(walk, key, value, false));
    }
    if call.args[..globals]
        .iter()
        .any(|arg| arg.text.starts_with("--exec-path=") || arg.text.starts_with("--config-env"))
    {
        add(Some(opaque("makes git run other programs or obey other settings")));
    }
    if subcommand == "clone" {
        for value in call.values("-c|--config").map(str::to_owned).collect::<Vec<_>>() {
            let (key, value) = value.split_once('=').unwrap_or((&value, ""));
            add(setting(walk, key, value, true));
        }
        if call.has("--template") {
            add(Some(opaque("copies hooks that git runs")));
        }
    }
    add(other_repository(&walk.paths(), call));
    if names_program(call, subcommand) {
        add(Some(opaque("names the program that git runs")));
    }
    if call.args.iter().any(|arg| arg.text.starts_with("ext::")) {
        add(Some(opaque("runs a command by an `ext::` address")));
    }
    match subcommand {
        "push" => add(push(&walk.context.protected_branches, call)),
        "config" => add(configure(walk, call)),
        "checkout" => add(checkout(call)),
        "rebase" | "difftool" => {
            for text in call.values("-x|--exec|--extcmd").map(str::to_owned).collect::<Vec<_>>() {
                walk.follow_argument(&text, "git");
            }
        }
        "submodule" if call.word(1) == Some("foreach") => {
            let text =
                call.operands[2..].iter().map(|arg| &*arg.text).collect::<Vec<_>>().join(" ");
            walk.follow_argument(&text, "git");
        }
        "filter-branch" => {
            for pair in call.args.windows(2).filter(|pair| pair[0].text.ends_with("-filter")) {
                walk.follow_argument(&pair[1].text.clone(), "git");
            }
        }
        "grep" if call.has("-O|--open-files-in-pager") => {
            for text in
                call.values("-O|--open-files-in-pager").map(str::to_owned).collect::<Vec<_>>()
            {
                walk.follow_argument(&text, "git");
            }
        }
        "clone" | "worktree" | "init" => add(target(&walk.paths(), call, subcommand)),
        "archive" | "bundle" | "format-patch" | "diff" | "log" | "show" => {
            for file in call.values("-o|--output") {
                add(walk.paths().judge(&Arg::literal(file), Use::Write));
            }
        }
        _ => {}
    }
    judged
}

/// `git -C ~ init`: a repository outside the workspace is changed.
fn other_repository(paths: &Resolver<'_>, call: &Invocation) -> Option<Assessment> {
    let mut places = call.values("-C|--git-dir|--work-tree").map(|path| paths.place(path));
    let outside = places.any(|place| place > Zone::Unknown);
    let changes = table::program("git")
        .and_then(|entry| table::row_of(entry, call))
        .is_some_and(|row| row.class > Class::Read);
    (outside && changes)
        .then(|| Assessment::of(Class::Destructive, "changes a repository outside the workspace"))
}

/// `git -c alias.s=status s`: the words that the alias stands for; `None` for anything else.
pub(in crate::special) fn without_alias(args: &[Arg]) -> Option<Vec<Arg>> {
    let at = args.windows(2).position(|pair| {
        pair[0].text == "-c" && pair[1].text.to_ascii_lowercase().starts_with("alias.")
    })?;
    let (name, value) = args[at + 1].known()?["alias.".len()..].split_once('=')?;
    let used = args[at + 2..].iter().position(|arg| arg.text == name)? + at + 2;
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_./=~^@:".contains(c);
    // Only options may come before a subcommand.
    let first = args[at + 2..used].is_empty();
    if !first || value.is_empty() || !value.chars().all(plain) {
        return None;
    }
    let words = value.split_whitespace().map(Arg::literal);
    Some(args[..at].iter().cloned().chain(words).chain(args[used + 1..].iter().cloned()).collect())
}

/// Whether an option names a program that git runs.
fn names_program(call: &Invocation, subcommand: &str) -> bool {
    match subcommand {
        "clone" if call.has("-u") => true,
        "clone" | "fetch" | "pull" | "push" | "ls-remote" | "archive" => {
            call.has("--upload-pack|--receive-pack|--exec")
        }
        "send-email" => call
            .options
            .iter()
            .any(|option| option.name.ends_with("-cmd") || option.name.contains("smtp-server")),
        _ => false,
    }
}

/// A setting given to one call, or kept in the configuration.
fn setting(walk: &mut Walk<'_>, key: &str, value: &str, is_kept: bool) -> Option<Assessment> {
    let key = key.to_ascii_lowercase();
    let one_of = |keys: &[&str]| keys.iter().any(|pattern| glob(pattern, &key));
    if one_of(RUN_BY_GIT) {
        let shell = value.strip_prefix('!').unwrap_or(value);
        if !shell.is_empty() && !matches!(shell, "true" | "false" | "cat" | "less") {
            // An alias without `!` names a git subcommand.
            let text = if key.starts_with("alias.") && !value.starts_with('!') {
                format!("git {value}")
            } else {
                shell.to_owned()
            };
            walk.follow_argument(&text, "git");
        }
        // What an alias does depends on the words after it, which are not followed from here.
        let harmless = key.starts_with("alias.") && is_kept && !value.starts_with('!')
            || matches!(value, "" | "true" | "false" | "cat" | "less");
        return (!harmless).then(|| opaque(format!("`{key}` makes git run a command")));
    }
    one_of(OBEYED_BY_GIT)
        .then(|| opaque(format!("`{key}` makes git obey other settings or run other code")))
}

fn configure(walk: &mut Walk<'_>, call: &Invocation) -> Option<Assessment> {
    let skip = 1 + usize::from(matches!(call.word(1), Some("set" | "unset" | "get" | "list")));
    let key = call.word(skip)?.to_owned();
    match call.operands.get(skip + 1) {
        Some(value) => setting(walk, &key, &value.text.clone(), true),
        None => None,
    }
}

/// `git checkout -- file`, `git checkout .` and `git checkout HEAD file` throw changes away.
fn checkout(call: &Invocation) -> Option<Assessment> {
    if call.has("-b|-B|--orphan|-t|--track") {
        return None;
    }
    let discards = call.args.iter().any(|arg| arg.text == "--")
        || call.operands.len() > 2
        || call.operands.iter().skip(1).any(|arg| {
            arg.text == "." || arg.glob || arg.text.starts_with("./") || arg.text.starts_with(':')
        });
    discards.then(|| Assessment::of(Class::Destructive, "throws away changes to files"))
}

fn push(protected: &[String], call: &Invocation) -> Option<Assessment> {
    if call.has("-n|--dry-run") {
        return None;
    }
    let forced = call.has("-f|--force|--force-with-lease|--force-if-includes");
    if call.has("--all|--branches") {
        let does = if forced { "force-pushes" } else { "pushes" };
        let reason = format!("{does} every branch, protected ones too");
        return Some(Assessment::of(Class::Production, reason));
    }
    let mut judged: Option<Assessment> = None;
    for refspec in call.operands.iter().skip(2) {
        let found = match refspec.known() {
            None => Assessment::of(
                Class::Production,
                "pushes to a branch that is only known when it runs",
            ),
            Some(text) => match refspec_class(protected, text, forced) {
                Some(found) => found,
                None => continue,
            },
        };
        judged = Some(judged.map_or(found.clone(), |old| worse(old, found)));
    }
    judged
}

fn refspec_class(protected: &[String], refspec: &str, forced: bool) -> Option<Assessment> {
    if refspec.starts_with(':') && refspec.len() > 1 {
        return Some(Assessment::of(Class::Destructive, "deletes a branch elsewhere"));
    }
    let forced = forced || refspec.starts_with('+');
    let target = refspec.trim_start_matches('+').rsplit(':').next().unwrap_or_default();
    let branch = target.trim_start_matches("refs/heads/");
    if protected.iter().any(|pattern| glob(pattern, branch)) {
        let reason = match forced {
            true => format!("force-pushes to `{branch}`, a protected branch: replaces its history"),
            false => format!("pushes to `{branch}`, a protected branch"),
        };
        return Some(Assessment::of(Class::Production, reason));
    }
    let reason = "force-pushes: replaces history elsewhere";
    forced.then(|| Assessment::of(Class::Production, reason))
}

fn target(paths: &Resolver<'_>, call: &Invocation, subcommand: &str) -> Option<Assessment> {
    if subcommand == "worktree" && call.word(1) != Some("add") {
        return None;
    }
    let directory = call.operands.get(if subcommand == "init" { 1 } else { 2 })?;
    paths.judge(directory, Use::Write).filter(|found| found.class > Class::Edit)
}
