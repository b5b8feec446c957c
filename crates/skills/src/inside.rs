//! Writing files of ours below a directory that somebody else has filled.
//!
//! Invariants:
//! - No link leads out of the directory that was named: one that stays below it counts as what it leads to, any other is
//!   an error, and so is one that leads nowhere.
//! - A link in place of the file itself is never followed.
//! - What replaces a file is whole or not there at all.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath::{self, Links};

/// Makes a file that is not there yet, and the directories above it.
pub fn write_new(top: &Path, inner: &Path, content: &[u8]) -> io::Result<()> {
    let (directory, name) = parent_of(top, inner)?;
    create(&directory, name)?.write_all(content)
}

/// Makes a file or replaces it, and makes the directories above it.
pub fn replace(top: &Path, inner: &Path, content: &[u8]) -> io::Result<()> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let (directory, name) = parent_of(top, inner)?;
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let part = format!(".windlass-{}-{number}.part", std::process::id());
    let mut file = create(&directory, Path::new(&part))?;
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| Ok(rustix::fs::renameat(&directory, &part, &directory, name)?));
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&directory, &part, AtFlags::empty());
    }
    written
}

/// Makes a directory and those above it. One that is there stays.
pub fn make_directory(top: &Path, inner: &Path) -> io::Result<()> {
    directory(top, inner).map(drop)
}

fn create(directory: &OwnedFd, name: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o666))?;
    Ok(File::from(made))
}

/// The directory that a file is in, and its name there.
fn parent_of<'p>(top: &Path, inner: &'p Path) -> io::Result<(OwnedFd, &'p Path)> {
    let name = inner.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((directory(top, inner.parent().unwrap_or(Path::new("")))?, Path::new(name)))
}

/// Opens a directory below the top; what is missing of it is made.
fn directory(top: &Path, inner: &Path) -> io::Result<OwnedFd> {
    if inner.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let top = beneath::directory(top)?;
    for existing in inner.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        match beneath::open_inside(top.as_fd(), existing, Links::Inside) {
            Ok(found) => return make_below(found, inner.strip_prefix(existing).unwrap_or(inner)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if Errno::from_io_error(&error) == Some(Errno::XDEV) => {
                return Err(io::Error::other("a link leads out of its directory"));
            }
            Err(error) => return Err(error),
        }
    }
    make_below(top, inner)
}

fn make_below(mut directory: OwnedFd, missing: &Path) -> io::Result<OwnedFd> {
    for part in missing.components() {
        match rustix::fs::mkdirat(&directory, part.as_os_str(), Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        // A link that leads nowhere exists, and is no directory.
        let part = Path::new(part.as_os_str());
        directory = beneath::open_inside(directory.as_fd(), part, Links::Refused)?;
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_written_stays_below_the_directory() {
        let outside = tempfile::tempdir().unwrap();
        let top = tempfile::tempdir().unwrap();
        let inside = |name: &str| top.path().join(name);
        fs::create_dir(inside("real")).unwrap();
        fs::write(outside.path().join("kept"), "kept").unwrap();
        symlink("real", inside("linked")).unwrap();
        symlink(outside.path(), inside("out")).unwrap();
        symlink(outside.path().join("new"), inside("nowhere")).unwrap();
        symlink(outside.path().join("kept"), inside("real/file")).unwrap();

        write_new(top.path(), Path::new("a/b/c"), b"1").unwrap();
        write_new(top.path(), Path::new("linked/d"), b"2").unwrap();
        assert_eq!(fs::read_to_string(inside("a/b/c")).unwrap(), "1");
        assert_eq!(fs::read_to_string(inside("real/d")).unwrap(), "2");
        for name in ["out/x", "out/x/y", "nowhere", "nowhere/x", "../x", "/x", "real/file"] {
            assert!(write_new(top.path(), Path::new(name), b"3").is_err(), "{name}");
        }
        for name in ["out/x", "out/x/y", "nowhere/x", "../x", "/x"] {
            assert!(replace(top.path(), Path::new(name), b"3").is_err(), "{name}");
            assert!(make_directory(top.path(), Path::new(name)).is_err(), "{name}");
        }
        // The link goes, not what it leads to.
        replace(top.path(), Path::new("real/file"), b"4").unwrap();
        assert_eq!(fs::read_to_string(inside("real/file")).unwrap(), "4");
        let outside: Vec<_> = fs::read_dir(outside.path()).unwrap().flatten().collect();
        assert_eq!(outside.len(), 1);
        assert_eq!(fs::read_to_string(outside[0].path()).unwrap(), "kept");
    }
}
