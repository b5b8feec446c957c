//! Previews for other processes: a process that watches a task opens a socket in the data directory, and the process
//! that drives the task sends its previews there.
//!
//! Invariants:
//! - Nobody waits. What a watcher does not take in time is lost: previews are not promises.
//! - If nobody watches, nothing is opened and nothing is sent. The driving process checks for watchers a few times a
//!   second, and only while it has something to show.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::net::UnixDatagram;
use tokio::sync::broadcast::error::RecvError;
use windlass_agent::{Preview, PreviewContent};
use windlass_core::id::{CallId, TaskId};
use windlass_core::text::prefix;
use windlass_model::StreamEvent;

use crate::Feed;

/// How often it is looked whether somebody watches.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Processes that may watch one process.
const MAX_WATCHERS: usize = 16;

/// Text of one piece: well below what a socket takes at once.
const MAX_TEXT: usize = 16 << 10;

/// A piece on its way. Of a reply only the text is sent; the rest comes with the reply itself.
#[derive(Serialize, Deserialize)]
struct PreviewPiece {
    task: TaskId,
    /// The call that printed it; none for the text of a reply.
    call: Option<CallId>,
    text: String,
}

impl PreviewPiece {
    fn of(preview: &Preview) -> Option<Self> {
        let (call, text) = match &preview.live {
            PreviewContent::Output { call, text } => (Some(*call), text),
            PreviewContent::Reply(StreamEvent::Text(text)) => (None, text),
            PreviewContent::Asked { .. } | PreviewContent::Reply(_) | PreviewContent::Ended => {
                return None;
            }
        };
        Some(Self { task: preview.task, call, text: prefix(text, MAX_TEXT).to_owned() })
    }

    fn into_preview(self) -> Preview {
        let live = match self.call {
            Some(call) => PreviewContent::Output { call, text: self.text },
            None => PreviewContent::Reply(StreamEvent::Text(self.text)),
        };
        Preview { task: self.task, live }
    }
}

/// Where the watchers of a process have their sockets.
fn directory(root: &Path, process: u32) -> PathBuf {
    root.join("live").join(process.to_string())
}

impl Feed<'_> {
    /// Sends previews of the tasks that this process drives to those who watch from elsewhere. Never returns.
    pub async fn share_previews(self) {
        let directory = directory(self.coordinator.store.dir().root(), std::process::id());
        let mut previews = self.previews();
        let (mut watchers, mut looked) = (Vec::new(), None::<Instant>);
        loop {
            let preview = match previews.recv().await {
                Ok(preview) => preview,
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return std::future::pending().await,
            };
            if looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
                looked = Some(Instant::now());
                watchers = sockets(&directory);
            }
            if watchers.is_empty() {
                continue;
            }
            if let Some(bytes) =
                PreviewPiece::of(&preview).and_then(|piece| serde_json::to_vec(&piece).ok())
            {
                watchers.retain(|socket| is_there(send(&bytes, socket), socket));
            }
        }
    }
}

fn sockets(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).take(MAX_WATCHERS).collect()
}

fn send(bytes: &[u8], to: &Path) -> io::Result<()> {
    let socket = std::os::unix::net::UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to(bytes, to).map(drop)
}

/// Whether a watcher may still take something. What one that was killed has left is removed.
fn is_there(sent: io::Result<()>, socket: &Path) -> bool {
    match sent {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
        Err(_) => {
            let _ = fs::remove_file(socket);
            false
        }
    }
}

/// What another process would show. Its socket goes with it.
pub(crate) struct Watcher {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Watcher {
    /// Listens to what a process sends.
    pub fn open(root: &Path, process: u32) -> io::Result<Self> {
        let directory = directory(root, process);
        fs::create_dir_all(&directory)?;
        let path = directory.join(std::process::id().to_string());
        // An earlier process of the same number may have left one.
        let _ = fs::remove_file(&path);
        Ok(Self { socket: UnixDatagram::bind(&path)?, path })
    }

    /// The next preview; what cannot be read is left out.
    pub async fn next(&self) -> io::Result<Preview> {
        // JSON writes some letters in six bytes.
        let mut buffer = vec![0; MAX_TEXT * 6 + 256];
        loop {
            let length = self.socket.recv(&mut buffer).await?;
            if let Ok(piece) = serde_json::from_slice::<PreviewPiece>(&buffer[..length]) {
                return Ok(piece.into_preview());
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        if let Some(directory) = self.path.parent() {
            // It stays while another one watches.
            let _ = fs::remove_dir(directory);
        }
    }
}
