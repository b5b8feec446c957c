//! Chromium's debugging protocol over the standard streams of a command in a sandbox. A message is JSON and ends with a
//! zero byte.
//!
//! Invariants:
//! - No port is opened: who cannot reach the sandbox's own channel cannot speak to the browser.
//! - The browser ends with its connection, when the connection is dropped, and after a while without a call.
//! - Every message and every answer is bounded, in size and in time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use windlass_core::text::one_line;
use windlass_sandbox::{Chunk, Input, Running, Stream};

use super::Error;
use super::scene::Scene;

/// How long the browser may take for one command; what waits for the network has its own limits.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// The largest message: a screenshot of a large page.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Commands that may wait to be written. A page can cause very many at once; a browser that reads none of them is ended.
const MAX_ORDERS: usize = 16 * 1024;
/// How much of what it writes to its standard error is kept, to say why it ended.
const MAX_STDERR_BYTES: usize = 4 * 1024;

/// Something that happened in the browser.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct BrowserEvent {
    /// The page that it happened in; none for the browser itself.
    #[serde(default, rename = "sessionId")]
    pub session: Option<String>,
    pub method: String,
    #[serde(default)]
    pub params: Value,
}

/// A command whose answer nobody waits for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CdpCommand {
    pub session: Option<String>,
    pub method: &'static str,
    pub params: Value,
}

/// A connection to a running browser.
pub(super) struct Connection {
    shared: Arc<Shared>,
    orders: mpsc::Sender<Vec<u8>>,
    _jobs: JoinSet<()>,
}

struct Shared {
    scene: Mutex<Scene>,
    /// Marked whenever the scene has changed.
    changed: watch::Sender<()>,
    pending: Mutex<HashMap<u64, oneshot::Sender<Result<Value, Error>>>>,
    next_id: AtomicU64,
    /// How many use it now, and when the last one ended.
    used: Mutex<(usize, Instant)>,
    /// Why it is over, once it is.
    over: Mutex<Option<String>>,
    stderr: Mutex<Vec<u8>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// Speaks to a browser that was started with its standard input piped. It is ended after `idle` without a call.
    pub fn open(mut running: Running, scene: Scene, idle: Duration) -> Self {
        let (orders, inbox) = mpsc::channel(MAX_ORDERS);
        let shared = Arc::new(Shared {
            scene: Mutex::new(scene),
            changed: watch::Sender::new(()),
            pending: Mutex::default(),
            next_id: AtomicU64::new(1),
            used: Mutex::new((0, Instant::now())),
            over: Mutex::default(),
            stderr: Mutex::default(),
        });
        let mut jobs = JoinSet::new();
        let carrier = Carrier { shared: Arc::clone(&shared), orders: orders.clone().downgrade() };
        jobs.spawn(async move {
            let input = running.take_input();
            let why = tokio::select! {
                why = carrier.read(&mut running) => why,
                () = write(input, inbox) => "its connection was closed".to_owned(),
                () = carrier.shared.unused_for(idle) => "it was not used for a while".to_owned(),
            };
            // The process ends here, with everything it started.
            drop(running);
            carrier.shared.end(&why);
        });
        Self { shared, orders, _jobs: jobs }
    }

    /// Whether it can still be spoken to.
    pub fn is_alive(&self) -> bool {
        lock(&self.shared.over).is_none()
    }

    /// While this is held, the browser does not end for want of use.
    pub fn in_use(&self) -> InUse {
        lock(&self.shared.used).0 += 1;
        InUse(Arc::clone(&self.shared))
    }

    /// What has happened in the browser.
    pub fn scene(&self) -> MutexGuard<'_, Scene> {
        lock(&self.shared.scene)
    }

    /// Waits until the scene has what is looked for; `None` when the time is up or the browser has ended.
    pub async fn until<T>(
        &self,
        limit: Duration,
        mut find: impl FnMut(&mut Scene) -> Option<T>,
    ) -> Option<T> {
        let mut changed = self.shared.changed.subscribe();
        let looking = async {
            loop {
                if let Some(found) = find(&mut self.scene()) {
                    return Some(found);
                }
                if !self.is_alive() || changed.changed().await.is_err() {
                    return None;
                }
            }
        };
        tokio::time::timeout(limit, looking).await.ok().flatten()
    }

    /// Sends a command and waits for its answer.
    pub async fn call(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, Error> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        lock(&self.shared.pending).insert(id, answer);
        let gone = || self.shared.loss();
        if !self.is_alive() {
            lock(&self.shared.pending).remove(&id);
            return Err(gone());
        }
        let asking = async {
            // An order that cannot be sent drops its answer with the rest that waits.
            if self.orders.send(encoded(id, session, method, params)).await.is_err() {
                lock(&self.shared.pending).remove(&id);
            }
            answered.await
        };
        match tokio::time::timeout(CALL_TIMEOUT, asking).await {
            Ok(answered) => answered.unwrap_or_else(|_| Err(gone())),
            Err(_) => {
                lock(&self.shared.pending).remove(&id);
                Err(Error::TooSlow(method.to_owned()))
            }
        }
    }
}

impl Shared {
    fn loss(&self) -> Error {
        let why = lock(&self.over).clone().unwrap_or_default();
        let said = lock(&self.stderr);
        let text = crate::output::readable(&said);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        match last.map(|line| one_line(line, 300)) {
            Some(words) => Error::Gone(format!("{why}; it said: {words}")),
            None => Error::Gone(why),
        }
    }

    fn end(&self, why: &str) {
        *lock(&self.over) = Some(why.to_owned());
        let pending: Vec<_> = lock(&self.pending).drain().collect();
        for (_, answer) in pending {
            let _ = answer.send(Err(self.loss()));
        }
        self.changed.send_replace(());
    }

    async fn unused_for(&self, idle: Duration) {
        loop {
            let (users, last) = *lock(&self.used);
            let due = if users > 0 { Instant::now() + idle } else { last + idle };
            if due <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }
}

/// A use of the browser.
pub(super) struct InUse(Arc<Shared>);

impl Drop for InUse {
    fn drop(&mut self) {
        let mut used = lock(&self.0.used);
        *used = (used.0.saturating_sub(1), Instant::now());
    }
}

/// Carries what the browser says.
struct Carrier {
    shared: Arc<Shared>,
    /// Weak, because the job must not keep its own inbox open.
    orders: mpsc::WeakSender<Vec<u8>>,
}

impl Carrier {
    /// Reads until the browser ends; returns why it did.
    async fn read(&self, running: &mut Running) -> String {
        let mut messages = Messages::default();
        while let Some(Chunk { stream, bytes }) = running.next().await {
            match stream {
                Stream::Err => {
                    let mut kept = lock(&self.shared.stderr);
                    kept.extend_from_slice(&bytes);
                    let over = kept.len().saturating_sub(MAX_STDERR_BYTES);
                    kept.drain(..over);
                }
                Stream::Out => {
                    let Ok(whole) = messages.push(&bytes) else {
                        return "it sent a message that is too large".to_owned();
                    };
                    if !whole.iter().all(|message| self.dispatch(message)) {
                        return "it does not read what is sent to it".to_owned();
                    }
                }
            }
        }
        "it ended".to_owned()
    }

    /// Takes in a message; `false` where its answers find no room.
    fn dispatch(&self, message: &[u8]) -> bool {
        let Ok(mut message) = serde_json::from_slice::<Value>(message) else { return true };
        if let Some(id) = message["id"].as_u64() {
            if let Some(waiting) = lock(&self.shared.pending).remove(&id) {
                let _ = waiting.send(match message.get("error") {
                    Some(error) => {
                        let text = error["message"].as_str().unwrap_or("it gave no reason");
                        Err(Error::Refused(one_line(text, 300)))
                    }
                    None => Ok(message["result"].take()),
                });
            }
            return true;
        }
        let Ok(event) = serde_json::from_value::<BrowserEvent>(message) else { return true };
        let mut has_room = true;
        let orders = lock(&self.shared.scene).on_event(&event);
        if let Some(out) = self.orders.upgrade() {
            for CdpCommand { session, method, params } in orders {
                let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
                let order = encoded(id, session.as_deref(), method, params);
                let sent = out.try_send(order);
                has_room &= !matches!(sent, Err(mpsc::error::TrySendError::Full(_)));
            }
        }
        self.shared.changed.send_replace(());
        has_room
    }
}

async fn write(input: Option<Input>, mut inbox: mpsc::Receiver<Vec<u8>>) {
    let Some(mut input) = input else { return };
    while let Some(bytes) = inbox.recv().await {
        input.write(&bytes).await;
    }
}

fn encoded(id: u64, session: Option<&str>, method: &str, params: Value) -> Vec<u8> {
    let mut message = json!({ "id": id, "method": method, "params": params });
    if let Some(session) = session {
        message["sessionId"] = session.into();
    }
    let mut bytes = message.to_string().into_bytes();
    bytes.push(0);
    bytes
}

/// Puts messages together from what was read.
#[derive(Default)]
struct Messages(Vec<u8>);

/// A message is longer than any that is expected.
#[derive(Debug, PartialEq)]
struct TooLarge;

impl Messages {
    /// Adds what was read; returns the messages that are whole with it.
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLarge> {
        let mut whole = Vec::new();
        let mut parts = bytes.split(|byte| *byte == 0);
        self.0.extend_from_slice(parts.next().unwrap_or_default());
        for part in parts {
            whole.push(std::mem::replace(&mut self.0, part.to_vec()));
        }
        if self.0.len() > MAX_MESSAGE_BYTES { Err(TooLarge) } else { Ok(whole) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_put_together_however_they_arrive() {
        let mut messages = Messages::default();
        assert_eq!(messages.push(b"{\"a\"").unwrap(), Vec::<Vec<u8>>::new());
        assert_eq!(messages.push(b":1}\0{}\0{").unwrap(), [b"{\"a\":1}".to_vec(), b"{}".to_vec()]);
        assert_eq!(messages.push(b"}\0").unwrap(), [b"{}".to_vec()]);
        assert_eq!(messages.push(&vec![b'x'; MAX_MESSAGE_BYTES + 1]), Err(TooLarge));
    }
}
