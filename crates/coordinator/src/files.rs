//! The files of a project by name: found once in the background, then searched as a person types.
//!
//! Invariant: a FIFO, a device or an endless file in place of one with ignore rules holds nothing up. The walker opens
//! such files by name, so it enters no directory that has one.

use std::fs;
use std::path::{Path, PathBuf};

use crate::pictures::is_named_like_picture;

/// The most files that are listed; in a larger tree the rest is not offered.
const MOST_FILES: usize = 300_000;
/// Directories that hold no file a person would name.
const HIDDEN: &[&str] = &[".git", ".windlass"];

/// An ignore file is a page of patterns.
const MAX_RULES_BYTES: u64 = 1 << 20;

/// How deep pictures are looked for that git ignores: deeper are those of packages, not of a person.
const IGNORED_DEPTH: usize = 3;
/// The most entries of one directory that are listed.
const MOST_ENTRIES: usize = 10_000;

/// The files below a directory, relative to it, as git would list them, and the pictures near its top that git
/// ignores: a screenshot is named more often than it is committed.
pub fn list(directory: &Path) -> Vec<String> {
    let mut walk = ignore::WalkBuilder::new(directory);
    walk.hidden(false).require_git(false).filter_entry(|entry| {
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        is_offered(entry) && (!is_directory || has_readable_rules(entry.path()))
    });
    // The directory itself and those above it are not filtered.
    if !directory.ancestors().all(has_readable_rules) {
        walk.standard_filters(false);
    }
    let mut found: Vec<String> = names(&walk, directory).take(MOST_FILES).collect();
    let mut ignored = ignore::WalkBuilder::new(directory);
    ignored.standard_filters(false).max_depth(Some(IGNORED_DEPTH)).filter_entry(is_offered);
    let pictures = names(&ignored, directory).take(MOST_FILES);
    found.extend(pictures.filter(|name| is_named_like_picture(Path::new(name))));
    found.sort();
    found.dedup();
    found
}

/// Whether every file with ignore rules in a directory is a regular one of a bearable size, or absent; also those
/// that git names: `.git` may say that they are elsewhere.
fn has_readable_rules(directory: &Path) -> bool {
    let git = directory.join(".git");
    let is_readable = |path: PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_RULES_BYTES)
    };
    let may_be_read = |path: PathBuf| !path.exists() || is_readable(path);
    if git.is_file() {
        let pointer = is_readable(git.clone()).then(|| fs::read_to_string(&git).ok()).flatten();
        let Some(pointer) = pointer else { return false };
        let own = pointer.lines().next().and_then(|line| line.strip_prefix("gitdir: "));
        let own = own.map(|own| Path::new(own).join("commondir"));
        if !own.is_none_or(may_be_read) {
            return false;
        }
    }
    [".gitignore", ".ignore", ".git/info/exclude"]
        .iter()
        .all(|name| may_be_read(directory.join(name)))
}

fn is_offered(entry: &ignore::DirEntry) -> bool {
    entry.file_name().to_str().is_none_or(|name| !HIDDEN.contains(&name))
}

/// What a walk finds, relative to the directory; a directory ends with a slash.
fn names(walk: &ignore::WalkBuilder, directory: &Path) -> impl Iterator<Item = String> {
    walk.build().flatten().filter_map(move |entry| {
        let path = entry.path().strip_prefix(directory).ok()?;
        let path = path.to_str().filter(|path| !path.is_empty())?;
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        Some(if is_directory { format!("{path}/") } else { path.to_owned() })
    })
}

/// What one directory holds, by name, ignored or not; a directory ends with a slash. Empty where it cannot be read.
pub fn entries(directory: &Path) -> Vec<String> {
    let Ok(read) = std::fs::read_dir(directory) else { return Vec::new() };
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        // A link to a directory leads further too.
        Some(if entry.path().is_dir() { format!("{name}/") } else { name })
    };
    let mut found: Vec<String> = read.flatten().filter_map(name).take(MOST_ENTRIES).collect();
    found.sort();
    found
}

/// The names that fit best, best first: each letter of `wanted` in order; better where they are together, at the
/// beginning of a part, and in the file's own name.
pub fn best<'a>(names: &'a [String], wanted: &str, most: usize) -> Vec<&'a str> {
    let wanted: Vec<u8> = wanted.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
    let mut scored: Vec<(i32, &str)> =
        names.iter().filter_map(|name| Some((score(name, &wanted)?, name.as_str()))).collect();
    let better = |one: &(i32, &str), other: &(i32, &str)| {
        other.0.cmp(&one.0).then(one.1.len().cmp(&other.1.len())).then(one.1.cmp(other.1))
    };
    if scored.len() > most && most > 0 {
        scored.select_nth_unstable_by(most - 1, better);
        scored.truncate(most);
    }
    scored.sort_by(better);
    scored.into_iter().map(|(_, name)| name).collect()
}

/// How well a name fits; `None` where it does not.
fn score(name: &str, wanted: &[u8]) -> Option<i32> {
    let bytes = name.as_bytes();
    let own = name.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
    // Matched from the end, so that the file's own name is preferred to the directories before it.
    let (mut score, mut last, mut at) = (0, usize::MAX, bytes.len());
    for &letter in wanted.iter().rev() {
        at = bytes[..at].iter().rposition(|byte| byte.to_ascii_lowercase() == letter)?;
        let begins = at == 0 || matches!(bytes[at - 1], b'/' | b'_' | b'-' | b'.' | b' ');
        score += 1 + i32::from(begins) * 4 + i32::from(at >= own) * 3;
        score += i32::from(last == at + 1) * 5;
        last = at;
    }
    Some(score * 16 - bytes.len().min(255) as i32)
}
