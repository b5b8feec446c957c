//! The workspace on the host: who owns it, and what is in it from the start.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};

use crate::Error;

/// Where the agent finds its workspace in a sandbox with a root of its own.
pub(crate) const WORKSPACE: &str = "/workspace";

/// Directories that every workspace has from the first effect on (ES-038, ES-039).
const DIRECTORIES: [&str; 2] = [".scratch", "output"];

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

/// Makes the directories that every workspace has; `.trace` as the place where the trace will be shown.
pub(crate) fn prepare(
    workspace: &Path,
    has_trace: bool,
    (uid, gid): (u32, u32),
) -> Result<(), Error> {
    for name in DIRECTORIES.into_iter().chain(has_trace.then_some(".trace")) {
        let path = workspace.join(name);
        let made = match fs::create_dir(&path) {
            Ok(()) => lchown(&path, Some(uid), Some(gid)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        };
        made.map_err(|source| Error::Path { path, source })?;
    }
    Ok(())
}

/// A path without links and dots.
pub(crate) fn canonical(path: &Path) -> Result<PathBuf, Error> {
    fs::canonicalize(path).map_err(|source| Error::Path { path: path.to_owned(), source })
}
