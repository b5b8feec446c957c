//! Makes changes of modes and times for commands, where the task is allowed to make them.
//!
//! Landlock knows no right for these calls. Where it alone guards files, the filter hands them over to the init,
//! which is not confined and makes the change in the command's place.
//!
//! Invariants:
//! - A file is opened once: what was checked is what is changed, whatever the path leads to by then.
//! - Only what lies in the workspace or in the command's own home is changed, and only by its owner.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
use windlass_helper::protocol::{Access, Setup};

use crate::sys;

/// The longest path that the kernel takes, with its end.
const MAX_PATH_BYTES: usize = 4096;

/// Where the calls of one command's processes are read from and answered.
pub struct FileChanges {
    listener: OwnedFd,
}

/// What may be changed, and whose it must be.
struct Scope {
    directories: Vec<PathBuf>,
    owner: u32,
}

enum Change {
    Mode(Mode),
    Times(Timestamps),
}

impl FileChanges {
    pub fn new(listener: OwnedFd) -> Self {
        Self { listener }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers one call. A caller that is gone needs no answer.
    pub fn answer(&self, setup: &Setup) {
        let Ok(call) = sys::next_call(&self.listener) else { return };
        let added = setup.binds.iter().filter(|bind| bind.access == Access::Writable);
        let added = added.map(|bind| &bind.source);
        let scope = Scope {
            directories: [&setup.workspace, &setup.home]
                .into_iter()
                .chain(added)
                .map(PathBuf::from)
                .collect(),
            owner: setup.uid,
        };
        let changed = read_call(&call).and_then(|(target, change)| {
            // A process that ended in the meantime may have left its number to another.
            if !sys::is_call_pending(&self.listener, call.id) {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            scope.check(&target)?;
            change.make(&target)
        });
        let errno = changed.err().map_or(0, |error| sys::errno(&error));
        sys::answer_call(&self.listener, call.id, errno);
    }
}

impl Scope {
    fn check(&self, target: &File) -> io::Result<()> {
        let path = fs::read_link(own_path(target))?;
        let is_inside = self.directories.iter().any(|directory| path.starts_with(directory));
        // We may be root, and the command is not.
        let is_owner = target.metadata()?.uid() == self.owner;
        match is_inside && is_owner {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::EPERM)),
        }
    }
}

impl Change {
    fn make(&self, target: &File) -> io::Result<()> {
        let path = own_path(target);
        match self {
            Self::Mode(mode) => rustix::fs::chmod(path, *mode)?,
            Self::Times(times) => rustix::fs::utimensat(CWD, path, times, AtFlags::empty())?,
        }
        Ok(())
    }
}

/// The file that a call is about, and what it wants.
fn read_call(call: &libc::seccomp_notif) -> io::Result<(File, Change)> {
    /// Set-id bits are refused by the filter.
    const MODE_BITS: u64 = 0o1777;
    let caller = Caller { pid: call.pid };
    let arguments = call.data.args;
    let mode = |at: usize| Change::Mode(Mode::from_raw_mode((arguments[at] & MODE_BITS) as u32));
    let number = libc::c_long::from(call.data.nr);
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_chmod {
        return Ok((caller.open_named(libc::AT_FDCWD, arguments[0], 0)?, mode(1)));
    }
    match number {
        libc::SYS_fchmod => Ok((caller.descriptor(arguments[0] as i32)?, mode(1))),
        libc::SYS_fchmodat => {
            Ok((caller.open_named(arguments[0] as i32, arguments[1], 0)?, mode(2)))
        }
        libc::SYS_utimensat => {
            let target = match arguments[1] {
                0 => caller.descriptor(arguments[0] as i32)?,
                path => caller.open_named(arguments[0] as i32, path, arguments[3] as i32)?,
            };
            Ok((target, Change::Times(caller.times(arguments[2])?)))
        }
        _ => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
    }
}

/// The process that makes a call, as `/proc` shows it.
struct Caller {
    pid: u32,
}

impl Caller {
    /// The file that a descriptor of the caller stands for.
    fn descriptor(&self, fd: i32) -> io::Result<File> {
        let name = match fd {
            libc::AT_FDCWD => format!("/proc/{}/cwd", self.pid),
            fd => format!("/proc/{}/fd/{fd}", self.pid),
        };
        open(CWD, &name, OFlags::empty())
    }

    /// The file that a path leads to for the caller. `flags` are those of `utimensat`.
    fn open_named(&self, directory: i32, address: u64, flags: i32) -> io::Result<File> {
        let path = self.text(address)?;
        if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            return self.descriptor(directory);
        }
        let last = match flags & libc::AT_SYMLINK_NOFOLLOW {
            0 => OFlags::empty(),
            _ => OFlags::NOFOLLOW,
        };
        // What is the caller's own there would be ours here.
        for own in ["/proc/self/", "/proc/thread-self/"] {
            if let Some(rest) = path.strip_prefix(own) {
                return open(CWD, &format!("/proc/{}/{rest}", self.pid), last);
            }
        }
        if path.starts_with('/') {
            return open(CWD, &path, last);
        }
        open(self.descriptor(directory)?.as_fd(), &path, last)
    }

    fn text(&self, address: u64) -> io::Result<String> {
        let mut bytes = [0; MAX_PATH_BYTES];
        let count = self.memory()?.read_at(&mut bytes, address)?;
        let text = CStr::from_bytes_until_nul(&bytes[..count])
            .map_err(|_| io::Error::from_raw_os_error(libc::ENAMETOOLONG))?;
        let text = text.to_str().map_err(|_| io::Error::from_raw_os_error(libc::EILSEQ))?;
        Ok(text.to_owned())
    }

    /// Two times as `utimensat` takes them; now, where there are none.
    fn times(&self, address: u64) -> io::Result<Timestamps> {
        let mut words = [0i64, UTIME_NOW, 0, UTIME_NOW];
        if address != 0 {
            let mut bytes = [0; 4 * size_of::<i64>()];
            self.memory()?.read_exact_at(&mut bytes, address)?;
            let (read, _) = bytes.as_chunks();
            words = [0, 1, 2, 3].map(|at| i64::from_ne_bytes(read[at]));
        }
        let time = |at: usize| Timespec { tv_sec: words[at], tv_nsec: words[at + 1] as _ };
        Ok(Timestamps { last_access: time(0), last_modification: time(2) })
    }

    fn memory(&self) -> io::Result<File> {
        File::open(format!("/proc/{}/mem", self.pid))
    }
}

fn open(directory: BorrowedFd<'_>, path: &str, more: OFlags) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | more;
    Ok(File::from(rustix::fs::openat(directory, path, flags, Mode::empty())?))
}

/// A path of our own that leads to this file and nowhere else.
fn own_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
