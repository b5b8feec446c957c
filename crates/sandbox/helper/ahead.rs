//! A shell that is started before its script is known, and from then on is what `bash -c SCRIPT` is.
//!
//! Starting a shell takes most of the time of a small command. This one is started with room for a script among its
//! arguments and with a start-up file (`BASH_ENV`) that is a pipe, and stands still at reading it. Then the script is
//! written into the room, and the start-up file undoes what is to be seen of all this: the variable, the
//! descriptor, the clock. bash looks at its script only after that. What remains to be seen is a 0 in `PIPESTATUS` and in
//! `BASH_ARGC` before the script's first command.
//!
//! Invariants:
//! - A shell that waits is confined already and runs nothing of anybody's.
//! - Until its start-up file is given nothing was run; whatever fails before, a new shell runs the script.
//! - It is used only for the environment and the very directory it was started in.
//! - One that did not take its script would end by a signal, not as if all were done.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::protocol::Start;
use crate::{minder, sys};

/// The longest script that is written into a shell that waits, with its end: one page, which most need not fill.
const ROOM_BYTES: usize = 4096;

/// What stands in the room until a script does. A shell that is told nothing ends by it.
const PLACEHOLDER: &str = "kill -61 $$ ";

/// The number of the descriptor that a waiting shell reads its start-up file from: the first after the streams.
pub const START_UP: i32 = 3;

/// What begins so in the environment has bash start otherwise, say more or run other things than we count on.
const SHOWS: &[&str] = &[
    "BASH_ENV=",
    "BASH_FUNC_",
    "BASH_COMPAT=",
    "BASHOPTS=",
    "LD_DEBUG",
    "POSIXLY_CORRECT=",
    "SECONDS=",
    "SHELLOPTS=",
    "SSH_CLIENT=",
    "SSH2_CLIENT=",
];

/// Where a script runs.
#[derive(Clone, PartialEq, Eq)]
pub struct Surroundings {
    pub env: Vec<String>,
    pub cwd: String,
}

impl Surroundings {
    /// Those of this command, if a shell could be started ahead for them.
    pub fn of(start: &Start, shell: &str) -> Option<Self> {
        let fit = start.argv.is_empty()
            && !start.stdin
            && shell.ends_with("/bash")
            && !start.env.iter().any(|entry| SHOWS.iter().any(|name| entry.starts_with(name)));
        fit.then(|| Self { env: start.env.clone(), cwd: start.cwd.clone() })
    }
}

/// The arguments of a shell that waits.
pub fn argv(shell: &str) -> [String; 3] {
    let room = format!("{PLACEHOLDER:ROOM_BYTES$}");
    [shell.to_owned(), "-c".to_owned(), room]
}

/// The environment of a shell that waits.
pub fn env(mut env: Vec<String>) -> Vec<String> {
    env.push(format!("BASH_ENV=/proc/self/fd/{START_UP}"));
    env
}

/// A shell that waits, as the inner holds it.
pub struct Waiting {
    surroundings: Surroundings,
    start_up: OwnedFd,
    found: Option<Found>,
}

/// A shell's process, and the room for its script.
struct Found {
    pid: i32,
    memory: File,
    room: u64,
}

impl Waiting {
    /// The shell that is being started in these surroundings, whose start-up file is the other end of this pipe.
    pub fn new(surroundings: Surroundings, start_up: OwnedFd) -> Self {
        Self { surroundings, start_up, found: None }
    }

    /// Lays hands on the shell that the minder has started. Who has just become a program may not show its arguments
    /// yet; then this is to be tried again.
    pub fn find(&mut self, minder: i32, shell: &str) -> bool {
        if self.found.is_none() {
            self.found = Found::look(minder, shell).ok().flatten();
        }
        self.found.is_some()
    }

    /// Has the shell run this command's script, if it is the shell that would be started for it now.
    pub fn give(self, start: &Start, shell: &str) -> io::Result<()> {
        let no = || io::Error::from(io::ErrorKind::InvalidInput);
        let script = [start.script.as_bytes(), b"\0"].concat();
        let text = start_up_file(&start.script, shell);
        let Some(found) = &self.found else { return Err(no()) };
        let fits = !start.script.contains('\0') && script.len().max(text.len()) <= ROOM_BYTES;
        if !fits || Surroundings::of(start, shell).as_ref() != Some(&self.surroundings) {
            return Err(no());
        }
        // A directory of that name may be another one by now.
        if place(&start.cwd)? != place(format!("/proc/{}/cwd", found.pid))? {
            return Err(no());
        }
        // What fits into the room goes into an empty pipe as a whole. Its end, which the shell goes on at,
        // is given with this value's.
        sys::send(&self.start_up, text.as_bytes())?;
        found.memory.write_all_at(&script, found.room).inspect_err(|_| {
            // Half a script must not run. Its minder has not taken it in, so that the number is still its own.
            sys::kill(found.pid, sys::SIGKILL);
        })
    }
}

impl Found {
    fn look(minder: i32, shell: &str) -> io::Result<Option<Self>> {
        let [pid] = minder::children(minder)[..] else { return Ok(None) };
        let Some(arguments) = arguments_of(pid) else { return Ok(None) };
        let room = arguments + format!("{shell}\0-c\0").len() as u64;
        let memory = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        let mut there = [0; PLACEHOLDER.len()];
        memory.read_exact_at(&mut there, room)?;
        Ok((there == *PLACEHOLDER.as_bytes()).then_some(Self { pid, memory, room }))
    }
}

/// What makes a shell that waited the same as one that did not.
fn start_up_file(script: &str, shell: &str) -> String {
    let quoted = script.replace('\'', r"'\''");
    format!(
        "exec {START_UP}<&-;unset BASH_ENV;BASH_EXECUTION_STRING='{quoted}';SECONDS=0;: {shell}"
    )
}

fn place(path: impl AsRef<Path>) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Where a process's arguments begin in its memory, once the kernel has laid them out: it finds the end of each by
/// reading it, and so must not find another text there.
fn arguments_of(pid: i32) -> Option<u64> {
    // Of the fields after the name, which may hold anything; 0 where they are not known yet or not shown.
    const ARG_START: usize = 45;
    const ENV_END: usize = 48;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let field = |at: usize| fields.get(at)?.parse().ok().filter(|&address: &u64| address != 0);
    field(ENV_END)?;
    field(ARG_START)
}
