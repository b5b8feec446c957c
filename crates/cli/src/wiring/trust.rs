//! Which project files a person has approved, by content (§15.13). A changed file is unknown again.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::config::read::content_hash;
use crate::config::{File, Trust};

/// One approved content hash a line.
fn list(data: &Path) -> PathBuf {
    data.join("trusted")
}

/// Whether a person has approved this file as it is now.
pub fn of(data: &Path, file: &File) -> Trust {
    let approved = std::fs::read_to_string(list(data)).unwrap_or_default();
    let hash = content_hash(&file.text);
    let known = approved.lines().any(|line| line.split(' ').next() == Some(hash.as_str()));
    if known { Trust::Approved } else { Trust::Unknown }
}

/// Approves a file as it is now.
pub fn approve(data: &Path, file: &File) -> io::Result<()> {
    std::fs::create_dir_all(data)?;
    let mut list = OpenOptions::new().create(true).append(true).open(list(data))?;
    writeln!(list, "{} {}", content_hash(&file.text), file.path.display())
}
