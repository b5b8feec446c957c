//! What a supervisor and the init say to each other, in packets.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use windlass_helper::protocol::{Order, Start};
use windlass_helper::wire;

use crate::sys;

/// The longest packet: a text in one is a path, or the start of a longer text.
pub const MAX_PACKET_BYTES: usize = 8192;

/// From a supervisor to the init.
pub enum SupervisorEvent {
    Started,
    Refused { stage: String, errno: i32 },
    Ended { status: i32, cwd: String },
}

impl SupervisorEvent {
    pub fn send(&self, to: &OwnedFd) {
        let packet = match self {
            Self::Started => vec![b'S'],
            Self::Refused { stage, errno } => {
                let stage: String = stage.chars().take(1000).collect();
                [b"R", errno.to_le_bytes().as_slice(), stage.as_bytes()].concat()
            }
            Self::Ended { status, cwd } => {
                [b"E", status.to_le_bytes().as_slice(), cwd.as_bytes()].concat()
            }
        };
        let _ = sys::write(to, &packet);
    }

    pub fn parse(packet: &[u8]) -> Option<Self> {
        let (kind, rest) = packet.split_first()?;
        if *kind == b'S' {
            return Some(Self::Started);
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

/// From the init to a supervisor: end the whole tree, and kill it after the grace period.
pub struct Terminate {
    pub grace_ms: u64,
}

impl Terminate {
    pub fn send(&self, to: &OwnedFd) {
        let _ = sys::write(to, &self.grace_ms.to_le_bytes());
    }

    /// `Ok(None)` when the init is gone, or said something else.
    pub fn receive(from: impl AsFd) -> io::Result<Option<Self>> {
        let mut packet = [0; size_of::<u64>()];
        let count = sys::read(from, &mut packet)?;
        let whole = count == packet.len();
        Ok(whole.then(|| Self { grace_ms: u64::from_le_bytes(packet) }))
    }
}

/// The longest command that goes into one packet: what a socket takes at once, with room to spare.
const MAX_START_BYTES: usize = 64 * 1024;

/// From the init to a supervisor that waits: the command to run. Fails for one that is too long.
pub fn send_start(to: &OwnedFd, start: &Start) -> io::Result<()> {
    let mut packet = Vec::new();
    Order::Start(start.clone()).write(&mut packet);
    if packet.len() > MAX_START_BYTES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sys::write(to, &packet).map(drop)
}

/// Waits for the command to run; `None` when none will come.
pub fn receive_start(from: &OwnedFd) -> Option<Start> {
    let mut packet = vec![0; MAX_START_BYTES];
    let count = loop {
        match sys::read(from, &mut packet) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result.ok()?,
        }
    };
    let (frame, _) = wire::next_frame(&packet[..count]).ok()??;
    match Order::read(frame).ok()? {
        Order::Start(start) => Some(start),
        _ => None,
    }
}
