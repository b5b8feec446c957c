//! Space that is held back, so that a full disk does not keep tasks from being ended: a file that is given up when the
//! journal must be written and there is no room, and made again when there is.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::{DataDir, Retention};

/// Enough for the endings of a thousand tasks.
const BYTES: u64 = 4 * 1024 * 1024;

/// The most that is held back of what is free: a small disk has a small reserve.
const PART: u64 = 8;

/// Less than this is worth nothing.
const LEAST: u64 = 128 * 1024;

/// A task that is started needs this much, or will soon be parked again.
const ROOM: u64 = 1024 * 1024;

/// The reserve of one data directory.
pub(crate) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    pub(crate) fn new(dir: &DataDir) -> Self {
        Self { path: dir.reserve() }
    }

    /// Makes the reserve, where it is missing and there is room for it.
    pub(crate) fn make(&self) {
        let bytes = (self.free() / PART).min(BYTES);
        // Without a reserve everything else works.
        if bytes >= LEAST && !self.path.exists() && allocate(&self.path, bytes).is_err() {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Gives the space back to the disk; `false` if no space was held back.
    pub(crate) fn release(&self) -> bool {
        std::fs::remove_file(&self.path).is_ok()
    }

    fn free(&self) -> u64 {
        let disk = self.path.parent().and_then(|dir| statvfs(dir).ok());
        disk.map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
    }
}

impl Retention<'_> {
    /// Whether there is room on the disk for tasks to work. Holds space back again if it was given back before.
    pub fn has_room(self) -> bool {
        let reserve = &self.store.inner.reserve;
        let has_room = reserve.free() >= ROOM;
        if has_room {
            reserve.make();
        }
        has_room
    }
}

fn allocate(path: &Path, bytes: u64) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    Ok(fallocate(&file, FallocateFlags::empty(), 0, bytes)?)
}
