//! What a run's work differs in, file by file, as git has it.
//!
//! Invariant: git runs no program that the repository names, and looks into no repository inside a checkout.

use std::path::Path;

use windlass_skills::regular;

use crate::git::{Git, GitError};
use crate::worktree::{self, NO_LINKS};

/// How much of a file that git does not track yet is read.
const MAX_NEW_BYTES: u64 = 1 << 20;

/// From which size on git shows no lines of a file. It is [`MAX_NEW_BYTES`].
pub const LARGE_FILES: &str = "core.bigFileThreshold=1m";

/// The same patch whatever the person has configured for their own eyes. A large file counts as one that is not text:
/// the lines of all files are in memory at once.
const PLAIN: [&str; 10] = [
    "-c",
    LARGE_FILES,
    "diff",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    NO_LINKS,
];

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    /// Whether there was no such file before.
    pub is_new: bool,
    /// Lines that came and lines that went; `None` where it is not text.
    pub lines: Option<(usize, usize)>,
    /// A unified diff; `None` as above.
    pub diff: Option<String>,
}

/// A file that git does not track yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    pub path: String,
    /// `None` where it is not text, too long, or no regular file.
    pub text: Option<String>,
}

/// What two commits differ in.
pub fn between(git: &Git, old: &str, new: &str) -> Result<Vec<FileChange>, GitError> {
    read(|format| git.run(PLAIN.iter().chain(format).chain(&["--end-of-options", old, new, "--"])))
}

/// What the tracked files of a checkout differ in from a commit, and the files that git does not track yet, without
/// what builds have left.
pub fn since(
    git: &Git,
    tree: &Path,
    base: &str,
) -> Result<(Vec<FileChange>, Vec<NewFile>), GitError> {
    let changed = read(|format| {
        let commit = ["--end-of-options", base, "--"];
        git.run_in(tree, None, PLAIN.iter().chain(format).chain(&commit))
    })?;
    let new = worktree::untracked(git, tree)?.into_iter().map(|path| {
        let text = regular::read_text(&tree.join(&path), MAX_NEW_BYTES).ok();
        NewFile { path, text }
    });
    Ok((changed, new.collect()))
}

/// The files that git names, with their part of the patch. Git prints all three in one order.
fn read(
    run: impl Fn(&'static [&'static str]) -> Result<String, GitError>,
) -> Result<Vec<FileChange>, GitError> {
    let (names, counts, patch) =
        (run(&["--name-status", "-z"])?, run(&["--numstat", "-z"])?, run(&["--patch"])?);
    let mut words = names.split_terminator('\0');
    let mut counts = counts.split_terminator('\0');
    let mut sections = sections(&patch).into_iter();
    let mut found = Vec::new();
    while let (Some(status), Some(path)) = (words.next(), words.next()) {
        let lines = counts.next().and_then(lines);
        let section = sections.next().unwrap_or_default();
        found.push(FileChange {
            path: path.to_owned(),
            is_new: status == "A",
            lines,
            diff: lines.map(|_| section),
        });
    }
    Ok(found)
}

/// The parts of a patch, one for each file, from the names of both versions on. A file that has become a link, say,
/// has two parts under one heading, which belong together.
fn sections(patch: &str) -> Vec<String> {
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut is_within = false;
    for line in patch.split_inclusive('\n') {
        if line.starts_with("diff --git ") {
            is_within = false;
            if found.last().is_none_or(|(heading, _)| *heading != line) {
                found.push((line, String::new()));
            }
            continue;
        }
        is_within = is_within || line.starts_with("--- ");
        if let Some((_, text)) = found.last_mut().filter(|_| is_within) {
            text.push_str(line);
        }
    }
    found.into_iter().map(|(_, text)| text).collect()
}

/// The numbers of an entry like `2⇥1⇥a.txt`; a file that is not text has none.
fn lines(entry: &str) -> Option<(usize, usize)> {
    let mut fields = entry.splitn(3, '\t');
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
