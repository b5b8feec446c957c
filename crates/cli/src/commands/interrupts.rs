//! What asks a run to stop from outside: Ctrl-C, the end of its terminal, and a SIGTERM.

use std::future::pending;
use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// How long a run may take to reach a boundary when it must end. A person can interrupt again; a machine
/// that shuts down kills what takes longer.
const GRACE: Duration = Duration::from_secs(10);

/// How a run is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// By a person at the keyboard, who can do it again.
    CtrlC,
    /// By the end of its terminal or of the machine, which do not ask twice.
    End,
    /// It was asked to end, and the time for it is over.
    Overdue,
}

impl Interrupt {
    /// What a person reads when it begins.
    pub(super) fn words(self) -> String {
        match self {
            Self::CtrlC => "pausing; press Ctrl-C again to stop at once".to_owned(),
            Self::End | Self::Overdue => {
                let seconds = GRACE.as_secs();
                format!("pausing; what still runs after {seconds} s is stopped")
            }
        }
    }
}

/// Everything that interrupts a run.
pub(super) struct Interrupts {
    keyboard: Signal,
    termination: Signal,
    /// `None` where whoever started the program wants it to outlive its terminal (`nohup`).
    hangup: Option<Signal>,
    overdue: Option<Instant>,
}

impl Interrupts {
    /// Listens from now on.
    pub(super) fn listen() -> io::Result<Self> {
        let hangup = (!hangups_are_ignored()).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self {
            keyboard: signal(SignalKind::interrupt())?,
            termination: signal(SignalKind::terminate())?,
            hangup,
            overdue: None,
        })
    }

    /// Waits for the next interrupt.
    pub(super) async fn recv(&mut self) -> Interrupt {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        let overdue = async {
            match self.overdue {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.keyboard.recv() => Interrupt::CtrlC,
            _ = self.termination.recv() => self.ends(),
            _ = hangup => self.ends(),
            () = overdue => Interrupt::Overdue,
        }
    }

    fn ends(&mut self) -> Interrupt {
        self.overdue.get_or_insert(Instant::now() + GRACE);
        Interrupt::End
    }
}

/// Whether hangups were ignored when the program was started, as the kernel says.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // The first signal, SIGHUP, is the lowest bit.
    mask & 1 == 1
}
