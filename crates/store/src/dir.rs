//! The data directory: where each thing is. Only its owner can look inside (§15.15).

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Access, access};
use windlass_core::id::TaskId;

use crate::Error;

/// Only the user who runs windlass can enter.
const PRIVATE: u32 = 0o700;

/// The layout of a data directory.
#[derive(Clone, Debug)]
pub struct DataDir {
    root: PathBuf,
}

impl DataDir {
    /// Makes the directory at `root` and what belongs in it. A new or empty one is made private.
    pub fn prepare(root: &Path) -> Result<Self, Error> {
        let unusable =
            |source| Error::Directory { path: root.to_owned(), source: Arc::new(source) };
        let is_new = is_new(root);
        if root.exists() && !root.is_dir() {
            return Err(unusable(io::ErrorKind::NotADirectory.into()));
        }
        make(root).map_err(unusable)?;
        let root = fs::canonicalize(root).map_err(unusable)?;
        let dir = Self { root };
        if access(&dir.root, Access::WRITE_OK | Access::EXEC_OK).is_err() {
            // A database that exists can still be read.
            return Err(match dir.database().exists() {
                true => Error::read_only(&dir.database()),
                false => Error::DirectoryNotWritable { path: dir.root },
            });
        }
        if is_new {
            // A directory with other things in it keeps its mode: our files in it are private anyway.
            let _ = fs::set_permissions(&dir.root, fs::Permissions::from_mode(PRIVATE));
        }
        make(&dir.locks()).map_err(unusable)?;
        make(&dir.outputs()).map_err(unusable)?;
        // Earlier versions signalled mail through this file.
        let _ = fs::remove_file(dir.root.join("mail.bell"));
        Ok(dir)
    }

    /// The directory at `root`, as it is.
    pub(crate) fn open_existing(root: &Path) -> Result<Self, Error> {
        let root = fs::canonicalize(root).map_err(|source| Error::Directory {
            path: root.to_owned(),
            source: Arc::new(source),
        })?;
        Ok(Self { root })
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The SQLite database.
    pub fn database(&self) -> PathBuf {
        self.root.join("windlass.db")
    }

    /// Says that the database was made: one that is empty now has lost what was in it.
    pub(crate) fn creation_mark(&self) -> PathBuf {
        self.root.join("database.made")
    }

    /// Space that is held back for ending tasks when the disk is full.
    pub(crate) fn reserve(&self) -> PathBuf {
        self.root.join("reserve")
    }

    /// What the browsers of tasks are started again with.
    pub fn browser_directory(&self) -> PathBuf {
        self.root.join("browser")
    }

    /// One lock file per driven task tree.
    pub fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }

    pub(crate) fn lock_of(&self, root: TaskId) -> PathBuf {
        self.locks().join(format!("{root}.lock"))
    }

    /// Files with the whole of outputs that the database has only the beginning of.
    pub fn outputs(&self) -> PathBuf {
        self.root.join("outputs")
    }

    /// Pictures that were shown to models, named by their hashes.
    pub fn pictures(&self) -> PathBuf {
        self.root.join("pictures")
    }

    /// The content of evidence, named by its hash.
    pub fn evidence(&self) -> PathBuf {
        self.root.join("evidence")
    }

    /// Workspaces of tasks that were submitted without one.
    pub fn workspaces(&self) -> PathBuf {
        self.root.join("workspaces")
    }

    /// The merged skills that sandboxes see.
    pub fn skills(&self) -> PathBuf {
        self.root.join("skills")
    }

    /// Traces, one file per task.
    pub fn traces(&self) -> PathBuf {
        self.root.join("traces")
    }

    /// The sandbox helper.
    pub fn helper(&self) -> PathBuf {
        self.root.join("helper")
    }

    /// The server's bearer token.
    pub fn token(&self) -> PathBuf {
        self.root.join("token")
    }
}

fn is_new(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE).create(path)
}
