//! One hash for all files of a workspace, so that a plan made for them is not carried out on others.
//!
//! What git ignores, git's own data and the files of tasks are left out. Of a file that is large, and of all files
//! once much has been read, the size and the time of its last change count in place of the content: a scan must not take
//! longer than about a second.

use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use windlass_core::hash::hex;
use windlass_core::layout::Ownership;

use super::{Error, ScanEntry, ScanFilter, Stop, Workspace, read_bounded};

/// The largest file whose content counts.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// How much content is read in all.
const MAX_BYTES: u64 = 128 << 20;
/// How many changed files are named.
const MAX_NAMED: usize = 20;

/// The files of a workspace at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeDigest {
    pub digest: String,
    /// Files that were changed at or after the time that was asked about, as an agent writes them; the first few.
    pub changed: Vec<String>,
}

impl Workspace {
    /// Looks at all files of the workspace. Names those that were changed at or after `since`.
    pub fn tree(&self, since: Option<Timestamp>) -> Result<TreeDigest, Error> {
        let mut look = ChangeScan { hash: Sha256::new(), bytes: 0, changed: Vec::new(), since };
        let shown = ScanFilter { hidden: true, ignored: false };
        let mut each = |entry: &ScanEntry<'_>| {
            let parts: Vec<_> = entry.inner().split('/').collect();
            if self.layout().ownership(&parts) == Ownership::Nobody {
                look.file(entry);
            }
            ControlFlow::Continue(())
        };
        self.scan(self.layout().top(), shown, &Stop::default(), &mut each)?;
        Ok(TreeDigest { digest: hex(&look.hash.finalize()), changed: look.changed })
    }
}

struct ChangeScan {
    hash: Sha256,
    bytes: u64,
    changed: Vec<String>,
    since: Option<Timestamp>,
}

impl ChangeScan {
    fn file(&mut self, entry: &ScanEntry<'_>) {
        self.part(entry.inner().as_bytes());
        let Some(opened) = entry.is_file().then(|| entry.open().ok()).flatten() else {
            // A link, or what cannot be read: that it is there counts.
            return self.part(b"?");
        };
        let Ok(about) = opened.file.metadata() else { return self.part(b"?") };
        let is_recent = self.since.is_some_and(|since| about.mtime() >= since.as_second());
        if is_recent && self.changed.len() < MAX_NAMED {
            self.changed.push(entry.path.to_owned());
        }
        self.part(&(about.mode() & 0o111).to_le_bytes());
        let is_read = opened.size <= MAX_FILE_BYTES && self.bytes + opened.size <= MAX_BYTES;
        self.bytes += opened.size;
        match is_read.then(|| read_bounded(opened, MAX_FILE_BYTES).ok()).flatten() {
            Some(content) => self.part(&content),
            None => {
                let stamp = [about.size().cast_signed(), about.mtime(), about.mtime_nsec()];
                stamp.iter().for_each(|number| self.part(&number.to_le_bytes()));
            }
        }
    }

    /// Adds one value, with its length, so that no two lists of values give the same bytes.
    fn part(&mut self, value: &[u8]) {
        self.hash.update((value.len() as u64).to_le_bytes());
        self.hash.update(value);
    }
}
