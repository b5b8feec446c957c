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
mod content;
mod hidden;
mod layout;
mod protect;
pub mod repository;
mod rule_guard;
mod rule_record;
mod rules;
mod scan;
mod sweep;
mod tree;
mod walk;
pub mod working_tree;
mod write;

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use windlass_core::layout::{AddedDirectory, Layout, WORKSPACE};
use windlass_core::policy::files;
use windlass_core::question::BoundFile;

pub(crate) use commits::CommitReader;
pub(crate) use content::read_bounded;
pub use content::{MAX_HASHED_BYTES, OpenFile, content_hash};
pub use error::{Error, OpenError};
use hidden::HiddenPlaces;
pub use layout::OwnFiles;
pub use protect::{FileKind, Purpose};
pub(crate) use rule_guard::RuleGuard;
pub use rules::RuleFiles;
pub use scan::{ScanEntry, ScanFilter, ScanOutcome, Stop};
pub use sweep::{Changes, Sweep};
pub use tree::TreeDigest;
pub use walk::Root;
pub use write::{ChangeState, Replacement};

use walk::{Parents, Spot};

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
    /// What is hidden there by device and number: a command may move the directory that it is in.
    hidden_files: Vec<(u64, u64)>,
}

/// A file as it is right now, for a call that will replace it.
#[derive(Debug)]
pub struct FileVersion {
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
        let hidden: Vec<_> =
            places.hidden.iter().filter_map(|path| names_below(&real, path)).collect();
        let hidden_files =
            hidden.iter().filter_map(|names| identity(&real.join(names.join("/")))).collect();
        let workspace = Self { root, real, names, places, hidden, hidden_files };
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

    /// What is at a path, as an approval to read it holds for it.
    pub fn bound_file(&self, path: &str) -> Option<BoundFile> {
        let spot = self.walk(path, Parents::Imagine).ok()?;
        Some(BoundFile { path: spot.path(), hash: spot.hash().ok().flatten() })
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

    /// Where a path in full is on the host, as far as its text says: in the workspace, by any name that this has, or in a
    /// directory that was added.
    pub(crate) fn host_path(&self, path: &str) -> Option<PathBuf> {
        let names = self.names.iter().map(String::as_str).chain([WORKSPACE]);
        let inside = names.filter_map(|name| Path::new(path).strip_prefix(name).ok());
        let mut inside = inside.map(|below| self.real.join(below));
        inside.next().or_else(|| {
            let is_added =
                self.places.added.iter().any(|added| Path::new(path).starts_with(&added.path));
            is_added.then(|| PathBuf::from(path))
        })
    }

    /// Where links on the way to a path in full lead; `None` where there is none, or what it leads to is shown to the agent.
    pub(crate) fn behind_links(&self, path: &str) -> Option<String> {
        let file = self.host_path(path)?;
        // Most texts name no file.
        let real = file.canonicalize().ok().filter(|real| *real != file)?;
        let shown = [&self.places.trace, &self.places.skills];
        if shown.into_iter().flatten().any(|shown| real.starts_with(shown)) {
            return None;
        }
        let real = match real.strip_prefix(&self.real) {
            Ok(below) => Path::new(self.layout().top()).join(below),
            Err(_) => real,
        };
        Some(real.to_str()?.to_owned())
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
    pub fn read(&self, path: &str) -> Result<OpenFile, Error> {
        self.walk(path, Parents::MustExist)?.open()
    }

    /// The whole content of a file of at most `limit` bytes.
    pub fn read_all(&self, path: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let opened = self.read(path)?;
        read_bounded(opened, limit)
    }

    /// The file that a write on behalf of `purpose` would replace; refuses what may not be written.
    pub fn write_target(&self, path: &str, purpose: Purpose) -> Result<FileVersion, Error> {
        let spot = self.walk(path, Parents::Imagine)?;
        if path.ends_with('/') {
            return Err(Error::IsDirectory { path: path.to_owned() });
        }
        self.refuse_writing(&spot, purpose)?;
        Ok(FileVersion { path: spot.path(), hash: spot.hash()?, kind: self.kind_of(&spot) })
    }

    /// Hash of a file's content; `None` when there is no file.
    pub fn hash(&self, path: &str) -> Result<Option<String>, Error> {
        match self.walk(path, Parents::MustExist) {
            Ok(spot) => spot.hash(),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether there is a directory at a path inside.
    pub fn is_directory(&self, path: &str) -> bool {
        self.walk(path, Parents::MustExist)
            .is_ok_and(|spot| spot.file_type == Some(FileType::Directory))
    }

    /// What agents do not see of it.
    fn hidden_places(&self) -> HiddenPlaces<'_> {
        HiddenPlaces { workspace: self }
    }
}

/// The device and the number of a file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// The names of `data` below `workspace`, where it is inside.
fn names_below(workspace: &Path, data: &Path) -> Option<Vec<String>> {
    let data = std::fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
    let below = data.strip_prefix(workspace).ok()?;
    let names: Vec<_> = below.iter().filter_map(|name| name.to_str().map(Into::into)).collect();
    (!names.is_empty()).then_some(names)
}
