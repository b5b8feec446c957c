//! What builds leave beside the work: dependencies, caches, compiled files. A project that does not ignore them does
//! not want them in its history either.
//!
//! Invariants:
//! - Only untracked files count, and none below a directory in which git tracks something: who keeps such files in
//!   their history has decided so.
//! - Nothing else is left out of a commit than what git ignores, what is named here, and repositories in the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::links;
use crate::git::{Git, GitError, Lock};

/// Directories that builds make, wherever they are.
const DIRECTORIES: [&str; 4] = ["node_modules", "__pycache__", ".venv", ".pytest_cache"];
/// The directory that cargo makes, and the file that it is beside.
const CARGO_DIRECTORY: (&str, &str) = ("target", "Cargo.toml");
/// How the name of a compiled Python file ends.
const COMPILED: &str = ".pyc";
/// How many names go into one command: together they must not be longer than a command line may be.
const NAMES_AT_ONCE: usize = 200;

/// Names that git has printed, and those of them that builds have made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sorted {
    pub work: Vec<String>,
    /// The outermost directories with a `/` at their end, and files.
    pub build: Vec<String>,
}

/// The untracked files of a tree: those that somebody wrote, and what builds have left.
pub(super) fn untracked(git: &Git, tree: &Path) -> Result<Sorted, GitError> {
    let listing = ["ls-files", "-z", "--others", "--exclude-standard"];
    let text = git.run_in(tree, None, listing)?;
    let (mut sorted, mut roots) = (Sorted::default(), BTreeMap::<String, Vec<String>>::new());
    for name in text.split('\0').filter(|name| !name.is_empty()) {
        match build_root(tree, name) {
            Some(root) => roots.entry(root).or_default().push(name.to_owned()),
            None => sorted.work.push(name.to_owned()),
        }
    }
    if roots.is_empty() {
        return Ok(sorted);
    }
    let kept = tracked_roots(git, tree)?;
    for (root, names) in roots {
        match kept.contains(&root) {
            true => sorted.work.extend(names),
            false => sorted.build.push(root),
        }
    }
    sorted.work.sort();
    Ok(sorted)
}

/// Build directories in which git tracks something.
fn tracked_roots(git: &Git, tree: &Path) -> Result<BTreeSet<String>, GitError> {
    let text = git.run_in(tree, None, ["ls-files", "-z", "--cached"])?;
    Ok(text.split('\0').filter_map(|name| build_root(tree, name)).collect())
}

/// The outermost thing that a build has made and that a name is in.
fn build_root(tree: &Path, name: &str) -> Option<String> {
    for (at, _) in name.match_indices('/') {
        let (outer, directory) = name[..at].rsplit_once('/').unwrap_or(("", &name[..at]));
        let (cargo, beside) = CARGO_DIRECTORY;
        let is_cargo = || directory == cargo && tree.join(outer).join(beside).is_file();
        if DIRECTORIES.contains(&directory) || is_cargo() {
            return Some(name[..=at].to_owned());
        }
    }
    name.ends_with(COMPILED).then(|| name.to_owned())
}

/// Stages everything in a tree except what builds have left and repositories in it.
pub(super) fn stage(git: &Git, lock: &Lock, tree: &Path) -> Result<(), GitError> {
    // In a sparse checkout, too, everything that somebody has written is work.
    let everything = ["add", "--all", "--sparse"];
    let untracked = untracked(git, tree)?;
    let mut left_out = untracked.build;
    left_out.extend(untracked.work.into_iter().filter(|name| links::is_repository(name)));
    left_out.extend(links::tracked(git, tree)?);
    if left_out.is_empty() {
        return git.run_in(tree, Some(lock), everything).map(drop);
    }
    let file = git.own_directory(tree)?.join(PATHS);
    let exclude = |name: &String| format!(":(top,literal,exclude){}\0", name.trim_end_matches('/'));
    let paths = format!(":(top)\0{}", left_out.iter().map(exclude).collect::<String>());
    // What a crash has left there may be longer.
    let _ = std::fs::remove_file(&file);
    super::interruption::write_new(&file, &paths).map_err(|error| GitError::file(&file, error))?;
    let from_file = format!("--pathspec-from-file={}", file.display());
    let arguments = everything.into_iter().chain([from_file.as_str(), "--pathspec-file-nul"]);
    let staged = git.run_in(tree, Some(lock), arguments);
    // It is written again for the next commit.
    let _ = std::fs::remove_file(&file);
    staged.map(drop)
}

/// Names what is to be staged, in the git directory of the worktree.
const PATHS: &str = "windlass-paths";

/// Has git delete what builds have left in a tree that goes.
pub(super) fn clean(git: &Git, lock: &Lock, tree: &Path) -> Result<(), GitError> {
    for names in untracked(git, tree)?.build.chunks(NAMES_AT_ONCE) {
        let literal =
            names.iter().map(|name| format!(":(top,literal){}", name.trim_end_matches('/')));
        let command = ["clean", "--quiet", "-d", "--force", "--force", "--"].map(str::to_owned);
        git.run_in(tree, Some(lock), command.into_iter().chain(literal))?;
    }
    Ok(())
}
