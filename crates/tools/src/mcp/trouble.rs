//! What goes wrong with a server beneath the SDK, which waits for an answer that cannot come any more.

use tokio::sync::watch;

/// Why the answers that are waited for will not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing listens there: the call was not sent.
    Unreachable(String),
    /// The connection broke after the call was sent.
    Broken(String),
    /// It answers with more than one message may have.
    TooLarge,
}

/// Where trouble is reported and noticed.
#[derive(Clone)]
pub(super) struct Troubles(watch::Sender<Option<Trouble>>);

impl Default for Troubles {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Troubles {
    pub fn report(&self, trouble: Trouble) {
        self.0.send_replace(Some(trouble));
    }

    /// Notices what is reported from now on.
    pub fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

/// Notices trouble during one call.
pub(super) struct Listener(watch::Receiver<Option<Trouble>>);

impl Listener {
    /// What was reported during the call, if anything was.
    pub fn reported(&mut self) -> Option<Trouble> {
        match self.0.has_changed() {
            Ok(true) => self.0.borrow_and_update().clone(),
            Ok(false) | Err(_) => None,
        }
    }

    /// Resolves when trouble is reported, and never otherwise.
    pub async fn trouble(&mut self) -> Trouble {
        loop {
            if self.0.changed().await.is_err() {
                return std::future::pending().await;
            }
            if let Some(trouble) = self.0.borrow_and_update().clone() {
                return trouble;
            }
        }
    }
}
