//! What a supervisor and the init say to each other, in packets.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use windlass_helper::protocol::{Order, Start};
use windlass_helper::wire;

use crate::sys;

/// The longest packet: a text in one is a path, or the start of a longer text.
const MAX_PACKET_BYTES: usize = 8192;

/// From a supervisor to the init.
pub enum SupervisorEvent {
    /// Calls of the command that the init has to answer are read from this.
    Calls(OwnedFd),
    Started,
    Refused {
        stage: String,
        errno: i32,
    },
    Ended {
        status: i32,
        out_of_memory: bool,
        cwd: String,
    },
}

impl SupervisorEvent {
    pub fn send(&self, to: &OwnedFd) {
        let packet = match self {
            Self::Calls(listener) => return drop(send_descriptor(to, listener)),
            Self::Started => vec![b'S'],
            Self::Refused { stage, errno } => {
                let stage: String = stage.chars().take(1000).collect();
                [b"R", errno.to_le_bytes().as_slice(), stage.as_bytes()].concat()
            }
            Self::Ended { status, out_of_memory, cwd } => {
                let kind = if *out_of_memory { b"M" } else { b"E" };
                [kind, status.to_le_bytes().as_slice(), cwd.as_bytes()].concat()
            }
        };
        let _ = sys::write(to, &packet);
    }

    /// The next packet; `None` when there is none, or something else.
    pub fn receive(from: &OwnedFd) -> Option<Self> {
        let mut packet = [0; MAX_PACKET_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut passed = RecvAncillaryBuffer::new(&mut space);
        let count = rustix::net::recvmsg(
            from,
            &mut [IoSliceMut::new(&mut packet)],
            &mut passed,
            RecvFlags::CMSG_CLOEXEC,
        )
        .ok()?
        .bytes;
        let descriptor = passed.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        match descriptor {
            Some(listener) => Some(Self::Calls(listener)),
            None => Self::parse(&packet[..count]),
        }
    }

    fn parse(packet: &[u8]) -> Option<Self> {
        let (kind, rest) = packet.split_first()?;
        if *kind == b'S' {
            return Some(Self::Started);
        }
        let (number, text) = rest.split_first_chunk()?;
        let (number, text) = (i32::from_le_bytes(*number), String::from_utf8(text.to_vec()).ok()?);
        match kind {
            b'R' => Some(Self::Refused { stage: text, errno: number }),
            b'E' | b'M' => {
                let out_of_memory = *kind == b'M';
                Some(Self::Ended { status: number, out_of_memory, cwd: text })
            }
            _ => None,
        }
    }
}

fn send_descriptor(to: &OwnedFd, descriptor: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut passed = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    passed.push(SendAncillaryMessage::ScmRights(&descriptors));
    rustix::net::sendmsg(to, &[IoSlice::new(b"C")], &mut passed, SendFlags::empty())?;
    Ok(())
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
    let Order::Start(start) = Order::read(frame).ok()? else { return None };
    Some(start)
}
