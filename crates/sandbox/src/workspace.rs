//! The workspace on the host: who owns it, and what is in it from the start.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
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
    pub(crate) fn in_home(&self, home: &str) -> Vec<NewFile> {
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

/// The directories of tasks in a person's workspace.
pub(crate) struct TaskDirectories {
    /// What holds those of all tasks. Commands may read it and not change it.
    pub all: PathBuf,
    /// The task's own, which they may change.
    pub own: PathBuf,
}

/// Makes the task's own directory beside those of other tasks, where any task has one. Commands cannot make it later,
/// because what holds it is read-only for them.
pub(crate) fn make_own_task_directory(
    workspace: &Path,
    layout: &Layout,
    (uid, gid): (u32, u32),
) -> Result<(), Error> {
    let Some(TaskDirectories { own, .. }) = task_directories(workspace, layout) else {
        return Ok(());
    };
    let made = match fs::create_dir(&own) {
        Ok(()) => lchown(&own, Some(uid), Some(gid)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_plain(&own) => Ok(()),
        Err(error) => Err(error),
    };
    made.map_err(|source| Error::Path { path: own, source })
}

/// The directories of tasks in a person's workspace, once the task's own is there.
pub(crate) fn closed_tasks(workspace: &Path, layout: &Layout) -> Option<TaskDirectories> {
    task_directories(workspace, layout).filter(|tasks| is_plain(&tasks.own))
}

fn task_directories(workspace: &Path, layout: &Layout) -> Option<TaskDirectories> {
    let task = layout.task()?;
    let all = workspace.join(TASKS_DIRECTORY);
    is_plain(&all).then(|| TaskDirectories { own: all.join(task.to_string()), all })
}

/// The directories of a workspace, below its top, that hold something hidden.
pub(crate) fn above_hidden(workspace: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let below = |path: &&Path| path.starts_with(workspace) && *path != workspace && is_plain(path);
    let above = |path: &PathBuf| -> Vec<PathBuf> {
        path.ancestors().skip(1).filter(below).map(Path::to_owned).collect()
    };
    let mut found: Vec<_> = hidden.iter().filter(|path| path.exists()).flat_map(above).collect();
    found.sort();
    found.dedup();
    found
}

/// What is mounted inside a workspace: another file system, or a place outside. Only what a person added is shown.
pub(crate) fn mounts_inside(workspace: &Path, added: &[AddedDirectory]) -> Vec<PathBuf> {
    let list = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mut found: Vec<_> = mount_points(&list)
        .filter(|path| path.starts_with(workspace) && path != workspace)
        .filter(|path| {
            let added = added.iter().map(|added| Path::new(&added.path));
            !added.into_iter().any(|added| path.starts_with(added) || added.starts_with(path))
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The places in the kernel's list of mounts, in which spaces and the like are written as `\040`.
fn mount_points(list: &[u8]) -> impl Iterator<Item = PathBuf> {
    const PLACE: usize = 4;
    let places = list
        .split(|&byte| byte == b'\n')
        .filter_map(|line| line.split(|&byte| byte == b' ').nth(PLACE).map(<[u8]>::to_vec));
    places.map(|place| {
        let mut path = Vec::with_capacity(place.len());
        let mut rest = &place[..];
        while let Some((&byte, after)) = rest.split_first() {
            let escaped = after.first_chunk::<3>().filter(|_| byte == b'\\');
            let code = escaped.and_then(|code| std::str::from_utf8(code).ok());
            match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
                Some(byte) => {
                    path.push(byte);
                    rest = &after[3..];
                }
                None => {
                    path.push(byte);
                    rest = after;
                }
            }
        }
        PathBuf::from(OsString::from_vec(path))
    })
}

/// Whether no link is on the way to a directory that is there.
fn is_plain(path: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|found| found == path && found.is_dir())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_mounts_are_read_with_their_spaces() {
        let list = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            40 22 0:5 / /work/a\\040b\\134c rw,nosuid shared:1 - proc proc rw\n";
        let found: Vec<_> = mount_points(list).collect();
        assert_eq!(found, [Path::new("/"), Path::new("/work/a b\\c")]);
    }

    #[test]
    fn mounts_below_a_directory_are_found_unless_added() {
        let added = |path: &str| AddedDirectory { path: path.to_owned(), writable: true };
        let all = mounts_inside(Path::new("/"), &[]);
        assert!(all.iter().any(|path| path == Path::new("/proc")), "{all:?}");
        let others = mounts_inside(Path::new("/"), &[added("/proc")]);
        assert!(!others.iter().any(|path| path.starts_with("/proc")), "{others:?}");
        assert!(
            mounts_inside(Path::new("/proc"), &[]).iter().all(|path| path != Path::new("/proc"))
        );
    }
}
