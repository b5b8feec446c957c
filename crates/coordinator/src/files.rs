//! The files of a project by name: found once in the background, then searched as a person types.

use std::path::Path;

/// The most files that are listed; in a larger tree the rest is not offered.
const MOST_FILES: usize = 300_000;
/// Directories that hold no file a person would name.
const HIDDEN: &[&str] = &[".git", ".windlass"];

/// The files below a directory, relative to it, as git would list them.
pub fn list(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let walk = ignore::WalkBuilder::new(directory)
        .hidden(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name().to_str().is_none_or(|name| !HIDDEN.contains(&name)))
        .build();
    for entry in walk.flatten() {
        let Ok(path) = entry.path().strip_prefix(directory) else { continue };
        let Some(path) = path.to_str().filter(|path| !path.is_empty()) else { continue };
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        found.push(if is_directory { format!("{path}/") } else { path.to_owned() });
        if found.len() >= MOST_FILES {
            break;
        }
    }
    found.sort();
    found
}

/// The names that fit best, best first: each letter of `wanted` in order; better where they stand together, at the
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
