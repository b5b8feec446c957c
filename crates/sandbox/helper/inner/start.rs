//! Starting a command: by the minder that waits for one, or by one that is made now.
//!
//! Confining a minder (namespaces, `/proc`, Landlock, the filter) takes about as long as starting the
//! command itself. So one is confined ahead.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::fchown;
use std::time::{Duration, Instant};

use super::Inner;
use crate::command::{Command, NUDGE};
use crate::minder::{self, Plan, What};
use crate::output::Output;
use crate::protocol::{Isolation, Order, Start, WINDOW};
use crate::sys;

/// The longest order that a spare minder is given: it fits into a pipe that nobody reads yet.
const MAX_SPARE_BYTES: usize = 32 * 1024;

/// A minder that waits for its command.
pub(super) struct Spare {
    pub(super) minder: i32,
    control: OwnedFd,
    output: Output,
    orders: OwnedFd,
}

impl Inner<'_> {
    pub(super) fn start(&mut self, start: Start) -> io::Result<()> {
        self.started = true;
        if let Some(spare) = self.spare.take_if(|_| !start.stdin) {
            let mut order = Vec::new();
            Order::Start(start.clone()).write(&mut order);
            if order.len() <= MAX_SPARE_BYTES
                && matches!(sys::send(&spare.orders, &order), Ok(sent) if sent == order.len())
            {
                let Spare { minder, control, output, .. } = spare;
                self.watch(&start, minder, control, output, None);
                return Ok(());
            }
            // It hears the end of its orders and goes.
        }
        let owner = self.owner();
        let (output, out, err) = Output::open(self.announced, owner)?;
        let (control, theirs) = sys::packets()?;
        let (stdin, input) = if start.stdin {
            let (from, to) = sys::pipe(0)?;
            sys::set_nonblocking(&to)?;
            if let Some((uid, gid)) = owner {
                fchown(&from, Some(uid), Some(gid))?;
            }
            (from, Some(to))
        } else {
            (self.nothing.try_clone()?.into(), None)
        };
        let minder = self.fork(What::Now(&start), [stdin, out, err], theirs)?;
        sys::set_nonblocking(&control)?;
        self.watch(&start, minder, control, output, input);
        Ok(())
    }

    /// Whose the ends of pipes are: root makes them for someone else, unless it stays what it is.
    fn owner(&self) -> Option<(u32, u32)> {
        let given_away = self.confinement.is_some() && sys::geteuid() == 0;
        given_away.then_some((self.setup.uid, self.setup.gid))
    }

    fn fork(&self, what: What<'_>, streams: [OwnedFd; 3], control: OwnedFd) -> io::Result<i32> {
        let flags = match self.setup.isolation {
            Isolation::Namespaces => sys::CLONE_NEWPID | sys::CLONE_NEWNS,
            Isolation::Host | Isolation::Landlock | Isolation::Container => 0,
        };
        match sys::fork(flags)? {
            0 => {
                // What stands at 0, 1 and 2 until the command's own streams do is nothing.
                for number in 0..3 {
                    sys::dup2(self.nothing.as_raw_fd(), number);
                }
                minder::mind(Plan {
                    what,
                    shell: &self.shell,
                    isolation: self.setup.isolation,
                    confinement: self.confinement.as_ref(),
                    open_files: self.open_files,
                    streams,
                    control,
                })
            }
            minder => Ok(minder),
        }
    }

    fn watch(
        &mut self,
        start: &Start,
        minder: i32,
        control: OwnedFd,
        output: Output,
        input: Option<OwnedFd>,
    ) {
        let timeout = Duration::from_millis(start.timeout_ms);
        let command = Command {
            minder,
            control,
            output,
            input,
            waiting_input: VecDeque::new(),
            written: 0,
            credit: WINDOW,
            deadline: (start.timeout_ms > 0).then(|| Instant::now() + timeout),
            grace_ms: start.grace_ms,
            overdue: None,
            nudge: (self.setup.isolation != Isolation::Namespaces).then(|| Instant::now() + NUDGE),
            ended_by_us: None,
            ended: None,
            refused: false,
            gone: false,
            ended_for_memory_before: self.ended_for_memory(),
        };
        self.commands.insert(start.id, command);
    }

    /// Whether a minder is to be made for the next command: only where a namespace of its own, or the
    /// container's, ends all. With a namespace of its own while another's command runs, when windlass waits
    /// anyway; in a container, where commands see each other's processes, when none runs.
    pub(super) fn wants_spare(&self) -> bool {
        let now = match self.setup.isolation {
            Isolation::Namespaces => true,
            Isolation::Container => self.commands.is_empty(),
            Isolation::Host | Isolation::Landlock => false,
        };
        self.started && now && self.spare.is_none()
    }

    /// Has a minder ready for the next command. One that cannot be had is made when it is needed, which then
    /// says why it cannot.
    pub(super) fn make_spare(&mut self) {
        self.started = false;
        let make = || -> io::Result<Spare> {
            let (output, out, err) = Output::open(self.announced, self.owner())?;
            let (control, theirs) = sys::packets()?;
            sys::set_nonblocking(&control)?;
            let (waiting, orders) = sys::pipe(0)?;
            sys::set_nonblocking(&orders)?;
            let streams = [self.nothing.try_clone()?.into(), out, err];
            let minder = self.fork(What::Later(waiting), streams, theirs)?;
            Ok(Spare { minder, control, output, orders })
        };
        self.spare = make().ok();
        // It is a copy of us, so that our memory, too, is given to us anew as we touch it.
        minder::rehearse();
    }
}
