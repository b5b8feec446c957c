//! One line typed at a prompt of the terminal, with the usual editing keys.
//!
//! Invariant: what was typed before the prompt appeared is no part of the line.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use rustix::termios::{tcgetattr, tcsetattr};
use tokio::sync::mpsc;
use windlass_term::{Edited, LineEditor, TerminalStyle};

/// Bytes that are read at once; a pasted answer may take several reads.
const READ_BYTES: usize = 256;
/// Reads that wait to be handled; a person types no faster.
const READS_AHEAD: usize = 16;

/// A prompt that reads lines until it is dropped, which leaves the terminal as it was.
pub(super) struct Prompt {
    keys: mpsc::Receiver<Vec<u8>>,
    editor: LineEditor,
    style: TerminalStyle,
    /// `None` where the terminal itself edits the line: one that cannot redraw it.
    _mode: Option<KeyMode>,
    /// Its end wakes the reader, which then ends too.
    _reading: OwnedFd,
}

impl Prompt {
    /// Takes the keyboard and forgets what was typed so far.
    pub fn open(style: TerminalStyle) -> io::Result<Self> {
        let mode = match style.can_redraw {
            true => Some(KeyMode::set()?),
            false => None,
        };
        forget_what_was_typed();
        let (woken, reading) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        Ok(Self {
            keys: read_keys(woken),
            editor: LineEditor::default(),
            style,
            _mode: mode,
            _reading: reading,
        })
    }

    /// The next line; `None` at the end of input.
    pub async fn line(&mut self, prompt: &str) -> Option<String> {
        if self._mode.is_none() {
            print(prompt);
        }
        loop {
            self.draw(prompt);
            let bytes = self.keys.recv().await?;
            // What follows the end of a line was typed before the next prompt appeared.
            for byte in bytes {
                match self.editor.push(byte) {
                    Edited::Typing => {}
                    Edited::End => return None,
                    Edited::Line(line) => {
                        if self._mode.is_some() {
                            let drawn = self.editor.clear();
                            print(&format!("{drawn}{prompt}{line}\n"));
                        }
                        return Some(line);
                    }
                }
            }
        }
    }

    fn draw(&mut self, prompt: &str) {
        if self._mode.is_some() {
            print(&self.editor.draw(prompt, self.style.notes_width()));
        }
    }
}

/// What was typed before a question was seen is not an answer to it.
pub(super) fn forget_what_was_typed() {
    // Where that fails, nothing was typed: it is not a terminal.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

pub(super) fn print(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{text}");
    let _ = stderr.flush();
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

/// What is typed, as it is typed. Read on a thread of its own: a terminal cannot be read without waiting
/// unless its other users are made not to wait either. The thread ends when the other end of `woken` does.
fn read_keys(woken: OwnedFd) -> mpsc::Receiver<Vec<u8>> {
    let (send, keys) = mpsc::channel(READS_AHEAD);
    std::thread::spawn(move || {
        let stdin = io::stdin();
        loop {
            let mut polled =
                [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&woken, PollFlags::IN)];
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
    });
    keys
}
