//! Programs that run shell text: shells, `eval`, `source`, and files run as scripts.

use super::classify::{opaque, worse};
use super::paths::{self, Zone};
use super::state::{Arg, Input};
use super::walk::Walk;
use super::written::Contents;
use super::{Via, code};
use windlass_core::policy::class::{Assessment, Class};

/// Programs that read shell text from `-c`, a file or their input.
pub(super) const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "yash", "pwsh", "csh",
    "tcsh",
];

/// Options of shells that take the next word as their value.
const WITH_VALUE: &[&str] = &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"];

/// `sh -c text`, `sh file`, `sh < text`.
pub(super) fn judge(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Assessment {
    let mut rest = args;
    let (mut command, mut input) = (false, false);
    while let [first, more @ ..] = rest {
        let text = &*first.text;
        if text == "--" || text == "-" {
            rest = more;
            break;
        }
        if !text.starts_with(['-', '+']) {
            break;
        }
        if WITH_VALUE.contains(&text) {
            if let ("--rcfile" | "--init-file", [file, ..]) = (text, more) {
                let ran = script_file(walk, file, program);
                walk.findings.note(ran, &[Arg::literal(text), file.clone()]);
            }
            rest = more.get(1..).unwrap_or_default();
            continue;
        }
        if !text.starts_with("--") {
            command |= text.starts_with('-') && text.contains('c');
            input |= text.contains('s');
        }
        rest = more;
    }
    if command {
        let Some((text, positional)) = rest.split_first() else {
            // Text that starts with a dash is parsed as options; it is read nevertheless.
            if let Some(last) = args.last().filter(|_| args.len() > 1) {
                walk.follow_text(Via::Script(program.to_owned()), last, program);
            }
            return Assessment::of(Class::Read, "a shell without a command");
        };
        let positional = positional.get(1..).unwrap_or_default().to_vec();
        walk.in_subshell(Via::Script(program.to_owned()), |walk| {
            // Without arguments `$1` is empty, but that does not make it trustworthy.
            walk.state.positional = (!positional.is_empty()).then(|| vec![positional]);
            walk.script_text(text, program);
        });
        return Assessment::of(Class::Read, "a shell, judged by the text it is given");
    }
    match rest.first() {
        Some(file) if !input => script_file(walk, file, program),
        _ => input_script(walk, program),
    }
}

/// A shell that reads commands from its input.
fn input_script(walk: &mut Walk<'_>, program: &str) -> Assessment {
    match walk.state.input.clone() {
        Input::Text(text) => {
            walk.in_subshell(Via::Script(program.to_owned()), |walk| {
                walk.state.input = Input::Inherited;
                walk.script_text(&Arg::literal(text), program);
            });
            Assessment::of(Class::Read, "a shell, judged by the text it is given")
        }
        Input::File(file) => script_file(walk, &Arg::literal(file), program),
        Input::Pipe => Assessment::of(
            Class::Opaque,
            format!("`{program}` runs what another command prints, which is not known"),
        ),
        Input::Inherited => {
            Assessment::of(Class::LocalCommand, format!("starts `{program}` interactively"))
        }
    }
}

/// A file that `program` runs as a script.
pub(super) fn script_file(walk: &mut Walk<'_>, file: &Arg, program: &str) -> Assessment {
    let Some(path) = file.known() else {
        return Assessment::of(Class::Opaque, "runs a script that is only known when it runs");
    };
    if matches!(path, "/dev/stdin" | "/proc/self/fd/0" | "/dev/fd/0") {
        return input_script(walk, program);
    }
    walk.mark_run(path);
    let written = written_file(walk, path, program, &[]);
    let judged = match walk.paths().place(path) {
        Zone::Workspace => {
            Assessment::of(Class::Build, format!("runs `{path}`, code of the workspace"))
        }
        Zone::Device | Zone::Unknown | Zone::Scratch | Zone::Outside => {
            Assessment::of(Class::Opaque, format!("runs `{path}`, a script outside the workspace"))
        }
    };
    match written {
        Some(written) => worse(judged, written),
        None => judged,
    }
}

/// A file that this very text wrote before: judged by what it wrote, where that is known.
pub(super) fn written_file(
    walk: &mut Walk<'_>,
    path: &str,
    program: &str,
    args: &[Arg],
) -> Option<Assessment> {
    let text = match walk.written.find(&walk.paths().resolve(path))? {
        Contents::Known(text) => text.clone(),
        // Another name does not make it another program.
        Contents::CopyOf(original) => {
            let (original, via) = (original.clone(), Via::Alias(path.to_owned()));
            let argv = std::iter::once(Arg::literal(original)).chain(args.iter().cloned());
            walk.follow_words(via, &argv.collect::<Vec<_>>());
            return None;
        }
        Contents::Unknown => {
            return Some(opaque(format!(
                "runs `{path}`, which this command writes with text that is not known"
            )));
        }
    };
    let first = text.lines().next().filter(|line| line.starts_with("#!")).unwrap_or_default();
    let others = ["python", "node", "perl", "ruby", "php", "awk", "sed"];
    let other = others.iter().find(|name| first.contains(**name) || program.starts_with(**name));
    if let Some(other) = other {
        return Some(code::judge(walk, other, &text));
    }
    walk.follow_text(Via::Script(path.to_owned()), &Arg::literal(text), path);
    None
}

/// `eval …`: the words are text for this very shell.
pub(super) fn eval(walk: &mut Walk<'_>, args: &[Arg]) -> Assessment {
    let text = super::expand::join_fields(args);
    walk.script_text(&text, "eval");
    Assessment::of(Class::Read, "judged by the text it evaluates")
}

pub(super) fn source(walk: &mut Walk<'_>, args: &[Arg]) -> Assessment {
    let Some(file) = args.first() else {
        return Assessment::of(Class::Read, "sources nothing");
    };
    let mut judged = script_file(walk, file, "source");
    // A start-up file at home is the user's own; writing it is what asks.
    let home = paths::join(&walk.context.home, "");
    let known = file.known().map(|path| walk.paths().resolve(path)).unwrap_or_default();
    if known.iter().flatten().any(|path| path.starts_with(&home)) && judged.class == Class::Opaque {
        judged = Assessment::of(
            Class::LocalCommand,
            "reads a file of the home directory into the shell",
        );
    }
    judged
}
