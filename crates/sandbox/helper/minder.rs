//! The process that starts a command and outlives all that this starts.
//!
//! Invariants:
//! - Every descendant is found: in a process namespace of its own the minder is process 1 and the kernel
//!   ends all with it; elsewhere it is the reaper of orphans, so none leaves its tree.
//! - The minder gave up everything the command gives up, before the command exists.
//! - It minds another command only when nothing is left of the one before: no child, and nothing that this could
//!   have set of the minder itself.
//! - It shares its working directory with the command's main process (`CLONE_FS`), so the last one is
//!   known however that process ended, and nothing the command prints can forge it.

mod begin;
mod tree;
mod untouched;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use crate::confine::Confinement;
use crate::protocol::{Isolation, Start};
use crate::sys;
use crate::talk::{self, Again, Word};
use begin::Main;
use untouched::Settings;
pub use tree::{children, descendants};

/// How long what a foreground command left behind may take to end by itself (a `tee` still writing),
/// and then once more after it was asked to.
const LINGER: Duration = Duration::from_millis(250);

/// How long one that has told of the end stays: taking its namespaces down keeps a processor busy just when
/// windlass goes on.
const LEAVE_MS: i32 = 3;

/// Rounds in which nothing but processes of other users is left before they are given up.
const HOPELESS_ROUNDS: u32 = 200;

/// What a command's process is made from.
pub struct Plan<'a> {
    pub start: &'a Start,
    pub shell: &'a str,
    pub isolation: Isolation,
    pub confinement: Option<&'a Confinement>,
    /// The limit on open files as windlass has it, for commands that have no other.
    pub open_files: [u64; 2],
    /// Standard input, output and error as the command gets them.
    pub streams: [OwnedFd; 3],
    /// The way to the inner.
    pub control: OwnedFd,
}

/// The life of a minder: a command, and the next one, as long as the inner has one and each left nothing behind.
/// Never returns into the inner's code.
pub fn mind(plan: Plan<'_>) -> ! {
    let Plan { start, shell, isolation, confinement, open_files, streams, control } = plan;
    if confinement.is_none() {
        sys::restore_open_files(open_files);
    }
    let first = isolation == Isolation::Namespaces;
    let signals = begin::prepare(first, confinement, &streams, &control)
        .unwrap_or_else(|refusal| refuse(refusal, &control));
    let settings = Settings::now();
    let mut main = begin::new(start, shell, &streams, &control)
        .unwrap_or_else(|refusal| refuse(refusal, &control));
    let [input, out, err] = streams;
    drop(input);
    let mut held = [out, err];
    loop {
        Minder::of(main, held, first, &control, &signals).run();
        // Nobody is left who could change them after this look.
        if settings.is_none() || Settings::now() != settings {
            break;
        }
        let Some(again) = Again::wait(&control) else { break };
        held = again.streams;
        main = begin::next(again.ahead, shell, &held, &control)
            .unwrap_or_else(|refusal| refuse(refusal, &control));
    }
    // Nothing said from here on is heard.
    drop(control);
    if first {
        sys::wait(&mut [], LEAVE_MS);
    }
    sys::_exit(0)
}

fn refuse((stage, error): Refusal, control: &OwnedFd) -> ! {
    Word::Refused { stage, errno: sys::errno(&error) }.send(control);
    sys::_exit(0)
}

/// What could not be done, and why.
type Refusal = (String, io::Error);

/// One command that runs.
struct Minder<'a> {
    control: &'a OwnedFd,
    /// The command's output, let go of when all is over: its end and the word of it come to the inner at once.
    held: Option<[OwnedFd; 2]>,
    signals: &'a OwnedFd,
    main: i32,
    first: bool,
    background: bool,
    state: State,
    status: Option<i32>,
    known: Vec<i32>,
    hopeless: u32,
}

/// How far the tree's end has come.
#[derive(Clone, Copy)]
enum State {
    Living,
    /// The main process of a foreground command ended; the rest may end by itself until then.
    Leaving(Instant),
    /// All were asked to end and have until then.
    Asked(Instant),
    Forcing,
}

impl<'a> Minder<'a> {
    fn of(
        main: Main,
        held: [OwnedFd; 2],
        first: bool,
        control: &'a OwnedFd,
        signals: &'a OwnedFd,
    ) -> Self {
        Self {
            control,
            held: Some(held),
            signals,
            main: main.pid,
            first,
            background: main.background,
            state: State::Living,
            status: None,
            known: Vec::new(),
            hopeless: 0,
        }
    }

    fn run(mut self) {
        loop {
            if !self.reap() {
                return self.tell();
            }
            let timeout = match self.state {
                State::Living => -1,
                State::Leaving(until) | State::Asked(until) => {
                    until.saturating_duration_since(Instant::now()).as_millis() as i32 + 1
                }
                // Each end wakes us; this is for what could not be seen the last time.
                State::Forcing => 5,
            };
            let poll = |fd: RawFd| sys::PollFd { fd, events: sys::POLLIN, revents: 0 };
            let mut fds = [poll(self.signals.as_raw_fd()), poll(self.control.as_raw_fd())];
            if self.control_is_over() {
                fds[1].fd = -1;
            }
            sys::wait(&mut fds, timeout);
            sys::pending(self.signals, |_, _| {});
            if fds[1].revents != 0 {
                self.obey();
            }
            self.advance();
        }
    }

    fn control_is_over(&self) -> bool {
        matches!(self.state, State::Forcing)
    }

    /// Takes ended children; false when none is left.
    fn reap(&mut self) -> bool {
        loop {
            match sys::reap() {
                Ok(Some(reaped)) if reaped.pid == self.main => self.main_ended(reaped.status),
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(()) => return false,
            }
        }
    }

    fn main_ended(&mut self, status: i32) {
        self.status = Some(status);
        self.main = 0;
        if matches!(self.state, State::Living) && !self.background {
            self.state = State::Leaving(Instant::now() + LINGER);
        }
    }

    /// An order to end the tree, or the inner's own end.
    fn obey(&mut self) {
        let mut packet = [0; 16];
        let received = sys::receive(self.control, &mut packet);
        match received.map(|count| talk::end_ordered(&packet[..count])) {
            Ok(Some(grace)) => {
                let until = Instant::now() + Duration::from_millis(grace);
                // A second order may shorten the wait, never lengthen it.
                let until = match self.state {
                    State::Asked(earlier) => until.min(earlier),
                    _ => until,
                };
                if !matches!(self.state, State::Asked(_)) && grace > 0 {
                    self.ask();
                }
                self.state = State::Asked(until);
            }
            Err(error) if sys::errno(&error) == sys::EAGAIN => {}
            _ => self.state = State::Forcing,
        }
    }

    fn advance(&mut self) {
        let now = Instant::now();
        match self.state {
            State::Leaving(until) if now >= until => {
                self.ask();
                self.state = State::Asked(now + LINGER);
            }
            State::Asked(until) if now >= until => self.state = State::Forcing,
            State::Living | State::Leaving(_) | State::Asked(_) | State::Forcing => {}
        }
        if matches!(self.state, State::Forcing) {
            self.force();
        }
    }

    fn ask(&self) {
        // A stopped process takes the signal only once it goes on.
        for signal in [sys::SIGTERM, sys::SIGCONT] {
            if self.first {
                sys::kill(-1, signal);
            } else {
                for pid in descendants(sys::getpid()) {
                    sys::kill(pid, signal);
                }
            }
        }
    }

    /// One round of ending everything. As process 1 one call reaches all at once, and leaving ends what
    /// was being born. Elsewhere processes are stopped until no new one appears, then ended.
    fn force(&mut self) {
        if self.first {
            sys::kill(-1, sys::SIGKILL);
            return;
        }
        let found = descendants(sys::getpid());
        let fresh = found.iter().any(|pid| !self.known.contains(pid));
        let signal = if fresh { sys::SIGSTOP } else { sys::SIGKILL };
        let reached = found.iter().filter(|&&pid| sys::kill(pid, signal) == 0).count();
        self.hopeless = if reached == 0 && !found.is_empty() { self.hopeless + 1 } else { 0 };
        if self.hopeless > HOPELESS_ROUNDS {
            self.tell();
            sys::_exit(0);
        }
        self.known = found;
        if fresh {
            self.force_again();
        }
    }

    /// The next round without waiting, as long as new processes appear.
    fn force_again(&mut self) {
        let found = descendants(sys::getpid());
        for &pid in &found {
            sys::kill(pid, sys::SIGSTOP);
        }
        let fresh = found.iter().any(|pid| !self.known.contains(pid));
        self.known = found;
        if !fresh {
            for &pid in &self.known {
                sys::kill(pid, sys::SIGKILL);
            }
        }
    }

    fn tell(&mut self) {
        self.held = None;
        let cwd = std::env::current_dir().ok();
        let cwd =
            cwd.as_deref().and_then(|path| path.to_str()).filter(|path| path.starts_with('/'));
        let status = self.status.unwrap_or(sys::SIGKILL);
        Word::Ended { status, cwd: cwd.unwrap_or_default().to_owned() }.send(self.control);
    }
}

