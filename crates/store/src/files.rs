//! Files of ours that are whole whenever they are there, named by the hash of their content.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Error;

/// Writes a file that is whole whenever it is there, in a directory that only its owner can enter.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write(path, bytes).map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull => Error::Full { path: path.to_owned() },
        _ => Error::file(path, error),
    })
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(path);
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let part = path.with_extension(format!("{}-{number}.part", std::process::id()));
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_data())
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}
