//! The content of regular files: opened, read up to a limit, and hashed.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{FileType, OFlags};
use sha2::{Digest as _, Sha256};
use windlass_core::hash::{hex, sha256};

use super::Error;
use super::walk::{Root, Spot, open_beneath};

/// The largest file that is hashed as a whole: seconds, not minutes.
pub const MAX_HASHED_BYTES: u64 = 256 << 20;

/// A regular file, open for reading.
#[derive(Debug)]
pub struct OpenFile {
    /// Its path, links resolved, as an agent writes it.
    pub path: String,
    /// Which tree it is in.
    pub place: Root,
    /// Its size when it was opened.
    pub size: u64,
    pub file: File,
}

impl Spot {
    /// Opens what is there, where it is a regular file.
    pub(super) fn open(&self) -> Result<OpenFile, Error> {
        let path = self.path();
        let kind = self.file_type.ok_or_else(|| Error::NotFound { path: path.clone() })?;
        open_name((self.directory.as_fd(), &self.name), kind, path, self.place)
    }

    /// Hash of the content; `None` when there is no file.
    pub(super) fn hash(&self) -> Result<Option<String>, Error> {
        let mut opened = match self.open() {
            Ok(opened) => opened,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if opened.size > MAX_HASHED_BYTES {
            let (path, size) = (opened.path, opened.size);
            return Err(Error::TooLarge { path, size, limit: MAX_HASHED_BYTES });
        }
        let mut hash = Sha256::new();
        let mut chunk = vec![0; 64 << 10];
        // A file that grows while it is read would have no end.
        let mut content = opened.file.by_ref().take(opened.size);
        loop {
            match content.read(&mut chunk) {
                Ok(0) => return Ok(Some(hex(&hash.finalize()))),
                Ok(bytes) => hash.update(&chunk[..bytes]),
                Err(source) => return Err(Error::Io { path: opened.path, source }),
            }
        }
    }
}

/// The hash that identifies a version of a file.
pub fn content_hash(content: &[u8]) -> String {
    sha256(content)
}

/// Reads a file that is at most `limit` bytes, also when it grows meanwhile.
pub(crate) fn read_bounded(opened: OpenFile, limit: u64) -> Result<Vec<u8>, Error> {
    let OpenFile { path, size, file, .. } = opened;
    let mut content = Vec::new();
    if size <= limit
        && let Err(source) = file.take(limit + 1).read_to_end(&mut content)
    {
        return Err(Error::Io { path, source });
    }
    let size = size.max(content.len() as u64);
    if size > limit { Err(Error::TooLarge { path, size, limit }) } else { Ok(content) }
}

/// Opens a name in a directory, where it is a regular file.
pub(super) fn open_name(
    (directory, name): (BorrowedFd<'_>, &str),
    kind: FileType,
    path: String,
    place: Root,
) -> Result<OpenFile, Error> {
    if let Some(error) = special(kind, &path) {
        return Err(error);
    }
    // Looked at again once open: it may have been swapped for a FIFO, which must not make us wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open_beneath(&directory, name, flags).map_err(|errno| Error::at(&path, errno))?;
    let stat = rustix::fs::fstat(&file).map_err(|errno| Error::at(&path, errno))?;
    if let Some(error) = special(FileType::from_raw_mode(stat.st_mode), &path) {
        return Err(error);
    }
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    Ok(OpenFile { path, place, size, file: file.into() })
}

/// What is wrong with opening this kind of file, if something is.
pub(super) fn special(kind: FileType, path: &str) -> Option<Error> {
    let path = path.to_owned();
    let what = match kind {
        FileType::RegularFile => return None,
        FileType::Directory => return Some(Error::IsDirectory { path }),
        FileType::Symlink => return Some(Error::Changed { path }),
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of an unknown kind",
    };
    Some(Error::Special { path, what })
}
