//! Starting a command: its pipes, its supervisor, and what is kept of both.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Gid, Uid};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use rustix::process::Pid;
use windlass_helper::protocol::{Isolation, Start};

use super::Init;
use super::prestart::IdleSupervisor;
use crate::command::{Command, Parts};
use crate::output::{Output, Owner};
use crate::supervisor::{self, SpawnContext};
use crate::{root, sys};

impl Init<'_> {
    pub(super) fn start(&mut self, start: &Start) -> io::Result<()> {
        if !start.hidden.is_empty() && self.setup.isolation == Isolation::Namespaces {
            start.hidden.iter().try_for_each(|path| root::cover_socket(Path::new(path)))?;
            // Its mounts are as they were before.
            self.idle = None;
        }
        if let Some(IdleSupervisor { pid, control, output }) = self.take_idle(start) {
            self.watch(start, (pid, control), output, None);
            return Ok(());
        }
        let (output, [out, err]) = self.open_output()?;
        let (stdin, input) = match start.stdin {
            true => {
                let (from, to) = self.input_pipe()?;
                (from, Some(to))
            }
            false => (self.null.try_clone()?.into(), None),
        };
        let supervisor = self.fork_supervisor(Some(start), [stdin, out, err])?;
        self.watch(start, supervisor, output, input);
        Ok(())
    }

    fn watch(
        &mut self,
        start: &Start,
        (supervisor, control): (Pid, OwnedFd),
        output: Output,
        input: Option<OwnedFd>,
    ) {
        let parts = Parts {
            supervisor,
            control,
            output,
            input,
            is_reachable: self.setup.isolation != Isolation::Namespaces,
            out_of_memory_kills: self.out_of_memory_kills(),
        };
        self.commands.insert(start.id, Command::new(start, parts));
    }

    pub(super) fn open_output(&self) -> io::Result<(Output, [OwnedFd; 2])> {
        Output::open(self.writes_are_signalled, self.pipe_owner())
    }

    /// The owner of pipe ends. A helper that is root makes them for the owner of the workspace.
    fn pipe_owner(&self) -> Option<Owner> {
        let for_another = self.confinement.is_some() && rustix::process::geteuid().is_root();
        for_another.then(|| (Uid::from_raw(self.setup.uid), Gid::from_raw(self.setup.gid)))
    }

    /// A pipe that a command reads from, and may open by name.
    fn input_pipe(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let (from, to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        sys::set_nonblocking(&to)?;
        if let Some((uid, gid)) = self.pipe_owner() {
            rustix::fs::fchown(&from, Some(uid), Some(gid))?;
        }
        Ok((from, to))
    }

    /// What a supervisor has to watch, because no control group does.
    fn memory_limit(&self) -> Option<u64> {
        let unwatched = self.confinement.is_some() && !self.cgroup.bounded.memory;
        unwatched.then_some(self.setup.memory_bytes)
    }

    /// Forks a supervisor; returns it with the connection to it. Without a command it waits for one.
    pub(super) fn fork_supervisor(
        &self,
        start: Option<&Start>,
        streams: [OwnedFd; 3],
    ) -> io::Result<(Pid, OwnedFd)> {
        let (ours, control) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        sys::set_nonblocking(&ours)?;
        let namespaces = match self.setup.isolation {
            Isolation::Namespaces => libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC,
            Isolation::Host | Isolation::Landlock | Isolation::Container => 0,
        };
        if let Some(supervisor) = sys::fork(namespaces)? {
            return Ok((supervisor, ours));
        }
        // The supervisor has no use for the connection to windlass.
        let _ = rustix::stdio::dup2_stdin(&self.null);
        let _ = rustix::stdio::dup2_stdout(&self.null);
        let _ = rustix::stdio::dup2_stderr(&self.null);
        supervisor::supervise(SpawnContext {
            start,
            shell: &self.shell,
            isolation: self.setup.isolation,
            confinement: self.confinement.as_ref(),
            memory_limit: self.memory_limit(),
            shared_memory_bytes: self.setup.scratch_bytes.min(self.setup.memory_bytes),
            open_files: self.open_files,
            streams,
            control,
        })
    }
}
