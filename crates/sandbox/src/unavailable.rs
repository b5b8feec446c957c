//! A sandbox that could not be made: the task fails with the reason instead of not starting at all.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::api::{
    BoxFuture, Command, FatalCause, IsolationReport, Sandbox, SandboxEvent, SandboxKind,
};
use crate::{Error, Running};

/// A container that cannot be made (ES-380, ES-385).
#[derive(Debug)]
pub struct Unavailable {
    workspace: PathBuf,
    reason: String,
    is_reported: AtomicBool,
}

impl Unavailable {
    /// `reason` is what every command and the task itself fail with.
    pub fn new(workspace: PathBuf, reason: String) -> Self {
        Self { workspace, reason, is_reported: AtomicBool::new(false) }
    }
}

impl Sandbox for Unavailable {
    fn start(&self, _: Command) -> BoxFuture<'_, Result<Running, Error>> {
        let stage = self.reason.clone();
        Box::pin(async { Err(Error::Setup { stage, source: io::ErrorKind::NotConnected.into() }) })
    }

    fn isolation(&self) -> IsolationReport {
        IsolationReport {
            kind: SandboxKind::Docker,
            workspace: self.workspace.clone(),
            memory_bytes: None,
            has_own_sockets: true,
            facts: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn drain_events(&self) -> Vec<SandboxEvent> {
        if self.is_reported.swap(true, Ordering::Relaxed) {
            return Vec::new();
        }
        vec![SandboxEvent::Failed { cause: FatalCause::Engine, why: self.reason.clone() }]
    }
}
