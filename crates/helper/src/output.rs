//! What a command writes, in the order it was written, across both of its streams.
//!
//! Why: an error message makes sense only beside the line it belongs to, and a person or model must know
//! which of the two streams a line came from. Two pipes lose the order, one shared pipe loses the stream.
//!
//! How: each stream is a pipe in packet mode (`O_DIRECT`), so one read gives one write. Each write queues one
//! signal that names its pipe (`F_SETSIG`), and the queue keeps their order: the next signal says whose packet
//! is next. All of this is in this file; without those signals the rest works the same.
//!
//! The order is less exact where a write comes without a signal (a program that opened `/dev/stderr` again, a
//! system without these signals): the stream is then read after a moment. A signal that comes later than that
//! is discounted, so that it does not stand for a later write. A program that fills a pipe queues one signal
//! more when it waits for room; then, too, neighbouring writes may change places.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::fs::{Gid, OFlags, Uid};
use rustix::pipe::PipeFlags;
use windlass_helper::protocol::MAX_CHUNK_BYTES;

use crate::sys::{self, Signals};

/// The signal of a write. A real-time one, so that no two of them are merged.
pub const WRITE_SIGNAL: libc::c_int = 40;

/// The largest packet a pipe keeps whole.
const PACKET: usize = 4096;

/// Room for 256 packets: a program that writes without waiting finds as many writes accepted. It is the
/// most an ordinary user may ask for.
const PIPE_BYTES: usize = 256 * PACKET;

/// How long to wait for the signal of a write. The writer queues it right after the bytes, but a busy machine
/// may run something else in between.
const SIGNAL_TIMEOUT: Duration = Duration::from_millis(20);

/// The most signals remembered of one stream. No more writes than this wait in a pipe, so one more signal
/// only says that the writer waits for room.
const MAX_SIGNALS: usize = PIPE_BYTES / PACKET;

/// The user and group that own a pipe.
pub type Owner = (Uid, Gid);

pub struct Output {
    pipes: [Option<OwnedFd>; 2],
    /// Whose write is next, one entry for each signal.
    order: VecDeque<usize>,
    /// Since when there has been something to read without a signal.
    unsignalled: [Option<Instant>; 2],
    /// How many writes were read before their signal came.
    read_ahead: [usize; 2],
    /// Whether this system signals writes.
    signalled: bool,
}

impl Output {
    /// Both pipes, with the ends that the command gets. They belong to `owner`, who may open them by name.
    pub fn open(signalled: bool, owner: Option<Owner>) -> io::Result<(Self, [OwnedFd; 2])> {
        let pipe = || -> io::Result<(OwnedFd, OwnedFd)> {
            let flags = if signalled { PipeFlags::DIRECT } else { PipeFlags::empty() };
            let (from, to) = rustix::pipe::pipe_with(flags | PipeFlags::CLOEXEC)?;
            sys::set_nonblocking(&from)?;
            if let Some((uid, gid)) = owner {
                rustix::fs::fchown(&from, Some(uid), Some(gid))?;
            }
            if signalled {
                // The usual size stays where the system refuses.
                let _ = rustix::pipe::fcntl_setpipe_size(&from, PIPE_BYTES);
                signal_writes(&from)?;
            }
            Ok((from, to))
        };
        let ((out, command_out), (err, command_err)) = (pipe()?, pipe()?);
        let output = Self {
            pipes: [Some(out), Some(err)],
            order: VecDeque::new(),
            unsignalled: [None; 2],
            read_ahead: [0; 2],
            signalled,
        };
        Ok((output, [command_out, command_err]))
    }

    pub fn is_open(&self) -> bool {
        self.pipes.iter().any(Option::is_some)
    }

    /// Notes the signal of a write, if this descriptor is one of ours.
    pub fn on_write_signal(&mut self, fd: RawFd) -> bool {
        let is_it = |pipe: &Option<OwnedFd>| pipe.as_ref().is_some_and(|own| own.as_raw_fd() == fd);
        let Some(at) = self.pipes.iter().position(is_it) else { return false };
        if self.read_ahead[at] > 0 {
            self.read_ahead[at] -= 1;
        } else if self.order.iter().filter(|&&of| of == at).count() < MAX_SIGNALS {
            self.order.push_back(at);
        }
        true
    }

    /// Which pipes to wait for: one whose signal is late is left alone for a moment.
    pub fn awaited(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let pipes = self.pipes.iter().enumerate();
        pipes.filter_map(|(at, pipe)| {
            pipe.as_ref().filter(|_| self.unsignalled[at].is_none()).map(|pipe| (at, pipe.as_fd()))
        })
    }

    /// Whether the loop must come back soon for a late signal.
    pub fn is_waiting(&self) -> bool {
        self.unsignalled.iter().any(Option::is_some)
    }

    /// There is something to read, without a signal so far.
    pub fn on_readable(&mut self, at: usize) {
        self.unsignalled[at].get_or_insert_with(Instant::now);
    }

    /// The next part of one stream, as far as `buffer` takes it. `all` reads what is there without waiting for
    /// signals, once nobody writes any more.
    pub fn next(&mut self, buffer: &mut Vec<u8>, all: bool) -> Option<u8> {
        buffer.clear();
        let mut stream = None;
        while buffer.len() + PACKET <= MAX_CHUNK_BYTES {
            let Some(at) = self.next_stream(all) else { break };
            if stream.is_some_and(|of| of != at) {
                break;
            }
            let signalled = self.order.front() == Some(&at);
            if signalled {
                self.order.pop_front();
            }
            self.unsignalled[at] = None;
            if self.read(at, buffer, all) {
                stream = Some(at);
                self.read_ahead[at] += usize::from(!signalled);
            }
        }
        stream.map(|at| at as u8 + 1)
    }

    fn next_stream(&self, all: bool) -> Option<usize> {
        if let Some(&at) = self.order.front() {
            return Some(at);
        }
        let due = |at: &usize| {
            self.pipes[*at].is_some()
                && (all
                    || self.unsignalled[*at]
                        .is_some_and(|since| !self.signalled || since.elapsed() >= SIGNAL_TIMEOUT))
        };
        [0, 1].into_iter().find(due)
    }

    /// One write's worth: packets up to the first short one. Returns whether anything came.
    fn read(&mut self, at: usize, buffer: &mut Vec<u8>, all: bool) -> bool {
        let before = buffer.len();
        while buffer.len() + PACKET <= MAX_CHUNK_BYTES {
            let Some(pipe) = &self.pipes[at] else { break };
            let start = buffer.len();
            // Never less than a packet of room: the rest of a packet that is cut short is lost.
            buffer.resize(start + PACKET, 0);
            let count = sys::read(pipe, &mut buffer[start..]);
            buffer.truncate(start + count.as_ref().map_or(0, |count| *count));
            match count {
                Ok(0) => self.pipes[at] = None,
                Ok(PACKET) => continue,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if sys::would_block(&error) && !all => {}
                // Empty, and no writer is left.
                Err(_) => self.pipes[at] = None,
            }
            return buffer.len() > before;
        }
        if self.pipes[at].is_some() {
            // The write is longer: its rest is still this stream's turn.
            self.order.push_front(at);
        }
        buffer.len() > before
    }
}

/// Has every write into this pipe queue one [`WRITE_SIGNAL`] that names the descriptor.
fn signal_writes(fd: &OwnedFd) -> io::Result<()> {
    /// Not in the C library's headers without `_GNU_SOURCE`, and so not in `libc`.
    const F_SETSIG: libc::c_int = 10;
    let own = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: both take a number.
    let done = unsafe {
        libc::fcntl(fd.as_raw_fd(), libc::F_SETOWN, own) == 0
            && libc::fcntl(fd.as_raw_fd(), F_SETSIG, WRITE_SIGNAL) == 0
    };
    if !done {
        return Err(io::Error::last_os_error());
    }
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | OFlags::ASYNC)?)
}

/// Whether this system queues a signal for each write into a pipe.
pub fn writes_are_signalled(signals: &Signals) -> bool {
    let test = || -> io::Result<bool> {
        let (from, to) = rustix::pipe::pipe_with(PipeFlags::DIRECT | PipeFlags::CLOEXEC)?;
        signal_writes(&from)?;
        sys::write(&to, b"1")?;
        sys::write(&to, b"2")?;
        let is_it = |signal: &sys::SignalInfo| signal.fd == from.as_raw_fd();
        Ok(signals.drain().into_iter().filter(is_it).count() == 2)
    };
    test().unwrap_or(false)
}
