//! What a minder and its inner say to each other, in packets.

use std::io;
use std::os::fd::OwnedFd;

use crate::ahead::Surroundings;
use crate::protocol::{Order, Start};
use crate::{rights, sys, wire};

/// The longest packet: what a socket takes at once from an ordinary user, with room to spare.
pub const MAX_BYTES: usize = 64 * 1024;

/// From the minder to its inner.
pub enum Word {
    /// Its shell waits, if one was to be started ahead.
    Ready,
    Started,
    Refused {
        stage: String,
        errno: i32,
    },
    Ended {
        status: i32,
        cwd: String,
    },
}

impl Word {
    pub fn send(&self, to: &OwnedFd) {
        let packet = match self {
            Self::Ready => vec![b'Y'],
            Self::Started => vec![b'S'],
            Self::Refused { stage, errno } => {
                // A packet holds any path the system takes; a longer text is no path.
                let stage: String = stage.chars().take(1000).collect();
                [b"R", errno.to_le_bytes().as_slice(), stage.as_bytes()].concat()
            }
            Self::Ended { status, cwd } => {
                [b"E", status.to_le_bytes().as_slice(), cwd.as_bytes()].concat()
            }
        };
        let _ = sys::send(to, &packet);
    }

    pub fn parse(packet: &[u8]) -> Option<Self> {
        let (kind, rest) = packet.split_first()?;
        match kind {
            b'Y' => return Some(Self::Ready),
            b'S' => return Some(Self::Started),
            _ => {}
        }
        let (number, text) = rest.split_first_chunk()?;
        let (number, text) = (i32::from_le_bytes(*number), String::from_utf8(text.to_vec()).ok()?);
        match kind {
            b'R' => Some(Self::Refused { stage: text, errno: number }),
            b'E' => Some(Self::Ended { status: number, cwd: text }),
            _ => None,
        }
    }
}

/// From the inner to a minder whose command runs: to end it, after so many milliseconds by force.
pub fn order_end(to: &OwnedFd, grace_ms: u64) {
    let _ = sys::send(to, &[b"T".as_slice(), &grace_ms.to_le_bytes()].concat());
}

/// What [`order_end`] said; `None` for anything else.
pub fn end_ordered(packet: &[u8]) -> Option<u64> {
    packet.strip_prefix(b"T")?.try_into().ok().map(u64::from_le_bytes)
}

/// From the inner to a minder whose command ended and left nothing: to wait for another, with the streams that it
/// will write to.
pub struct Again {
    pub streams: [OwnedFd; 2],
    /// Where a shell is to be started ahead, and the pipe that it waits at.
    pub ahead: Option<(Surroundings, OwnedFd)>,
}

impl Again {
    pub fn send(self, to: &OwnedFd) -> io::Result<()> {
        let [out, err] = self.streams;
        let mut packet = vec![b'A'];
        let mut passed = vec![out, err];
        if let Some((Surroundings { env, cwd }, start_up)) = self.ahead {
            Order::Start(Start { env, cwd, ..Start::default() }).write(&mut packet);
            passed.push(start_up);
        }
        rights::send(to, &packet, &passed)
    }

    /// Waits for it; `None` when nothing more is to be done.
    pub fn wait(from: &OwnedFd) -> Option<Self> {
        loop {
            let (packet, passed) = rights::receive(from, MAX_BYTES).ok()?;
            match packet.split_first()? {
                // Too late to be meant for the next.
                (b'T', _) => {}
                (b'A', ahead) => {
                    let mut passed = passed.into_iter();
                    let streams = [passed.next()?, passed.next()?];
                    let ahead = passed.next().and_then(|start_up| {
                        let Start { env, cwd, .. } = read_start(ahead)?;
                        Some((Surroundings { env, cwd }, start_up))
                    });
                    return Some(Self { streams, ahead });
                }
                _ => return None,
            }
        }
    }
}

/// From the inner to a minder that waits.
pub enum Told {
    /// The shell that waits has its script.
    Given { background: bool },
    /// To start this one.
    New(Start),
}

impl Told {
    /// Says it if it goes into one packet.
    pub fn send(&self, to: &OwnedFd) -> io::Result<()> {
        let mut packet = Vec::new();
        match self {
            Self::Given { background } => packet.extend([b'G', (*background).into()]),
            Self::New(start) => {
                packet.push(b'N');
                Order::Start(start.clone()).write(&mut packet);
            }
        }
        if packet.len() > MAX_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        sys::send(to, &packet).map(drop)
    }

    /// Waits to be told; `None` when nothing will be run.
    pub fn wait(from: &OwnedFd) -> Option<Self> {
        let (packet, _) = rights::receive(from, MAX_BYTES).ok()?;
        match packet.split_first()? {
            (b'G', [background]) => Some(Self::Given { background: *background != 0 }),
            (b'N', start) => read_start(start).map(Self::New),
            _ => None,
        }
    }
}

fn read_start(frame: &[u8]) -> Option<Start> {
    let (frame, _) = wire::cut(frame).ok()??;
    match Order::read(frame).ok()? {
        Order::Start(start) => Some(start),
        _ => None,
    }
}
