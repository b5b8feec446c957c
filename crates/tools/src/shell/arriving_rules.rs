//! Files that say what an agent may do, where a command brings them along without naming them: in a tree that it
//! copies, in an archive, in a patch.
//!
//! What cannot be looked into counts as bringing some, where it lands in a directory whose rules the agent obeys.
//! What a program of the project writes while it runs is not seen here.

use std::io::Read;
use std::ops::ControlFlow;

use aho_corasick::AhoCorasick;
use flate2::read::MultiGzDecoder;
use windlass_core::policy::class::{Assessment, Class};
use windlass_core::policy::pattern::glob;
use windlass_core::policy::{Arrival, ArrivalSource, CommandAnalysis, files};
use windlass_core::shown::shown_line;

use crate::workspace::{ScanFilter, Stop, Workspace};

/// The most that is read of an archive or a patch, unpacked. A larger one cannot be looked into.
const MAX_BYTES: u64 = 32 << 20;
/// The most files of a tree that are looked at.
const MAX_FILES: usize = 50_000;
/// How archives begin whose names are not packed: zip, ar, the forms of cpio.
const LISTED: &[&[u8]] =
    &[b"PK\x03\x04", b"PK\x05\x06", b"!<arch>\n", b"07070", b"\xc7\x71", b"\x71\xc7"];
/// The mark in the head of the first file of a tar, and its position. The oldest form has no mark.
const TAR_MARK: (usize, &[u8]) = (257, b"ustar");

/// What was found out about a source.
enum Finding {
    Nothing,
    /// It brings this file.
    Rule(String),
    /// Nobody can say beforehand.
    Unknown,
}

/// The files with rules that a glob in a command may stand for, below each of the names that the workspace has.
pub(super) fn existing(workspace: &Workspace, command: &str, tops: &[&String]) -> Vec<String> {
    if !command.contains(['*', '?', '[']) {
        return Vec::new();
    }
    let rules = workspace.rule_files().existing();
    let below = |top: &&String| {
        let top = top.trim_end_matches('/').to_owned();
        rules.iter().map(move |name| format!("{top}/{name}"))
    };
    tops.iter().flat_map(below).collect()
}

/// What links among the files with rules lead to, below each of the names that the workspace has.
pub(super) fn linked(workspace: &Workspace, tops: &[&String]) -> Vec<String> {
    let linked = workspace.rule_files().linked();
    let below = |top: &&String| {
        let top = top.trim_end_matches('/').to_owned();
        linked.iter().map(move |name| format!("{top}/{name}"))
    };
    tops.iter().flat_map(below).collect()
}

/// Adds what arrives to what is known of a command.
pub(super) fn add_to(analysis: &mut CommandAnalysis, workspace: &Workspace) {
    for arrival in analysis.arrivals.clone() {
        let Some(source) = source_of(&arrival.source).map(shown_line) else { continue };
        let reason = match look(workspace, &arrival) {
            Finding::Nothing => continue,
            Finding::Rule(name) => {
                let name = shown_line(&name);
                format!("brings `{name}` from `{source}`, which says what an agent may do")
            }
            Finding::Unknown => format!(
                "brings files from `{source}`, and cannot be looked into for files that say what an agent may do"
            ),
        };
        analysis.add(source, Assessment::of(Class::Production, reason));
    }
}

/// Where files come from, in words; `None` for what only git can say.
fn source_of(source: &ArrivalSource) -> Option<&str> {
    Some(match source {
        ArrivalSource::Tree(path)
        | ArrivalSource::Glob(path)
        | ArrivalSource::Archive(path)
        | ArrivalSource::Patch(path) => path,
        ArrivalSource::Pipe => "a pipe",
        ArrivalSource::Computed => "a place that is only known when it runs",
        ArrivalSource::Git(_) => return None,
    })
}

fn look(workspace: &Workspace, arrival: &Arrival) -> Finding {
    let landing = |name: &str| format!("{}/{name}", arrival.into.trim_end_matches('/'));
    let has_links = !workspace.rule_files().linked().is_empty();
    let may_be_rule = |name: &str| has_links || files::changes_rules(name);
    let is_rule = |name: &str| may_be_rule(name) && workspace.rule_files().includes(&landing(name));
    let found = match &arrival.source {
        ArrivalSource::Tree(path) => in_tree(workspace, path, &is_rule),
        ArrivalSource::Glob(pattern) => in_glob(workspace, pattern, &is_rule),
        ArrivalSource::Archive(path) => in_archive(workspace, path),
        ArrivalSource::Patch(path) => in_patch(workspace, path, &is_rule),
        ArrivalSource::Pipe | ArrivalSource::Computed => Finding::Unknown,
        ArrivalSource::Git(_) => Finding::Nothing,
    };
    // Into a directory without rules of its own nothing that is packed flat can bring some.
    let has_rules =
        || files::rule_names().any(|name| workspace.rule_files().includes(&landing(name)));
    match found {
        Finding::Unknown if !has_rules() => Finding::Nothing,
        found => found,
    }
}

fn in_tree(workspace: &Workspace, path: &str, is_rule: &dyn Fn(&str) -> bool) -> Finding {
    let (mut found, mut seen) = (None, 0);
    let all = ScanFilter { hidden: true, ignored: true };
    let scanned = workspace.scan(path, all, &Stop::default(), &mut |entry| {
        seen += 1;
        found = is_rule(entry.below).then(|| entry.below.to_owned());
        match found.is_some() || seen >= MAX_FILES {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    match (scanned, found) {
        (_, Some(name)) => Finding::Rule(name),
        (Ok(scanned), None) if !scanned.gave_up && seen < MAX_FILES => Finding::Nothing,
        (Ok(_) | Err(_), None) => Finding::Unknown,
    }
}

/// What a glob in the last part of a path stands for.
fn in_glob(workspace: &Workspace, pattern: &str, is_rule: &dyn Fn(&str) -> bool) -> Finding {
    let (directory, names) = pattern.rsplit_once('/').unwrap_or((".", pattern));
    let is_meant = |below: &str| {
        let first = below.split('/').next().unwrap_or_default();
        // Without a dot of its own a glob stands for no hidden name.
        let is_hidden = first.starts_with('.') && !names.starts_with('.');
        !is_hidden && (names.contains('[') || glob(names, first))
    };
    if directory.contains(['*', '?', '[']) {
        return Finding::Unknown;
    }
    in_tree(workspace, directory, &|below| is_meant(below) && is_rule(below))
}

/// Names in an archive are searched for as bytes: how deep they lie says little, because directories can be taken
/// away while unpacking.
fn in_archive(workspace: &Workspace, path: &str) -> Finding {
    let Some(mut bytes) = bytes_of(workspace, path) else { return Finding::Unknown };
    if bytes.starts_with(b"\x1f\x8b") {
        let mut plain = Vec::new();
        let packed = MultiGzDecoder::new(&bytes[..]);
        match packed.take(MAX_BYTES + 1).read_to_end(&mut plain) {
            Ok(_) if plain.len() as u64 <= MAX_BYTES => bytes = plain,
            Ok(_) | Err(_) => return Finding::Unknown,
        }
    }
    if !is_listed(&bytes) {
        return Finding::Unknown;
    }
    let names: Vec<&str> = files::rule_names().collect();
    let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(&names);
    let Ok(finder) = finder else { return Finding::Unknown };
    let held = finder.find(&bytes).map(|held| names[held.pattern().as_usize()].to_owned());
    held.map_or(Finding::Nothing, Finding::Rule)
}

/// Whether the names in an archive can be read; true for an empty archive.
fn is_listed(bytes: &[u8]) -> bool {
    let (at, mark) = TAR_MARK;
    LISTED.iter().any(|beginning| bytes.starts_with(beginning))
        || bytes.get(at..).is_some_and(|rest| rest.starts_with(mark))
        || bytes.iter().all(|byte| *byte == 0)
}

fn in_patch(workspace: &Workspace, path: &str, is_rule: &dyn Fn(&str) -> bool) -> Finding {
    let Some(bytes) = bytes_of(workspace, path) else { return Finding::Unknown };
    let text = String::from_utf8_lossy(&bytes);
    let found = windlass_shell::patched_names(&text).find(|name| is_rule(name));
    found.map_or(Finding::Nothing, Finding::Rule)
}

fn bytes_of(workspace: &Workspace, path: &str) -> Option<Vec<u8>> {
    workspace.read_all(path, MAX_BYTES).ok()
}
