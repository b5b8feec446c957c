//! Who did what from where: one line of JSON for each request, in a file of the data directory. What is secret is not
//! in it: neither headers nor query strings nor bodies.
//!
//! Invariant: a request never waits for the disk. Lines that come faster than they are written are counted.

use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{HeaderValue, Method};
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::mpsc;

/// Lines that may wait for the disk.
const MAX_WAITING: usize = 4096;

/// The size at which a new file is begun; the one before it is kept.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// How much of what a client calls itself is kept.
const AGENT_CHARS: usize = 200;

/// How much of a path is kept.
const PATH_CHARS: usize = 500;

/// What is logged of one request.
pub struct AccessRecord {
    pub at: Timestamp,
    pub user: Option<String>,
    pub method: Method,
    pub path: String,
    pub status: u16,
    pub took: Duration,
    /// The client, also behind a proxy that is trusted.
    pub from: IpAddr,
    pub agent: Option<HeaderValue>,
}

/// The way to the file.
pub struct AccessLog {
    lines: mpsc::Sender<String>,
    lost: AtomicU64,
}

impl AccessLog {
    /// The log, and what is to be written.
    pub fn new() -> (Self, Lines) {
        let (lines, waiting) = mpsc::channel(MAX_WAITING);
        (Self { lines, lost: AtomicU64::new(0) }, Lines(waiting))
    }

    /// Adds a request.
    pub fn write(&self, entry: AccessRecord) {
        let agent = entry.agent.as_ref().and_then(|agent| agent.to_str().ok());
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let mut line = json!({
            "at": entry.at,
            "user": entry.user,
            "method": entry.method.as_str(),
            "path": entry.path.chars().take(PATH_CHARS).collect::<String>(),
            "status": entry.status,
            "ms": entry.took.as_millis() as u64,
            "from": entry.from,
            "agent": agent.map(|agent| agent.chars().take(AGENT_CHARS).collect::<String>()),
        });
        if lost > 0 {
            line["lost_before"] = json!(lost);
        }
        if self.lines.try_send(format!("{line}\n")).is_err() {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }
}

/// Lines on their way to the file.
pub struct Lines(mpsc::Receiver<String>);

impl Lines {
    /// Writes lines until nobody can add any. A disk that is full loses them, and nothing else.
    pub async fn run(mut self, path: PathBuf) {
        let mut batch = Vec::new();
        while self.0.recv_many(&mut batch, MAX_WAITING).await > 0 {
            let (text, path) = (batch.concat(), path.clone());
            batch.clear();
            let written = tokio::task::spawn_blocking(move || append(&path, &text)).await;
            if let Ok(Err(error)) = written {
                tracing::warn!(%error, "the access log cannot be written");
            }
        }
    }
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|found| found.len() > MAX_FILE_BYTES) {
        std::fs::rename(path, path.with_extension("log.1"))?;
    }
    let mut file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
