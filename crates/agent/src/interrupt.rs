//! What can end a wait from outside: a cancel, the active-time limit, or the end of the process.

use std::future::pending;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windlass_core::id::TaskId;
use windlass_core::injection::Control;
use windlass_core::schedule::Expiry;
use windlass_store::{Changes, Store};

use crate::Error;
use crate::journal::Journal;

/// Why a wait was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// A cancel or the end of its time waits in the mailbox; the loop will find it there.
    Cancel,
    /// Active time is used up.
    Timeout,
    /// The process is to end.
    Shutdown,
}

/// Everything needed to notice an interrupt without holding the journal.
pub struct Watch {
    store: Store,
    /// Hears of what came after the journal last looked into its mailbox.
    mail: Changes,
    task: TaskId,
    left: Option<Duration>,
    stop: CancellationToken,
}

impl Watch {
    /// Watches over the next wait of a task.
    pub fn over(journal: &Journal, limit: Option<Duration>, stop: &CancellationToken) -> Self {
        let used = Duration::from_millis(journal.state().attempt_ms(journal.now()));
        Self {
            store: journal.store().clone(),
            mail: journal.mail(),
            task: journal.task(),
            left: limit.map(|limit| limit.saturating_sub(used)),
            stop: stop.clone(),
        }
    }

    /// Resolves when the wait has to end.
    pub async fn interrupted(&self) -> Result<Interrupt, Error> {
        let timeout = async {
            match self.left {
                Some(left) => tokio::time::sleep(left).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = self.stop.cancelled() => Ok(Interrupt::Shutdown),
            cancelled = self.cancelled() => cancelled.map(|()| Interrupt::Cancel),
            () = timeout => Ok(Interrupt::Timeout),
        }
    }

    /// Resolves when a pause waits in the mailbox.
    pub async fn paused(&self) -> Result<(), Error> {
        let park = |control: &Control| {
            matches!(control, Control::Pause | Control::Expire { action: Expiry::Pause })
        };
        self.told(park).await
    }

    async fn cancelled(&self) -> Result<(), Error> {
        let end = |control: &Control| match control {
            Control::Cancel { .. } => true,
            Control::Expire { action } => *action != Expiry::Pause,
            _ => false,
        };
        self.told(end).await
    }

    async fn told(&self, wanted: impl Fn(&Control) -> bool) -> Result<(), Error> {
        let mut mail = self.mail.clone();
        loop {
            mail.changed().await?;
            if self.store.mailbox().has_mail(self.task)? {
                let waiting = self.store.mailbox().pending(self.task)?;
                if waiting.iter().any(|one| one.control.as_ref().is_some_and(&wanted)) {
                    return Ok(());
                }
            }
        }
    }
}
