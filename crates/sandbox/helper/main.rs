//! The helper: enters a sandbox once, then starts, watches and ends commands in it for windlass.
//!
//! Two processes. The outer (this file) stays outside: when windlass is gone, by whatever cause, it ends
//! the inner and waits. The inner is process 1 of the sandbox and does the work. Descriptor 0 is read and
//! descriptor 1 written by the inner; the outer only looks at 0 for its end.
//!
//! Invariants:
//! - The outer learns of windlass's end by the end of descriptor 0. A parent-death signal would follow the
//!   thread that started it, and threads of a runtime come and go; between outer and inner it is used.
//! - Both have one thread, so entering namespaces and forking are sound.
//! - Nothing of ours reaches a command: every descriptor closes with the next program.

mod ahead;
mod command;
mod confine;
mod connection;
mod group;
mod hold;
mod inner;
mod minder;
mod output;
mod program;
#[path = "../src/protocol.rs"]
#[allow(dead_code, reason = "each side uses its half")]
mod protocol;
mod rights;
mod root;
mod sys;
mod talk;
#[path = "../src/wire.rs"]
mod wire;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use group::Group;
use protocol::{Isolation, Order, Reach, Report, Setup};

/// How long an inner without namespaces may take to end everything after windlass is gone.
const FAREWELL: Duration = Duration::from_secs(3);

fn main() {
    if std::env::args_os().nth(1).is_some_and(|word| word == "hold") {
        hold::hold();
    }
    sys::close_from(3, false);
    sys::setsid();
    sys::umask(0o022);
    sys::ignore(sys::SIGPIPE);
    // SAFETY: the starter gave us 0 and 1, and nothing else here owns them.
    let (from, to) = unsafe { (OwnedFd::from_raw_fd(0), OwnedFd::from_raw_fd(1)) };
    let outcome = first_order(&from).and_then(|setup| Outer::start(&setup, &from, &to));
    match outcome {
        Ok(outer) => outer.watch(&from),
        Err(error) => {
            let mut frame = Vec::new();
            let errno = sys::errno(&error);
            Report::Failed { stage: error.to_string(), errno }.write(&mut frame);
            let _ = sys::send(&to, &frame);
        }
    }
    std::mem::forget((from, to));
}

/// Reads exactly the setup, so that the inner finds the stream at the next message.
fn first_order(from: &OwnedFd) -> io::Result<Setup> {
    let mut buffer = vec![0; 4];
    read_exactly(from, &mut buffer)?;
    let length = u32::from_le_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]) as usize;
    if length > wire::MAX_FRAME_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "frame too long"));
    }
    buffer.resize(4 + length, 0);
    read_exactly(from, &mut buffer[4..])?;
    match wire::cut(&buffer)? {
        Some((frame, _)) => match Order::read(frame)? {
            Order::Setup(setup) => Ok(setup),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "setup must come first")),
        },
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn read_exactly(from: &OwnedFd, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match sys::receive(from, buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = &mut buffer[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

struct Outer {
    inner: i32,
    group: Group,
    isolation: Isolation,
    signals: OwnedFd,
}

impl Outer {
    fn start(setup: &Setup, from: &OwnedFd, to: &OwnedFd) -> io::Result<Self> {
        sys::block(&[sys::SIGCHLD]);
        let signals = sys::signals(&[sys::SIGCHLD])?;
        sys::set_process(sys::PR_SET_CHILD_SUBREAPER, 1)?;
        let mut group = match setup.isolation {
            Isolation::Container => {
                // What another helper in this container left behind ends before this one speaks.
                sys::kill(-1, sys::SIGKILL);
                Group::around(setup.memory_bytes, setup.processes)
            }
            Isolation::Host | Isolation::Namespaces | Isolation::Landlock => {
                Group::make(&setup.control_group, setup.memory_bytes, setup.processes)
            }
        };
        let (go, may_go) = sys::pipe(0)?;
        match sys::fork(namespaces(setup)) {
            Err(error) => {
                group.remove();
                Err(io::Error::new(
                    error.kind(),
                    Staged { stage: "make namespaces", errno: sys::errno(&error) },
                ))
            }
            Ok(0) => {
                drop(may_go);
                // The outer's end, by whatever cause, is the inner's.
                let _ = sys::set_process(sys::PR_SET_PDEATHSIG, sys::SIGKILL as u64);
                inner::run(setup, group, go, from, to)
            }
            Ok(inner) => {
                group.take_in(inner);
                group.bounded.tell(&may_go)?;
                Ok(Self { inner, group, isolation: setup.isolation, signals })
            }
        }
    }

    /// Waits for the end of windlass or of the inner, and sees to it that nothing is left.
    fn watch(self, from: &OwnedFd) {
        let mut orphaned_at: Option<Instant> = None;
        loop {
            let mut fds = [
                sys::PollFd { fd: from.as_raw_fd(), events: 0, revents: 0 },
                sys::PollFd { fd: self.signals.as_raw_fd(), events: sys::POLLIN, revents: 0 },
            ];
            if orphaned_at.is_some() {
                fds[0].fd = -1;
            }
            sys::wait(&mut fds, if orphaned_at.is_some() { 20 } else { -1 });
            sys::pending(&self.signals, |_, _| {});
            if fds[0].revents & (sys::POLLHUP | sys::POLLERR | sys::POLLNVAL) != 0 {
                orphaned_at = Some(Instant::now());
            }
            // An inner with namespaces takes everything with it; one without ends its commands first.
            let late = |since: Instant| {
                self.isolation == Isolation::Namespaces || since.elapsed() > FAREWELL
            };
            if orphaned_at.is_some_and(late) {
                sys::kill(self.inner, sys::SIGKILL);
            }
            if self.inner_ended() {
                break;
            }
        }
        self.end_the_rest();
        self.group.remove();
    }

    fn inner_ended(&self) -> bool {
        loop {
            match sys::reap() {
                Ok(Some(reaped)) if reaped.pid == self.inner => return true,
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(()) => return true,
            }
        }
    }

    /// What an inner that was killed left behind came to us.
    fn end_the_rest(&self) {
        let since = Instant::now();
        while since.elapsed() < FAREWELL {
            match sys::reap() {
                Err(()) => return,
                Ok(Some(_)) => {}
                Ok(None) => {
                    for pid in minder::descendants(sys::getpid()) {
                        sys::kill(pid, sys::SIGKILL);
                    }
                    sys::wait(&mut [], 2);
                }
            }
        }
    }
}

fn namespaces(setup: &Setup) -> u64 {
    if setup.isolation != Isolation::Namespaces {
        return 0;
    }
    let user = if sys::geteuid() == 0 { 0 } else { sys::CLONE_NEWUSER };
    let net = if setup.reach == Reach::Everything { 0 } else { sys::CLONE_NEWNET };
    let rest = sys::CLONE_NEWNS | sys::CLONE_NEWPID | sys::CLONE_NEWIPC | sys::CLONE_NEWUTS;
    user | net | rest
}

/// An error that remembers what was being done.
#[derive(Debug)]
struct Staged {
    stage: &'static str,
    errno: i32,
}

impl std::fmt::Display for Staged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.stage, io::Error::from_raw_os_error(self.errno))
    }
}

impl std::error::Error for Staged {}
