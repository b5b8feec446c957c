//! The kernel lock of one task tree: its holder drives the tree, and it ends with its holder.
//!
//! Invariants:
//! - The lock that counts is on the file that has the path now. A holder whose file was removed or
//!   replaced holds nothing (that is how a takeover works).
//! - A lock file is removed by its holder only, while it holds the lock, so that files do not accumulate.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// Attempts before a lock counts as held. A process that only looks holds it for microseconds, and a new
/// holder may not have written its id yet.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// A held lock; released when dropped or when the process ends.
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

/// Why a lock could not be acquired.
pub(crate) enum LockFailure {
    /// The process with this id holds it; 0 when it is unknown.
    Held(u32),
    Failed(io::Error),
}

impl From<io::Error> for LockFailure {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl Lock {
    /// Takes the lock at `path`, or says which process has it.
    pub(crate) fn take(path: &Path) -> Result<Self, LockFailure> {
        for _ in 0..ATTEMPTS {
            let mut file = open(path, OpenOptions::new().create(true).truncate(false))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, path) => {
                    sign(&mut file)?;
                    return Ok(Self { file, path: path.to_owned() });
                }
                // Its holder removed it between our opening and our locking.
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    if let Some(pid) = signature(&mut file).filter(Signature::is_alive) {
                        return Err(LockFailure::Held(pid.pid));
                    }
                    thread::sleep(PAUSE);
                }
                Err(error) => return Err(LockFailure::Failed(error.into())),
            }
        }
        Err(LockFailure::Held(0))
    }

    /// Takes the lock from whoever has it, by putting a new file in place of theirs.
    pub(crate) fn replace(path: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let fresh = path.with_extension(format!("{}-{count}.new", std::process::id()));
        let mut file = open(&fresh, OpenOptions::new().create(true).truncate(true))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        sign(&mut file)?;
        fs::rename(&fresh, path)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Who holds the lock at `path` now.
    pub(crate) fn holder(path: &Path) -> io::Result<Option<u32>> {
        for _ in 0..ATTEMPTS {
            // To look, reading is enough: the directory may be one that nobody can write to.
            let mut file = match File::open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            match flock(&file, FlockOperation::NonBlockingLockShared) {
                Ok(()) => return Ok(None),
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    if let Some(held) = signature(&mut file).filter(Signature::is_alive) {
                        return Ok(Some(held.pid));
                    }
                    thread::sleep(PAUSE);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(0))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.read(true).write(true).mode(0o600).open(path)
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (file.metadata(), fs::metadata(path)) else { return false };
    (held.dev(), held.ino()) == (there.dev(), there.ino())
}

/// What a holder writes into its lock file: its id and when it began, because ids repeat.
struct Signature {
    pid: u32,
    began: u64,
}

impl Signature {
    fn is_alive(&self) -> bool {
        began(self.pid) == Some(self.began)
    }
}

fn sign(file: &mut File) -> io::Result<()> {
    let pid = std::process::id();
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{pid} {}", began(pid).unwrap_or(0))
}

fn signature(file: &mut File) -> Option<Signature> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    let (pid, began) = text.trim_end_matches('\n').split_once(' ')?;
    Some(Signature { pid: pid.parse().ok()?, began: began.parse().ok()? })
}

/// When a process began, in the kernel's ticks; `None` when there is no such process.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and brackets; the fields after it do not.
    let fields = stat.rsplit_once(')')?.1;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}
