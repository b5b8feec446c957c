//! The directory that a task works in: it must be usable, and no other task may share it unknowingly.

use std::path::{Path, PathBuf};

use windlass_core::id::TaskId;
use windlass_core::layout::{PROJECT_DIRECTORY, Site};
use windlass_store::Filter;

use crate::{Coordinator, Error};

/// The directories that tasks work in.
#[derive(Clone, Copy)]
pub(crate) struct Workplaces<'a> {
    coordinator: &'a Coordinator,
}

impl<'a> Workplaces<'a> {
    pub(crate) const fn of(coordinator: &'a Coordinator) -> Self {
        Self { coordinator }
    }

    /// Makes a directory of its own for a task.
    pub(crate) fn make_own(self, task: TaskId) -> Result<PathBuf, Error> {
        let path = self.coordinator.store.dir().workspaces().join(task.to_string());
        make(&path)?;
        whole(&path)
    }

    /// Makes the workspace of a service task again, if it was removed because nothing was in it.
    pub(crate) fn restore(self, workspace: &Path) -> Result<(), Error> {
        let own = self.coordinator.store.dir().workspaces();
        // Making what is there would lock the directory of all workspaces, also for other tasks.
        match workspace.parent() == Some(&own) && !workspace.is_dir() {
            true => make(workspace),
            false => Ok(()),
        }
    }

    /// Two agents in one directory undo each other's work unaware (§15.14). A task that only reads disturbs nobody,
    /// and one that works above or below does.
    pub(crate) fn check_alone(self, workspace: &Path, site: &Site) -> Result<(), Error> {
        let top = site.boundary.as_ref().map_or(workspace, Path::new);
        let live = Filter { live: true, ..Filter::default() };
        for task in self.coordinator.store.tasks().list(&live)? {
            if task.parent_id.is_some() || task.axes.work_mode.is_read_only() {
                continue;
            }
            let other = Path::new(&task.workspace);
            let boundary = self.coordinator.agents.site(other).boundary;
            let other = boundary.as_ref().map_or(other, Path::new);
            let meet = other.starts_with(top) || top.starts_with(other);
            if meet && self.coordinator.store.owners().driving_process(task.id)?.is_some() {
                return Err(Error::WorkspaceTaken { task: task.id, path: workspace.to_owned() });
            }
        }
        Ok(())
    }
}

fn make(path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).map_err(|error| refusal(path, format!("cannot be made: {error}")))
}

fn refusal(path: &Path, problem: String) -> Error {
    Error::Workspace { path: path.to_owned(), problem }
}

/// The path of a directory without links and dots.
fn whole(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|error| {
        refusal(
            path,
            match error.kind() {
                std::io::ErrorKind::NotFound => "does not exist".to_owned(),
                _ => format!("cannot be opened: {error}"),
            },
        )
    })
}

/// A directory as it is named in the journal, where tasks can work in it.
pub(crate) fn usable(path: &Path) -> Result<PathBuf, Error> {
    let refused = |problem: String| refusal(path, problem);
    let whole = whole(path)?;
    if !whole.is_dir() {
        return Err(refused("is not a directory".to_owned()));
    }
    std::fs::read_dir(&whole).map_err(|error| refused(format!("cannot be read: {error}")))?;
    let own = whole.join(PROJECT_DIRECTORY);
    if std::fs::metadata(&own).is_ok_and(|found| !found.is_dir()) {
        return Err(refused(format!(
            "cannot be used: its `{PROJECT_DIRECTORY}`, where tasks keep their files, is not a directory"
        )));
    }
    // Permission bits do not tell: file systems and users differ. Trying does.
    let probe = whole.join(format!(".windlass-probe-{}", std::process::id()));
    std::fs::create_dir(&probe)
        .and_then(|()| std::fs::remove_dir(&probe))
        .map_err(|error| refused(format!("cannot be written to: {error}")))?;
    Ok(whole)
}
