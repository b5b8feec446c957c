//! How a minder comes to its command: what it gives up first, and the start itself.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::Refusal;
use crate::ahead::{self, Surroundings};
use crate::confine::Confinement;
use crate::program::{self, Program, Texts};
use crate::protocol::Start;
use crate::talk::{Told, Word};
use crate::{root, sys};

/// Everything up to the fork that can fail, in the order that makes it safe.
pub fn prepare(
    first: bool,
    confinement: Option<&Confinement>,
    streams: &[OwnedFd; 3],
    control: &OwnedFd,
) -> Result<OwnedFd, Refusal> {
    // Ends first when memory runs out; asked of the /proc that still shows us. Refusal changes nothing.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    if first {
        root::own_proc().map_err(|error| ("mount proc".to_owned(), error))?;
    } else {
        sys::set_process(sys::PR_SET_CHILD_SUBREAPER, 1)
            .map_err(|error| ("adopt orphans".to_owned(), error))?;
    }
    // What else its command sends it does not wait for the next.
    sys::block_only(&[sys::SIGCHLD]);
    let signals = sys::signals(&[sys::SIGCHLD]).map_err(|error| ("signals".to_owned(), error))?;
    if let Some(confinement) = confinement {
        confinement.put_on().map_err(|(stage, error)| (stage.to_owned(), error))?;
    }
    let mut kept: Vec<RawFd> = streams.iter().map(AsRawFd::as_raw_fd).collect();
    kept.extend([control.as_raw_fd(), signals.as_raw_fd()]);
    close_all_but(kept);
    // All but the one that would end us when the inner is gone.
    sys::heed((1..32).filter(|&signal| signal != sys::SIGPIPE));
    Ok(signals)
}

/// The process that was asked for, and whether what it leaves behind may go on.
pub struct Main {
    pub pid: i32,
    pub background: bool,
}

/// Starts a command that is known, and says so.
pub fn new(
    start: &Start,
    shell: &str,
    streams: &[impl AsRawFd; 3],
    control: &OwnedFd,
) -> Result<Main, Refusal> {
    enter(&start.cwd).map_err(|error| (format!("enter `{}`", start.cwd), error))?;
    let script = [shell.to_owned(), "-c".to_owned(), start.script.clone()];
    let argv = if start.argv.is_empty() { &script[..] } else { &start.argv[..] };
    let pid = spawn(argv, &start.env, streams, None)
        .map_err(|error| (format!("run `{}`", argv[0]), error))?;
    Word::Started.send(control);
    Ok(Main { pid, background: start.background })
}

/// Waits for another command, with its shell started ahead if that is wished. Ends when none comes.
pub fn next(
    ahead: Option<(Surroundings, OwnedFd)>,
    shell: &str,
    output: &[OwnedFd; 2],
    control: &OwnedFd,
) -> Result<Main, Refusal> {
    // What stands at 0 in a minder is nothing.
    let streams = [0, output[0].as_raw_fd(), output[1].as_raw_fd()];
    let waiting = ahead.and_then(|(Surroundings { env, cwd }, start_up)| {
        enter(&cwd).ok()?;
        spawn(&ahead::argv(shell), &ahead::env(env), &streams, Some(&start_up)).ok()
    });
    Word::Ready.send(control);
    match (Told::wait(control), waiting) {
        (Some(Told::Given { background }), Some(pid)) => Ok(Main { pid, background }),
        (Some(Told::New(start)), None) => new(&start, shell, &streams, control),
        // A shell that is not used may have printed already; another minder's streams are clean.
        (None | Some(Told::New(_)), _) | (Some(Told::Given { .. }), None) => sys::_exit(0),
    }
}

/// Goes to where a command starts. What it shares with us (`CLONE_FS`) is as for the first.
fn enter(cwd: &str) -> io::Result<()> {
    sys::umask(0o022);
    std::env::set_current_dir(cwd)
}

/// Starts the main process and waits until it is the program asked for.
fn spawn(
    argv: &[String],
    env: &[String],
    streams: &[impl AsRawFd; 3],
    start_up: Option<&OwnedFd>,
) -> io::Result<i32> {
    let prepare = || {
        sys::setsid();
        sys::block_only(&[]);
        sys::heed(std::iter::once(sys::SIGPIPE));
        for (number, stream) in streams.iter().enumerate() {
            sys::dup2(stream.as_raw_fd(), number as i32);
        }
        sys::close_from(3, true);
        if let Some(start_up) = start_up {
            sys::pass_on(start_up.as_raw_fd(), ahead::START_UP);
        }
    };
    program::start(&prepare, &programs(argv, env)?)
}

/// What to run: the program as named, or in each directory of the command's own `PATH`.
fn programs(argv: &[String], env: &[String]) -> io::Result<Vec<Program>> {
    let name = &argv[0];
    let path = env.iter().find_map(|entry| entry.strip_prefix("PATH=")).unwrap_or("/usr/bin:/bin");
    let (argv, env) = (Texts::new(argv)?, Texts::new(env)?);
    if name.contains('/') {
        return Ok(vec![Program::new(name, &argv, &env)?]);
    }
    path.split(':')
        .filter(|directory| !directory.is_empty())
        .map(|directory| Program::new(&format!("{directory}/{name}"), &argv, &env))
        .collect()
}

/// Closes every descriptor but these and the standard ones, which must be harmless already.
fn close_all_but(mut kept: Vec<RawFd>) {
    kept.sort_unstable();
    let mut next = 3;
    for fd in kept {
        sys::close_span(next, fd - 1);
        next = fd + 1;
    }
    sys::close_from(next as u32, false);
}

