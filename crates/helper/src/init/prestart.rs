//! A supervisor that is started before its command is known. It is already confined, and no command has used it.
//!
//! Confining a supervisor (namespaces, `/proc`, Landlock, the filter) takes about as long as starting a small
//! command. So the next one is made while windlass and the model do their part.
//!
//! Invariants:
//! - It runs one command, like every supervisor. Nothing is used twice.
//! - No command can reach it while it waits: it is made and kept only while no other command runs, and only
//!   where a namespace or container keeps everyone else out. Whatever starts beside it ends it first.
//! - Until it has its command nothing was run, so another supervisor can take its place.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::Pid;
use windlass_helper::protocol::{Isolation, Start};

use super::Init;
use crate::control;
use crate::output::Output;

/// A supervisor that waits for its command. Dropped, it sees the end of its connection and exits.
pub(super) struct IdleSupervisor {
    pub(super) pid: Pid,
    pub(super) control: OwnedFd,
    pub(super) output: Output,
}

impl IdleSupervisor {
    /// Hands the command over; fails when it is too long for one packet, or the supervisor is gone.
    pub(super) fn assign(&self, start: &Start) -> io::Result<()> {
        control::send_start(&self.control, start)
    }
}

impl Init<'_> {
    /// Makes a supervisor for the next command, where none can reach it. One that cannot be made is made later.
    pub(super) fn prestart(&mut self) {
        let is_unreachable = match self.setup.isolation {
            Isolation::Namespaces | Isolation::Container => self.commands.is_empty(),
            Isolation::Host | Isolation::Landlock => false,
        };
        if is_unreachable && self.idle.is_none() {
            self.idle = self.fork_idle().ok();
        }
    }

    fn fork_idle(&self) -> io::Result<IdleSupervisor> {
        let (output, [out, err]) = self.open_output()?;
        let stdin = self.null.try_clone()?.into();
        let (pid, control) = self.fork_supervisor(None, [stdin, out, err])?;
        Ok(IdleSupervisor { pid, control, output })
    }

    /// The waiting supervisor, if it takes this command.
    pub(super) fn take_idle(&mut self, start: &Start) -> Option<IdleSupervisor> {
        let idle = self.idle.take()?;
        (!start.stdin && idle.assign(start).is_ok()).then_some(idle)
    }
}
