//! What a command writes, in the order it was written, across both of its streams.
//!
//! Each stream is a pipe in packet mode: one read gives one write. Each write queues one signal that names
//! its pipe, and the queue keeps their order. So the next signal says whose packet is next. Where a write
//! comes without a signal (a program that opened `/dev/stderr` anew, a system without these signals) the
//! stream is read as it comes, after a moment, and only the order is less exact. A signal that comes after
//! that moment is counted off, so that it does not speak for a later write. A program that fills a pipe
//! queues a signal more when it waits for room; then, too, neighbouring writes may change places.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::fchown;
use std::time::{Duration, Instant};

use crate::protocol::MAX_CHUNK_BYTES;
use crate::sys;

/// The largest packet a pipe keeps whole.
const PACKET: usize = 4096;

/// Room for 256 packets: a program that writes without waiting finds as many writes accepted. It is the
/// most an ordinary user may ask for.
const ROOM: i32 = 256 * PACKET as i32;

/// How long the signal of a write is waited for. The writer queues it right after the bytes, and on a busy
/// machine it may lose its turn in between.
const LATE: Duration = Duration::from_millis(20);

/// Most signals remembered of one stream. No more writes than this wait in a pipe, so one more signal says
/// only that the writer waits for room.
const MOST_REMEMBERED: usize = ROOM as usize / PACKET;

/// User and group.
pub type Owner = (u32, u32);

pub struct Output {
    pipes: [Option<OwnedFd>; 2],
    order: VecDeque<usize>,
    late: [Option<Instant>; 2],
    /// Writes that were read before their signal came: the signal is then no news.
    early: [usize; 2],
    announced: bool,
}

impl Output {
    /// Both pipes, with the ends the command gets. They belong to `owner`, who may open them by name.
    pub fn open(announced: bool, owner: Option<Owner>) -> io::Result<(Self, OwnedFd, OwnedFd)> {
        let one = || -> io::Result<(OwnedFd, OwnedFd)> {
            let (from, to) = sys::pipe(if announced { sys::O_DIRECT } else { 0 })?;
            sys::set_nonblocking(&from)?;
            if let Some((uid, gid)) = owner {
                fchown(&from, Some(uid), Some(gid))?;
            }
            if announced {
                sys::widen(&from, ROOM);
                sys::announce_writes(&from)?;
            }
            Ok((from, to))
        };
        let ((out, out_end), (err, err_end)) = (one()?, one()?);
        let pipes = [Some(out), Some(err)];
        Ok((Self { pipes, order: VecDeque::new(), late: [None; 2], early: [0; 2], announced }, out_end, err_end))
    }

    pub fn fds(&self) -> [Option<RawFd>; 2] {
        [0, 1].map(|at| self.pipes[at].as_ref().map(AsRawFd::as_raw_fd))
    }

    pub fn is_open(&self) -> bool {
        self.pipes.iter().any(Option::is_some)
    }

    /// A write was announced on this descriptor, if it is one of ours.
    pub fn announce(&mut self, fd: RawFd) -> bool {
        let Some(at) = self.fds().iter().position(|&own| own == Some(fd)) else { return false };
        if self.early[at] > 0 {
            self.early[at] -= 1;
        } else if self.order.iter().filter(|&&of| of == at).count() < MOST_REMEMBERED {
            self.order.push_back(at);
        }
        true
    }

    /// What to wait for on each pipe: one whose signal is late is left alone for a moment.
    pub fn wanted(&self) -> [Option<RawFd>; 2] {
        let fds = self.fds();
        [0, 1].map(|at| fds[at].filter(|_| self.late[at].is_none()))
    }

    /// Whether the loop must come back soon for a late signal.
    pub fn is_waiting(&self) -> bool {
        self.late.iter().any(Option::is_some)
    }

    /// Something is to be read although nothing announced it (yet).
    pub fn readable(&mut self, at: usize) {
        if self.late[at].is_none() {
            self.late[at] = Some(Instant::now());
        }
    }

    /// The next stretch of one stream, as long as `buffer` takes it. `all` reads what is there without
    /// waiting for signals: nobody writes any more.
    pub fn next(&mut self, buffer: &mut Vec<u8>, all: bool) -> Option<u8> {
        buffer.clear();
        let mut stream = None;
        while buffer.len() + PACKET <= MAX_CHUNK_BYTES {
            let Some(at) = self.turn(all) else { break };
            if stream.is_some_and(|of| of != at) {
                break;
            }
            let announced = self.order.front() == Some(&at);
            if announced {
                self.order.pop_front();
            }
            self.late[at] = None;
            if self.read(at, buffer, all) {
                stream = Some(at);
                self.early[at] += usize::from(!announced);
            }
        }
        stream.map(|at| at as u8 + 1)
    }

    fn turn(&self, all: bool) -> Option<usize> {
        if let Some(&at) = self.order.front() {
            return Some(at);
        }
        let due = |at: &usize| {
            self.pipes[*at].is_some()
                && (all
                    || self.late[*at]
                        .is_some_and(|since| !self.announced || since.elapsed() >= LATE))
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
            let count = sys::receive(pipe, &mut buffer[start..]);
            buffer.truncate(start + count.as_ref().map_or(0, |count| *count));
            match count {
                Ok(0) => self.pipes[at] = None,
                Ok(PACKET) => continue,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if sys::errno(&error) == sys::EAGAIN && !all => {}
                // Empty, and nobody is left who could write.
                Err(_) => self.pipes[at] = None,
            }
            return buffer.len() > before;
        }
        if self.pipes[at].is_some() {
            // The write goes on: its rest is still this stream's turn.
            self.order.push_front(at);
        }
        buffer.len() > before
    }
}

/// Whether this system queues a signal for each write into a pipe.
pub fn writes_are_announced(signals: &OwnedFd) -> bool {
    let test = || -> io::Result<bool> {
        let (from, to) = sys::pipe(sys::O_DIRECT)?;
        sys::announce_writes(&from)?;
        sys::send(&to, b"1")?;
        sys::send(&to, b"2")?;
        let mut count = 0;
        sys::pending(signals, |_, fd| count += u32::from(fd == from.as_raw_fd()));
        Ok(count == 2)
    };
    test().unwrap_or(false)
}
