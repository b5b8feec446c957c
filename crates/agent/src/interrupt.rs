//! What can end a wait from outside: a person, the active-time limit, or the end of the process.

use std::future::pending;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::id::TaskId;
use windlass_core::injection::Control;
use windlass_core::schedule::Expiry;
use windlass_core::session::Scope;
use windlass_store::{Changes, Store};

use crate::Error;
use crate::journal::{Flushed, Journal, Stopwatch};

/// Why a wait was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// A cancel or the end of its time waits in the mailbox; the loop will find it there.
    Cancel,
    /// Active time is used up.
    Timeout,
    /// A person interrupts the work; the loop finds the signal in the mailbox and parks.
    Person,
    /// The process is to end.
    Shutdown,
    /// Other axes are to count at once; the loop finds them in the mailbox.
    Change,
}

/// The active time that one attempt at a task may use.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimit(pub Option<Duration>);

impl TimeLimit {
    /// Whether nothing is left of it.
    pub fn is_used_up(self, task: &Journal) -> bool {
        self.0.is_some_and(|limit| task.attempt_time() >= limit)
    }

    /// What fails a task that has used it up.
    pub fn error(self) -> ErrorDetails {
        let limit = self.0.unwrap_or_default().as_secs_f64();
        let message = format!("the task used up its {limit} s of active time");
        ErrorDetails::new(ErrorType::Timeout, message).with_remedy(Remedy::RaiseTimeout)
    }

    /// How an interrupted step ends the segment; the loop finds a cancel and the end of the process itself.
    pub fn segment_ending(self, interrupt: Interrupt) -> Option<Ending> {
        match interrupt {
            Interrupt::Cancel | Interrupt::Person | Interrupt::Shutdown | Interrupt::Change => None,
            Interrupt::Timeout => Some(Ending::Failed(self.error())),
        }
    }

    /// Watches over the next wait of a task.
    pub fn watch(self, task: &Flushed<'_>, stop: &CancellationToken) -> Watch {
        Watch {
            store: task.store().clone(),
            mail: task.mail(),
            task: task.task(),
            limit: self.0.map(|limit| (limit, task.stopwatch())),
            stop: stop.clone(),
        }
    }
}

/// Everything needed to notice an interrupt without holding the journal.
pub struct Watch {
    store: Store,
    /// Reports mail that came after the journal last read its mailbox.
    mail: Changes,
    task: TaskId,
    limit: Option<(Duration, Stopwatch)>,
    stop: CancellationToken,
}

impl Watch {
    /// Resolves when the wait has to end.
    pub async fn wait_for_interrupt(&self) -> Result<Interrupt, Error> {
        tokio::select! {
            () = self.stop.cancelled() => Ok(Interrupt::Shutdown),
            found = self.wait_for_end_of_calls() => found,
            changed = self.wait_for_change() => changed.map(|()| Interrupt::Change),
        }
    }

    /// The same for calls that run: a pause and a shutdown let them finish; a cancel, an interrupt and the time
    /// limit end them.
    pub async fn wait_for_end_of_calls(&self) -> Result<Interrupt, Error> {
        tokio::select! {
            cancelled = self.wait_for_cancel() => cancelled.map(|()| Interrupt::Cancel),
            interrupted = self.wait_for_person() => interrupted.map(|()| Interrupt::Person),
            () = self.wait_for_timeout() => Ok(Interrupt::Timeout),
        }
    }

    /// Resolves when active time is used up. A timer also runs while the process is stopped, so what is left
    /// is reckoned again when it fires.
    async fn wait_for_timeout(&self) {
        let Some((limit, stopwatch)) = &self.limit else { return pending().await };
        loop {
            let remaining = limit.saturating_sub(stopwatch.attempt_time());
            if remaining.is_zero() {
                return;
            }
            tokio::time::sleep(remaining).await;
        }
    }

    /// Resolves when a pause waits in the mailbox.
    pub async fn wait_for_pause(&self) -> Result<(), Error> {
        let is_pause = |control: &Control| {
            matches!(control, Control::Pause | Control::Expire { action: Expiry::Pause })
        };
        self.wait_for_control(is_pause).await
    }

    /// Resolves when a change of the axes waits that is to count at once.
    async fn wait_for_change(&self) -> Result<(), Error> {
        let is_now =
            |control: &Control| matches!(control, Control::ChangeAxes { scope: Scope::Now, .. });
        self.wait_for_control(is_now).await
    }

    async fn wait_for_person(&self) -> Result<(), Error> {
        self.wait_for_control(|control| *control == Control::Interrupt).await
    }

    async fn wait_for_cancel(&self) -> Result<(), Error> {
        let is_end = |control: &Control| match control {
            Control::Cancel { .. } => true,
            Control::Expire { action } => *action != Expiry::Pause,
            Control::Pause
            | Control::Interrupt
            | Control::Resume
            | Control::Steer { .. }
            | Control::Revoke { .. }
            | Control::Watch { .. }
            | Control::Unwatch { .. }
            | Control::UseModel { .. }
            | Control::ChangeAxes { .. }
            | Control::Grant { .. } => false,
        };
        self.wait_for_control(is_end).await
    }

    async fn wait_for_control(&self, wanted: impl Fn(&Control) -> bool) -> Result<(), Error> {
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
