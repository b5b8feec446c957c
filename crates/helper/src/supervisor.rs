//! The process that starts one command and outlives all that the command starts.
//!
//! Invariants:
//! - Every descendant is found. In a process namespace of its own the supervisor is process 1, and the kernel
//!   ends all with it. Elsewhere it is the reaper of orphans, so that none leaves its tree.
//! - The supervisor gave up everything that the command gives up, before the command exists.
//! - It runs one command and ends: nothing of one command can reach the next through it.
//! - It shares its working directory with the command's main process, so the last one is known however that
//!   process ended, and nothing the command prints can forge it.

mod launch;
mod memory_watch;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Rlimit, Signal};
use windlass_helper::protocol::{Isolation, Start};

use crate::confine::Confinement;
use crate::control::{SupervisorEvent, Terminate};
use crate::process_tree::descendants;
use crate::sys::{self, ChildExit, Signals};
use launch::RunningCommand;
use memory_watch::MemoryWatch;

/// How long what a foreground command left behind (a `tee` that still writes) may take to end, and then once
/// more after it was asked to.
const ORPHAN_GRACE: Duration = Duration::from_millis(250);

/// How long a supervisor stays after it has reported the end. Taking its namespaces down keeps a processor
/// busy just when windlass continues.
const EXIT_DELAY: Duration = Duration::from_millis(3);

/// Rounds in which nothing but processes of other users is left before they are given up.
const MAX_KILL_ROUNDS: u32 = 200;

/// The wait between two rounds. Each end wakes us; this is for what could not be seen the last time.
const KILL_INTERVAL: Duration = Duration::from_millis(5);

/// What a supervisor needs to know.
pub struct SpawnContext<'a> {
    /// The command; one that is not known yet comes over `control`.
    pub start: Option<&'a Start>,
    pub shell: &'a str,
    pub isolation: Isolation,
    pub confinement: Option<&'a Confinement>,
    /// What a process may use of memory, where no control group bounds it.
    pub memory_limit: Option<u64>,
    /// The size of the command's own `/dev/shm`.
    pub shared_memory_bytes: u64,
    /// The limit on open files as windlass has it, for commands that get no other.
    pub open_files: Rlimit,
    /// Standard input, output and error as the command gets them.
    pub streams: [OwnedFd; 3],
    /// The connection to the init.
    pub control: OwnedFd,
}

/// The life of a supervisor. Never returns into the init's code.
pub fn supervise(context: SpawnContext<'_>) -> ! {
    let owns_namespace = context.isolation == Isolation::Namespaces;
    match launch::launch(&context) {
        Ok(None) => {}
        Ok(Some(RunningCommand { main, background, signals })) => {
            let SpawnContext { streams: [input, out, err], control, memory_limit, .. } = context;
            // Only the command reads it.
            drop(input);
            Supervisor {
                control,
                output: Some([out, err]),
                signals,
                main: Some(main),
                owns_namespace,
                background,
                state: State::Running,
                status: None,
                memory_watch: memory_limit.map(MemoryWatch::new),
                out_of_memory: false,
                known: Vec::new(),
                fruitless_rounds: 0,
            }
            .run();
            if owns_namespace {
                std::thread::sleep(EXIT_DELAY);
            }
        }
        Err((stage, error)) => {
            let errno = sys::errno(&error);
            SupervisorEvent::Refused { stage, errno }.send(&context.control);
        }
    }
    std::process::exit(0)
}

struct Supervisor {
    control: OwnedFd,
    /// The command's output, open until its end is reported: the init wakes up once, for both.
    output: Option<[OwnedFd; 2]>,
    signals: Signals,
    /// The command's main process, until it has ended.
    main: Option<Pid>,
    owns_namespace: bool,
    background: bool,
    state: State,
    status: Option<i32>,
    memory_watch: Option<MemoryWatch>,
    out_of_memory: bool,
    known: Vec<Pid>,
    fruitless_rounds: u32,
}

/// How far the tree's end has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// The main process of a foreground command ended. The rest may end on its own until then.
    Leaving(Instant),
    /// All were asked to end and have until then.
    Terminating(Instant),
    Killing,
}

impl Supervisor {
    /// Runs until nothing of the command is left, and reports that. Then the connection is closed.
    fn run(mut self) {
        while self.reap() {
            let timeout = match self.state {
                State::Running => None,
                State::Leaving(until) | State::Terminating(until) => {
                    Some(until.saturating_duration_since(Instant::now()) + Duration::from_millis(1))
                }
                State::Killing => Some(KILL_INTERVAL),
            };
            let timeout = timeout.into_iter().chain(self.next_memory_look()).min();
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            if self.state != State::Killing {
                fds.push(PollFd::new(&self.control, PollFlags::IN));
            }
            sys::wait(&mut fds, timeout);
            let has_order = fds.get(1).is_some_and(|control| !control.revents().is_empty());
            self.signals.drain();
            if has_order {
                self.obey();
            }
            self.check_memory();
            self.advance();
        }
        self.report_end();
    }

    fn next_memory_look(&self) -> Option<Duration> {
        let watch = self.memory_watch.as_ref().filter(|_| self.state != State::Killing);
        watch.map(MemoryWatch::wait)
    }

    fn check_memory(&mut self) {
        if self.state != State::Killing
            && self.memory_watch.as_mut().is_some_and(MemoryWatch::is_over)
        {
            self.out_of_memory = true;
            self.state = State::Killing;
        }
    }

    /// Collects ended children; false when none is left.
    fn reap(&mut self) -> bool {
        loop {
            match sys::reap() {
                ChildExit::Child(pid, status) if self.main == Some(pid) => {
                    self.main_ended(status.as_raw());
                }
                ChildExit::Child(..) => {}
                ChildExit::NoneEnded => return true,
                ChildExit::NoChildren => return false,
            }
        }
    }

    fn main_ended(&mut self, status: i32) {
        self.status = Some(status);
        self.main = None;
        if self.state == State::Running && !self.background {
            self.state = State::Leaving(Instant::now() + ORPHAN_GRACE);
        }
    }

    /// An order to end the tree, or the init's own end.
    fn obey(&mut self) {
        match Terminate::receive(&self.control) {
            Ok(Some(Terminate { grace_ms })) => {
                let until = Instant::now() + Duration::from_millis(grace_ms);
                if let State::Terminating(earlier) = self.state {
                    // A second order may shorten the wait, never lengthen it.
                    self.state = State::Terminating(until.min(earlier));
                    return;
                }
                if grace_ms > 0 {
                    self.terminate();
                }
                self.state = State::Terminating(until);
            }
            Err(error) if sys::would_block(&error) => {}
            Ok(None) | Err(_) => self.state = State::Killing,
        }
    }

    fn advance(&mut self) {
        let now = Instant::now();
        match self.state {
            State::Leaving(until) if now >= until => {
                self.terminate();
                self.state = State::Terminating(now + ORPHAN_GRACE);
            }
            State::Terminating(until) if now >= until => self.state = State::Killing,
            State::Running | State::Leaving(_) | State::Terminating(_) | State::Killing => {}
        }
        if self.state == State::Killing {
            self.kill_round();
        }
    }

    fn terminate(&self) {
        // A stopped process takes the signal only once it continues.
        for signal in [Signal::TERM, Signal::CONT] {
            if self.owns_namespace {
                sys::kill_all_others(signal);
            } else {
                for pid in descendants(rustix::process::getpid()) {
                    sys::kill(pid, signal);
                }
            }
        }
    }

    /// One round of ending everything. As process 1, one call reaches all at once, and our end takes those
    /// that were just being born. Elsewhere processes are stopped until no new one appears, then killed.
    fn kill_round(&mut self) {
        if self.owns_namespace {
            sys::kill_all_others(Signal::KILL);
            return;
        }
        let found = descendants(rustix::process::getpid());
        let has_new = found.iter().any(|pid| !self.known.contains(pid));
        let signal = if has_new { Signal::STOP } else { Signal::KILL };
        let reached = found.iter().filter(|&&pid| sys::kill(pid, signal)).count();
        let fruitless = reached == 0 && !found.is_empty();
        self.fruitless_rounds = if fruitless { self.fruitless_rounds + 1 } else { 0 };
        if self.fruitless_rounds > MAX_KILL_ROUNDS {
            self.report_end();
            std::process::exit(0);
        }
        self.known = found;
        if has_new {
            self.kill_new();
        }
    }

    /// The next round without waiting, as long as new processes appear.
    fn kill_new(&mut self) {
        let found = descendants(rustix::process::getpid());
        for &pid in &found {
            sys::kill(pid, Signal::STOP);
        }
        let has_new = found.iter().any(|pid| !self.known.contains(pid));
        self.known = found;
        if !has_new {
            for &pid in &self.known {
                sys::kill(pid, Signal::KILL);
            }
        }
    }

    fn report_end(&mut self) {
        let status = self.status.unwrap_or(libc::SIGKILL);
        let (out_of_memory, cwd) = (self.out_of_memory, current_directory());
        SupervisorEvent::Ended { status, out_of_memory, cwd }.send(&self.control);
        self.output = None;
    }
}

/// Empty when it is gone, lies outside the root, or is not a text.
fn current_directory() -> String {
    let path =
        std::env::current_dir().ok().and_then(|path| path.into_os_string().into_string().ok());
    path.filter(|path| path.starts_with('/')).unwrap_or_default()
}
