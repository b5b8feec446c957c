//! Conflicts that somebody has left: in the index of a worktree, and as markers in what was committed.
//!
//! Invariant: nothing with the markers of a conflict is committed for an agent, nor merged after its conflict was to be
//! resolved.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use windlass_skills::regular;

use crate::git::{Git, GitError};

/// What git writes around the two sides of a conflict.
const MARKERS: [&str; 2] = ["<<<<<<< ", ">>>>>>> "];

/// How git's index counts the sides of a conflict: both have changed a file that has these two.
const BOTH_SIDES: [char; 2] = ['2', '3'];

/// A larger file is not looked into; as long as git has it in conflict, it is one.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// How many names one command gets.
const NAMES_AT_ONCE: usize = 200;

/// Files that git has in conflict in a worktree, and that nobody has resolved.
pub(super) fn unresolved(git: &Git, tree: &Path) -> Result<Vec<String>, GitError> {
    let text = git.run_in(tree, None, ["ls-files", "--unmerged", "-z"])?;
    let mut sides = BTreeMap::<&str, Vec<(char, &str)>>::new();
    for entry in text.split('\0') {
        // `MODE OBJECT SIDE`, a tab, the name.
        let Some((about, name)) = entry.split_once('\t') else { continue };
        let mut words = about.split(' ').skip(1);
        if let (Some(object), Some(side)) = (words.next(), words.next()) {
            sides.entry(name).or_default().extend(side.chars().next().map(|side| (side, object)));
        }
    }
    let is_resolved = |name: &str, sides: &[(char, &str)]| -> Result<bool, GitError> {
        let side = |wanted: char| sides.iter().find(|(side, _)| *side == wanted);
        let Some((_, ours)) = BOTH_SIDES.map(side)[0].filter(|_| side(BOTH_SIDES[1]).is_some())
        else {
            return Ok(false);
        };
        let Ok(found) = regular::read(&tree.join(name), MAX_FILE_BYTES) else { return Ok(false) };
        // Of a file that is not text, git leaves one side in the tree as it was.
        let is_as_before = || -> Result<bool, GitError> {
            let object = git.run_in(tree, None, ["hash-object", "--", name])?;
            Ok(object.trim() == *ours)
        };
        Ok(!has_markers(&String::from_utf8_lossy(&found)) && !is_as_before()?)
    };
    let mut names = Vec::new();
    for (name, sides) in &sides {
        if !is_resolved(name, sides)? {
            names.push((*name).to_owned());
        }
    }
    Ok(names)
}

fn has_markers(text: &str) -> bool {
    MARKERS.iter().all(|marker| text.lines().any(|line| line.starts_with(marker)))
}

/// Of these files, those that have the markers of a conflict in a commit, and had them on neither side of it.
pub fn left_markers(
    git: &Git,
    files: &[String],
    commit: &str,
    sides: [&str; 2],
) -> Result<Vec<String>, GitError> {
    let mut found = BTreeSet::new();
    for names in files.chunks(NAMES_AT_ONCE) {
        let mut now = marked(git, names, commit)?;
        for side in sides {
            now = &now - &marked(git, names, side)?;
        }
        found.extend(now);
    }
    Ok(found.into_iter().collect())
}

/// The files that have both markers in a commit.
fn marked(git: &Git, names: &[String], commit: &str) -> Result<BTreeSet<String>, GitError> {
    let paths: Vec<_> = names.iter().map(|name| format!(":(top,literal){name}")).collect();
    let with = |marker: &str| -> Result<BTreeSet<String>, GitError> {
        let pattern = format!("^{marker}");
        let search = ["grep", "-I", "-l", "-z", "--no-textconv", "-e", &pattern, commit, "--"];
        let found = git.run(search.into_iter().chain(paths.iter().map(String::as_str)));
        let printed = match found {
            Ok(printed) => printed,
            Err(error) if error.code() == Some(1) => String::new(),
            Err(error) => return Err(error),
        };
        // Each name is behind that of the commit.
        let name = |entry: &str| entry.strip_prefix(commit)?.strip_prefix(':').map(str::to_owned);
        Ok(printed.split('\0').filter_map(name).collect())
    };
    Ok(&with(MARKERS[0])? & &with(MARKERS[1])?)
}
