//! Repositories inside a worktree: submodules of the project, and what an agent has made there or cloned.
//!
//! Invariants:
//! - Git runs commands that the settings of a repository name when it looks into it. So none of ours does: here their
//!   objects, refs and indexes are read with settings of our own.
//! - What cannot be read safely counts as work that would be lost.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use windlass_skills::regular;

use super::build_files;
use crate::git::{Git, GitError};

/// How git's listings mark a link to a commit of another repository.
const LINK_MODE: &str = "160000";
/// The file that names the git directory of a submodule is one path.
const MAX_POINTER_BYTES: u64 = 64 << 10;

/// Whether an untracked name is a repository: git lists what is in all other directories.
pub(super) fn is_repository(name: &str) -> bool {
    name.ends_with('/')
}

/// The paths that git tracks as commits of other repositories.
pub(super) fn tracked(git: &Git, tree: &Path) -> Result<BTreeSet<String>, GitError> {
    git.run_in(tree, None, LIST_STAGED).map(|text| links_in(&text))
}

const LIST_STAGED: [&str; 3] = ["ls-files", "--stage", "-z"];

/// Of a listing with modes, the paths of links.
fn links_in(listing: &str) -> BTreeSet<String> {
    let entries = listing.split('\0').filter(|entry| entry.starts_with(LINK_MODE));
    entries.filter_map(|entry| entry.split_once('\t')).map(|(_, path)| path.to_owned()).collect()
}

/// Links that are staged or committed otherwise than a commit has them.
pub(super) fn committed_since(
    git: &Git,
    tree: &Path,
    base: &str,
) -> Result<BTreeSet<String>, GitError> {
    let links = tracked(git, tree)?;
    if links.is_empty() {
        return Ok(links);
    }
    // The index alone is compared: nothing in the tree is looked at.
    let text = git.run_in(tree, None, ["diff-index", "--cached", "--name-only", "-z", base])?;
    Ok(text.split('\0').filter(|name| links.contains(*name)).map(str::to_owned).collect())
}

/// Links whose repository has another commit checked out than git has for it.
pub(super) fn moved(git: &Git, tree: &Path) -> Result<Vec<String>, GitError> {
    let mut moved = Vec::new();
    for link in tracked(git, tree)? {
        let place = tree.join(&link);
        let own = match directory_of(&place) {
            Inside::Submodule(own) => own,
            Inside::Nothing => continue,
            Inside::Other(_) => {
                moved.push(link);
                continue;
            }
        };
        let wanted = git.run_in(tree, None, ["rev-parse", &format!(":{link}")]);
        let found = git.run_without_settings(&own, &place, ["rev-parse", "HEAD"]);
        if !matches!((wanted, found), (Ok(wanted), Ok(found)) if wanted == found) {
            moved.push(link);
        }
    }
    Ok(moved)
}

/// Whether git counts a worktree as one with submodules.
pub(super) fn has_any(git: &Git, tree: &Path) -> Result<bool, GitError> {
    Ok(modules(git, tree)?.is_dir() || !tracked(git, tree)?.is_empty())
}

/// Where git keeps the repositories of a worktree's submodules.
pub(super) fn modules(git: &Git, tree: &Path) -> Result<PathBuf, GitError> {
    Ok(git.own_directory(tree)?.join("modules"))
}

/// What would be lost of the repositories inside a worktree; `None` where everything in them is elsewhere.
pub(super) fn work_in(git: &Git, tree: &Path) -> Result<Option<String>, GitError> {
    let untracked = build_files::untracked(git, tree)?.work;
    if let Some(name) = untracked.iter().find(|name| is_repository(name)) {
        return Ok(Some(format!("`{name}` is a repository of its own")));
    }
    let modules = modules(git, tree)?;
    // Commits of submodules lie in the worktree's own git directory, and would go with it.
    for own in repositories_below(&modules) {
        let name = own.strip_prefix(&modules).unwrap_or(&own).display().to_string();
        // Tags come from the remote.
        let ahead =
            ["rev-list", "--count", "HEAD", "--exclude=refs/tags/*", "--all", "--not", "--remotes"];
        match git.run_without_settings(&own, tree, ahead) {
            Ok(count) if count.trim() == "0" => {}
            Ok(_) => {
                return Ok(Some(format!("submodule `{name}` has commits that no remote has")));
            }
            Err(_) => return Ok(Some(format!("submodule `{name}` cannot be read"))),
        }
    }
    let modules = modules.canonicalize().unwrap_or(modules);
    let mut places: Vec<_> = tracked(git, tree)?.into_iter().map(|link| tree.join(link)).collect();
    while let Some(place) = places.pop() {
        match what_is_in(git, &place, &modules) {
            Ok(inner) => places.extend(inner),
            Err(why) => {
                let name = place.strip_prefix(tree).unwrap_or(&place).display();
                return Ok(Some(format!("submodule `{name}`: {why}")));
            }
        }
    }
    Ok(None)
}

/// The submodules of a submodule without changes; why it is not one.
fn what_is_in(git: &Git, place: &Path, modules: &Path) -> Result<Vec<PathBuf>, String> {
    let own = match directory_of(place) {
        Inside::Nothing => return Ok(Vec::new()),
        Inside::Submodule(own) if own.starts_with(modules) => own,
        Inside::Submodule(_) => return Err("it is a repository of its own".to_owned()),
        Inside::Other(why) => return Err(why.to_owned()),
    };
    let unreadable = |_| "it cannot be read".to_owned();
    let status = ["status", "--porcelain", super::NO_LINKS, "--untracked-files=all"];
    let changes = git.run_without_settings(&own, place, status).map_err(unreadable)?;
    if !changes.is_empty() {
        return Err("it has changes that are not committed".to_owned());
    }
    let listing = git.run_without_settings(&own, place, LIST_STAGED).map_err(unreadable)?;
    Ok(links_in(&listing).into_iter().map(|link| place.join(link)).collect())
}

/// What is in the place of a link.
enum Inside {
    Nothing,
    /// A checkout, and the git directory that it names.
    Submodule(PathBuf),
    /// Something that is no checkout of a submodule.
    Other(&'static str),
}

fn directory_of(place: &Path) -> Inside {
    let Ok(found) = std::fs::symlink_metadata(place) else { return Inside::Nothing };
    if !found.is_dir() {
        return Inside::Other("something else is in its place");
    }
    if std::fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none()) {
        return Inside::Nothing;
    }
    let pointer = place.join(".git");
    match std::fs::symlink_metadata(&pointer) {
        Err(_) => return Inside::Other("files are in its place that no commit has"),
        Ok(found) if found.is_dir() => return Inside::Other("it is a repository of its own"),
        Ok(_) => {}
    }
    let text = regular::read_text(&pointer, MAX_POINTER_BYTES).unwrap_or_default();
    let own = text.trim_end().strip_prefix("gitdir: ").map(|own| place.join(own));
    match own.and_then(|own| own.canonicalize().ok()) {
        Some(own) => Inside::Submodule(own),
        None => Inside::Other("its `.git` names no repository"),
    }
}

/// Every repository below the directory in which git keeps those of submodules.
fn repositories_below(modules: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![modules.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            match is_directory && path.join("HEAD").is_file() && path.join("objects").is_dir() {
                true => {
                    open.push(path.join("modules"));
                    found.push(path);
                }
                false if is_directory => open.push(path),
                false => {}
            }
        }
    }
    found
}
