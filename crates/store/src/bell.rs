//! A counter that all processes of a data directory share: it is raised when a message was accepted.
//!
//! Whoever drives a task looks into its mailbox several times a turn, and nearly always nothing is there. A
//! glance at the counter spares it the read. It is a hint and nothing more: a sender that dies between its
//! commit and the bell is noticed by the poll for other processes' commits (§15.4).

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const BYTES: usize = size_of::<AtomicU64>();

/// The counter, mapped from its file.
pub(crate) struct Bell {
    counter: NonNull<AtomicU64>,
}

// SAFETY: the mapping is reached through an atomic alone and lives as long as the value.
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Bell {
    /// Opens the counter at `path`, making it where it is missing.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        if file.metadata()?.len() < BYTES as u64 {
            file.set_len(BYTES as u64)?;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping of a file that holds at least as many bytes, at a place of the kernel's choice.
        let start =
            unsafe { mmap(std::ptr::null_mut(), BYTES, access, MapFlags::SHARED, &file, 0) }?;
        let counter = NonNull::new(start.cast()).ok_or(io::ErrorKind::Other)?;
        Ok(Self { counter })
    }

    /// Says that a message was accepted.
    pub(crate) fn ring(&self) {
        self.counter().fetch_add(1, Ordering::SeqCst);
    }

    /// How often that was said so far, by any process.
    pub(crate) fn rung(&self) -> u64 {
        self.counter().load(Ordering::SeqCst)
    }

    fn counter(&self) -> &AtomicU64 {
        // SAFETY: mapped as long as `self` lives, at the start of a page and so aligned.
        unsafe { self.counter.as_ref() }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // SAFETY: ours alone, and nobody has a reference any more.
        let _ = unsafe { munmap(self.counter.as_ptr().cast(), BYTES) };
    }
}
