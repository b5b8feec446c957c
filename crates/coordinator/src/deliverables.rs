//! What tasks have published: the list, and the files as they are now.

use std::fs::File;
use std::io::Read as _;

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use windlass_core::command::Deliverable;
use windlass_core::id::TaskId;

use crate::{Coordinator, Error};

/// The largest file that is handed out; a larger one is read where it is.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What tasks have published.
#[derive(Clone, Copy)]
pub struct Deliverables<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Deliverables<'_> {
    /// What a task has published, by path.
    pub fn of(self, task: TaskId) -> Result<Vec<Deliverable>, Error> {
        Ok(self.coordinator.store.tasks().deliverables(task)?)
    }

    /// The content of a file that a task has published; `None` where it did not publish it, or where it cannot be
    /// read. The file is opened below the workspace: neither the path nor a link leads out of it.
    pub fn read(self, task: TaskId, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(row) = self.coordinator.tasks().get(task)? else { return Ok(None) };
        if !self.of(task)?.iter().any(|one| one.filepath == path) {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let below = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let inside = path.strip_prefix("/workspace/").unwrap_or(path);
        let opened = open(row.workspace.as_str(), flags | OFlags::DIRECTORY, Mode::empty())
            .and_then(|workspace| openat2(workspace, inside, flags, Mode::empty(), below));
        let Ok(file) = opened.map(File::from) else { return Ok(None) };
        let is_file =
            file.metadata().is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
        let mut content = Vec::new();
        let read = file.take(MAX_BYTES).read_to_end(&mut content);
        Ok((is_file && read.is_ok()).then_some(content))
    }
}
