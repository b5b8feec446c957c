//! A word that all processes of a data directory share: it changes when a message was accepted.
//!
//! Whoever drives a task looks into its mailbox several times a turn, and nearly always nothing is there. A
//! glance at the word spares it the read. It is a hint and nothing more: a sender that dies between its commit
//! and the bell, or finds no room for it, is noticed by the poll for other processes' commits (§15.4).
//!
//! Invariant: the mapping is only read. A full disk would end a process that writes through one; a write to
//! the file fails instead.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::rand::{GetRandomFlags, getrandom};

const BYTES: usize = size_of::<AtomicU64>();

/// The word, mapped from its file.
pub(crate) struct Bell {
    file: File,
    word: NonNull<AtomicU64>,
}

// SAFETY: the mapping is reached through an atomic alone and lives as long as the value.
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Bell {
    /// Opens the word at `path`, making it where it is missing.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        if file.metadata()?.len() < BYTES as u64 {
            file.set_len(BYTES as u64)?;
        }
        let (access, flags) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: a new mapping of a file that holds at least as many bytes, at a place of the kernel's choice.
        let start = unsafe { mmap(std::ptr::null_mut(), BYTES, access, flags, &file, 0) }?;
        let word = NonNull::new(start.cast()).ok_or(io::ErrorKind::Other)?;
        Ok(Self { file, word })
    }

    /// Says that a message was accepted.
    pub(crate) fn ring(&self) {
        let mut word = [0; BYTES];
        // Any other word will do, so that two who ring at once need not agree on one.
        let _ = getrandom(&mut word, GetRandomFlags::empty());
        let _ = self.file.write_all_at(&word, 0);
    }

    /// The word as it is now; another than before when somebody rang.
    pub(crate) fn word(&self) -> u64 {
        // SAFETY: mapped as long as `self` lives, at the start of a page and so aligned.
        unsafe { self.word.as_ref() }.load(Ordering::SeqCst)
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // SAFETY: ours alone, and nobody has a reference any more.
        let _ = unsafe { munmap(self.word.as_ptr().cast(), BYTES) };
    }
}
