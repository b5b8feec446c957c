//! The init: process 1 of the sandbox. One loop that starts commands and carries their bytes.
//!
//! Invariants:
//! - It never blocks on anything but `poll`, and never waits for windlass to read. A command's output is sent only
//!   while the command has credit; so buffers are at most the sum of the commands' windows.
//! - A command's end is reported once, after its whole tree is gone and all its output is sent.
//! - Every living command has its supervisor. When a supervisor dies, its processes come to the init, which kills
//!   them at once.

mod enter;
mod file_changes;
mod orders;
mod prestart;
mod shared_memory;
mod start;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Rlimit, Signal};
use rustix::stdio::{stdin, stdout};
use windlass_helper::protocol::{Isolation, MAX_CONNECTIONS, Report, Setup};

use crate::cgroup::{self, Cgroup};
use crate::command::Command;
use crate::confine::Confinement;
use crate::connection::Connection;
use crate::output;
use crate::process_tree::descendants;
use crate::root::OwnerMap;
use crate::sys::{self, ChildExit, Signals};
pub use file_changes::FileChanges;
use prestart::IdleSupervisor;

/// What the outgoing buffer may keep allocated when idle.
const IDLE_BUFFER_BYTES: usize = 64 * 1024;

/// Rounds of killing orphans before the rest is left to the next signal.
const MAX_ORPHAN_ROUNDS: usize = 100;

/// The longest wait that `poll` is asked for.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Enters the sandbox, reports how that went, and serves until windlass hangs up. `bounds` is a pipe on which the
/// watchdog reports that we are in the control group, and its limits.
pub fn run(setup: &Setup, owners: Option<&OwnerMap>, cgroup: Cgroup, bounds: OwnedFd) -> ! {
    match Init::enter(setup, owners, cgroup, bounds) {
        Ok((mut init, ready)) => {
            Report::Ready(ready).write(&mut init.out);
            init.serve();
            init.end_everything();
        }
        Err(failure) => crate::report(failure),
    }
    std::process::exit(0)
}

struct Init<'a> {
    setup: &'a Setup,
    cgroup: Cgroup,
    confinement: Option<Confinement>,
    shell: String,
    signals: Signals,
    writes_are_signalled: bool,
    null: File,
    open_files: Rlimit,
    listener: Option<TcpListener>,
    received: Vec<u8>,
    /// What is read at once. Kept, because the pages of a new one would have to be mapped again.
    buffer: Box<[u8]>,
    out: Vec<u8>,
    sent: usize,
    commands: BTreeMap<u32, Command>,
    /// Made for the next command.
    idle: Option<IdleSupervisor>,
    connections: BTreeMap<u32, Connection>,
    next_connection: u32,
    /// When everything ends unless windlass says before that it lives; `None` where it never says so.
    lease_end: Option<Instant>,
    is_over: bool,
}

/// What a descriptor in the poll list belongs to.
#[derive(Clone, Copy)]
enum PollSource {
    Orders,
    Reports,
    Signals,
    Listener,
    Control(u32),
    FileChange(u32),
    Output(u32, usize),
    Input(u32),
    Connection(u32),
}

impl Init<'_> {
    fn serve(&mut self) {
        let mut chunk = Vec::new();
        self.flush();
        while !self.is_over {
            let ready = self.wait();
            // Before anything is read: after a freeze, a heartbeat that was sent before it is old.
            if self.lease_end.is_some_and(|end| end <= Instant::now()) {
                return;
            }
            self.take_signals();
            for (source, events) in ready {
                self.serve_one(source, events);
            }
            if self.commands.values().any(Command::is_over) {
                // The last writes of a command were signalled before its end was reported.
                self.take_signals();
            }
            let now = Instant::now();
            self.commands.values_mut().for_each(|command| command.check_deadlines(now));
            let ids: Vec<u32> = self.commands.keys().copied().collect();
            for id in ids {
                if let Some(command) = self.commands.get_mut(&id) {
                    command.read_output(id, &mut chunk, &mut self.out);
                }
                self.finish_command(id);
            }
            self.flush();
        }
    }

    /// Waits until something is to be done; returns what is ready.
    fn wait(&self) -> Vec<(PollSource, PollFlags)> {
        let (input, output) = (stdin(), stdout());
        let (mut fds, mut sources) = (Vec::new(), Vec::new());
        let mut add = |fd, events: PollFlags, source: PollSource| {
            fds.push(PollFd::from_borrowed_fd(fd, events));
            sources.push(source);
        };
        add(input, PollFlags::IN, PollSource::Orders);
        if self.sent < self.out.len() {
            add(output, PollFlags::OUT, PollSource::Reports);
        }
        add(self.signals.as_fd(), PollFlags::IN, PollSource::Signals);
        if let Some(listener) = &self.listener
            && self.connections.len() < MAX_CONNECTIONS
        {
            add(listener.as_fd(), PollFlags::IN, PollSource::Listener);
        }
        self.list_commands(&mut add);
        for (&id, connection) in &self.connections {
            // One that waits for windlass is left out: its end would wake us again and again.
            if !connection.events().is_empty() {
                add(connection.fd(), connection.events(), PollSource::Connection(id));
            }
        }
        sys::wait(&mut fds, self.timeout());
        let events = fds.iter().map(PollFd::revents);
        sources.into_iter().zip(events).filter(|(_, events)| !events.is_empty()).collect()
    }

    fn list_commands<'b>(&'b self, add: &mut impl FnMut(BorrowedFd<'b>, PollFlags, PollSource)) {
        for (&id, command) in &self.commands {
            if !command.supervisor_died {
                add(command.control.as_fd(), PollFlags::IN, PollSource::Control(id));
            }
            if let Some(changes) = &command.file_changes {
                add(changes.fd(), PollFlags::IN, PollSource::FileChange(id));
            }
            if command.credit > 0 {
                for (at, pipe) in command.output.awaited() {
                    add(pipe, PollFlags::IN, PollSource::Output(id, at));
                }
            }
            if let Some(input) = &command.input
                && !command.waiting_input.is_empty()
            {
                add(input.as_fd(), PollFlags::OUT, PollSource::Input(id));
            }
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let soon = self.commands.values().any(|command| {
            command.credit > 0 && (command.output.is_waiting() || command.is_over())
        });
        if soon {
            return Some(Duration::from_millis(1));
        }
        let deadlines = self.commands.values().filter_map(Command::next_deadline);
        let next = deadlines.chain(self.lease_end).min()?;
        let wait = next.saturating_duration_since(Instant::now()).min(MAX_WAIT);
        Some(wait + Duration::from_millis(1))
    }

    fn take_signals(&mut self) {
        let mut child_ended = false;
        for signal in self.signals.drain() {
            match signal.number {
                libc::SIGCHLD => child_ended = true,
                output::WRITE_SIGNAL => {
                    let mut commands = self.commands.values_mut();
                    let _ = commands.any(|command| command.output.on_write_signal(signal.fd));
                }
                _ => {}
            }
        }
        if child_ended {
            self.reap();
            self.kill_orphans();
        }
    }

    fn reap(&mut self) {
        while let ChildExit::Child(pid, _) = sys::reap() {
            self.idle.take_if(|idle| idle.pid == pid);
            for (&id, command) in &mut self.commands {
                if command.supervisor == pid {
                    command.supervisor_died = true;
                    command.read_control(id, &mut self.out);
                }
            }
        }
    }

    /// A supervisor that was killed leaves its tree to us.
    fn kill_orphans(&mut self) {
        for _ in 0..MAX_ORPHAN_ROUNDS {
            if !self.commands.values().any(Command::is_abandoned) {
                return;
            }
            let orphans = self.orphans();
            if orphans.is_empty() {
                return;
            }
            // Stopped first, so that fewer are born while the others are killed.
            for signal in [Signal::STOP, Signal::KILL] {
                for &pid in &orphans {
                    sys::kill(pid, signal);
                }
            }
            self.reap();
        }
    }

    /// Everyone below us who has no living supervisor.
    fn orphans(&self) -> Vec<Pid> {
        let supervised: Vec<Pid> = self
            .commands
            .values()
            .filter(|command| !command.supervisor_died)
            .flat_map(|command| {
                [vec![command.supervisor], descendants(command.supervisor)].concat()
            })
            .chain(self.idle.as_ref().map(|idle| idle.pid))
            .collect();
        let all = descendants(rustix::process::getpid());
        all.into_iter().filter(|pid| !supervised.contains(pid)).collect()
    }

    fn serve_one(&mut self, source: PollSource, events: PollFlags) {
        match source {
            PollSource::Orders => self.read_orders(),
            PollSource::Reports | PollSource::Signals => {}
            PollSource::Listener => self.accept(),
            PollSource::Control(id) => {
                if let Some(command) = self.commands.get_mut(&id)
                    && !command.supervisor_died
                {
                    command.read_control(id, &mut self.out);
                }
            }
            PollSource::FileChange(id) => {
                if let Some(command) = self.commands.get_mut(&id)
                    && let Some(changes) = &command.file_changes
                {
                    match events.contains(PollFlags::IN) {
                        true => changes.answer(self.setup),
                        // Nobody is left who could ask.
                        false => command.file_changes = None,
                    }
                }
            }
            PollSource::Output(id, at) => {
                if let Some(command) = self.commands.get_mut(&id) {
                    command.output.on_readable(at);
                }
            }
            PollSource::Input(id) => self.write_input(id),
            PollSource::Connection(id) => self.transfer(id, events),
        }
    }

    fn out_of_memory_kills(&self) -> u64 {
        self.cgroup.counter.as_ref().map_or(0, cgroup::out_of_memory_kills)
    }

    fn write_input(&mut self, id: u32) {
        if let Some(command) = self.commands.get_mut(&id) {
            command.write_input(id, &mut self.out);
        }
    }

    /// Reports the end once nothing of the command is left here.
    fn finish_command(&mut self, id: u32) {
        let is_finished =
            |command: &Command| command.is_over() && (command.refused || !command.output.is_open());
        if !self.commands.get(&id).is_some_and(is_finished) {
            return;
        }
        let Some(command) = self.commands.remove(&id) else { return };
        if command.refused {
            return;
        }
        let out_of_memory = self.out_of_memory_kills() > command.out_of_memory_kills_before;
        let (cause, value) = command.cause(out_of_memory);
        let cwd = command.ended.map_or(String::new(), |(_, cwd)| cwd);
        Report::Ended { id, cause, value, cwd }.write(&mut self.out);
        // The caller reads the end before anything is done for the next command.
        self.flush();
        self.clear_shared_memory();
        self.prestart();
    }

    fn accept(&mut self) {
        let Some(listener) = &self.listener else { return };
        let Ok((stream, _)) = listener.accept() else { return };
        let Ok(connection) = Connection::new(stream) else { return };
        let id = self.next_connection;
        self.next_connection = self.next_connection.wrapping_add(1);
        self.connections.insert(id, connection);
        Report::Connected { connection: id }.write(&mut self.out);
    }

    fn transfer(&mut self, id: u32, events: PollFlags) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.work(id, events, &mut self.out).is_err() || connection.is_over() {
            self.connections.remove(&id);
            Report::Closed { connection: id }.write(&mut self.out);
        }
    }

    fn flush(&mut self) {
        while self.sent < self.out.len() {
            match sys::write(stdout(), &self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if sys::would_block(&error) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.is_over = true;
                    return;
                }
            }
        }
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
            self.out.shrink_to(IDLE_BUFFER_BYTES);
        }
    }

    /// Windlass is gone. With namespaces the kernel ends all when we exit; without, each supervisor does.
    fn end_everything(&mut self) {
        if self.setup.isolation == Isolation::Namespaces {
            return;
        }
        // Supervisors see the end of their connection.
        self.commands.clear();
        self.idle = None;
        loop {
            match sys::reap() {
                ChildExit::NoChildren => return,
                ChildExit::Child(..) => {}
                ChildExit::NoneEnded => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}
