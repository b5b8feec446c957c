//! The directory an agent works in, behind a handle that cannot be walked out of.
//!
//! Invariants:
//! - No path, link, swap, mount or special file leads a file tool to anything outside the workspace, the
//!   directories added to it and the two read-only trees it was given (`walk`).
//! - A write is whole and durable, never in place, and never to a protected name (`write`, `protect`).
//! - Only regular files are opened; a FIFO cannot make a tool wait and a device cannot be touched.

mod error;
pub mod checkpoint;
pub mod git_status;
mod commits;
mod layout;
mod protect;
pub mod repository;
mod rules;
mod scan;
mod tree;
mod walk;
mod write;

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use windlass_core::layout::{AddedDirectory, Layout};
use windlass_core::policy::files;

pub(crate) use commits::CommitReader;
pub use error::{Error, OpenError};
pub use layout::OwnFiles;
pub use protect::{FileKind, Purpose};
pub use rules::RuleFiles;
pub use scan::{ScanEntry, ScanFilter, Scanned, Stop};
pub use tree::Tree;
pub use walk::Root;
pub use write::{Happened, Replacement};

use walk::{Parents, Spot, open_beneath};

/// The largest file that is hashed as a whole: seconds, not minutes.
pub const MAX_HASHED_BYTES: u64 = 256 << 20;

/// What lies in and around a workspace.
#[derive(Clone, Debug)]
pub struct Places {
    /// Where the files of the task are, as its agent sees them.
    pub layout: Layout,
    /// Directories that a person added.
    pub added: Vec<AddedDirectory>,
    /// The merged skills, shown read-only as `/skills`.
    pub skills: Option<PathBuf>,
    /// This task's traces and nobody else's, shown read-only among its files.
    pub trace: Option<PathBuf>,
    /// Our own data and configuration; where they are inside the workspace they are neither shown nor written.
    pub hidden: Vec<PathBuf>,
}

impl Default for Places {
    /// A service workspace with nothing around it.
    fn default() -> Self {
        Self {
            layout: Layout::service(),
            added: Vec::new(),
            skills: None,
            trace: None,
            hidden: Vec::new(),
        }
    }
}

/// The files one agent may touch.
#[derive(Debug)]
pub struct Workspace {
    root: OwnedFd,
    real: PathBuf,
    /// The workspace's names, by which an agent may call it in full.
    names: Vec<String>,
    places: Places,
    /// The names of what is hidden below the workspace.
    hidden: Vec<Vec<String>>,
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct Opened {
    /// Its path, links resolved, as an agent writes it.
    pub path: String,
    /// Which tree it is in.
    pub place: Root,
    /// Its size when it was opened.
    pub size: u64,
    pub file: File,
}

/// A file as it is right now, for a call that will replace it.
#[derive(Debug)]
pub struct Current {
    /// Its path, links resolved, relative to the workspace.
    pub path: String,
    /// Hash of its content; `None` when there is no file.
    pub hash: Option<String>,
    /// What it is beyond its content.
    pub kind: FileKind,
}

impl Workspace {
    /// Opens a directory as a workspace and makes the layout in it.
    pub fn open(directory: &Path, places: Places) -> Result<Self, OpenError> {
        let path = || directory.to_owned();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root =
            rustix::fs::open(directory, flags, Mode::empty()).map_err(|errno| match errno {
                Errno::NOENT => OpenError::NotThere { path: path() },
                Errno::NOTDIR => OpenError::NotADirectory { path: path() },
                other => OpenError::Io { path: path(), source: other.into() },
            })?;
        let real = std::fs::canonicalize(directory)
            .map_err(|source| OpenError::Io { path: path(), source })?;
        rustix::fs::accessat(&root, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())
            .map_err(|errno| OpenError::NotWritable { path: path(), source: errno.into() })?;
        let mut names: Vec<_> = real.to_str().map(ToOwned::to_owned).into_iter().collect();
        names.extend(directory.to_str().filter(|_| directory.is_absolute()).map(Into::into));
        names.push(places.layout.top().to_owned());
        let hidden = places.hidden.iter().filter_map(|path| names_below(&real, path)).collect();
        let workspace = Self { root, real, names, places, hidden };
        workspace.own_files().lay_out(directory)?;
        Ok(workspace)
    }

    /// The files of ours in it.
    pub fn own_files(&self) -> OwnFiles<'_> {
        OwnFiles { workspace: self }
    }

    /// Where the files of the task are, as its agent sees them.
    pub fn layout(&self) -> &Layout {
        &self.places.layout
    }

    /// What the file at a path is beyond its content; of one that cannot be reached nothing is known.
    pub fn kind(&self, path: &str) -> FileKind {
        self.walk(path, Parents::Imagine).map_or(FileKind::Ordinary, |spot| self.kind_of(&spot))
    }

    fn kind_of(&self, spot: &Spot) -> FileKind {
        let inner = spot.parts().join("/");
        let full = match spot.place {
            Root::Workspace => format!("{}/{inner}", self.real.display()),
            Root::Added(_) => spot.path(),
            Root::Skills | Root::Trace => return FileKind::Ordinary,
        };
        if files::is_secret(&full) {
            FileKind::Secret
        } else if files::changes_rules(&inner)
            || spot.place == Root::Workspace && self.rule_files().is_linked(&inner)
        {
            FileKind::Rule
        } else {
            FileKind::Ordinary
        }
    }

    /// Whether a path of the workspace is another one, or a directory above it.
    pub fn holds(&self, path: &str, other: &str) -> bool {
        let spot = |path| self.walk(path, Parents::Imagine).ok();
        let (Some(above), Some(below)) = (spot(path), spot(other)) else { return false };
        above.place == below.place && below.parts().starts_with(&above.parts())
    }

    /// The files with rules for agents.
    pub fn rule_files(&self) -> RuleFiles<'_> {
        RuleFiles { workspace: self }
    }

    /// Opens a regular file for reading.
    pub fn read(&self, path: &str) -> Result<Opened, Error> {
        self.open_at(&self.walk(path, Parents::MustExist)?)
    }

    /// The whole content of a file of at most `limit` bytes.
    pub fn read_all(&self, path: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let opened = self.read(path)?;
        read_bounded(opened, limit)
    }

    /// The file that a write on behalf of `purpose` would replace; refuses what may not be written.
    pub fn write_target(&self, path: &str, purpose: Purpose) -> Result<Current, Error> {
        let spot = self.walk(path, Parents::Imagine)?;
        if path.ends_with('/') {
            return Err(Error::IsDirectory { path: path.to_owned() });
        }
        self.refuse_writing(&spot, purpose)?;
        Ok(Current { path: spot.path(), hash: self.hash_at(&spot)?, kind: self.kind_of(&spot) })
    }

    /// Hash of a file's content; `None` when there is no file.
    pub fn hash(&self, path: &str) -> Result<Option<String>, Error> {
        match self.walk(path, Parents::MustExist) {
            Ok(spot) => self.hash_at(&spot),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether there is a directory at a path inside.
    pub fn is_directory(&self, path: &str) -> bool {
        self.walk(path, Parents::MustExist)
            .is_ok_and(|spot| spot.file_type == Some(FileType::Directory))
    }

    fn refuse_hidden(&self, parts: &[&str], asked: &str) -> Result<(), Error> {
        let hidden = self.hidden.iter().any(|names| {
            parts.len() >= names.len()
                && names.iter().zip(parts).all(|(name, part)| name.eq_ignore_ascii_case(part))
        });
        if hidden {
            let why = "it is windlass's own data or configuration";
            return Err(Error::Protected { path: asked.to_owned(), why });
        }
        Ok(())
    }

    /// The same for a path in full, in a directory that was added.
    fn refuse_hidden_path(&self, path: &str) -> Result<(), Error> {
        if self.places.hidden.iter().any(|hidden| Path::new(path).starts_with(hidden)) {
            let why = "it is windlass's own data or configuration";
            return Err(Error::Protected { path: path.to_owned(), why });
        }
        Ok(())
    }

    fn open_at(&self, spot: &Spot) -> Result<Opened, Error> {
        let path = spot.path();
        let kind = spot.file_type.ok_or_else(|| Error::NotFound { path: path.clone() })?;
        open_name((spot.directory.as_fd(), &spot.name), kind, path, spot.place)
    }

    fn hash_at(&self, spot: &Spot) -> Result<Option<String>, Error> {
        let mut opened = match self.open_at(spot) {
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
                Ok(0) => return Ok(Some(hex(hash))),
                Ok(bytes) => hash.update(&chunk[..bytes]),
                Err(source) => return Err(Error::Io { path: opened.path, source }),
            }
        }
    }
}

/// The hash that identifies a version of a file.
pub fn content_hash(content: &[u8]) -> String {
    hex(Sha256::new_with_prefix(content))
}

/// The same for content that comes in pieces.
pub(crate) fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a file that is at most `limit` bytes, also when it grows meanwhile.
pub(crate) fn read_bounded(opened: Opened, limit: u64) -> Result<Vec<u8>, Error> {
    let Opened { path, size, file, .. } = opened;
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
fn open_name(
    (directory, name): (BorrowedFd<'_>, &str),
    kind: FileType,
    path: String,
    place: Root,
) -> Result<Opened, Error> {
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
    Ok(Opened { path, place, size, file: file.into() })
}

/// What is wrong with opening this kind of file, if something is.
fn special(kind: FileType, path: &str) -> Option<Error> {
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

/// The names of `data` below `workspace`, where it is inside.
fn names_below(workspace: &Path, data: &Path) -> Option<Vec<String>> {
    let data = std::fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
    let below = data.strip_prefix(workspace).ok()?;
    let names: Vec<_> = below.iter().filter_map(|name| name.to_str().map(Into::into)).collect();
    (!names.is_empty()).then_some(names)
}
