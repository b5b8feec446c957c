//! The bytes of pictures, one file each, named by the hash of its content (§15.20).
//!
//! Invariants:
//! - A picture is kept once, however often it is seen; its file never changes.
//! - It is on disk before an event names it.
//! - Bounded: no more than [`MAX_PICTURES`] and [`MAX_TOTAL_BYTES`]. What no event names goes with the next prune.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use windlass_core::hash::sha256;
use windlass_core::picture::{Picture, PictureData, PictureHash};

use crate::error::Fault;
use crate::files::write_whole;
use crate::{Error, Store};

/// Pictures that one data directory keeps.
pub const MAX_PICTURES: usize = 20_000;

/// What they may take together.
pub const MAX_TOTAL_BYTES: u64 = 2 << 30;

/// A picture that is younger stays at a prune: the event that names it may not be written yet.
const YOUNG: SignedDuration = SignedDuration::from_hours(24);

/// Where an event or a message says which pictures it shows.
const NAMED: &str = r#"%"pictures":[%"#;

/// The pictures of one data directory.
#[derive(Clone)]
pub struct Pictures {
    store: Store,
    dir: PathBuf,
}

impl Store {
    /// The pictures of this data directory.
    pub fn pictures(&self) -> Pictures {
        Pictures { store: self.clone(), dir: self.dir().pictures() }
    }
}

impl Pictures {
    /// Keeps a picture; one that is kept already stays as it is.
    pub fn keep(&self, data: &PictureData, name: &str) -> Result<Picture, Error> {
        let hash = hash(&data.bytes);
        let path = self.dir.join(hash.as_str());
        if !path.exists() {
            self.check_room(data.bytes.len() as u64)?;
            write_whole(&path, &data.bytes)?;
        }
        Ok(Picture {
            hash,
            format: data.format,
            width: data.width,
            height: data.height,
            bytes: data.bytes.len() as u64,
            name: name.to_owned(),
        })
    }

    /// The bytes of a picture; `None` when its file is gone or is not what its name says.
    pub fn read(&self, picture: &Picture) -> Option<Vec<u8>> {
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let path = self.dir.join(picture.hash.as_str());
        let file = OpenOptions::new().read(true).custom_flags(no_follow).open(path).ok()?;
        let mut bytes = Vec::new();
        // A file of ours is as long as was written down.
        file.take(picture.bytes + 1).read_to_end(&mut bytes).ok()?;
        (hash(&bytes) == picture.hash).then_some(bytes)
    }

    /// Removes the pictures that no event and no message names; returns how many bytes that were.
    pub fn sweep(&self, now: Timestamp) -> Result<u64, Error> {
        if !self.dir.is_dir() {
            return Ok(0);
        }
        let named = self.store.read(named_pictures)?;
        let mut removed = 0;
        for (path, found) in files(&self.dir) {
            let is_named = path
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| named.contains(name));
            let written = found.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
            let is_young = written.is_none_or(|at| now.duration_since(at) < YOUNG);
            if !is_named && !is_young && fs::remove_file(&path).is_ok() {
                removed += found.len();
            }
        }
        Ok(removed)
    }

    fn check_room(&self, bytes: u64) -> Result<(), Error> {
        let sizes: Vec<u64> = files(&self.dir).map(|(_, found)| found.len()).collect();
        match sizes.len() < MAX_PICTURES && sizes.iter().sum::<u64>() + bytes <= MAX_TOTAL_BYTES {
            true => Ok(()),
            false => Err(Error::TooManyPictures { count: sizes.len() }),
        }
    }
}

fn files(dir: &Path) -> impl Iterator<Item = (PathBuf, fs::Metadata)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
}

/// The name of every picture that an event or a message in a mailbox shows. A text in them that only looks like one
/// is counted too, which does no harm.
fn named_pictures(tx: &Connection) -> Result<HashSet<String>, Fault> {
    let mut found = HashSet::new();
    for sql in [
        "SELECT body FROM events WHERE body LIKE ?1",
        "SELECT body FROM injections WHERE body LIKE ?1",
    ] {
        let mut statement = tx.prepare(sql)?;
        let mut rows = statement.query([NAMED])?;
        while let Some(row) = rows.next()? {
            let body: String = row.get(0)?;
            let words = body.split(|char: char| !char.is_ascii_hexdigit());
            found.extend(words.filter(|word| word.len() == 64).map(str::to_owned));
        }
    }
    Ok(found)
}

fn hash(bytes: &[u8]) -> PictureHash {
    sha256(bytes).parse().expect("a SHA-256 has 64 hexadecimal digits")
}
