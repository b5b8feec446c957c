//! What is typed at the terminal, as it is typed.
//!
//! Invariant: when a `Keyboard` is dropped, the terminal is as it was and nothing of ours reads from it.

use std::io;
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use rustix::termios::{tcgetattr, tcgetpgrp, tcsetattr};
use tokio::sync::mpsc;

/// Bytes that are read at once; a pasted text may take several reads.
const READ_BYTES: usize = 256;
/// Reads that wait to be handled; a person types no faster.
const READS_AHEAD: usize = 16;

/// Reads keys while it lives.
pub(super) struct Keyboard {
    keys: mpsc::Receiver<Vec<u8>>,
    /// `None` where the terminal itself edits the line.
    _mode: Option<KeyMode>,
    /// Its end wakes the reader, which then ends too.
    reading: Option<OwnedFd>,
    reader: Option<JoinHandle<()>>,
}

impl Keyboard {
    /// Takes each key as it is pressed; the terminal shows none of them.
    pub fn by_key() -> io::Result<Self> {
        Self::open(Some(KeyMode::set()?))
    }

    /// Takes lines as the terminal hands them over.
    pub fn by_line() -> io::Result<Self> {
        Self::open(None)
    }

    /// The same as [`Keyboard::by_key`], where this program has the terminal to itself: one in the background
    /// is stopped by the kernel when it touches it.
    pub fn by_key_in_foreground() -> Option<Self> {
        let owner = tcgetpgrp(io::stdin()).ok()?;
        (owner == rustix::process::getpgrp()).then(Self::by_key)?.ok()
    }

    fn open(mode: Option<KeyMode>) -> io::Result<Self> {
        let (woken, reading) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (send, keys) = mpsc::channel(READS_AHEAD);
        let reader = std::thread::spawn(move || read_keys(&woken, &send));
        Ok(Self { keys, _mode: mode, reading: Some(reading), reader: Some(reader) })
    }

    /// The next keys; `None` when there will be none.
    pub async fn keys(&mut self) -> Option<Vec<u8>> {
        self.keys.recv().await
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.keys.close();
        drop(self.reading.take());
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// The terminal hands over each key and shows none. Ctrl-C stays a signal.
struct KeyMode(Termios);

impl KeyMode {
    fn set() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut mode = before.clone();
        mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Flush, &mode)?;
        Ok(Self(before))
    }
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        // A terminal that has gone needs no mode.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Reads on a thread of its own: a terminal cannot be read without waiting unless its other users are made not
/// to wait either. The thread ends when the other end of `woken` does.
fn read_keys(woken: &OwnedFd, send: &mpsc::Sender<Vec<u8>>) {
    let stdin = io::stdin();
    loop {
        let mut polled = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        match poll(&mut polled, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if !polled[1].revents().is_empty() => return,
            Ok(_) => {}
        }
        let mut bytes = [0; READ_BYTES];
        match rustix::io::read(&stdin, &mut bytes) {
            Err(Errno::INTR) => {}
            Err(_) | Ok(0) => return,
            Ok(count) => {
                if send.blocking_send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        }
    }
}
