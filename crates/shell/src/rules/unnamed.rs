//! Programs that put files in place under names that only a server, an archive or a pattern knows.

use super::note;
use crate::invocation::{Invocation, Style};
use crate::paths;
use crate::state::Arg;
use crate::walk::Walk;
use windlass_core::policy::{ArrivalSource, files};

/// Unpacking programs that are used seldom: how a word says that they unpack, and the option for the directory.
const UNPACKERS: &[(&str, &str, &str)] = &[
    ("7zz", "x e", "-o"),
    ("lha", "x e", ""),
    ("unar", "", "-o|-output-directory"),
    ("cabextract", "", "-d|--directory"),
    ("unshar", "", "-d|--directory"),
    ("uudecode", "", "-o"),
    ("dpkg-deb", "-x -R -X --extract --raw-extract --vextract", ""),
    ("jar", "x", "-C"),
    ("pax", "-r", ""),
];

/// Subcommands of other version control that put files of another state in place.
const OTHER_STORES: &[(&str, &str)] = &[
    ("hg", "update up checkout co pull merge rebase import graft unshelve backout clone revert"),
    ("svn", "update up switch sw merge patch checkout co export revert"),
    ("jj", "new edit restore rebase squash abandon undo op git"),
    ("bzr", "pull update merge switch revert"),
    ("fossil", "update checkout open merge revert"),
];

/// Notes the files that such a program brings. `None` when it is not one of these programs.
pub(super) fn judge(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Option<Vec<String>> {
    let words: Vec<&str> = args.iter().map(|arg| &*arg.text).collect();
    let of = |list: &[(&str, &str)]| {
        let found = list.iter().find(|(name, _)| *name == program);
        found.map(|(_, subcommands)| (*subcommands).to_owned())
    };
    if let Some(subcommands) = of(OTHER_STORES) {
        let first = words.iter().find(|word| !word.starts_with('-'));
        if first.is_some_and(|first| subcommands.split(' ').any(|known| known == *first)) {
            note_unknown_names(walk, ".");
        }
        return Some(words.iter().map(|word| (*word).to_owned()).collect());
    }
    if let Some((_, marks, directory)) = UNPACKERS.iter().find(|(name, ..)| *name == program) {
        return Some(unpack(walk, program, args, marks, directory));
    }
    match (program, &words[..]) {
        ("python" | "python3", ["-m", "zipfile" | "tarfile", "-e" | "--extract", rest @ ..]) => {
            let into = rest.get(1).copied().unwrap_or(".");
            note(walk, ArrivalSource::Archive, rest.first()?, into);
            Some(vec![into.to_owned()])
        }
        ("cmake", ["-E", "tar", letters, file, ..]) if letters.contains('x') => {
            note(walk, ArrivalSource::Archive, file, ".");
            Some(Vec::new())
        }
        ("scp" | "docker" | "podman" | "rclone", _) => Some(fetched_names(walk, program, args)),
        ("rename" | "prename" | "rename.ul" | "mmv" | "zmv", _) => {
            if words.iter().any(|word| names_rule(word)) {
                note_unknown_names(walk, ".");
            }
            Some(words.iter().map(|word| (*word).to_owned()).collect())
        }
        _ => None,
    }
}

/// What comes from a place that nobody can look into before.
pub(super) fn note_unknown_names(walk: &mut Walk<'_>, into: &str) {
    note(walk, |_| ArrivalSource::Computed, ".", into);
}

/// Whether a text holds a part of the name of a rule file: `s/x/AGENTS/`.
fn names_rule(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let stem =
        |name: &str| name.trim_start_matches('.').trim_end_matches(".md").to_ascii_lowercase();
    files::rule_names().any(|name| lower.contains(&stem(name)))
}

fn unpack(
    walk: &mut Walk<'_>,
    program: &str,
    args: &[Arg],
    marks: &str,
    directory: &str,
) -> Vec<String> {
    let first = args.first().map_or("", |arg| &*arg.text);
    let is_mark = |mark: &str| match mark.strip_prefix('-') {
        // A letter among others: `pax -rf`.
        Some(letter) if letter.len() == 1 => args.iter().any(|arg| {
            arg.text == mark
                || arg.text.starts_with('-')
                    && !arg.text.starts_with("--")
                    && arg.text.contains(letter)
        }),
        Some(_) => args.iter().any(|arg| arg.text == mark),
        None => first.trim_start_matches('-').starts_with(mark),
    };
    if !marks.is_empty() && !marks.split(' ').any(is_mark) {
        return Vec::new();
    }
    let call = Invocation::new(program, args, &directory.replace('|', " "), Style::Bundled);
    let copies = program == "pax" && ["-r", "-w"].into_iter().all(is_mark);
    if let Some(into) = call.operands.last().filter(|_| copies) {
        note_unknown_names(walk, &into.text);
        return vec![into.text.clone()];
    }
    let is_archive = |arg: &&Arg| !arg.text.starts_with('-') && arg.text.contains('.');
    let into = call.values(directory).next().unwrap_or(".").to_owned();
    match args.iter().find(is_archive).filter(|_| matches!(program, "jar" | "pax")) {
        Some(archive) => note(walk, ArrivalSource::Archive, &archive.text.clone(), &into),
        None => note_unknown_names(walk, &into),
    }
    vec![into]
}

/// `scp host:x/AGENTS.md .`, `docker cp box:/x/. .`: what is copied from elsewhere gets its name here.
fn fetched_names(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Vec<String> {
    let values = "-P -i -o -F -l -S -c -J --config";
    let call = Invocation::new(program, args, values, Style::Bundled);
    let skip = match (program, call.word(0), call.word(1)) {
        ("scp", ..) => 0,
        ("docker" | "podman", Some("cp"), _) | ("rclone", Some("copy" | "sync" | "move"), _) => 1,
        ("docker" | "podman", Some("container"), Some("cp")) => 2,
        _ => return Vec::new(),
    };
    let Some((into, sources)) = call.operands.get(skip..).and_then(|all| all.split_last()) else {
        return Vec::new();
    };
    let into = into.text.clone();
    // To another machine.
    if into.contains(':') {
        return Vec::new();
    }
    let mut names = vec![into.clone()];
    for source in sources {
        let path = source.text.rsplit(':').next().unwrap_or_default();
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let is_tree = program == "rclone" || source.known().is_none() || source.glob;
        match is_tree || matches!(name, "" | "." | "..") || name.contains(['*', '?', '[']) {
            true => note_unknown_names(walk, &into),
            false => names.push(paths::join(&into, name)),
        }
    }
    names
}
