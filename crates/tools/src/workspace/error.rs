//! Why a path cannot be used, in words the model can act on.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

/// Why a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is nothing at the path.
    #[error("workspace `{path}` does not exist")]
    NotThere {
        /// The path as given.
        path: PathBuf,
    },
    /// There is something else at the path.
    #[error("workspace `{path}` is not a directory")]
    NotADirectory {
        /// The path as given.
        path: PathBuf,
    },
    /// The directory cannot be written to.
    #[error("workspace `{path}` is not writable")]
    NotWritable {
        /// The path as given.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A name that we need for a directory of ours is taken.
    #[error("`{name}` in workspace `{path}` is in the way: it must be a directory")]
    InTheWay { path: PathBuf, name: String },
    /// Anything else the system refused.
    #[error("cannot open workspace `{path}`")]
    Io {
        /// The path as given.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Why one path in a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It can name no file.
    #[error("`{path}` is not a usable path: {why}")]
    BadPath {
        /// The path as given, made printable.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It leads out.
    #[error(
        "`{path}` is outside the workspace. Only files under {top} (and, for reading, /skills) can be \
         reached; give a path relative to {start}"
    )]
    Outside {
        /// The path as given.
        path: String,
        /// The top of the workspace.
        top: String,
        /// Where the agent started.
        start: String,
    },
    /// Something else is mounted there.
    #[error("`{path}` is a mount inside the workspace; file tools do not follow mounts")]
    Mount { path: String },
    /// There is nothing there.
    #[error("`{path}` does not exist")]
    NotFound { path: String },
    /// It is a directory where a file is wanted.
    #[error("`{path}` is a directory")]
    IsDirectory { path: String },
    /// A file is where a directory is wanted.
    #[error("`{path}` is not a directory")]
    NotADirectory { path: String },
    /// It is neither file nor directory.
    #[error("`{path}` is {what}, not a regular file; file tools do not open it")]
    Special {
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// File tools never write there.
    #[error("`{path}` cannot be written by file tools: {why}")]
    Protected { path: String, why: &'static str },
    /// File tools neither read nor write there.
    #[error("`{path}` cannot be read or written by file tools: {why}")]
    Hidden { path: String, why: &'static str },
    /// It is more than is read at once.
    #[error("`{path}` is too large: {size} bytes, and at most {limit} are handled")]
    TooLarge { path: String, size: u64, limit: u64 },
    /// It is not what it was a moment ago.
    #[error("`{path}` has changed since you last read it; read it again, then repeat the change")]
    Changed { path: String },
    /// Links point at links for ever.
    #[error("`{path}` goes through too many symbolic links")]
    TooManyLinks { path: String },
    /// The system refused.
    #[error("`{path}`: {}", system_words(source))]
    Io {
        path: String,
        /// What the system says.
        source: io::Error,
    },
}

/// What the system said, without the number that tells a model nothing.
fn system_words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

impl Error {
    /// What the system's refusal at `path` means.
    pub(super) fn at(path: &str, errno: Errno) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::NOENT => Self::NotFound { path },
            Errno::NOTDIR => Self::NotADirectory { path },
            Errno::ISDIR => Self::IsDirectory { path },
            // A name that was not a link a moment ago is a link now: another process replaced it.
            Errno::LOOP => Self::Changed { path },
            Errno::XDEV => Self::Mount { path },
            Errno::NAMETOOLONG => Self::BadPath { path, why: "it is too long" },
            other => Self::Io { path, source: other.into() },
        }
    }
}
