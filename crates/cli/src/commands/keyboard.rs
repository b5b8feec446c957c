//! What is typed at the terminal, as it is typed.
//!
//! Invariant: when a `Keyboard` is dropped, the terminal is as it was and nothing of ours reads from it.

use std::io;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use rustix::termios::{tcgetattr, tcgetpgrp, tcsetattr};
use windlass_tui::terminal;

/// Reads keys while it lives.
pub(super) struct Keyboard {
    // The reader ends before the terminal gets its mode back.
    keys: terminal::Keyboard,
    /// `None` where the terminal itself edits the line.
    _mode: Option<KeyMode>,
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
        Ok(Self { keys: terminal::Keyboard::open()?, _mode: mode })
    }

    /// The next keys; `None` when there will be none.
    pub async fn keys(&mut self) -> Option<Vec<u8>> {
        self.keys.next().await
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
