//! The inner: process 1 of the sandbox. One loop that starts commands and carries their bytes.
//!
//! Invariants:
//! - It never blocks on anything but `poll`, and never waits for windlass to read: bytes leave only
//!   against credit, so what is buffered is bounded by the windows of what runs.
//! - A command's end is reported once, after its whole tree is gone and all its output is sent.
//! - Whatever comes to it as an orphan is ended at once: every living command has its minder.
//! - From the first command on, a minder waits for the next: what it takes to confine one, and to start its
//!   shell, is done before it is asked for.

mod orders;
mod start;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Instant;

use crate::ahead::Surroundings;
use crate::command::Command;
use crate::confine::{self, Bounded, Confinement};
use crate::connection::Connection;
use crate::group::{self, Group};
use crate::minder;
use crate::output;
use crate::protocol::{
    Cause, Isolation, MAX_CONNECTIONS, Reach, Ready, Report, Setup,
};
use crate::{root, sys};
use start::Spare;

/// What the outgoing buffer may keep allocated when idle.
const IDLE_BUFFER: usize = 64 * 1024;

/// What is read of windlass's orders at once.
const READ_BYTES: usize = 64 * 1024;

/// Enters the sandbox, says how that went and serves until windlass hangs up. Never returns. `go` tells that
/// the group has taken us in, and how it is bounded.
pub fn run(setup: &Setup, group: Group, go: OwnedFd, from: &OwnedFd, to: &OwnedFd) -> ! {
    let mut frame = Vec::new();
    match Inner::enter(setup, group, go, from, to) {
        Ok((mut inner, ready)) => {
            Report::Ready(ready).write(&mut inner.out);
            inner.serve();
            inner.end_everything();
        }
        Err((stage, error)) => {
            Report::Failed { stage, errno: sys::errno(&error) }.write(&mut frame);
            let _ = sys::send(to, &frame);
        }
    }
    sys::_exit(0)
}

struct Inner<'a> {
    setup: &'a Setup,
    group: Group,
    from: &'a OwnedFd,
    to: &'a OwnedFd,
    confinement: Option<Confinement>,
    shell: String,
    signals: OwnedFd,
    announced: bool,
    nothing: File,
    open_files: [u64; 2],
    listener: Option<TcpListener>,
    received: Vec<u8>,
    /// What is read at once. Kept, because each page of a new one would be touched anew.
    buffer: Box<[u8]>,
    out: Vec<u8>,
    sent: usize,
    commands: BTreeMap<u32, Command>,
    spare: Option<Spare>,
    /// Where the last script ran: there the next shell is started ahead.
    usual: Option<Surroundings>,
    /// How often in a row a shell started ahead could not be found.
    not_found: u32,
    connections: BTreeMap<u32, Connection>,
    next_connection: u32,
    over: bool,
}

/// What a descriptor in the poll list belongs to.
#[derive(Clone, Copy)]
enum Source {
    From,
    To,
    Signals,
    Spare,
    Listener,
    Control(u32),
    Output(u32, usize),
    Input(u32),
    Connection(u32),
}

impl<'a> Inner<'a> {
    fn enter(
        setup: &'a Setup,
        mut group: Group,
        go: OwnedFd,
        from: &'a OwnedFd,
        to: &'a OwnedFd,
    ) -> Result<(Self, Ready), (String, io::Error)> {
        let fail = |stage: &'static str| move |error: io::Error| (stage.to_owned(), error);
        if setup.isolation == Isolation::Namespaces {
            if sys::geteuid() != 0 {
                root::name_user(setup.uid, setup.gid)?;
            }
            root::enter(setup)?;
            sys::name_host("windlass");
            if setup.reach != Reach::Everything {
                root::raise_loopback().map_err(fail("raise loopback"))?;
            }
        }
        let _ = sys::set_process(sys::PR_SET_CHILD_SUBREAPER, 1);
        let _ = sys::set_process(sys::PR_SET_DUMPABLE, 0);
        let listener = match (setup.isolation, setup.reach) {
            (Isolation::Host, _) | (_, Reach::Nothing | Reach::Everything) => None,
            (Isolation::Namespaces | Isolation::Landlock | Isolation::Container, Reach::Proxy) => {
                let listener = TcpListener::bind("127.0.0.1:0").map_err(fail("open the proxy"))?;
                listener.set_nonblocking(true).map_err(fail("open the proxy"))?;
                Some(listener)
            }
        };
        let proxy_port = listener
            .as_ref()
            .and_then(|listener| listener.local_addr().ok())
            .map_or(0, |address| address.port());
        // Being taken in lasts as long as all of the above, which needed no bounds yet.
        group.bounded = Bounded::told(&go).map_err(fail("be bounded"))?;
        drop(go);
        let confinement = match setup.isolation {
            Isolation::Host => None,
            Isolation::Namespaces | Isolation::Landlock | Isolation::Container => {
                confine::bar_capabilities();
                Some(
                    Confinement::prepare(setup, group.bounded, proxy_port)
                        .map_err(fail("prepare landlock"))?,
                )
            }
        };
        let landlock = confinement.as_ref().map_or(0, |confinement| confinement.landlock);
        if setup.isolation == Isolation::Landlock && landlock == 0 {
            return Err(("landlock".to_owned(), io::Error::from_raw_os_error(sys::ENOSYS)));
        }
        sys::block(&[sys::SIGCHLD, sys::SIGWRITTEN, sys::SIGIO]);
        let signals =
            sys::signals(&[sys::SIGCHLD, sys::SIGWRITTEN]).map_err(fail("read signals"))?;
        let nothing =
            File::options().read(true).write(true).open("/dev/null").map_err(fail("open null"))?;
        sys::set_nonblocking(from).map_err(fail("prepare"))?;
        sys::set_nonblocking(to).map_err(fail("prepare"))?;
        let shell = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh"]
            .into_iter()
            .find(|path| Path::new(path).exists())
            .unwrap_or("/bin/sh")
            .to_owned();
        let ready = Ready {
            proxy_port,
            landlock,
            memory_bounded: group.bounded.memory,
            processes_bounded: group.bounded.processes,
            filtered: confinement.is_some(),
            shell: shell.clone(),
        };
        let announced = output::writes_are_announced(&signals);
        let inner = Self {
            setup,
            group,
            from,
            to,
            confinement,
            shell,
            signals,
            announced,
            nothing,
            open_files: sys::raise_open_files(),
            listener,
            received: Vec::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            out: Vec::new(),
            sent: 0,
            commands: BTreeMap::new(),
            spare: None,
            usual: None,
            not_found: 0,
            connections: BTreeMap::new(),
            next_connection: 1,
            over: false,
        };
        Ok((inner, ready))
    }

    fn serve(&mut self) {
        let mut fds = Vec::new();
        let mut sources = Vec::new();
        let mut chunk = Vec::new();
        self.flush();
        while !self.over {
            fds.clear();
            sources.clear();
            self.list(&mut fds, &mut sources);
            let timeout = self.timeout();
            sys::wait(&mut fds, timeout);
            self.take_signals();
            for (fd, source) in fds.iter().zip(&sources) {
                if fd.revents != 0 {
                    self.serve_one(*source, fd.revents);
                }
            }
            if self.commands.values().any(Command::is_over) {
                // The last writes of one whose end was just heard of were announced before its end.
                self.take_signals();
            }
            self.check_deadlines();
            let ids: Vec<u32> = self.commands.keys().copied().collect();
            for id in ids {
                self.pump(id, &mut chunk);
                self.settle(id);
            }
            self.flush();
        }
    }

    fn list(&self, fds: &mut Vec<sys::PollFd>, sources: &mut Vec<Source>) {
        let mut add = |fd: RawFd, events: i16, source: Source| {
            fds.push(sys::PollFd { fd, events, revents: 0 });
            sources.push(source);
        };
        add(self.from.as_raw_fd(), sys::POLLIN, Source::From);
        if self.sent < self.out.len() {
            add(self.to.as_raw_fd(), sys::POLLOUT, Source::To);
        }
        add(self.signals.as_raw_fd(), sys::POLLIN, Source::Signals);
        if let Some(control) = self.spare.as_ref().and_then(Spare::coming) {
            add(control, sys::POLLIN, Source::Spare);
        }
        if let Some(listener) = &self.listener
            && self.connections.len() < MAX_CONNECTIONS
        {
            add(listener.as_raw_fd(), sys::POLLIN, Source::Listener);
        }
        for (&id, command) in &self.commands {
            if !command.gone {
                add(command.control.as_raw_fd(), sys::POLLIN, Source::Control(id));
            }
            if command.credit > 0 {
                for (at, fd) in command.output.wanted().into_iter().enumerate() {
                    if let Some(fd) = fd {
                        add(fd, sys::POLLIN, Source::Output(id, at));
                    }
                }
            }
            if let Some(input) = &command.input
                && !command.waiting_input.is_empty()
            {
                add(input.as_raw_fd(), sys::POLLOUT, Source::Input(id));
            }
        }
        for (&id, connection) in &self.connections {
            // One that waits for windlass is left out: its end would wake us over and over.
            if connection.events() != 0 {
                add(connection.fd(), connection.events(), Source::Connection(id));
            }
        }
    }

    fn timeout(&self) -> i32 {
        let now = Instant::now();
        let soon = self.commands.values().any(|command| {
            command.credit > 0 && (command.output.is_waiting() || command.is_over())
        });
        let next = self
            .commands
            .values()
            .flat_map(|command| [command.deadline, command.overdue, command.nudge]);
        let next = next.flatten().min();
        match (soon, next) {
            (true, _) => 1,
            (false, None) => -1,
            (false, Some(at)) => {
                let wait = at.saturating_duration_since(now).as_millis().min(60_000);
                wait as i32 + 1
            }
        }
    }

    fn take_signals(&mut self) {
        let mut ended = false;
        let (commands, spare) = (&mut self.commands, &mut self.spare);
        sys::pending(&self.signals, |number, fd| {
            if number == sys::SIGCHLD {
                ended = true;
            } else if !commands.values_mut().any(|command| command.output.announce(fd))
                && let Some(spare) = spare
            {
                spare.announce(fd);
            }
        });
        if ended {
            self.reap();
            self.end_orphans();
        }
    }

    fn reap(&mut self) {
        while let Ok(Some(reaped)) = sys::reap() {
            self.spare.take_if(|spare| spare.minder == reaped.pid);
            for (&id, command) in &mut self.commands {
                if command.minder == reaped.pid {
                    command.gone = true;
                    command.hear(id, &mut self.out);
                }
            }
        }
    }

    /// A minder that was killed leaves its tree to us.
    fn end_orphans(&mut self) {
        for _ in 0..100 {
            let bereft =
                |command: &Command| command.gone && command.ended.is_none() && !command.refused;
            if !self.commands.values().any(bereft) {
                return;
            }
            let orphans = self.orphans();
            if orphans.is_empty() {
                return;
            }
            // Stopped first, so that fewer are born while the others are ended.
            for signal in [sys::SIGSTOP, sys::SIGKILL] {
                for &pid in &orphans {
                    sys::kill(pid, signal);
                }
            }
            self.reap();
        }
    }

    /// Everyone below us whom no living minder minds.
    fn orphans(&self) -> Vec<i32> {
        let minders: Vec<i32> = self
            .commands
            .values()
            .filter(|command| !command.gone)
            .map(|command| command.minder)
            .chain(self.spare.as_ref().map(|spare| spare.minder))
            .collect();
        let kept: Vec<i32> = minders
            .iter()
            .flat_map(|&minder| [vec![minder], minder::descendants(minder)].concat())
            .collect();
        let all = minder::descendants(sys::getpid());
        all.into_iter().filter(|pid| !kept.contains(pid)).collect()
    }

    fn serve_one(&mut self, source: Source, events: i16) {
        match source {
            Source::From => self.receive(),
            Source::To | Source::Signals => {}
            Source::Spare => {
                self.spare.take_if(|spare| !spare.hear(&self.shell));
            }
            Source::Listener => self.accept(),
            Source::Control(id) => {
                if let Some(command) = self.commands.get_mut(&id)
                    && !command.gone
                {
                    command.hear(id, &mut self.out);
                }
            }
            Source::Output(id, at) => {
                if let Some(command) = self.commands.get_mut(&id) {
                    command.output.readable(at);
                }
            }
            Source::Input(id) => self.feed(id),
            Source::Connection(id) => self.carry(id, events),
        }
    }

    fn ended_for_memory(&self) -> u64 {
        self.group.counter.as_ref().map_or(0, group::ended_for_memory)
    }

    fn feed(&mut self, id: u32) {
        if let Some(command) = self.commands.get_mut(&id) {
            command.feed(id, &mut self.out);
        }
    }

    fn check_deadlines(&mut self) {
        let now = Instant::now();
        for command in self.commands.values_mut() {
            if command.deadline.is_some_and(|deadline| now >= deadline) {
                command.deadline = None;
                command.end(Cause::TimedOut, command.grace_ms);
            }
            command.watch_minder(now);
        }
    }

    /// Sends what the command wrote, as far as its credit goes.
    fn pump(&mut self, id: u32, chunk: &mut Vec<u8>) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        command.pump(id, chunk, &mut self.out);
    }

    /// Reports the end once nothing of the command is left here.
    fn settle(&mut self, id: u32) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        if !command.is_over() || (command.output.is_open() && !command.refused) {
            return;
        }
        let Some(command) = self.commands.remove(&id) else { return };
        if command.refused {
            return;
        }
        let starved = self.ended_for_memory() > command.ended_for_memory_before;
        let (cause, value) = command.cause(starved);
        let cwd = command.ended.as_ref().map_or(String::new(), |(_, cwd)| cwd.clone());
        Report::Ended { id, cause, value, cwd }.write(&mut self.out);
        // Whoever waits for the end hears it before anything is done for the next command.
        self.flush();
        self.keep(command);
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

    fn carry(&mut self, id: u32, events: i16) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.work(id, events, &mut self.out).is_err() || connection.is_over() {
            self.connections.remove(&id);
            Report::Closed { connection: id }.write(&mut self.out);
        }
    }

    fn flush(&mut self) {
        while self.sent < self.out.len() {
            match sys::send(self.to, &self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if sys::errno(&error) == sys::EAGAIN => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.over = true;
                    return;
                }
            }
        }
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
            self.out.shrink_to(IDLE_BUFFER);
        }
    }

    /// Windlass is gone. With namespaces the kernel ends all when we leave; without, each minder does.
    fn end_everything(&mut self) {
        if self.setup.isolation == Isolation::Namespaces {
            return;
        }
        self.commands.clear();
        // One that waits for its command hears that none will come.
        self.spare = None;
        loop {
            match sys::reap() {
                Err(()) => return,
                Ok(Some(_)) => {}
                Ok(None) => {
                    // A minder that is gone leaves orphans; those that live see our silence themselves.
                    sys::wait(&mut [], 2);
                }
            }
        }
    }
}
