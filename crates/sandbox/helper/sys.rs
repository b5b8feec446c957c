//! The kernel as the helper uses it: raw calls with errors as `io::Error`, owned descriptors, nothing else.
//!
//! The C library is linked for its call wrappers only; every structure is laid out here.

use std::ffi::{CString, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

unsafe extern "C" {
    pub safe fn getpid() -> c_int;
    pub safe fn geteuid() -> c_uint;
    pub safe fn getegid() -> c_uint;
    pub safe fn setsid() -> c_int;
    pub safe fn umask(mask: c_uint) -> c_uint;
    pub safe fn _exit(code: c_int) -> !;
    pub safe fn kill(pid: c_int, signal: c_int) -> c_int;
    pub safe fn dup2(from: c_int, to: c_int) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn prctl(option: c_int, ...) -> c_int;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    fn ioctl(fd: c_int, request: c_ulong, ...) -> c_int;
    fn read(fd: c_int, buffer: *mut c_void, count: usize) -> isize;
    fn write(fd: c_int, buffer: *const c_void, count: usize) -> isize;
    fn pipe2(fds: *mut c_int, flags: c_int) -> c_int;
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, fds: *mut c_int) -> c_int;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn poll(fds: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
    fn sigprocmask(how: c_int, set: *const SigSet, old: *mut SigSet) -> c_int;
    fn signalfd(fd: c_int, set: *const SigSet, flags: c_int) -> c_int;
    fn signal(number: c_int, action: usize) -> usize;
    fn mount(
        source: *const c_char,
        target: *const c_char,
        kind: *const c_char,
        flags: c_ulong,
        data: *const c_char,
    ) -> c_int;
    fn umount2(target: *const c_char, flags: c_int) -> c_int;
    fn sethostname(name: *const c_char, length: usize) -> c_int;
    fn setrlimit(resource: c_uint, limit: *const [u64; 2]) -> c_int;
    fn getrlimit(resource: c_uint, limit: *mut [u64; 2]) -> c_int;
}

pub const EPERM: i32 = 1;
pub const ENOENT: i32 = 2;
pub const EAGAIN: i32 = 11;
pub const EACCES: i32 = 13;
pub const ENOSYS: i32 = 38;
pub const EAFNOSUPPORT: i32 = 97;

pub const SIGKILL: i32 = 9;
pub const SIGPIPE: i32 = 13;
pub const SIGTERM: i32 = 15;
pub const SIGCHLD: i32 = 17;
pub const SIGCONT: i32 = 18;
pub const SIGSTOP: i32 = 19;
pub const SIGIO: i32 = 29;
/// The queued signal that tells the order of writes; a real-time one, so that none is merged.
pub const SIGWRITTEN: i32 = 40;

pub const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") { 0o200_000 } else { 0o40_000 };
pub const O_NONBLOCK: i32 = 0o4000;
pub const O_CLOEXEC: i32 = 0o2_000_000;

pub const POLLIN: i16 = 1;
pub const POLLOUT: i16 = 4;
pub const POLLERR: i16 = 8;
pub const POLLHUP: i16 = 16;
pub const POLLNVAL: i16 = 32;

pub const CLONE_NEWNS: u64 = 0x2_0000;
pub const CLONE_NEWUTS: u64 = 0x400_0000;
pub const CLONE_NEWIPC: u64 = 0x800_0000;
pub const CLONE_NEWUSER: u64 = 0x1000_0000;
pub const CLONE_NEWPID: u64 = 0x2000_0000;
pub const CLONE_NEWNET: u64 = 0x4000_0000;

pub const MS_RDONLY: u64 = 1;
pub const MS_NOSUID: u64 = 2;
pub const MS_NODEV: u64 = 4;
pub const MS_NOEXEC: u64 = 8;
pub const MS_REMOUNT: u64 = 32;
pub const MS_BIND: u64 = 4096;
pub const MS_REC: u64 = 16384;
pub const MS_SLAVE: u64 = 1 << 19;

/// Call numbers that differ between architectures.
pub mod number {
    #[cfg(target_arch = "x86_64")]
    mod arch {
        pub const SENDMSG: i64 = 46;
        pub const RECVMSG: i64 = 47;
        pub const CLONE: i64 = 56;
        pub const SETGROUPS: i64 = 116;
        pub const SETRESUID: i64 = 117;
        pub const SETRESGID: i64 = 119;
        pub const CAPSET: i64 = 126;
        pub const PIVOT_ROOT: i64 = 155;
        pub const SECCOMP: i64 = 317;
        pub const SCHED_GETATTR: i64 = 315;
        pub const SCHED_GETAFFINITY: i64 = 204;
        pub const IOPRIO_GET: i64 = 252;
    }
    #[cfg(target_arch = "aarch64")]
    mod arch {
        pub const SENDMSG: i64 = 211;
        pub const RECVMSG: i64 = 212;
        pub const CLONE: i64 = 220;
        pub const SETGROUPS: i64 = 159;
        pub const SETRESUID: i64 = 147;
        pub const SETRESGID: i64 = 149;
        pub const CAPSET: i64 = 91;
        pub const PIVOT_ROOT: i64 = 41;
        pub const SECCOMP: i64 = 277;
        pub const SCHED_GETATTR: i64 = 275;
        pub const SCHED_GETAFFINITY: i64 = 123;
        pub const IOPRIO_GET: i64 = 31;
    }
    pub use arch::*;
    pub const CLOSE_RANGE: i64 = 436;
    pub const MOUNT_SETATTR: i64 = 442;
    pub const LANDLOCK_CREATE_RULESET: i64 = 444;
    pub const LANDLOCK_ADD_RULE: i64 = 445;
    pub const LANDLOCK_RESTRICT_SELF: i64 = 446;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PollFd {
    pub fd: c_int,
    pub events: i16,
    pub revents: i16,
}

#[repr(C)]
pub struct SigSet([u64; 16]);

impl SigSet {
    pub fn of(signals: &[i32]) -> Self {
        let mut set = [0; 16];
        for signal in signals {
            set[0] |= 1 << (signal - 1);
        }
        Self(set)
    }
}

pub fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

pub fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(EPERM)
}

/// A raw call; each caller says why its arguments are sound.
///
/// # Safety
/// Arguments must be what the call expects.
pub unsafe fn raw(number: i64, arguments: [usize; 5]) -> io::Result<usize> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: promised by the caller.
    let result = unsafe { syscall(number as c_long, a, b, c, d, e) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

pub fn text(value: impl AsRef<[u8]>) -> io::Result<CString> {
    CString::new(value.as_ref()).map_err(|_| io::Error::from_raw_os_error(22))
}

pub fn path(value: &Path) -> io::Result<CString> {
    text(value.as_os_str().as_bytes())
}

/// `fork` with flags. Sound because this process has one thread and shares no memory with the child.
pub fn fork(flags: u64) -> io::Result<i32> {
    // SAFETY: no stack, no thread-local areas and no memory are shared: it is a fork.
    unsafe { raw(number::CLONE, [(flags | SIGCHLD as u64) as usize, 0, 0, 0, 0]) }
        .map(|pid| pid as i32)
}

pub fn set_process(option: c_int, value: c_ulong) -> io::Result<()> {
    // SAFETY: only options that take numbers are used.
    check(unsafe { prctl(option, value, 0 as c_ulong, 0 as c_ulong, 0 as c_ulong) }).map(drop)
}

pub const PR_SET_PDEATHSIG: c_int = 1;
pub const PR_SET_DUMPABLE: c_int = 4;
pub const PR_CAPBSET_DROP: c_int = 24;
pub const PR_SET_SECUREBITS: c_int = 28;
pub const PR_SET_CHILD_SUBREAPER: c_int = 36;
pub const PR_SET_NO_NEW_PRIVS: c_int = 38;
pub const PR_CAP_AMBIENT: c_int = 47;

pub fn receive(fd: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is as long as said.
    let count = unsafe { read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    if count < 0 { Err(io::Error::last_os_error()) } else { Ok(count as usize) }
}

pub fn send(fd: &impl AsRawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the buffer is as long as said.
    let count = unsafe { write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    if count < 0 { Err(io::Error::last_os_error()) } else { Ok(count as usize) }
}

pub fn pipe(flags: i32) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors.
    check(unsafe { pipe2(fds.as_mut_ptr(), flags | O_CLOEXEC) })?;
    // SAFETY: both were just made and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// A pair of connected packet sockets.
pub fn packets() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors.
    check(unsafe { socketpair(1, 5 | O_CLOEXEC, 0, fds.as_mut_ptr()) })?;
    // SAFETY: both were just made and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

pub fn set_nonblocking(fd: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: F_GETFL and F_SETFL take numbers.
    let flags = check(unsafe { fcntl(fd.as_raw_fd(), 3) })?;
    check(unsafe { fcntl(fd.as_raw_fd(), 4, flags | O_NONBLOCK) }).map(drop)
}

/// Has every write into this pipe queue one [`SIGWRITTEN`] that names the descriptor.
pub fn announce_writes(fd: &impl AsRawFd) -> io::Result<()> {
    const F_GETFL: c_int = 3;
    const F_SETFL: c_int = 4;
    const F_SETOWN: c_int = 8;
    const F_SETSIG: c_int = 10;
    const O_ASYNC: c_int = 0o20_000;
    let fd = fd.as_raw_fd();
    // SAFETY: all of these take numbers.
    unsafe {
        check(fcntl(fd, F_SETOWN, getpid()))?;
        check(fcntl(fd, F_SETSIG, SIGWRITTEN))?;
        let flags = check(fcntl(fd, F_GETFL))?;
        check(fcntl(fd, F_SETFL, flags | O_ASYNC)).map(drop)
    }
}

/// Gives a pipe room for more writes; the default stays where the system refuses.
pub fn widen(fd: &impl AsRawFd, bytes: c_int) {
    // SAFETY: F_SETPIPE_SZ takes a number.
    let _ = unsafe { fcntl(fd.as_raw_fd(), 1031, bytes) };
}

pub fn interface_flags(fd: &impl AsRawFd, request: &mut [u8; 40], set: bool) -> io::Result<()> {
    // SAFETY: SIOCGIFFLAGS and SIOCSIFFLAGS take an `ifreq`, which is 40 bytes.
    check(unsafe { ioctl(fd.as_raw_fd(), if set { 0x8914 } else { 0x8913 }, request.as_mut_ptr()) })
        .map(drop)
}

/// A child that ended.
pub struct Reaped {
    pub pid: i32,
    pub status: i32,
}

/// Takes one ended child without waiting. `Ok(None)`: children live. `Err`: there is no child at all.
pub fn reap() -> Result<Option<Reaped>, ()> {
    let mut status = 0;
    // SAFETY: the status has room.
    match unsafe { waitpid(-1, &raw mut status, 1) } {
        0 => Ok(None),
        pid if pid > 0 => Ok(Some(Reaped { pid, status })),
        _ => Err(()),
    }
}

/// Waits until this child has ended.
pub fn wait_for(pid: i32) {
    let mut status = 0;
    // SAFETY: the status has room.
    while unsafe { waitpid(pid, &raw mut status, 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Waits for any of `fds`, at most `timeout_ms` (negative: for ever).
/// What to wait for in order to read.
pub fn readable(fd: &impl AsRawFd) -> PollFd {
    PollFd { fd: fd.as_raw_fd(), events: POLLIN, revents: 0 }
}

pub fn wait(fds: &mut [PollFd], timeout_ms: i32) {
    // SAFETY: the slice is as long as said.
    if unsafe { poll(fds.as_mut_ptr(), fds.len() as c_ulong, timeout_ms) } < 0 {
        fds.iter_mut().for_each(|fd| fd.revents = 0);
    }
}

pub fn block(signals: &[i32]) {
    // SAFETY: the set lives through the call. SIG_BLOCK is 0.
    unsafe { sigprocmask(0, &SigSet::of(signals), std::ptr::null_mut()) };
}

/// Blocks these and no others.
pub fn block_only(signals: &[i32]) {
    // SAFETY: the set lives through the call. SIG_SETMASK is 2.
    unsafe { sigprocmask(2, &SigSet::of(signals), std::ptr::null_mut()) };
}

/// Has signals do what they do by themselves; what is ignored here would be ignored in programs started.
pub fn heed(numbers: impl Iterator<Item = i32>) {
    for number in numbers {
        // SAFETY: SIG_DFL is 0.
        unsafe { signal(number, 0) };
    }
}

pub fn ignore(number: i32) {
    // SAFETY: SIG_IGN is 1.
    unsafe { signal(number, 1) };
}

/// A descriptor on which these (blocked) signals are read.
pub fn signals(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: the set lives through the call.
    let fd = check(unsafe { signalfd(-1, &SigSet::of(signals), O_NONBLOCK | O_CLOEXEC) })?;
    // SAFETY: just made.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reads pending signals as (number, descriptor).
pub fn pending(fd: &OwnedFd, mut each: impl FnMut(i32, RawFd)) {
    const RECORD: usize = 128;
    let mut buffer = [0u8; RECORD * 32];
    while let Ok(count) = receive(fd, &mut buffer) {
        for record in buffer[..count].chunks_exact(RECORD) {
            let word = |at: usize| {
                i32::from_ne_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
            };
            each(word(0), word(20));
        }
        if count < buffer.len() {
            return;
        }
    }
}

pub fn attach(source: &Path, target: &Path, kind: &str, flags: u64, data: &str) -> io::Result<()> {
    let (source, target, kind, data) = (path(source)?, path(target)?, text(kind)?, text(data)?);
    let data = if data.is_empty() { std::ptr::null() } else { data.as_ptr() };
    // SAFETY: all strings live through the call.
    check(unsafe { mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data) }).map(drop)
}

pub fn detach(target: &Path) -> io::Result<()> {
    const MNT_DETACH: c_int = 2;
    let target = path(target)?;
    // SAFETY: the string lives through the call.
    check(unsafe { umount2(target.as_ptr(), MNT_DETACH) }).map(drop)
}

pub fn pivot_root(new: &Path, old: &Path) -> io::Result<()> {
    let (new, old) = (path(new)?, path(old)?);
    // SAFETY: both strings live through the call.
    unsafe {
        raw(number::PIVOT_ROOT, [new.as_ptr() as usize, old.as_ptr() as usize, 0, 0, 0]).map(drop)
    }
}

/// Sets attributes on a mount and all below it.
pub fn restrict_mounts(target: &Path, attributes: u64) -> io::Result<()> {
    const AT_FDCWD: usize = -100isize as usize;
    const AT_RECURSIVE: usize = 0x8000;
    let target = path(target)?;
    let request = [attributes, 0, 0, 0];
    // SAFETY: `request` is a `mount_attr` of 32 bytes.
    unsafe {
        raw(
            number::MOUNT_SETATTR,
            [AT_FDCWD, target.as_ptr() as usize, AT_RECURSIVE, request.as_ptr() as usize, 32],
        )
        .map(drop)
    }
}

pub fn name_host(name: &str) {
    // SAFETY: the text is as long as said. A host without a name of its own works as well.
    unsafe { sethostname(name.as_ptr().cast(), name.len()) };
}

/// Raises how many files this process may have open as far as it goes; returns what it was.
pub fn raise_open_files() -> [u64; 2] {
    let mut before = [0u64; 2];
    // SAFETY: both are `rlimit` structures; 7 is RLIMIT_NOFILE.
    unsafe {
        if getrlimit(7, &raw mut before) == 0 {
            let raised = [before[1], before[1]];
            setrlimit(7, &raw const raised);
        }
    }
    before
}

/// Puts the limit on open files back.
pub fn restore_open_files(before: [u64; 2]) {
    // SAFETY: an `rlimit` structure; 7 is RLIMIT_NOFILE.
    unsafe { setrlimit(7, &raw const before) };
}

/// A limit as it is, soft and hard.
pub fn limit_of(resource: u32) -> Option<[u64; 2]> {
    let mut now = [0u64; 2];
    // SAFETY: an `rlimit` structure.
    (unsafe { getrlimit(resource, &raw mut now) } == 0).then_some(now)
}

/// Lowers a limit; one that is lower already stays.
pub fn limit(resource: u32, value: u64) {
    let mut now = [0u64; 2];
    // SAFETY: both are `rlimit` structures.
    unsafe {
        if getrlimit(resource, &raw mut now) == 0 {
            let lowered = [value.min(now[1]), value.min(now[1])];
            setrlimit(resource, &raw const lowered);
        }
    }
}

/// Closes every descriptor from `first` on, or marks it to close with the next program.
pub fn close_from(first: u32, on_exec: bool) {
    const CLOEXEC: usize = 4;
    // SAFETY: closing is all it does; callers own nothing above.
    let done = unsafe {
        raw(
            number::CLOSE_RANGE,
            [first as usize, u32::MAX as usize, if on_exec { CLOEXEC } else { 0 }, 0, 0],
        )
    };
    if done.is_err() {
        for fd in first as c_int..1024 {
            // SAFETY: as above; F_SETFD with FD_CLOEXEC. Unused numbers are refused harmlessly.
            unsafe {
                if on_exec {
                    fcntl(fd, 2, 1);
                } else if fcntl(fd, 1) >= 0 {
                    drop(OwnedFd::from_raw_fd(fd));
                }
            }
        }
    }
}

/// Has the next program find this descriptor under that number.
pub fn pass_on(fd: RawFd, number: RawFd) {
    if fd != number {
        dup2(fd, number);
    } else {
        // SAFETY: F_SETFD with no flag set.
        unsafe { fcntl(fd, 2, 0) };
    }
}

/// Closes the descriptors from `first` to `last`, both included.
pub fn close_span(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    // SAFETY: closing is all it does; the caller owns nothing in between.
    if unsafe { raw(number::CLOSE_RANGE, [first as usize, last as usize, 0, 0, 0]) }.is_err() {
        for fd in first..=last {
            // SAFETY: as above, and it is open.
            unsafe {
                if fcntl(fd, 1) >= 0 {
                    drop(OwnedFd::from_raw_fd(fd));
                }
            }
        }
    }
}
