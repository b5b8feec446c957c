//! Packets that carry descriptors from one process to another (`SCM_RIGHTS`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::sys::{self, number};

/// The most descriptors one packet carries here.
const MOST: usize = 4;

const SOL_SOCKET: i32 = 1;
const SCM_RIGHTS: i32 = 1;
const CMSG_CLOEXEC: usize = 0x4000_0000;
const HEADER_BYTES: usize = 16;

/// The kernel's `user_msghdr`.
#[repr(C)]
struct Message {
    name: *const u8,
    name_length: u32,
    pieces: *const Piece,
    piece_count: usize,
    control: *mut Control,
    control_length: usize,
    flags: u32,
}

/// An `iovec`.
#[repr(C)]
struct Piece {
    start: *mut u8,
    length: usize,
}

/// A `cmsghdr` with its descriptors.
#[repr(C, align(8))]
struct Control {
    length: usize,
    level: i32,
    kind: i32,
    passed: [RawFd; MOST],
}

impl Control {
    fn room() -> Self {
        Self { length: 0, level: 0, kind: 0, passed: [-1; MOST] }
    }

    fn message(&mut self, length: usize, piece: &Piece) -> Message {
        Message {
            name: std::ptr::null(),
            name_length: 0,
            pieces: piece,
            piece_count: 1,
            control: self,
            control_length: length,
            flags: 0,
        }
    }
}

/// Sends a packet with these descriptors, which stay ours as well.
pub fn send(to: &OwnedFd, packet: &[u8], passed: &[OwnedFd]) -> io::Result<()> {
    let mut control = Control::room();
    if passed.len() > MOST {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let bytes = HEADER_BYTES + size_of_val(passed);
    control.length = bytes;
    (control.level, control.kind) = (SOL_SOCKET, SCM_RIGHTS);
    for (place, fd) in control.passed.iter_mut().zip(passed) {
        *place = fd.as_raw_fd();
    }
    let piece = Piece { start: packet.as_ptr().cast_mut(), length: packet.len() };
    let message = control.message(bytes, &piece);
    let message = (&raw const message) as usize;
    // SAFETY: a message whose packet and control data live through the call, which only reads them.
    unsafe { sys::raw(number::SENDMSG, [to.as_raw_fd() as usize, message, 0, 0, 0]) }.map(drop)
}

/// Waits for a packet of at most so many bytes, and what came with it. The end of all packets is an empty one.
pub fn receive(from: &OwnedFd, most: usize) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut packet = Vec::with_capacity(most);
    let mut control = Control::room();
    let piece = Piece { start: packet.as_mut_ptr(), length: most };
    let mut message = control.message(size_of::<Control>(), &piece);
    let at = (&raw mut message) as usize;
    let count = loop {
        // SAFETY: a message with room for as much as it says, all of it ours through the call.
        match unsafe {
            sys::raw(number::RECVMSG, [from.as_raw_fd() as usize, at, CMSG_CLOEXEC, 0, 0])
        } {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => break done?,
        }
    };
    // SAFETY: the kernel filled so many bytes.
    unsafe { packet.set_len(count) };
    let holds = message.control_length >= HEADER_BYTES;
    // Written by the kernel behind the compiler's back.
    // SAFETY: the control data is ours again.
    let control = unsafe { (&raw const control).read_volatile() };
    let passed = match holds && control.level == SOL_SOCKET && control.kind == SCM_RIGHTS {
        true => control.length.saturating_sub(HEADER_BYTES) / size_of::<RawFd>(),
        false => 0,
    };
    // SAFETY: the kernel has just made these for us.
    let passed = control.passed.into_iter().take(passed);
    Ok((packet, passed.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect()))
}
