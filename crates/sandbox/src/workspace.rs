//! The workspace on the host: who owns it, and what is in it from the start.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::layout::{AddedDirectory, Layout, LayoutKind, Own, TASKS_DIRECTORY, WORKSPACE};
use windlass_helper::protocol::NewFile;

use crate::Error;

/// Files that the empty home directory of a sandbox has from the start, by their name there. They are asked for
/// when the sandbox starts, because most tasks never start one.
#[derive(Clone, Default)]
pub struct HomeFiles(Option<Arc<FilesByName>>);

/// Gives names and contents.
type FilesByName = dyn Fn() -> Vec<(String, String)> + Send + Sync;

impl HomeFiles {
    pub fn new(files: impl Fn() -> Vec<(String, String)> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(files)))
    }

    /// The files as the helper takes them, with the home directory as commands see it.
    pub(crate) fn below(&self, home: &str) -> Vec<NewFile> {
        let files = self.0.as_ref().map(|files| files()).unwrap_or_default();
        let new = |(name, content)| NewFile { path: format!("{home}/{name}"), content };
        files.into_iter().map(new).collect()
    }
}

impl fmt::Debug for HomeFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HomeFiles")
    }
}

/// The user and group that commands run as: the workspace's owner when windlass is root, else windlass's own.
pub(crate) fn owner(workspace: &Path) -> Result<(u32, u32), Error> {
    let own = rustix::process::geteuid();
    if !own.is_root() {
        return Ok((own.as_raw(), rustix::process::getegid().as_raw()));
    }
    let found = fs::metadata(workspace)
        .map_err(|source| Error::Path { path: workspace.to_owned(), source })?;
    Ok((found.uid(), found.gid()))
}

/// Makes the directories that a workspace has from the start, and the place where the trace will be shown. A
/// person's directory gets neither.
pub(crate) fn prepare(
    workspace: &Path,
    layout: &Layout,
    (uid, gid): (u32, u32),
) -> Result<(), Error> {
    let initial = layout.initial_directories();
    let trace = (!initial.is_empty()).then_some(&Own::Trace);
    for own in initial.iter().chain(trace) {
        let path = workspace.join(layout.inner(*own));
        let made = match fs::create_dir(&path) {
            Ok(()) => lchown(&path, Some(uid), Some(gid)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        };
        made.map_err(|source| Error::Path { path, source })?;
    }
    Ok(())
}

/// Where the trace is shown, if the workspace has a place for it: in a person's directory that is made with the
/// first file of the task's own. A link on the way is refused, not followed.
pub(crate) fn trace_place(workspace: &Path, layout: &Layout) -> Result<Option<PathBuf>, Error> {
    let place = workspace.join(layout.inner(Own::Trace));
    match fs::canonicalize(&place) {
        Ok(found) if found == place && found.is_dir() => Ok(Some(place)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Ok(_) => {
            let source = io::ErrorKind::InvalidFilename.into();
            Err(Error::Path { path: place, source })
        }
        Err(source) => Err(Error::Path { path: place, source }),
    }
}

/// Directories of other tasks that are shown read-only in a person's workspace, at most.
const MAX_OTHER_TASKS: usize = 200;

/// The directories of other tasks in a person's workspace. Commands may read them and not change them.
pub(crate) fn other_tasks(workspace: &Path, layout: &Layout) -> Vec<PathBuf> {
    let Some(own) = layout.task() else { return Vec::new() };
    let tasks = workspace.join(TASKS_DIRECTORY);
    if !fs::canonicalize(&tasks).is_ok_and(|found| found == tasks) {
        return Vec::new();
    }
    let own = own.to_string();
    let entries = fs::read_dir(&tasks).into_iter().flatten().flatten();
    let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let others = entries.filter(is_directory).map(|entry| entry.path());
    let others = others.filter(|path| path.file_name().is_some_and(|name| *name != *own));
    let mut others: Vec<_> = others.filter(|path| path.to_str().is_some()).collect();
    // The names begin with the time: the newest matter most.
    others.sort();
    others.reverse();
    others.truncate(MAX_OTHER_TASKS);
    others
}

/// The same directories for Landlock, which allows and cannot take back: one that holds a directory that is only
/// read is itself only read, and what else is in it can be written.
pub(crate) fn without_nested(added: &[AddedDirectory]) -> Vec<AddedDirectory> {
    let below = |outer: &Path, inner: &AddedDirectory| {
        Path::new(&inner.path) != outer && Path::new(&inner.path).starts_with(outer)
    };
    let mut all = Vec::new();
    for one in added {
        let path = Path::new(&one.path);
        let holds_closed = added
            .iter()
            .any(|other| !other.writable && below(path, other) && Path::new(&other.path).is_dir());
        if !one.writable || !holds_closed {
            all.push(one.clone());
            continue;
        }
        all.push(AddedDirectory { writable: false, ..one.clone() });
        let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        let others = entries.filter(|entry| {
            !added.iter().any(|other| Path::new(&other.path) == entry || below(entry, other))
        });
        all.extend(others.filter_map(|entry| {
            Some(AddedDirectory { path: entry.to_str()?.to_owned(), writable: true })
        }));
    }
    all
}

/// Directories that a sandbox has for itself. A workspace that holds one of them cannot be shown at its own path.
const RESERVED: [&str; 14] = [
    "/proc", "/sys", "/dev", "/tmp", "/var/tmp", "/run", "/usr", "/bin", "/sbin", "/lib", "/etc",
    "/home", "/root", "/skills",
];

/// Where commands of a sandbox with a root of its own see a workspace, and what else they may call it.
pub(crate) fn place_inside(workspace: &Path, layout: &Layout) -> (PathBuf, Option<&'static str>) {
    let holds_reserved = RESERVED.iter().any(|path| Path::new(path).starts_with(workspace));
    match layout.kind() {
        LayoutKind::Personal if !holds_reserved => {
            let alias = (!workspace.starts_with(WORKSPACE)).then_some(WORKSPACE);
            (workspace.to_owned(), alias)
        }
        LayoutKind::Personal | LayoutKind::Service => (WORKSPACE.into(), None),
    }
}

/// A path without links and dots.
pub(crate) fn canonical(path: &Path) -> Result<PathBuf, Error> {
    fs::canonicalize(path).map_err(|source| Error::Path { path: path.to_owned(), source })
}
