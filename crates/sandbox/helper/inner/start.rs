//! Starting a command: by the minder that waits for one, or by one that is made now.
//!
//! Confining a minder (namespaces, `/proc`, Landlock, the filter) takes about as long as starting the
//! command itself. So one whose command left nothing behind is kept for the next, and has a shell ready for it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::fchown;
use std::time::{Duration, Instant};

use super::Inner;
use crate::ahead::{Surroundings, Waiting};
use crate::command::{Command, NUDGE};
use crate::minder::{self, Plan};
use crate::output::Output;
use crate::protocol::{Isolation, Report, Start, WINDOW};
use crate::sys;
use crate::talk::{Again, Told, Word};

/// How long a minder that gets ready is waited for; it takes a millisecond or two.
const GETS_READY_MS: i32 = 250;

/// How often in a row a shell started ahead cannot be found before none is started any more: this system does
/// not show it.
const NEVER_FOUND: u32 = 16;

/// A minder that waits for its command.
pub(super) struct Spare {
    pub(super) minder: i32,
    control: OwnedFd,
    output: Output,
    /// Whether it has said that it waits.
    ready: bool,
    /// The shell that it has started ahead.
    shell: Option<Waiting>,
}

impl Spare {
    /// The descriptor to hear on that it is ready.
    pub(super) fn coming(&self) -> Option<RawFd> {
        (!self.ready).then(|| self.control.as_raw_fd())
    }

    /// Takes the word of a minder that is ready, and lays hands on its shell. False when it will never be.
    pub(super) fn hear(&mut self, shell: &str) -> bool {
        let mut packet = [0; 1024];
        match sys::receive(&self.control, &mut packet) {
            Err(error) if sys::errno(&error) == sys::EAGAIN => return true,
            Ok(count) if matches!(Word::parse(&packet[..count]), Some(Word::Ready)) => {}
            Ok(_) | Err(_) => return false,
        }
        self.ready = true;
        if let Some(waiting) = &mut self.shell {
            waiting.find(self.minder, shell);
        }
        true
    }

    /// A write of its shell was announced, if it was one.
    pub(super) fn announce(&mut self, fd: RawFd) -> bool {
        self.output.announce(fd)
    }
}

impl Inner<'_> {
    pub(super) fn start(&mut self, start: Start) -> io::Result<()> {
        if let Some(surroundings) = Surroundings::of(&start, &self.shell) {
            self.usual = Some(surroundings);
        }
        if start.stdin && self.setup.isolation == Isolation::Container {
            // It would be seen by this one, which does not use it.
            self.spare = None;
        }
        if let Some(mut spare) = self.spare.take_if(|_| !start.stdin)
            && self.hand_over(&mut spare, &start)
        {
            let Spare { minder, control, output, .. } = spare;
            self.watch(&start, minder, control, output, None);
            return Ok(());
        }
        // One that is not used hears that nothing will come, and goes.
        let (output, out, err) = Output::open(self.announced, self.owner())?;
        let (control, theirs) = sys::packets()?;
        let (stdin, input) = if start.stdin {
            let (from, to) = self.pipe_in()?;
            (from, Some(to))
        } else {
            (self.nothing.try_clone()?.into(), None)
        };
        let minder = self.fork(&start, [stdin, out, err], theirs)?;
        sys::set_nonblocking(&control)?;
        self.watch(&start, minder, control, output, input);
        Ok(())
    }

    /// Whose the ends of pipes are: root makes them for someone else, unless it stays what it is.
    fn owner(&self) -> Option<(u32, u32)> {
        let given_away = self.confinement.is_some() && sys::geteuid() == 0;
        given_away.then_some((self.setup.uid, self.setup.gid))
    }

    /// A pipe that a command reads from, and may open by name.
    fn pipe_in(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let (from, to) = sys::pipe(0)?;
        sys::set_nonblocking(&to)?;
        if let Some((uid, gid)) = self.owner() {
            fchown(&from, Some(uid), Some(gid))?;
        }
        Ok((from, to))
    }

    fn fork(&self, start: &Start, streams: [OwnedFd; 3], control: OwnedFd) -> io::Result<i32> {
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
                    start,
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

    /// Has the minder of a command that ended wait for the next: only where a namespace of its own, or the
    /// container's, ends all, and one is enough. None waits while another command runs: in a container they see each
    /// other's processes, and elsewhere the one that ended may have handed its view of them on.
    pub(super) fn keep(&mut self, command: Command) {
        let may = match self.setup.isolation {
            Isolation::Namespaces | Isolation::Container => self.commands.is_empty(),
            Isolation::Host | Isolation::Landlock => false,
        };
        let lives = !command.gone && command.ended.is_some();
        if may && lives && self.spare.is_none() {
            // One that cannot be kept hears the end of all orders, and goes.
            self.spare = self.ask_again(command.minder, command.control).ok();
        }
    }

    fn ask_again(&mut self, minder: i32, control: OwnedFd) -> io::Result<Spare> {
        let (output, out, err) = Output::open(self.announced, self.owner())?;
        let (shell, ahead) = match self.usual.clone().filter(|_| self.not_found < NEVER_FOUND) {
            None => (None, None),
            Some(usual) => {
                let (from, to) = self.pipe_in()?;
                (Some(Waiting::new(usual.clone(), to)), Some((usual, from)))
            }
        };
        Again { streams: [out, err], ahead }.send(&control)?;
        Ok(Spare { minder, control, output, ready: false, shell })
    }

    /// Has a minder that waits run this, by its shell or, where it has none, by a new one. False when it does not,
    /// and nothing was run.
    fn hand_over(&mut self, spare: &mut Spare, start: &Start) -> bool {
        if let Some(fd) = spare.coming() {
            sys::wait(&mut [sys::PollFd { fd, events: sys::POLLIN, revents: 0 }], GETS_READY_MS);
            if !spare.hear(&self.shell) || !spare.ready {
                return false;
            }
        }
        let Some(mut waiting) = spare.shell.take() else {
            return Told::New(start.clone()).send(&spare.control).is_ok();
        };
        self.not_found = match waiting.find(spare.minder, &self.shell) {
            true => 0,
            false => self.not_found + 1,
        };
        if waiting.give(start, &self.shell).is_err() {
            return false;
        }
        // It has its script and runs it, whether or not its minder lives to hear so.
        let _ = Told::Given { background: start.background }.send(&spare.control);
        Report::Started { id: start.id }.write(&mut self.out);
        true
    }
}
