//! Frames and the values in them, as bytes.
//!
//! Invariants:
//! - A frame is `length: u32 | kind: u8 | body`, little endian; `length` counts kind and body.
//! - Reading never panics and never allocates more than the frame it was given.

#![allow(missing_docs, reason = "a method named by the value it reads or writes")]

use std::io;

/// The longest frame either side accepts: a command with its script and environment fits many times.
pub const MAX_FRAME_BYTES: usize = 1 << 20;

/// A frame of the stream: its kind and body.
pub type Frame<'a> = (u8, &'a [u8]);

/// Looks for a whole frame at the head of `buffer`; returns it with the bytes it takes.
pub fn next_frame(buffer: &[u8]) -> io::Result<Option<(Frame<'_>, usize)>> {
    let Some((head, rest)) = buffer.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*head) as usize;
    if length == 0 || length > MAX_FRAME_BYTES {
        return Err(bad("frame length"));
    }
    if rest.len() < length {
        return Ok(None);
    }
    Ok(Some(((rest[0], &rest[1..length]), 4 + length)))
}

/// What was received is not what either side sends.
pub fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("unexpected {what}"))
}

/// Appends one frame.
pub fn frame(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Writer<'_>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, kind]);
    body(&mut Writer { out });
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends values to a frame's body.
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }
    pub fn u32(&mut self, value: u32) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }
    pub fn u64(&mut self, value: u64) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// A text with its length.
    pub fn text(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Texts with their count.
    pub fn texts(&mut self, texts: &[String]) {
        self.u32(texts.len() as u32);
        texts.iter().for_each(|text| self.text(text));
    }

    /// The id of a flow, and its bytes up to the frame's end.
    pub fn flow(&mut self, id: u32, bytes: &[u8]) {
        self.u32(id);
        self.out.extend_from_slice(bytes);
    }

    /// The id of a flow, and how much of its window is free again.
    pub fn credit(&mut self, id: u32, credit: i64) {
        self.u32(id);
        self.u64(credit as u64);
    }
}

/// Takes values from a frame's body.
pub struct FrameReader<'a> {
    rest: &'a [u8],
}

impl<'a> FrameReader<'a> {
    /// Reads from the start of a body.
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// Some bytes as they are.
    pub fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk().ok_or_else(|| bad("end of a frame"))?;
        self.rest = rest;
        Ok(*head)
    }
    pub fn u8(&mut self) -> io::Result<u8> {
        Ok(self.take::<1>()?[0])
    }
    pub fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }
    pub fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }
    pub fn text(&mut self) -> io::Result<String> {
        let length = self.u32()? as usize;
        let (head, rest) = self.rest.split_at_checked(length).ok_or_else(|| bad("text length"))?;
        self.rest = rest;
        String::from_utf8(head.to_vec()).map_err(|_| bad("bytes in a text"))
    }

    /// Items with their count.
    pub fn list<T>(&mut self, item: impl Fn(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        // Not allocated by the announced count: that number is the other side's claim.
        (0..self.u32()?).map(|_| item(self)).collect()
    }

    /// Everything up to the frame's end.
    pub fn remaining(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rest).to_vec()
    }

    /// The message, if nothing came after it.
    pub fn end<T>(&self, message: T) -> io::Result<T> {
        if self.rest.is_empty() { Ok(message) } else { Err(bad("bytes after a message")) }
    }
}
