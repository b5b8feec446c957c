//! What of a project a person has approved (§15.13, §15.30).
//!
//! Invariants:
//! - An approval holds for one file in one directory, for its content, and for the project's files that it
//!   runs. If one of them changes, the file is not approved any more. A link is a file of the directory that it is in.
//! - A file that leads out of its project is never approved: whoever owns the other place could change it.
//! - In a worktree that a workflow has made, a file counts as approved if it is the same as in the checkout.
//! - What is approved is what was shown: content and hashes are taken once, before the person reads them.

mod runs;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windlass_core::shown::shown_path;

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
    place: Place,
}

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Its own name in the project's directory, which has no links in its path.
    Inside(PathBuf),
    /// A link leads out of the project.
    Outside,
}

/// What was approved, one JSON object a line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Approval {
    /// The file, in a directory of a project without links in its path.
    path: String,
    content: String,
    #[serde(default)]
    runs: BTreeMap<String, String>,
}

impl ApprovableFile {
    /// Takes the hashes of what a project's file runs.
    pub fn new(project: &Path, file: File) -> Self {
        let runs = runs::of(project, &file);
        let place = Place::of(project, &file.path);
        Self { file, runs, place }
    }

    /// Whether it is a link that leads out of the project, or lies in a directory that is one.
    pub fn leaves_project(&self) -> bool {
        self.place == Place::Outside
    }

    /// Whether a person has approved it as it is now.
    pub fn trust(&self, data: &Path) -> Trust {
        let (Some(approval), known) = (self.approval(), approvals(data)) else {
            return Trust::Unknown;
        };
        match known.contains(&approval) || approval.holds_in_a_checkout(data, &known) {
            true => Trust::Approved,
            false => Trust::Unknown,
        }
    }

    /// What is different from when a person last approved it: its own name, or names of files that it runs.
    /// Empty where nobody has approved it before, or nothing changed.
    pub fn changes(&self, data: &Path) -> Vec<String> {
        let Some(now) = self.approval() else { return Vec::new() };
        let before = approvals(data).into_iter().rfind(|approval| approval.path == now.path);
        let Some(before) = before else { return Vec::new() };
        let is_edited = before.content != now.content;
        let own = is_edited.then(|| self.name());
        let names = before
            .runs
            .keys()
            .chain(now.runs.keys().filter(|name| !before.runs.contains_key(*name)));
        // An edited file may name others than before; of those that it still names, some may have changed too.
        let is_named = |name: &str| before.runs.contains_key(name) && now.runs.contains_key(name);
        let changed = names
            .filter(|name| !is_edited || is_named(name))
            .filter(|name| before.runs.get(*name) != now.runs.get(*name))
            .cloned();
        own.into_iter().chain(changed).collect()
    }

    /// Approves it as it is here.
    pub fn approve(&self, data: &Path) -> io::Result<()> {
        let approval = self.approval().ok_or_else(|| {
            io::Error::other(format!("`{}` leads out of the project", shown_path(&self.file.path)))
        })?;
        std::fs::create_dir_all(data)?;
        let line = serde_json::to_string(&approval).map_err(io::Error::other)?;
        let mut list = OpenOptions::new().create(true).append(true).open(list(data))?;
        writeln!(list, "{line}")
    }

    fn name(&self) -> String {
        let name = self.file.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn approval(&self) -> Option<Approval> {
        let Place::Inside(path) = &self.place else { return None };
        // A path that is not text still has one spelling only.
        let (path, content) = (shown_path(path), content_hash(&self.file.text));
        Some(Approval { path, content, runs: self.runs.clone() })
    }
}

impl Place {
    /// Where a file is that is named in a project's directory, or in one above it in the same repository.
    fn of(project: &Path, file: &Path) -> Self {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (given, file) = (absolute(project), absolute(file));
        let started = project.canonicalize().unwrap_or_else(|_| given.clone());
        let named = match file.strip_prefix(&given) {
            Ok(name) => started.join(name),
            Err(_) => file,
        };
        // The directory of the project that it belongs to has no links in its path, as it holds `started`.
        let top = started.ancestors().find(|above| named.starts_with(above)).unwrap_or(&started);
        let real = named.canonicalize().unwrap_or_else(|_| named.clone());
        match real.starts_with(top) {
            true => Self::Inside(named),
            false => Self::Outside,
        }
    }
}

impl Approval {
    /// Whether it is about a file in a worktree of ours, and the same file of a checkout is approved with the same
    /// content. A person who has approved it there is not asked again for every worktree.
    fn holds_in_a_checkout(&self, data: &Path, known: &[Self]) -> bool {
        let path = Path::new(&self.path);
        let Some(worktree) = OwnWorktree::containing(data, path) else { return false };
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
