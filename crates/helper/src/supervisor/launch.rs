//! What a supervisor does before its command runs: it gives up its rights, then starts the command.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use rustix::fs::Mode;
use rustix::process::{Pid, Resource};

use super::SpawnContext;
use crate::control::{self, SupervisorEvent};
use crate::spawn::{self, Program};
use crate::sys::{self, Signals};
use crate::{Failure, root};
use windlass_helper::protocol::{Isolation, KEEPS_SHELL};

/// A command that runs.
pub struct RunningCommand {
    pub main: Pid,
    pub background: bool,
    pub signals: Signals,
}

/// Starts the command and reports that; `None` when a command that was waited for does not come.
pub fn launch(context: &SpawnContext<'_>) -> Result<Option<RunningCommand>, Failure> {
    let signals = confine(context)?;
    let awaited;
    let start = match context.start {
        Some(start) => start,
        None => match control::receive_start(&context.control) {
            Some(start) => {
                awaited = start;
                &awaited
            }
            None => return Ok(None),
        },
    };
    // The command shares both with us.
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    std::env::set_current_dir(&start.cwd)
        .map_err(|error| (format!("enter `{}`", start.cwd), error))?;
    let script = format!("{KEEPS_SHELL}{}", start.script);
    let script = [context.shell.to_owned(), "-c".to_owned(), script];
    let argv = if start.argv.is_empty() { &script[..] } else { &start.argv[..] };
    let main = spawn_main(argv, &start.env, &context.streams)
        .map_err(|error| (format!("run `{}`", argv[0]), error))?;
    SupervisorEvent::Started.send(&context.control);
    Ok(Some(RunningCommand { main, background: start.background, signals }))
}

/// Everything before the command that can fail, in the order that makes it safe.
fn confine(context: &SpawnContext<'_>) -> Result<Signals, Failure> {
    let fail = |stage: &'static str| move |error: io::Error| (stage.to_owned(), error);
    if context.confinement.is_none() {
        let _ = rustix::process::setrlimit(Resource::Nofile, context.open_files);
    }
    // Killed first when memory runs out. Written to the /proc that still shows us; refusal changes nothing.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    if context.isolation == Isolation::Namespaces {
        root::mount_own_proc().map_err(fail("mount proc"))?;
        root::mount_own_shared_memory(context.shared_memory_bytes)
            .map_err(fail("mount shared memory"))?;
    } else {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| fail("adopt orphans")(error.into()))?;
    }
    let signals = Signals::open(&[libc::SIGCHLD]).map_err(fail("open signals"))?;
    if let Some(confinement) = context.confinement
        && let Some(calls) = confinement.apply()?
    {
        SupervisorEvent::Calls(calls).send(&context.control);
    }
    let streams = context.streams.iter().map(AsRawFd::as_raw_fd);
    close_all_but(streams.chain([context.control.as_raw_fd(), signals.as_fd().as_raw_fd()]));
    Ok(signals)
}

/// Closes every descriptor but these and the standard ones, which must be harmless already.
fn close_all_but(kept: impl Iterator<Item = RawFd>) {
    let mut kept: Vec<RawFd> = kept.collect();
    kept.sort_unstable();
    let mut next = 3;
    for fd in kept {
        sys::close_range(next, fd - 1);
        next = fd + 1;
    }
    sys::close_range(next, RawFd::MAX);
}

fn spawn_main(argv: &[String], env: &[String], streams: &[impl AsFd; 3]) -> io::Result<Pid> {
    let prepare = || {
        let _ = rustix::process::setsid();
        sys::block_only(&[]);
        sys::reset_signals([libc::SIGPIPE]);
        let [input, out, err] = streams;
        let _ = rustix::stdio::dup2_stdin(input);
        let _ = rustix::stdio::dup2_stdout(out);
        let _ = rustix::stdio::dup2_stderr(err);
        sys::close_on_exec_from(3);
    };
    spawn::spawn(&prepare, &Program::new(argv, env)?)
}
