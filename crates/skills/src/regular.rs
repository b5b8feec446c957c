//! Reading a whole file that somebody else may have put there.
//!
//! Invariant: a FIFO, a device or an endless file in place of a configuration, a list of servers or a skill is an
//! error at once. Nothing waits and nothing fills the memory.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a regular file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    // Without `NONBLOCK` opening a FIFO waits for its writer. What was opened is looked at, not its name.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// The content of a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        let most = if limit >= 1 << 20 { limit >> 20 } else { limit >> 10 };
        let unit = if limit >= 1 << 20 { "MiB" } else { "KiB" };
        return Err(io::Error::other(format!("it is larger than {most} {unit}")));
    }
    Ok(content)
}

/// The same as text.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read(path, limit)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// The same of a file that is read for agents: only where it really lies below a directory, because nobody but a person
/// chooses which of their other files a model sees.
pub fn read_text_in(top: &Path, path: &Path, limit: u64) -> io::Result<String> {
    match lies_in(top, path)? {
        true => read_text(path, limit),
        false => Err(io::Error::other("a link leads out of the project")),
    }
}

/// Whether a path leads to something below a directory, whatever links are in it.
pub fn lies_in(top: &Path, path: &Path) -> io::Result<bool> {
    Ok(path.canonicalize()?.starts_with(top.canonicalize()?))
}
