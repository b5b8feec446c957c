//! What of a project a person has approved (§15.13, §15.30).
//!
//! Invariants:
//! - An approval holds for one file in one directory, for its content, and for the project's files that it
//!   runs. If one of them changes, the file is not approved any more.
//! - In a worktree that a workflow has made, a file counts as approved if it is the same as in the checkout.
//! - What is approved is what was shown: content and hashes are taken once, before the person reads them.

mod runs;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::worktrees::OwnWorktree;
use crate::config::read::content_hash;
use crate::config::{File, Trust};

/// A file of a project that a person may approve, as it is now.
#[derive(Clone)]
pub struct ApprovableFile {
    /// The file as it was read.
    pub file: File,
    /// The project's files that it runs, by their paths in the project, with their hashes.
    pub runs: BTreeMap<String, String>,
}

/// What was approved, one JSON object a line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Approval {
    /// The file, without links in its path.
    path: String,
    content: String,
    #[serde(default)]
    runs: BTreeMap<String, String>,
}

impl ApprovableFile {
    /// Takes the hashes of what a project's file runs.
    pub fn new(project: &Path, file: File) -> Self {
        let runs = runs::of(project, &file);
        Self { file, runs }
    }

    /// Whether a person has approved it as it is now.
    pub fn trust(&self, data: &Path) -> Trust {
        let (approval, known) = (self.approval(), approvals(data));
        match known.contains(&approval) || approval.holds_in_a_checkout(data, &known) {
            true => Trust::Approved,
            false => Trust::Unknown,
        }
    }

    /// What is different from when a person last approved it: its own name, or names of files that it runs.
    /// Empty where nobody has approved it before, or nothing changed.
    pub fn changes(&self, data: &Path) -> Vec<String> {
        let now = self.approval();
        let before = approvals(data).into_iter().rfind(|approval| approval.path == now.path);
        let Some(before) = before else { return Vec::new() };
        let own = (before.content != now.content).then(|| self.name());
        let names = before
            .runs
            .keys()
            .chain(now.runs.keys().filter(|name| !before.runs.contains_key(*name)));
        let changed = names.filter(|name| before.runs.get(*name) != now.runs.get(*name)).cloned();
        own.into_iter().chain(changed).collect()
    }

    /// Approves it as it is here.
    pub fn approve(&self, data: &Path) -> io::Result<()> {
        std::fs::create_dir_all(data)?;
        let line = serde_json::to_string(&self.approval()).map_err(io::Error::other)?;
        let mut list = OpenOptions::new().create(true).append(true).open(list(data))?;
        writeln!(list, "{line}")
    }

    fn name(&self) -> String {
        let name = self.file.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn approval(&self) -> Approval {
        let path = self.file.path.canonicalize().unwrap_or_else(|_| self.file.path.clone());
        // A path that is not text still has one spelling only.
        let path = windlass_core::shown::shown_path(&path);
        Approval { path, content: content_hash(&self.file.text), runs: self.runs.clone() }
    }
}

impl Approval {
    /// Whether it is about a file in a worktree of ours, and the same file of a checkout is approved with the same
    /// content. A person who has approved it there is not asked again for every worktree.
    fn holds_in_a_checkout(&self, data: &Path, known: &[Self]) -> bool {
        let path = Path::new(&self.path);
        let Some(worktree) = OwnWorktree::around(data, path) else { return false };
        known.iter().any(|other| {
            (&other.content, &other.runs) == (&self.content, &self.runs)
                && worktree.is_same_file(path, Path::new(&other.path))
        })
    }
}

/// Whether a person has approved a project's file as it is now.
pub fn of(data: &Path, project: &Path, file: &File) -> Trust {
    ApprovableFile::new(project, file.clone()).trust(data)
}

fn list(data: &Path) -> PathBuf {
    data.join("trusted")
}

/// Everything that was approved, in order. Lines of earlier versions held for any directory, and count no more.
fn approvals(data: &Path) -> Vec<Approval> {
    let text = std::fs::read_to_string(list(data)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
