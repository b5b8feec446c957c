//! The helper: enters a sandbox once, then starts, watches and ends commands in it for windlass.
//!
//! Three kinds of process, each in the module of its name:
//! - The *watchdog* stays outside. When windlass is gone, whatever the cause, it ends the rest.
//! - The *init* is process 1 of the sandbox. It starts commands and carries their bytes.
//! - A *supervisor* is confined like its command, starts it, and ends its whole process tree.
//!
//! Descriptors 0 and 1 are the connection to windlass. The init uses them; the watchdog only waits for the
//! end of 0.
//!
//! Invariants:
//! - Each process has one thread, so that entering namespaces and forking are sound.
//! - Nothing of ours reaches a command: every descriptor closes with the next program.

mod watchdog;
mod container_init;
mod init;
mod command;
mod connection;
mod output;
mod supervisor;
mod control;
mod spawn;
mod process_tree;
mod confine;
mod root;
mod cgroup;
mod sys;

use std::io;

use rustix::fs::Mode;
use rustix::stdio::{stdin, stdout};
use windlass_helper::protocol::{Order, Report, Setup};
use windlass_helper::wire;

use watchdog::Watchdog;

fn main() {
    if std::env::args_os().nth(1).is_some_and(|word| word == "hold") {
        container_init::run();
    }
    sys::close_range(3, i32::MAX);
    let _ = rustix::process::setsid();
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    // What windlass was started with is not for commands. Of what we set they inherit only what is ignored.
    sys::reset_signals(1..32);
    sys::ignore_signal(libc::SIGPIPE);
    let setup = read_setup().map_err(|error| ("read the setup".to_owned(), error));
    match setup.and_then(Watchdog::start) {
        Ok(watchdog) => watchdog.run(),
        Err(failure) => report(failure),
    }
}

/// What was being done when something failed, and the system's error.
type Failure = (String, io::Error);

fn report((stage, error): Failure) {
    let mut frame = Vec::new();
    Report::Failed { stage, errno: sys::errno(&error) }.write(&mut frame);
    let _ = sys::write(stdout(), &frame);
}

/// Reads exactly the first frame, so that the init finds the stream at the next one.
fn read_setup() -> io::Result<Setup> {
    let mut buffer = vec![0; 4];
    read_exactly(&mut buffer)?;
    let length = u32::from_le_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]) as usize;
    if length > wire::MAX_FRAME_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "frame too long"));
    }
    buffer.resize(4 + length, 0);
    read_exactly(&mut buffer[4..])?;
    match wire::next_frame(&buffer)? {
        Some((frame, _)) => match Order::read(frame)? {
            Order::Setup(setup) => Ok(setup),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "setup must come first")),
        },
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn read_exactly(mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match sys::read(stdin(), buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = &mut buffer[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
