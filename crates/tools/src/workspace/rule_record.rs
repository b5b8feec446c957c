//! What a rule guard remembers, as a file of the data directory. It is there while a command runs.
//!
//! Invariants:
//! - Only the owner reads it: rules of a project may be nobody else's business.
//! - A file that is damaged puts nothing back.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::rule_guard::{Kept, Snapshot};

#[derive(Serialize, Deserialize)]
struct Record {
    files: Vec<(String, Entry)>,
    linked: Vec<String>,
    gave_up: bool,
    /// Whether directories are among the files. A record without them cannot say which of them are new.
    #[serde(default)]
    has_directories: bool,
}

/// Contents and targets in base64: neither has to be text.
#[derive(Serialize, Deserialize)]
enum Entry {
    File { content: String, mode: u32 },
    Link { target: String },
    Directory,
    Other,
}

/// Writes it, in place of an earlier one. Where that fails, what a kill leaves is not put back.
pub(super) fn write(path: &Path, snapshot: &Snapshot) {
    let entry = |kept: &Kept| match kept {
        Kept::File { content, mode } => {
            Entry::File { content: STANDARD.encode(content), mode: *mode }
        }
        Kept::Link(target) => Entry::Link { target: STANDARD.encode(target) },
        Kept::Directory => Entry::Directory,
        Kept::Other => Entry::Other,
    };
    let record = Record {
        files: snapshot.files.iter().map(|(path, kept)| (path.clone(), entry(kept))).collect(),
        linked: snapshot.linked.clone(),
        gave_up: snapshot.gave_up,
        has_directories: true,
    };
    let Ok(text) = serde_json::to_vec(&record) else { return };
    if path.exists() {
        replace(path, &text);
    } else if create(path, &text).is_err() {
        let _ = fs::remove_file(path);
    }
}

/// A new one. The command has not started: if this is cut off, there is nothing to put back yet.
fn create(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    let opened = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let directory = path.parent().unwrap_or(path);
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            options.open(path)
        }
        opened => opened,
    };
    opened?.write_all(text)
}

/// In place of one that counts until the new one is whole.
fn replace(path: &Path, text: &[u8]) {
    let new = path.with_extension("new");
    if create(&new, text).and_then(|()| fs::rename(&new, path)).is_err() {
        let _ = fs::remove_file(&new);
    }
}

/// What was written, if it is there and whole.
pub(super) fn read(path: &Path) -> Option<Snapshot> {
    let record: Record = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let kept = |entry: Entry| -> Option<Kept> {
        Some(match entry {
            Entry::File { content, mode } => {
                Kept::File { content: STANDARD.decode(content).ok()?.into(), mode }
            }
            Entry::Link { target } => Kept::Link(STANDARD.decode(target).ok()?),
            Entry::Directory => Kept::Directory,
            Entry::Other => Kept::Other,
        })
    };
    let files = record.files.into_iter().map(|(path, entry)| Some((path, kept(entry)?)));
    let (linked, gave_up) = (record.linked, record.gave_up || !record.has_directories);
    Some(Snapshot { files: files.collect::<Option<_>>()?, linked, gave_up })
}
