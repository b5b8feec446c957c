//! One connection to the proxy on loopback: bytes both ways, each against its own credit.
//!
//! The helper does not look into the bytes. Windlass speaks HTTP and SOCKS and decides.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::PollFlags;
use windlass_helper::protocol::{MAX_CHUNK_BYTES, Report, WINDOW, cost};

pub struct Connection {
    stream: TcpStream,
    credit: i64,
    replies: VecDeque<Vec<u8>>,
    written: usize,
    reading: bool,
    writing: bool,
}

impl Connection {
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let _ = stream.set_nodelay(true);
        let replies = VecDeque::new();
        Ok(Self { stream, credit: WINDOW, replies, written: 0, reading: true, writing: true })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// What to wait for; nothing while windlass has to act first.
    pub fn events(&self) -> PollFlags {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, self.reading && self.credit > 0);
        events.set(PollFlags::OUT, !self.replies.is_empty());
        events
    }

    pub fn is_over(&self) -> bool {
        !self.reading && !self.writing
    }

    pub fn grant(&mut self, credit: i64) {
        self.credit = (self.credit.saturating_add(credit)).min(WINDOW);
    }

    pub fn reply(&mut self, bytes: Vec<u8>) {
        self.replies.push_back(bytes);
    }

    /// Windlass will neither send nor read any more.
    pub fn finish(&mut self) {
        self.reading = false;
        self.replies.push_back(Vec::new());
    }

    /// Moves what can be moved. `Err` means that the connection is gone.
    pub fn work(&mut self, id: u32, events: PollFlags, out: &mut Vec<u8>) -> io::Result<()> {
        if events.intersects(PollFlags::OUT | PollFlags::ERR) || !self.replies.is_empty() {
            self.write(id, out);
        }
        let may_read = self.reading && self.credit > 0;
        if may_read && events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.read(id, out)?;
        }
        Ok(())
    }

    fn read(&mut self, connection: u32, out: &mut Vec<u8>) -> io::Result<()> {
        let mut buffer = vec![0; MAX_CHUNK_BYTES];
        let count = match self.stream.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            count => count?,
        };
        buffer.truncate(count);
        self.reading = count > 0;
        self.credit -= cost(count);
        Report::Request { connection, bytes: buffer }.write(out);
        Ok(())
    }

    fn write(&mut self, connection: u32, out: &mut Vec<u8>) {
        while let Some(reply) = self.replies.front() {
            if reply.is_empty() {
                self.writing = false;
                let _ = self.stream.shutdown(Shutdown::Write);
            } else {
                match self.stream.write(&reply[self.written..]) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(count) => self.written += count,
                    // The other side is gone; what it sent before is still read.
                    Err(_) => self.written = reply.len(),
                }
                if self.written < reply.len() {
                    continue;
                }
            }
            let credit = cost(reply.len());
            Report::ConnectionCredit { connection, credit }.write(out);
            self.written = 0;
            self.replies.pop_front();
        }
    }
}
