//! Programs that run shell text: shells, `eval`, `source`, and files run as scripts.

use super::Via;
use super::classify::worse;
use super::paths::{self, Place};
use super::state::{Arg, Input, UNKNOWN};
use super::syntax::{Append, Part, Redirect};
use super::walk::Walk;
use windlass_core::policy::class::{Assessment, Class};

/// Programs that read shell text from `-c`, a file or their input.
pub(super) const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "yash", "pwsh", "csh",
    "tcsh",
];

/// Options of shells that take the next word as their value.
const WITH_VALUE: &[&str] = &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"];

impl Walk<'_> {
    /// `sh -c text`, `sh file`, `sh < text`.
    pub(super) fn shell(&mut self, program: &str, args: &[Arg]) -> Assessment {
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
                    let ran = self.script_file(file, program);
                    self.note(ran, &[Arg::literal(text), file.clone()]);
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
                    let via = Via::Script(program.to_owned());
                    self.in_subshell(via, |walk| walk.script_text(last, program));
                }
                return Assessment::of(Class::Read, "a shell without a command");
            };
            let positional = positional.get(1..).unwrap_or_default().to_vec();
            self.in_subshell(Via::Script(program.to_owned()), |walk| {
                // Without arguments `$1` is empty, but that is no reason to trust it.
                walk.state.positional = (!positional.is_empty()).then(|| vec![positional]);
                walk.script_text(text, program);
            });
            return Assessment::of(Class::Read, "a shell, judged by the text it is given");
        }
        match rest.first() {
            Some(file) if !input => self.script_file(file, program),
            _ => self.input_script(program),
        }
    }

    /// A shell that reads commands from its input.
    fn input_script(&mut self, program: &str) -> Assessment {
        match self.state.input.clone() {
            Input::Text(text) => {
                self.in_subshell(Via::Script(program.to_owned()), |walk| {
                    walk.state.input = Input::Inherited;
                    walk.script_text(&Arg::literal(text), program);
                });
                Assessment::of(Class::Read, "a shell, judged by the text it is given")
            }
            Input::File(file) => self.script_file(&Arg::literal(file), program),
            Input::Pipe => Assessment::of(
                Class::Opaque,
                format!("`{program}` runs what another command prints, which is not known"),
            ),
            Input::Inherited => {
                Assessment::of(Class::LocalCommand, format!("starts `{program}` interactively"))
            }
        }
    }

    /// Text that a shell runs; where parts of it are not known, the rest is read all the same.
    pub(super) fn script_text(&mut self, text: &Arg, program: &str) {
        let via = Via::Script(program.to_owned());
        match text.known() {
            Some(text) => self.script(text, via),
            None => {
                self.note_unreadable(
                    &text.text,
                    &format!("`{program}` runs text that is computed when it runs"),
                );
                if !text.without_unknown().trim().is_empty() {
                    let text = text.text.replace(UNKNOWN, "$__unknown__");
                    self.script(&text, via);
                }
            }
        }
    }

    /// A file that `program` runs as a script.
    pub(super) fn script_file(&mut self, file: &Arg, program: &str) -> Assessment {
        let Some(path) = file.known() else {
            return Assessment::of(Class::Opaque, "runs a script that is only known when it runs");
        };
        if matches!(path, "/dev/stdin" | "/proc/self/fd/0" | "/dev/fd/0") {
            return self.input_script(program);
        }
        let written = self.judge_written_file(path, program);
        let judged = match self.place(path) {
            Place::Workspace => {
                Assessment::of(Class::LocalCommand, format!("runs `{path}` of the workspace"))
            }
            Place::Device | Place::Unknown | Place::Scratch | Place::Outside => Assessment::of(
                Class::Opaque,
                format!("runs `{path}`, a script outside the workspace"),
            ),
        };
        match written {
            Some(written) => worse(judged, written),
            None => judged,
        }
    }

    /// A file that this very text wrote before: judged by what it wrote, where that is known.
    pub(super) fn judge_written_file(&mut self, path: &str, program: &str) -> Option<Assessment> {
        let paths = self.resolve_all(path);
        let text = paths.iter().flatten().find_map(|path| self.written.get(path))?.clone();
        let Some(text) = text else {
            return Some(Assessment::of(
                Class::Opaque,
                format!("runs `{path}`, which this command writes with text that is not known"),
            ));
        };
        let first = text.lines().next().filter(|line| line.starts_with("#!")).unwrap_or_default();
        let others = ["python", "node", "perl", "ruby", "php", "awk", "sed"];
        let other =
            others.iter().find(|name| first.contains(**name) || program.starts_with(**name));
        if let Some(other) = other {
            return Some(self.code(other, &text));
        }
        self.in_subshell(Via::Script(path.to_owned()), |walk| {
            walk.script_text(&Arg::literal(text), path);
        });
        None
    }

    /// Remembers that this text writes a file.
    pub(super) fn mark_written(&mut self, file: &Arg) {
        for path in self.resolve_all(&file.text).into_iter().flatten() {
            self.written.entry(path).or_insert(None);
        }
    }

    /// Remembers what a command wrote into the file its output goes to.
    pub(super) fn remember_output(&mut self, parts: &[Part]) {
        let mut targets = parts.iter().filter_map(|part| match part {
            Part::Redirect(Redirect::To(word, append)) => Some((word, *append)),
            Part::Redirect(_) | Part::Word(_) | Part::Assign(_) | Part::Process(_) => None,
        });
        let (Some((word, append)), None) = (targets.next(), targets.next()) else { return };
        let text = self.text_printed(parts);
        let found = std::mem::take(&mut self.found);
        let file = self.expand_to_text(word);
        self.found = found;
        for path in self.resolve_all(&file.text).into_iter().flatten() {
            let old = self.written.remove(&path).flatten();
            let new = match (append, old, &text) {
                (Append::No, _, text) => text.clone(),
                (Append::Yes, Some(old), Some(text)) => Some(format!("{old}\n{text}")),
                (Append::Yes, ..) => None,
            };
            self.written.insert(path, new);
        }
    }

    /// `eval …`: the words are text for this very shell.
    pub(super) fn eval(&mut self, args: &[Arg]) -> Assessment {
        let text = super::expand::join_fields(args);
        self.script_text(&text, "eval");
        Assessment::of(Class::Read, "judged by the text it evaluates")
    }

    pub(super) fn source(&mut self, args: &[Arg]) -> Assessment {
        let Some(file) = args.first() else {
            return Assessment::of(Class::Read, "sources nothing");
        };
        let mut judged = self.script_file(file, "source");
        // A start-up file at home is the user's own; writing it is what asks.
        let home = paths::join(&self.context.home, "");
        let known = file.known().map(|path| self.resolve_all(path)).unwrap_or_default();
        if known.iter().flatten().any(|path| path.starts_with(&home))
            && judged.class == Class::Opaque
        {
            judged = Assessment::of(
                Class::LocalCommand,
                "reads a file of the home directory into the shell",
            );
        }
        judged
    }
}
