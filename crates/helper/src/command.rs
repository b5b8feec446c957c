//! One command as the init sees it: its supervisor, its streams, how it ended.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use windlass_helper::protocol::{Cause, Report, Start, WINDOW, cost};

use crate::control::{SupervisorEvent, Terminate};
use crate::init::FileChanges;
use crate::output::Output;
use crate::sys;

/// How long a supervisor may take beyond the grace it was given.
const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(3);

/// How often a supervisor that its command can stop is made to continue.
const SIGCONT_INTERVAL: Duration = Duration::from_millis(500);

pub struct Command {
    pub supervisor: Pid,
    pub control: OwnedFd,
    pub output: Output,
    pub input: Option<OwnedFd>,
    /// Where Landlock alone guards files.
    pub file_changes: Option<FileChanges>,
    pub waiting_input: VecDeque<Vec<u8>>,
    /// How much of the first waiting input is written.
    written: usize,
    pub credit: i64,
    deadline: Option<Instant>,
    grace_ms: u64,
    /// When a supervisor that has to end everything has had all the time it needs.
    overdue: Option<Instant>,
    /// When the supervisor is next made to continue, in case its command stopped it.
    next_sigcont: Option<Instant>,
    ended_by_us: Option<Cause>,
    /// The wait status and the last working directory.
    pub ended: Option<(i32, String)>,
    /// Whether its supervisor ended it for its use of memory.
    out_of_memory: bool,
    pub refused: bool,
    /// Whether the supervisor is gone.
    pub supervisor_died: bool,
    pub out_of_memory_kills_before: u64,
}

/// What a new command is watched by.
pub struct Parts {
    pub supervisor: Pid,
    pub control: OwnedFd,
    pub output: Output,
    pub input: Option<OwnedFd>,
    /// Whether commands can signal their supervisor.
    pub is_reachable: bool,
    pub out_of_memory_kills: u64,
}

impl Command {
    pub fn new(start: &Start, parts: Parts) -> Self {
        let now = Instant::now();
        let timeout = Duration::from_millis(start.timeout_ms);
        Self {
            supervisor: parts.supervisor,
            control: parts.control,
            output: parts.output,
            input: parts.input,
            file_changes: None,
            waiting_input: VecDeque::new(),
            written: 0,
            credit: WINDOW,
            deadline: (start.timeout_ms > 0).then(|| now + timeout),
            grace_ms: start.grace_ms,
            overdue: None,
            next_sigcont: parts.is_reachable.then(|| now + SIGCONT_INTERVAL),
            ended_by_us: None,
            ended: None,
            out_of_memory: false,
            refused: false,
            supervisor_died: false,
            out_of_memory_kills_before: parts.out_of_memory_kills,
        }
    }

    /// Whether nothing of its tree is left. A supervisor reports the end only when it has no child left, so
    /// its own end need not be waited for.
    pub fn is_over(&self) -> bool {
        self.supervisor_died || self.refused || self.ended.is_some()
    }

    /// Whether the supervisor died before its command ended.
    pub fn is_abandoned(&self) -> bool {
        self.supervisor_died && self.ended.is_none() && !self.refused
    }

    /// Reads what the supervisor reports and passes it on; the end is kept for later.
    pub fn read_control(&mut self, id: u32, out: &mut Vec<u8>) {
        while let Some(event) = SupervisorEvent::receive(&self.control) {
            match event {
                SupervisorEvent::Calls(listener) => {
                    self.file_changes = Some(FileChanges::new(listener));
                }
                SupervisorEvent::Started => Report::Started { id }.write(out),
                SupervisorEvent::Refused { stage, errno } => {
                    self.refused = true;
                    Report::Refused { id, stage, errno }.write(out);
                }
                SupervisorEvent::Ended { status, out_of_memory, cwd } => {
                    self.ended = Some((status, cwd));
                    self.out_of_memory = out_of_memory;
                }
            }
        }
    }

    pub fn terminate(&mut self, cause: Cause, grace_ms: u64) {
        if self.ended.is_none() && self.ended_by_us.is_none() {
            self.ended_by_us = Some(cause);
        }
        Terminate { grace_ms }.send(&self.control);
        if !self.supervisor_died {
            // A command that can signal its supervisor may have stopped it.
            sys::kill(self.supervisor, Signal::CONT);
            let limit = Duration::from_millis(grace_ms) + SUPERVISOR_TIMEOUT;
            let overdue = Instant::now() + limit;
            self.overdue = Some(self.overdue.map_or(overdue, |before| before.min(overdue)));
        }
    }

    /// The next moment at which [`check_deadlines`](Self::check_deadlines) has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        [self.deadline, self.overdue, self.next_sigcont].into_iter().flatten().min()
    }

    /// Ends a command whose time is up. A stopped supervisor is continued; one that does not do its work is
    /// killed, and its tree is then the init's, or ends with it.
    pub fn check_deadlines(&mut self, now: Instant) {
        if self.deadline.take_if(|deadline| now >= *deadline).is_some() {
            self.terminate(Cause::TimedOut, self.grace_ms);
        }
        if self.next_sigcont.is_some_and(|next| now >= next) {
            self.next_sigcont = (!self.is_over()).then_some(now + SIGCONT_INTERVAL);
            if !self.supervisor_died {
                sys::kill(self.supervisor, Signal::CONT);
            }
        }
        if self.overdue.take_if(|overdue| now >= *overdue).is_some() && !self.is_over() {
            sys::kill(self.supervisor, Signal::KILL);
        }
    }

    /// Writes waiting input, as far as the command takes it.
    pub fn write_input(&mut self, id: u32, out: &mut Vec<u8>) {
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
            match sys::write(input, &bytes[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if sys::would_block(&error) => return,
                // The command does not read any more, as with any pipe.
                Err(_) => self.written = bytes.len(),
            }
            if self.written == bytes.len() {
                Report::InputCredit { id, credit: cost(bytes.len()) }.write(out);
                self.written = 0;
                self.waiting_input.pop_front();
            }
        }
    }

    /// Sends what the command wrote, as far as its credit goes.
    pub fn read_output(&mut self, id: u32, chunk: &mut Vec<u8>, out: &mut Vec<u8>) {
        let over = self.is_over();
        while self.credit > 0 {
            let Some(stream) = self.output.next(chunk, over) else { break };
            self.credit -= cost(chunk.len());
            Report::Output { id, stream, bytes: std::mem::take(chunk) }.write(out);
        }
    }

    /// Why it ended, with its code or signal. `out_of_memory`: the kernel killed a process for its use of
    /// memory in the meantime.
    pub fn cause(&self, out_of_memory: bool) -> (Cause, i32) {
        // A supervisor that reported nothing was killed, and its tree by us.
        let status = self.ended.as_ref().map_or(libc::SIGKILL, |(status, _)| *status);
        let (signal, code) = (status & 0x7f, (status >> 8) & 0xff);
        let killed = signal == libc::SIGKILL || code == 128 + libc::SIGKILL;
        match (self.ended_by_us, signal) {
            (None, _) if self.out_of_memory || out_of_memory && killed => {
                (Cause::OutOfMemory, libc::SIGKILL)
            }
            (Some(cause), 0) => (cause, code),
            (Some(cause), signal) => (cause, signal),
            (None, 0) => (Cause::Code, code),
            (None, signal) => (Cause::Signal, signal),
        }
    }
}
