//! A pseudo-terminal with a program on it.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Starts a command with all its streams on a terminal of this size. The file is the other side of the terminal: what is
/// written to it is typed, and what is read from it is shown.
pub fn on_terminal(mut command: Command, columns: u16, rows: u16) -> io::Result<(File, Child)> {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&main)?;
    unlockpt(&main)?;
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&main, size)?;
    let name = ptsname(&main, Vec::new())?;
    let open = || -> io::Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(name.as_c_str(), flags, Mode::empty())?)
    };
    command.stdin(open()?).stdout(open()?).stderr(open()?);
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(BorrowedFd::borrow_raw(0))?;
            Ok(())
        });
    }
    // The command is dropped here with our ends of the terminal, so that its end is seen when the program ends.
    let child = command.spawn()?;
    Ok((File::from(main), child))
}
