//! The terminal itself: its modes, its keys, its size. Set when it is opened, and put back whatever happens.
//!
//! Invariants:
//! - When a `Terminal` is dropped, or this thread panics, the terminal is as it was.
//! - Nothing is asked of the terminal that has to be waited for.
//! - While it is open, what libraries print to stderr goes into a log file.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::screen::{MOUSE_OFF, Size};

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;
/// Reads that wait to be handled.
const READS_AHEAD: usize = 64;
/// The size of a terminal that does not say it.
const DEFAULT_SIZE: Size = Size { columns: 80, rows: 24 };

/// Pastes in brackets, reports of the focus, the title kept, and the question what the terminal is; the answer may
/// never come.
const ENTER: &str = "\u{1b}[?2004h\u{1b}[?1004h\u{1b}[22;0t\u{1b}[>c";
/// Keys told apart, and the question whether the terminal can.
const ENTER_KEYS: &str = "\u{1b}[>5u\u{1b}[?u";
/// The same of tmux, which passes them on when a program asks for it.
const ENTER_TMUX_KEYS: &str = "\u{1b}[>4;1m";
/// Everything off: the keys popped and reset, so that none of them leaks into the shell.
const LEAVE: &str = "\u{1b}[<u\u{1b}[=0;1u\u{1b}[>4;0m\u{1b}[?1004l\u{1b}[?2004l\u{1b}[?2026l\u{1b}[?25h\u{1b}[23;0t";

/// How keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyModes {
    /// Whether the enhanced keyboard protocol is used.
    pub enhanced: bool,
    pub is_tmux: bool,
}

/// The terminal while it is ours.
pub struct Terminal {
    before: Termios,
    modes: KeyModes,
    is_ours: bool,
    stderr: Option<StderrInFile>,
}

impl Terminal {
    /// Takes the terminal; `log` gets what is printed to stderr meanwhile.
    pub fn open(modes: KeyModes, log: &Path) -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let stderr = StderrInFile::begin(log).ok();
        restore_on_panic(before.clone(), stderr.as_ref(), log.to_owned());
        let mut terminal = Self { before, modes, is_ours: false, stderr };
        terminal.take()?;
        Ok(terminal)
    }

    /// Sets its modes, also after another program had it.
    pub fn take(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        self.is_ours = true;
        let enhanced = if self.modes.enhanced { ENTER_KEYS } else { "" };
        let tmux = if self.modes.enhanced && self.modes.is_tmux { ENTER_TMUX_KEYS } else { "" };
        self.write(&format!("{ENTER}{enhanced}{tmux}"))
    }

    /// Puts its modes back.
    pub fn give(&mut self) {
        if std::mem::take(&mut self.is_ours) {
            // A terminal that has gone needs no modes.
            let _ = self.write(LEAVE);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
        }
    }

    pub fn write(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Where another program's errors go: to the terminal, not into our log.
    pub fn stderr(&self) -> Option<OwnedFd> {
        self.stderr.as_ref()?.before.try_clone().ok()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.give();
        drop(self.stderr.take());
        if !std::thread::panicking() {
            let _ = std::panic::take_hook();
        }
    }
}

/// The size of the terminal now.
pub fn size() -> Size {
    let Ok(size) = tcgetwinsize(io::stdout()) else { return DEFAULT_SIZE };
    match (usize::from(size.ws_col), usize::from(size.ws_row)) {
        (0, _) | (_, 0) => DEFAULT_SIZE,
        (columns, rows) => Size { columns, rows },
    }
}

/// Sends what is printed to stderr into a file, while it lives.
struct StderrInFile {
    before: Arc<OwnedFd>,
}

impl StderrInFile {
    fn begin(log: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(log)?;
        let before = rustix::io::fcntl_dupfd_cloexec(io::stderr(), 3)?;
        rustix::stdio::dup2_stderr(file.as_fd())?;
        Ok(Self { before: Arc::new(before) })
    }
}

impl Drop for StderrInFile {
    fn drop(&mut self) {
        let _ = rustix::stdio::dup2_stderr(self.before.as_fd());
    }
}

/// A panic of this thread puts the terminal back first, so that its message can be read.
fn restore_on_panic(before: Termios, stderr: Option<&StderrInFile>, log: PathBuf) {
    let own = std::thread::current().id();
    let stderr = stderr.map(|stderr| Arc::clone(&stderr.before));
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == own {
            let restored = format!("{MOUSE_OFF}\u{1b}[?1049l{LEAVE}\r\n");
            let _ = io::stdout().write_all(restored.as_bytes());
            let _ = io::stdout().flush();
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
            if let Some(stderr) = &stderr {
                let _ = rustix::stdio::dup2_stderr(stderr.as_fd());
            }
            let _ = writeln!(io::stderr(), "the terminal crashed; its log is {}", log.display());
        }
        print(panic);
    }));
}

/// Reads bytes on a thread of its own while it lives. To let another program read, it is dropped and made again.
pub struct Keyboard {
    bytes: mpsc::Receiver<Vec<u8>>,
    /// Its end wakes the reader, which then ends too.
    reading: Option<OwnedFd>,
    reader: Option<JoinHandle<()>>,
}

impl Keyboard {
    pub fn open() -> io::Result<Self> {
        let (woken, reading) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (send, bytes) = mpsc::channel(READS_AHEAD);
        let reader = std::thread::spawn(move || read_bytes(&woken, &send));
        Ok(Self { bytes, reading: Some(reading), reader: Some(reader) })
    }

    /// One that reads nothing, while another program has the terminal.
    pub fn closed() -> Self {
        let (_, bytes) = mpsc::channel(1);
        Self { bytes, reading: None, reader: None }
    }

    /// The next bytes; `None` when the terminal has gone.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        self.bytes.recv().await
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.bytes.close();
        drop(self.reading.take());
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn read_bytes(woken: &OwnedFd, send: &mpsc::Sender<Vec<u8>>) {
    let stdin = io::stdin();
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let mut polled = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        match poll(&mut polled, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if !polled[1].revents().is_empty() => return,
            Ok(_) => {}
        }
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
