//! Opening what lies below a directory, however it is swapped meanwhile.
//!
//! Invariant: an agent can change its own project's files while we read them; no link it puts in the way
//! leads us out of the directory we were to stay in.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// How often a path that changes while it is walked is walked again.
const ATTEMPTS: usize = 8;

/// Whether links are followed at all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// As long as they stay below.
    Inside,
    Refused,
}

/// A directory to start from.
pub(crate) fn directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// A directory below another.
pub(crate) fn open_inside(top: impl AsFd, path: &Path, links: Links) -> io::Result<OwnedFd> {
    open_resolved(top, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, links)
}

/// A file below a directory, open for reading. The caller must refuse what is not a regular file.
pub(crate) fn file(top: impl AsFd, path: &Path, links: Links) -> io::Result<File> {
    // Opening a pipe must not make us wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    open_resolved(top, path, flags, links).map(File::from)
}

fn open_resolved(top: impl AsFd, path: &Path, flags: OFlags, links: Links) -> io::Result<OwnedFd> {
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if links == Links::Refused {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    for _ in 0..ATTEMPTS {
        match rustix::fs::openat2(&top, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            outcome => return Ok(outcome?),
        }
    }
    Err(io::Error::other("it changes all the time"))
}
