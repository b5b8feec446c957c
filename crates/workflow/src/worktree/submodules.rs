//! Bringing submodules into a worktree that is filled.
//!
//! Invariants:
//! - A submodule is brought only as a person's commit describes it. What an agent has written into `.gitmodules` would
//!   have git fetch from any place, this machine's files too.
//! - Git works in no submodule in which an agent has worked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::links;
use crate::git::{Git, GitError, Lock};

/// All that `.gitmodules` says of each submodule, in its order.
type Described = BTreeMap<String, Vec<(String, String)>>;

/// Brings the submodules that are described as in a commit of a person.
pub(super) fn bring(git: &Git, tree: &Path, filling: &Lock, trusted: &str) -> Result<(), GitError> {
    let file = tree.join(".gitmodules");
    if !file.is_file() {
        return Ok(());
    }
    let here = described(git, &["--file".to_owned(), file.display().to_string()]);
    let theirs = described(git, &["--blob".to_owned(), format!("{trusted}:.gitmodules")]);
    let same = here.iter().filter(|(name, fields)| theirs.get(*name) == Some(fields));
    let paths: BTreeSet<&str> = same.filter_map(|(_, fields)| path_of(fields)).collect();
    let moved = links::committed_since(git, tree, trusted)?;
    let update = |paths: Vec<&str>, depth: &[&str]| -> Result<(), GitError> {
        if paths.is_empty() {
            return Ok(());
        }
        let command = ["-c", "protocol.file.allow=always", "submodule", "update", "--quiet"];
        let command = command.iter().chain(&["--init"]).chain(depth).chain(&["--"]).copied();
        git.run_in(tree, Some(filling), command.chain(paths)).map(drop)
    };
    // Another commit than the person's may describe other submodules of its own.
    let (moved, same): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| moved.contains(*path));
    update(same, &["--recursive"])?;
    update(moved, &[])
}

/// Removes the submodules of a worktree that nobody works in: git would use the settings that an agent has left there.
pub(super) fn discard(git: &Git, tree: &Path) -> Result<(), GitError> {
    let modules = links::modules(git, tree)?;
    if !modules.is_dir() {
        return Ok(());
    }
    // No link that an agent has left in a path is followed.
    let top = tree.canonicalize().map_err(|error| GitError::file(tree, error))?;
    for link in links::tracked(git, tree)? {
        let place = tree.join(link);
        let parent = place.parent().and_then(|parent| parent.canonicalize().ok());
        if !parent.is_some_and(|parent| parent.starts_with(&top)) {
            continue;
        }
        let is_directory = std::fs::symlink_metadata(&place).is_ok_and(|found| found.is_dir());
        if is_directory {
            std::fs::remove_dir_all(&place).map_err(|error| GitError::file(&place, error))?;
        }
    }
    std::fs::remove_dir_all(&modules).map_err(|error| GitError::file(&modules, error))
}

/// What a `.gitmodules` says; nothing where there is none or git cannot read it.
fn described(git: &Git, source: &[String]) -> Described {
    let ask = ["-z", "--get-regexp", r"^submodule\."].map(str::to_owned);
    let arguments = ["config".to_owned()].into_iter().chain(source.iter().cloned()).chain(ask);
    let text = git.run(arguments).unwrap_or_default();
    let mut described = Described::new();
    for entry in text.split('\0') {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        let Some((name, field)) =
            key.strip_prefix("submodule.").and_then(|rest| rest.rsplit_once('.'))
        else {
            continue;
        };
        described.entry(name.to_owned()).or_default().push((field.to_owned(), value.to_owned()));
    }
    described
}

fn path_of(fields: &[(String, String)]) -> Option<&str> {
    fields.iter().find(|(field, _)| field == "path").map(|(_, path)| path.as_str())
}
