//! The process outside the sandbox: makes the init, waits for the end of windlass or of the init, and sees
//! to it that nothing is left.
//!
//! Invariants:
//! - It learns of windlass's end by the end of descriptor 0. A parent-death signal would follow the thread
//!   that started it, and threads of a runtime come and go. Between watchdog and init that signal is used.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal};
use rustix::stdio::stdin;
use windlass_helper::protocol::{Isolation, NetworkMode, Setup};

use crate::Failure;
use crate::cgroup::Cgroup;
use crate::root::OwnerMap;
use crate::sys::{self, ChildExit, Signals};
use crate::{confine, init, process_tree};

/// How long an init without namespaces may take to end everything after windlass is gone.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// How often the init is looked at once windlass is gone.
const SHUTDOWN_INTERVAL: Duration = Duration::from_millis(20);

pub struct Watchdog {
    init: Pid,
    cgroup: Cgroup,
    isolation: Isolation,
    signals: Signals,
}

impl Watchdog {
    /// Makes the sandbox's namespaces with the init in them.
    pub fn start(mut setup: Setup) -> Result<Self, Failure> {
        let fail = |error: io::Error| ("prepare".to_owned(), error);
        let signals = Signals::open(&[libc::SIGCHLD]).map_err(fail)?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| fail(error.into()))?;
        let mut cgroup = match setup.isolation {
            Isolation::Container => {
                // An earlier helper in this container may have left processes behind.
                sys::kill_all_others(Signal::KILL);
                Cgroup::of_container(setup.memory_bytes, setup.processes)
            }
            Isolation::Host | Isolation::Namespaces | Isolation::Landlock => {
                Cgroup::create(&setup.control_group, setup.memory_bytes, setup.processes)
            }
        };
        let owners = OwnerMap::apply(&mut setup);
        let setup = &setup;
        let (bounds_reader, bounds_writer) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| fail(error.into()))?;
        match sys::fork(namespaces(setup)) {
            Err(error) => {
                cgroup.remove();
                Err(("make namespaces".to_owned(), error))
            }
            Ok(None) => {
                drop(bounds_writer);
                let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
                init::run(setup, owners.as_ref(), cgroup, bounds_reader)
            }
            Ok(Some(init)) => {
                // The init is on its own by now, and has to own its files in `/proc` to map its user.
                confine::hide_memory(setup);
                cgroup.add_process(init);
                cgroup.bounded.send(&bounds_writer).map_err(fail)?;
                Ok(Self { init, cgroup, isolation: setup.isolation, signals })
            }
        }
    }

    /// Waits for the end of windlass or of the init, then ends what is left.
    pub fn run(self) {
        let mut orphaned_at: Option<Instant> = None;
        loop {
            match orphaned_at {
                None => {
                    if self.wait_for_windlass() {
                        orphaned_at = Some(Instant::now());
                    }
                }
                Some(_) => {
                    let mut fds = [PollFd::new(&self.signals, PollFlags::IN)];
                    sys::wait(&mut fds, Some(SHUTDOWN_INTERVAL));
                }
            }
            self.signals.drain();
            // The kernel ends a namespace with its init. An init without one ends its commands first.
            let is_late = |since: Instant| {
                self.isolation == Isolation::Namespaces || since.elapsed() > SHUTDOWN_TIMEOUT
            };
            if orphaned_at.is_some_and(is_late) {
                sys::kill(self.init, Signal::KILL);
            }
            if self.init_has_ended() {
                break;
            }
        }
        self.end_the_rest();
        self.cgroup.remove();
    }

    /// Waits for a signal or for the end of windlass; returns whether windlass is gone.
    fn wait_for_windlass(&self) -> bool {
        let windlass = stdin();
        let mut fds =
            [PollFd::new(&windlass, PollFlags::empty()), PollFd::new(&self.signals, PollFlags::IN)];
        sys::wait(&mut fds, None);
        fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
    }

    fn init_has_ended(&self) -> bool {
        loop {
            match sys::reap() {
                ChildExit::Child(pid, _) if pid == self.init => return true,
                ChildExit::Child(..) => {}
                ChildExit::NoneEnded => return false,
                ChildExit::NoChildren => return true,
            }
        }
    }

    /// An init that was killed leaves its processes to us.
    fn end_the_rest(&self) {
        let since = Instant::now();
        while since.elapsed() < SHUTDOWN_TIMEOUT {
            match sys::reap() {
                ChildExit::NoChildren => return,
                ChildExit::Child(..) => {}
                ChildExit::NoneEnded => {
                    for pid in process_tree::descendants(rustix::process::getpid()) {
                        sys::kill(pid, Signal::KILL);
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        }
    }
}

fn namespaces(setup: &Setup) -> libc::c_int {
    if setup.isolation != Isolation::Namespaces {
        return 0;
    }
    let user = if rustix::process::geteuid().is_root() { 0 } else { libc::CLONE_NEWUSER };
    let network = if setup.network == NetworkMode::Everything { 0 } else { libc::CLONE_NEWNET };
    let rest = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    user | network | rest
}
