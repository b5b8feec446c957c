//! The last of what a running command has printed, for people who watch. It is a preview: bounded in size and
//! rate, and never kept.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::tool::LiveOutput;

/// The least time between two pieces.
const EVERY: Duration = Duration::from_millis(100);
/// The most of a piece; what came before is not shown.
const MAX_BYTES: usize = 4096;

/// What has been printed and is not shown yet.
pub(super) struct LiveTail {
    live: LiveOutput,
    pending: Vec<u8>,
    next: Instant,
}

impl LiveTail {
    pub(super) fn new(live: LiveOutput) -> Self {
        Self { live, pending: Vec::new(), next: Instant::now() }
    }

    /// Takes in what was printed, and shows it when it is time.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(&bytes[bytes.len().saturating_sub(MAX_BYTES)..]);
        let over = self.pending.len().saturating_sub(MAX_BYTES);
        self.pending.drain(..over);
        if Instant::now() >= self.next {
            self.show();
        }
    }

    /// Resolves when something waits to be shown and it is time.
    pub(super) async fn due(&self) {
        match self.pending.is_empty() {
            true => std::future::pending().await,
            false => sleep_until(self.next).await,
        }
    }

    /// Shows what waits. A character that is not whole yet waits for its rest.
    pub(super) fn show(&mut self) {
        let end = match str::from_utf8(&self.pending) {
            Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
                error.valid_up_to()
            }
            Ok(_) | Err(_) => self.pending.len(),
        };
        let rest = self.pending.split_off(end);
        let shown = std::mem::replace(&mut self.pending, rest);
        self.live.show(String::from_utf8_lossy(&shown).into_owned());
        self.next = Instant::now() + EVERY;
    }
}
