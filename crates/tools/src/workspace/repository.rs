//! The repository that a directory is in: how far an agent that starts there may go, and what git needs besides.
//!
//! Invariant: what a project's own files say about places outside is believed only where git itself would believe
//! it: same owner, no links, and the other place points back.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use windlass_core::layout::AddedDirectory;
use windlass_skills::regular;

/// A pointer file is a line.
const MAX_BYTES: u64 = 64 << 10;

/// The largest file of git's that is copied: an index has about 100 bytes for each file.
const MAX_COPIED_BYTES: u64 = 256 << 20;

/// The top of the workspace of an agent that starts in a directory: the repository it is in, else the directory
/// itself. A repository that holds the home directory is a way to keep settings, not a project.
pub fn boundary(directory: &Path, home: Option<&Path>) -> PathBuf {
    let Ok(owner) = fs::metadata(directory).map(|found| found.uid()) else {
        return directory.to_owned();
    };
    let holds_home = |top: &Path| home.is_some_and(|home| home.starts_with(top));
    let is_top = |top: &&Path| {
        let git = fs::symlink_metadata(top.join(".git"));
        git.is_ok_and(|git| git.uid() == owner && (git.is_dir() || git.is_file()))
    };
    let above = directory
        .ancestors()
        .take_while(|top| *top == directory || (top.parent().is_some() && !holds_home(top)));
    above.into_iter().find(is_top).unwrap_or(directory).to_owned()
}

/// Where git keeps what belongs to a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GitDirectories {
    /// What is the workspace's alone: its head and its index.
    pub own: PathBuf,
    /// What all worktrees of the repository share.
    pub common: PathBuf,
}

/// Git's directories of a workspace; `None` where it is not the top of a repository.
pub(super) fn directories(top: &Path) -> Option<GitDirectories> {
    let pointer = top.join(".git");
    let owner = fs::metadata(top).ok()?.uid();
    if fs::symlink_metadata(&pointer).ok()?.is_dir() {
        let found = GitDirectories { own: pointer.clone(), common: pointer };
        return is_git(&found.own, owner).then_some(found);
    }
    let own = target_of(&pointer)?;
    let common = common_of(&own, &pointer).unwrap_or_else(|| own.clone());
    is_git(&common, owner).then_some(GitDirectories { own, common })
}

/// The repository that a linked worktree belongs to; `None` for every other directory.
pub fn repository_of_worktree(top: &Path) -> Option<PathBuf> {
    directories(top).filter(|git| git.own != git.common).map(|git| git.common)
}

/// The repository that a checkout belongs to, linked or not.
pub fn repository_of(top: &Path) -> Option<PathBuf> {
    directories(top).map(|git| git.common)
}

/// What git needs of directories outside a workspace that is a worktree or a submodule. Hooks, configuration and the
/// entries of other worktrees are not to be written.
pub fn git_directories(top: &Path) -> Vec<AddedDirectory> {
    let pointer = top.join(".git");
    let is_file = fs::symlink_metadata(&pointer).is_ok_and(|found| found.is_file());
    let own = if is_file { target_of(&pointer) } else { None };
    let Some(own) = own else { return Vec::new() };
    let Ok(owner) = fs::metadata(top).map(|found| found.uid()) else { return Vec::new() };
    if let Some(common) = common_of(&own, &pointer).filter(|common| is_git(common, owner)) {
        return of_worktree(&own, &common);
    }
    let of_above = top.ancestors().skip(1).any(|above| own.starts_with(above.join(".git/modules")));
    if of_above && is_git(&own, owner) { of_submodule(&own) } else { Vec::new() }
}

/// Of the repository: what makes git run programs, and what belongs to other worktrees. All else can be written, the
/// directory itself too: git locks its refs there.
const FIXED: [&str; 8] =
    ["hooks", "config", "config.worktree", "info", "modules", "worktrees", "HEAD", "index"];

/// Git would take the settings of a repository from the place that this file names. It belongs in the directory of
/// a linked worktree alone. It cannot be made beforehand as the others are, because other programs take a
/// repository that has it for a linked worktree.
const COMMON_DIRECTORY: &str = "commondir";

/// Removes what a command may have put into the repository of the worktree at `top`, and git would obey. Call it when
/// commands end; our own git never reads it.
pub fn remove_planted(top: &Path) {
    let pointer = top.join(".git");
    let common = target_of(&pointer).and_then(|own| common_of(&own, &pointer));
    // Most repositories have no such file.
    let _ = common.map(|common| fs::remove_file(common.join(COMMON_DIRECTORY)));
}

fn of_worktree(own: &Path, common: &Path) -> Vec<AddedDirectory> {
    complete(common);
    complete_own(own);
    let fixed = FIXED.map(|name| common.join(name));
    let mut all = vec![added_directory(common, true)];
    all.extend(fixed.iter().filter(|path| path.exists()).map(|path| added_directory(path, false)));
    all.push(added_directory(own, true));
    // Which repository the worktree belongs to stays as it is.
    let fixed = ["commondir", "gitdir", "config.worktree"].map(|name| own.join(name));
    all.extend(fixed.iter().filter(|path| path.is_file()).map(|path| added_directory(path, false)));
    all
}

/// Makes what could otherwise be made in a repository, so that it can be shown as fixed; nothing of it changes what git
/// does.
fn complete(common: &Path) {
    for name in ["hooks", "info", "modules"] {
        let _ = fs::create_dir(common.join(name));
    }
    complete_own(common);
    let _ = fs::remove_file(common.join(COMMON_DIRECTORY));
}

/// The same for the settings of one worktree alone.
fn complete_own(own: &Path) {
    // One that is there stays, and a repository that cannot be written to needs no protection.
    let _ = File::create_new(own.join("config.worktree"));
}

fn of_submodule(own: &Path) -> Vec<AddedDirectory> {
    let _ = fs::create_dir(own.join("hooks"));
    complete_own(own);
    let fixed = ["hooks", "config", "config.worktree", "info"].map(|name| own.join(name));
    let fixed = fixed.iter().filter(|path| path.exists()).map(|path| added_directory(path, false));
    std::iter::once(added_directory(own, true)).chain(fixed).collect()
}

fn added_directory(path: &Path, writable: bool) -> AddedDirectory {
    AddedDirectory { path: path.display().to_string(), writable }
}

/// Whether a directory is one of git's and belongs to the owner of the workspace.
fn is_git(path: &Path, owner: u32) -> bool {
    let is_own = fs::symlink_metadata(path).is_ok_and(|it| it.is_dir() && it.uid() == owner);
    is_own && path.join("HEAD").is_file() && path.join("objects").is_dir()
}

/// The directory that a `.git` file names: absolute, or relative to the file's directory.
fn target_of(pointer: &Path) -> Option<PathBuf> {
    let line = line_of(pointer)?;
    fs::canonicalize(pointer.parent()?.join(line.strip_prefix("gitdir: ")?)).ok()
}

/// The repository of a worktree's own directory, if that repository knows the worktree.
fn common_of(own: &Path, pointer: &Path) -> Option<PathBuf> {
    let back = fs::canonicalize(own.join(line_of(&own.join("gitdir"))?)).ok()?;
    let common = fs::canonicalize(own.join(line_of(&own.join("commondir"))?)).ok()?;
    let is_its_worktree = own.parent() == Some(&common.join("worktrees"));
    (is_its_worktree && back == fs::canonicalize(pointer).ok()?).then_some(common)
}

/// The one line of a small regular file.
pub(super) fn line_of(path: &Path) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    // Opened as what it is by then: a FIFO that was put there meanwhile makes nobody wait.
    regular::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text.trim_end().to_owned())
}

/// Copies a regular file of git's, if it is one and of a bearable size. Nothing waits for a pipe in its place.
pub(super) fn copy_file(file: &Path, copy: &Path) {
    let Ok(file) = regular::open(file) else { return };
    let fits = |found: fs::Metadata| found.len() <= MAX_COPIED_BYTES;
    if file.metadata().is_ok_and(fits)
        && let Ok(mut copy) = File::create(copy)
    {
        let _ = io::copy(&mut file.take(MAX_COPIED_BYTES), &mut copy);
    }
}
