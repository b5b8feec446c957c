//! What can go wrong, one variant per thing a caller would do differently.

use std::io;
use std::path::PathBuf;

/// Why a sandbox could not be made, or a command not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The helper cannot be installed in the data directory.
    #[error("cannot write the helper to `{path}`")]
    Install {
        /// Where it should have gone.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The helper does not start at all.
    #[error("cannot start the helper `{path}`")]
    Spawn {
        /// Where it was installed.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The workspace or something mounted cannot be used.
    #[error("cannot use `{path}` in the sandbox")]
    Path {
        /// The path that cannot be used.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The sandbox cannot be made for a reason of configuration, not of the kernel's.
    #[error("cannot make the sandbox: {stage}")]
    Setup {
        /// What was being done.
        stage: String,
        /// What the system said.
        source: io::Error,
    },
    /// This machine offers neither namespaces nor Landlock.
    #[error(
        "no isolation is available here: namespaces are refused ({namespaces}) and Landlock is not \
         available ({landlock}); enable one of them (`sysctl user.max_user_namespaces`, \
         `kernel.unprivileged_userns_clone=1`, `kernel.apparmor_restrict_unprivileged_userns=0`, or \
         `landlock` in the kernel's `lsm=` list), use the docker sandbox, or choose `host` to run \
         without isolation"
    )]
    NoIsolation {
        /// Why namespaces do not work.
        namespaces: String,
        /// Why Landlock does not work.
        landlock: String,
    },
    /// The helper is of another version, or not a helper.
    #[error("the helper does not speak version {expected} of the protocol")]
    Protocol {
        /// What this side speaks.
        expected: u32,
        /// What was wrong.
        source: io::Error,
    },
    /// The command itself cannot be started: no such directory or program.
    #[error("cannot start command `{id}`: {stage}")]
    Start {
        /// The caller's name of the command.
        id: String,
        /// What was being done.
        stage: String,
        /// What the system said.
        source: io::Error,
    },
    /// The command is larger than the system takes.
    #[error("command `{id}` is {bytes} bytes long; at most {limit} can be passed to a program")]
    TooLong {
        /// The caller's name of the command.
        id: String,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// Too many commands run already.
    #[error("{limit} commands are already running in this sandbox")]
    TooMany {
        /// The most there may be.
        limit: usize,
    },
    /// No container engine answers.
    #[error("no container engine answers at `{engine}`")]
    Unreachable {
        /// Where it should be.
        engine: String,
        /// What the system said.
        source: io::Error,
    },
    /// The engine lacks the image.
    #[error("image `{image}` is not on this engine")]
    ImageMissing {
        /// The name of the image.
        image: String,
    },
    /// The engine refused.
    #[error("the container engine cannot {doing}")]
    Engine {
        /// What it was asked.
        doing: String,
        /// What it said.
        source: io::Error,
    },
    /// The container did not come up, tried again as often as it makes sense (ES-380).
    #[error("the container did not start in {attempts} attempts")]
    NoContainer {
        /// How often it was tried.
        attempts: usize,
        /// Why the last one failed.
        source: Box<Error>,
    },
    /// The container itself, not just a command in it, was ended for its use of memory (ES-381).
    #[error(
        "OOM: the container was ended because its memory limit of {} MiB was reached",
        limit_bytes >> 20
    )]
    ContainerOutOfMemory {
        /// The limit that was reached.
        limit_bytes: u64,
    },
    /// The engine's disk is full.
    #[error("the disk is full: the container engine cannot {doing}")]
    DiskFull {
        /// What it was asked.
        doing: String,
    },
    /// The sandbox ended before the command started.
    #[error("the sandbox is gone")]
    Lost,
}
