//! One command as the inner sees it: its minder, its streams, how it ended.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::output::Output;
use crate::protocol::{Cause, Report, cost};
use crate::sys;
use crate::talk::{self, Word};

/// How long a minder may take beyond the grace it was given.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often a minder that its command can reach is made to go on.
pub const NUDGE: Duration = Duration::from_millis(500);

pub struct Command {
    pub minder: i32,
    pub control: OwnedFd,
    pub output: Output,
    pub input: Option<OwnedFd>,
    pub waiting_input: VecDeque<Vec<u8>>,
    pub written: usize,
    pub credit: i64,
    pub deadline: Option<Instant>,
    pub grace_ms: u64,
    /// When a minder that was told to end everything has had all the time it needs.
    pub overdue: Option<Instant>,
    /// When the minder is next made to go on, in case its command stopped it. None where no command can.
    pub nudge: Option<Instant>,
    pub ended_by_us: Option<Cause>,
    pub ended: Option<(i32, String)>,
    pub refused: bool,
    pub gone: bool,
    pub ended_for_memory_before: u64,
}

impl Command {
    /// Whether nothing of its tree lives. A minder speaks of the end only when it has no child left, so
    /// its own end need not be waited for.
    pub fn is_over(&self) -> bool {
        self.gone || self.refused || self.ended.is_some()
    }

    /// Takes what the minder said and passes it on; its last words are kept for the end.
    pub fn hear(&mut self, id: u32, out: &mut Vec<u8>) {
        let mut packet = [0; 8192];
        while let Ok(count) = sys::receive(&self.control, &mut packet) {
            match Word::parse(&packet[..count]) {
                Some(Word::Ready) => {}
                Some(Word::Started) => Report::Started { id }.write(out),
                Some(Word::Refused { stage, errno }) => {
                    self.refused = true;
                    Report::Refused { id, stage, errno }.write(out);
                }
                Some(Word::Ended { status, cwd }) => self.ended = Some((status, cwd)),
                None => return,
            }
        }
    }

    pub fn end(&mut self, cause: Cause, grace_ms: u64) {
        if self.ended.is_none() && self.ended_by_us.is_none() {
            self.ended_by_us = Some(cause);
        }
        talk::order_end(&self.control, grace_ms);
        if !self.gone {
            // Where a command can reach its minder it may have stopped it.
            sys::kill(self.minder, sys::SIGCONT);
            let late = Instant::now() + Duration::from_millis(grace_ms) + PATIENCE;
            self.overdue = Some(self.overdue.map_or(late, |before| before.min(late)));
        }
    }

    /// A minder that its command stopped goes on. One that does not do its work is ended; its tree then
    /// falls to the inner, or ends with it.
    pub fn watch_minder(&mut self, now: Instant) {
        if self.nudge.is_some_and(|nudge| now >= nudge) {
            self.nudge = (!self.is_over()).then_some(now + NUDGE);
            if !self.gone {
                sys::kill(self.minder, sys::SIGCONT);
            }
        }
        if self.overdue.take_if(|overdue| now >= *overdue).is_some() && !self.is_over() {
            sys::kill(self.minder, sys::SIGKILL);
        }
    }

    /// Writes waiting input, as far as the command takes it.
    pub fn feed(&mut self, id: u32, out: &mut Vec<u8>) {
        while let Some(bytes) = self.waiting_input.front() {
            let Some(input) = &self.input else {
                self.waiting_input.clear();
                return;
            };
            if bytes.is_empty() {
                self.input = None;
                self.waiting_input.clear();
                return;
            }
            match sys::send(input, &bytes[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if sys::errno(&error) == sys::EAGAIN => return,
                // The command does not read any more; it is told so by nobody, as with any pipe.
                Err(_) => self.written = bytes.len(),
            }
            if self.written == bytes.len() {
                Report::Eaten { id, credit: cost(bytes.len()) }.write(out);
                self.written = 0;
                self.waiting_input.pop_front();
            }
        }
    }

    /// Sends what the command wrote, as far as its credit goes.
    pub fn pump(&mut self, id: u32, chunk: &mut Vec<u8>, out: &mut Vec<u8>) {
        let over = self.is_over();
        while self.credit > 0 {
            let Some(stream) = self.output.next(chunk, over) else { break };
            self.credit -= cost(chunk.len());
            Report::Output { id, stream, bytes: std::mem::take(chunk) }.write(out);
        }
    }

    /// Why it ended, with its code or signal. `starved`: the kernel ended someone for memory meanwhile.
    pub fn cause(&self, starved: bool) -> (Cause, i32) {
        // A minder that said nothing was killed, and its tree by us.
        let status = self.ended.as_ref().map_or(sys::SIGKILL, |(status, _)| *status);
        let (signal, code) = (status & 0x7f, (status >> 8) & 0xff);
        let killed = signal == sys::SIGKILL || code == 128 + sys::SIGKILL;
        match (self.ended_by_us, signal) {
            (None, _) if starved && killed => (Cause::OutOfMemory, sys::SIGKILL),
            (Some(cause), 0) => (cause, code),
            (Some(cause), signal) => (cause, signal),
            (None, 0) => (Cause::Code, code),
            (None, signal) => (Cause::Signal, signal),
        }
    }
}
