//! System calls that rustix does not offer, and short forms of those that several modules use.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use libc::{c_int, c_uint, signalfd_siginfo, sock_filter};
use rustix::event::{PollFd, Timespec};
use rustix::fs::OFlags;
use rustix::path::Arg;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

/// `fork` into new namespaces (`CLONE_NEW…`). `None` in the child.
pub fn fork(namespaces: c_int) -> io::Result<Option<Pid>> {
    let flags = namespaces | libc::SIGCHLD;
    // SAFETY: this process has one thread, and the child gets a copy of the memory with its own stack.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
        pid if pid < 0 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid as i32)),
    }
}

/// The system's number of an error, for the other side of a connection.
pub fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EPERM)
}

pub fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

pub fn read(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(fd, buffer)?)
}

pub fn write(fd: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(fd, bytes)?)
}

pub fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

/// Waits for any of `fds`, at most `timeout` (`None`: for ever). A failed wait reports no events.
pub fn wait(fds: &mut [PollFd<'_>], timeout: Option<Duration>) {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs() as _,
        tv_nsec: timeout.subsec_nanos() as _,
    });
    if rustix::event::poll(fds, timeout.as_ref()).is_err() {
        fds.iter_mut().for_each(PollFd::clear_revents);
    }
}

/// One look for a child that has ended.
pub enum ChildExit {
    Child(Pid, WaitStatus),
    NoneEnded,
    NoChildren,
}

/// Collects one ended child without waiting.
pub fn reap() -> ChildExit {
    match rustix::process::wait(WaitOptions::NOHANG) {
        Ok(Some((pid, status))) => ChildExit::Child(pid, status),
        Ok(None) => ChildExit::NoneEnded,
        Err(_) => ChildExit::NoChildren,
    }
}

/// Sends a signal; returns whether it could be sent.
pub fn kill(pid: Pid, signal: Signal) -> bool {
    rustix::process::kill_process(pid, signal).is_ok()
}

/// Sends a signal to every process that this one may signal, except itself.
pub fn kill_all_others(signal: Signal) {
    let _ = rustix::process::kill_process_group(Pid::INIT, signal);
}

/// Signals that are read from a descriptor instead of interrupting the process.
pub struct Signals(OwnedFd);

/// One signal: its number, and the descriptor it is about if the kernel names one.
pub struct SignalInfo {
    pub number: c_int,
    pub fd: RawFd,
}

impl Signals {
    /// Blocks exactly these signals and opens the descriptor that they are read from.
    pub fn open(numbers: &[c_int]) -> io::Result<Self> {
        let set = block_only(numbers);
        // SAFETY: the set lives through the call; a new descriptor belongs to nobody else.
        unsafe {
            match libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) {
                -1 => Err(io::Error::last_os_error()),
                fd => Ok(Self(OwnedFd::from_raw_fd(fd))),
            }
        }
    }

    /// Takes everything that has arrived.
    pub fn drain(&self) -> Vec<SignalInfo> {
        const RECORD: usize = size_of::<signalfd_siginfo>();
        let mut buffer = [0u8; RECORD * 32];
        let mut received = Vec::new();
        while let Ok(count) = read(&self.0, &mut buffer) {
            received.extend(buffer[..count].chunks_exact(RECORD).map(|record| {
                let field = |at: usize| {
                    record[at..].first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes))
                };
                SignalInfo {
                    number: field(offset_of!(signalfd_siginfo, ssi_signo)),
                    fd: field(offset_of!(signalfd_siginfo, ssi_fd)),
                }
            }));
            if count < buffer.len() {
                break;
            }
        }
        received
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Blocks exactly these signals.
pub fn block_only(numbers: &[c_int]) -> libc::sigset_t {
    // SAFETY: `sigemptyset` initializes the set, which lives through all calls.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for &number in numbers {
            libc::sigaddset(&raw mut set, number);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        set
    }
}

/// Gives signals their default effect. Programs inherit what is ignored.
pub fn reset_signals(numbers: impl IntoIterator<Item = c_int>) {
    numbers.into_iter().for_each(|number| set_effect(number, libc::SIG_DFL));
}

pub fn ignore_signal(number: c_int) {
    set_effect(number, libc::SIG_IGN);
}

fn set_effect(number: c_int, effect: libc::sighandler_t) {
    // SAFETY: only the two effects that run no code of ours.
    unsafe { libc::signal(number, effect) };
}

/// Closes the descriptors from `first` to `last`.
pub fn close_range(first: RawFd, last: RawFd) {
    if first <= last {
        for_range(first, last, 0);
    }
}

/// Has every descriptor from `first` on close with the next program. Allocates nothing.
pub fn close_on_exec_from(first: RawFd) {
    for_range(first, RawFd::MAX, libc::CLOSE_RANGE_CLOEXEC);
}

fn for_range(first: RawFd, last: RawFd, flags: c_uint) {
    /// Older kernels lack the call; there, descriptors are few and low.
    const MOST_WITHOUT_THE_CALL: RawFd = 1023;
    // SAFETY: callers own nothing in the range that they use afterwards.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, flags) == 0 {
            return;
        }
        for fd in first..=last.min(MOST_WITHOUT_THE_CALL) {
            match flags {
                0 => libc::close(fd),
                _ => libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC),
            };
        }
    }
}

/// Sets attributes (`MOUNT_ATTR_…`) on a mount and on everything mounted below it.
pub fn restrict_mounts(target: &Path, attributes: u64) -> io::Result<()> {
    set_mount_attributes(rustix::fs::CWD, target, 0, attributes, 0)
}

/// Maps the owners of a mount that is not attached yet by the mapping of a user namespace.
pub fn map_owners(mount: BorrowedFd<'_>, namespace: RawFd) -> io::Result<()> {
    let (flags, attributes) = (libc::AT_EMPTY_PATH, libc::MOUNT_ATTR_IDMAP);
    set_mount_attributes(mount, Path::new(""), flags, attributes, namespace as u64)
}

fn set_mount_attributes(
    directory: BorrowedFd<'_>,
    target: &Path,
    flags: c_int,
    attributes: u64,
    userns_fd: u64,
) -> io::Result<()> {
    let request = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd };
    let done = target.into_with_c_str(|target| {
        // SAFETY: path and request live through the call, and the size is the request's.
        Ok(unsafe {
            libc::syscall(
                libc::SYS_mount_setattr,
                directory.as_raw_fd(),
                target.as_ptr(),
                flags | libc::AT_RECURSIVE,
                &raw const request,
                size_of_val(&request),
            )
        })
    })?;
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Installs a filter program, for good. If it hands calls over, returns what they are read from.
pub fn install_filter(program: &[sock_filter], hands_over: bool) -> io::Result<Option<OwnedFd>> {
    let program = libc::sock_fprog {
        len: program.len() as libc::c_ushort,
        filter: program.as_ptr().cast_mut(),
    };
    let flags = if hands_over { libc::SECCOMP_FILTER_FLAG_NEW_LISTENER } else { 0 };
    // SAFETY: the program lives through the call, which only reads it; a new descriptor belongs to nobody else.
    unsafe {
        match libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &program) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(hands_over.then(|| OwnedFd::from_raw_fd(fd as RawFd))),
        }
    }
}

/// The next call that was handed over.
pub fn next_call(listener: &OwnedFd) -> io::Result<libc::seccomp_notif> {
    // SAFETY: a record of numbers, which the kernel wants to be zero, and which it fills.
    unsafe {
        let mut call: libc::seccomp_notif = std::mem::zeroed();
        let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
        match libc::ioctl(listener.as_raw_fd(), request, &raw mut call) {
            0 => Ok(call),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Whether the caller still waits.
pub fn is_call_pending(listener: &OwnedFd, id: u64) -> bool {
    // SAFETY: the kernel reads one number.
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0
    }
}

/// Lets a call end with this error, or well with 0.
pub fn answer_call(listener: &OwnedFd, id: u64, errno: c_int) {
    let answer = libc::seccomp_notif_resp { id, val: 0, error: -errno, flags: 0 };
    // SAFETY: the kernel reads one record.
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer);
    }
}
