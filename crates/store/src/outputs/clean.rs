//! What is kept only for a while, and goes when it is old: files of outputs, traces of ended tasks, and workspaces of
//! the service that nobody has written into.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use windlass_core::id::TaskId;

use super::Outputs;
use crate::{Error, Filter, TaskRow};

/// How often old files are looked for, by whichever process comes first.
const CLEAN_EVERY: SignedDuration = SignedDuration::from_hours(24);

/// When that was last done: the time of this file.
const CLEANED_MARK: &str = ".cleaned";

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanupReport {
    /// How many files.
    pub files: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Outputs {
    /// Removes what is too old, unless that was done less than a day ago.
    pub fn clean_when_due(&self, now: Timestamp) -> Result<CleanupReport, Error> {
        let mark = self.dir.join(CLEANED_MARK);
        let last = fs::metadata(&mark).and_then(|found| found.modified()).ok();
        let last = last.and_then(|last| Timestamp::try_from(last).ok());
        let lately = last.is_some_and(|last| now.duration_since(last) < CLEAN_EVERY);
        if lately || !self.dir.exists() {
            return Ok(CleanupReport::default());
        }
        let marked = OpenOptions::new().create(true).truncate(false).write(true).open(&mark);
        marked
            .and_then(|mark| mark.set_modified(now.into()))
            .map_err(|error| Error::file(&mark, error))?;
        self.clean(now)
    }

    /// Removes files that were last written longer before `now` than they are kept.
    pub fn clean(&self, now: Timestamp) -> Result<CleanupReport, Error> {
        let mut cleaned = CleanupReport::default();
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(cleaned),
            Err(error) => return Err(Error::file(&self.dir, error)),
        };
        for entry in entries {
            let path = entry.map_err(|error| Error::file(&self.dir, error))?.path();
            let Some(bytes) = expired_size(&path, now, self.store.inner.keep_outputs) else {
                continue;
            };
            match fs::remove_file(&path) {
                Ok(()) => {
                    cleaned.files += 1;
                    cleaned.bytes += bytes;
                }
                // Another process cleans too.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::file(&path, error)),
            }
        }
        self.clean_traces(now, &mut cleaned)?;
        Ok(cleaned)
    }

    /// Removes traces of ended tasks that are as old: `windlass trace` makes them again from the journal. An unused
    /// workspace goes with its trace.
    fn clean_traces(&self, now: Timestamp, cleaned: &mut CleanupReport) -> Result<(), Error> {
        let keep = self.store.inner.keep_outputs;
        for entry in fs::read_dir(self.store.dir().traces()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(task) = name.to_str().and_then(|name| name.parse::<TaskId>().ok()) else {
                continue;
            };
            let files = || fs::read_dir(entry.path()).into_iter().flatten().flatten();
            let is_old = |path: PathBuf| {
                let written = fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
                let written = written.and_then(|written| Timestamp::try_from(written).ok());
                written.is_some_and(|written| now.duration_since(written) > keep)
            };
            let has_ended = |row: TaskRow| row.status.is_terminal();
            if !files().all(|file| is_old(file.path()))
                || !self.store.tasks().get(task)?.is_none_or(has_ended)
            {
                continue;
            }
            for file in files() {
                let bytes = file.metadata().map_or(0, |found| found.len());
                if fs::remove_file(file.path()).is_ok() {
                    cleaned.files += 1;
                    cleaned.bytes += bytes;
                }
            }
            let _ = fs::remove_dir(entry.path());
            self.clean_workspace(task)?;
        }
        Ok(())
    }

    /// Removes the workspace that was made for an ended task, if it is unused. Successors of the task work there too.
    fn clean_workspace(&self, task: TaskId) -> Result<(), Error> {
        let workspace = self.store.dir().workspaces().join(task.to_string());
        let of_it = Some(workspace.display().to_string());
        let live = Filter { workspace: of_it, live: true, limit: Some(1), ..Filter::default() };
        if workspace.exists() && self.store.tasks().list(&live)?.is_empty() {
            remove_unused(&workspace);
        }
        Ok(())
    }
}

/// The size of a file of ours that is too old; `None` for any other.
fn expired_size(path: &Path, now: Timestamp, keep: SignedDuration) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let is_ours = ["_stdout.txt", "_stderr.txt", "_content", ".part"];
    if !is_ours.iter().any(|ending| name.ends_with(ending)) {
        return None;
    }
    let metadata = fs::symlink_metadata(path).ok()?;
    let written = Timestamp::try_from(metadata.modified().ok()?).ok()?;
    (now.duration_since(written) > keep).then_some(metadata.len())
}

/// Removes a workspace in which there is nothing but the directories that it was made with and links to traces. Where
/// there is anything else all of it stays.
fn remove_unused(workspace: &Path) {
    let Some((directories, links)) = unused_parts(workspace) else { return };
    // What was written meanwhile keeps its directory: only empty ones can be removed.
    let removed = links.iter().all(|link| fs::remove_file(link).is_ok());
    if removed && directories.iter().all(|directory| fs::remove_dir(directory).is_ok()) {
        let _ = fs::remove_dir(workspace);
    }
}

/// The directories in a workspace and the links in them; `None` where it holds something of somebody's.
fn unused_parts(workspace: &Path) -> Option<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut directories, mut links) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(workspace).ok()? {
        let directory = entry.ok()?.path();
        if !fs::symlink_metadata(&directory).ok()?.is_dir() {
            return None;
        }
        for file in fs::read_dir(&directory).ok()? {
            let file = file.ok()?.path();
            let is_trace = file.extension().is_some_and(|ending| ending == "jsonl");
            if !is_trace || !fs::symlink_metadata(&file).ok()?.is_symlink() {
                return None;
            }
            links.push(file);
        }
        directories.push(directory);
    }
    Some((directories, links))
}
