//! Snapshots as files: `.windlass/snapshots/PLAN/TASK.md` of the project.
//!
//! Invariant: a snapshot is written whole or not at all, and never through a link that leads elsewhere.

use std::io;
use std::path::{Path, PathBuf};

use windlass_skills::{inside, regular};
use windlass_store::Store;

use crate::snapshot::{Snapshot, SnapshotError, file_name};

/// Where a project's snapshots are.
const DIRECTORY: &str = ".windlass/snapshots";

/// The largest snapshot that is read; it is for people and prompts.
const MAX_BYTES: u64 = 1 << 20;

/// Why a snapshot was not saved or not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{}`: {error}", path.display())]
    Invalid { path: PathBuf, error: SnapshotError },
    #[error("`{}` {problem}", path.display())]
    File { path: PathBuf, problem: String },
    #[error(transparent)]
    Store(#[from] windlass_store::Error),
}

/// The file of a task's snapshot.
pub fn path(project: &Path, plan: &str, task: &str) -> Result<PathBuf, Error> {
    let name = file_name(plan, task)
        .map_err(|error| Error::Invalid { path: project.join(DIRECTORY), error })?;
    Ok(project.join(DIRECTORY).join(name))
}

/// Saves a snapshot and notes where it is; returns its path below the project.
pub async fn save(store: &Store, project: &Path, snapshot: &Snapshot) -> Result<String, Error> {
    let path = path(project, &snapshot.plan, &snapshot.task)?;
    // What could not be read again is refused before it is written.
    let text = snapshot.markdown();
    Snapshot::parse(&text).map_err(|error| Error::Invalid { path: path.clone(), error })?;
    write(project, &path, &text).map_err(|error| Error::File {
        path: path.clone(),
        problem: format!("cannot be written: {error}"),
    })?;
    let shown = path.strip_prefix(project).unwrap_or(&path).display().to_string();
    let key = (project.display().to_string(), snapshot.plan.clone(), snapshot.task.clone());
    store.planning().index_snapshot(snapshot.timestamp, key, shown.clone()).await?;
    Ok(shown)
}

/// Reads a task's snapshot; `None` where there is none.
pub fn load(project: &Path, plan: &str, task: &str) -> Result<Option<Snapshot>, Error> {
    let path = path(project, plan, task)?;
    let problem = |error: io::Error| Error::File {
        path: path.clone(),
        problem: format!("cannot be read: {error}"),
    };
    let text = match regular::read_text(&path, MAX_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(problem(error)),
    };
    let snapshot =
        Snapshot::parse(&text).map_err(|error| Error::Invalid { path: path.clone(), error })?;
    Ok(Some(snapshot))
}

/// Writes the file in one step. `.windlass` ignores itself, as the agent's own files do.
fn write(project: &Path, path: &Path, text: &str) -> io::Result<()> {
    let ignore = Path::new(DIRECTORY).join(".gitignore");
    match inside::write_new(project, &ignore, b"*\n") {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let inner = path.strip_prefix(project).map_err(io::Error::other)?;
    inside::replace(project, inner, text.as_bytes())
}
