//! What every handler has at hand.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use windlass_coordinator::Coordinator;

use crate::about::About;
use crate::access_log::AccessLog;
use crate::api::Turns;
use crate::auth::Auth;
use crate::checkup::Checkup;
use crate::client::ProxyNetwork;
use crate::events::EventFan;
use crate::guard::Names;
use crate::notify::{Notify, Presence};
use crate::page::{Drafts, Previews};
use crate::problem::Problem;
use crate::queue::Queues;
use crate::skill_drafts::SkillTrials;

/// What every handler has at hand. Cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<Shared>);

/// The parts of an [`AppState`].
pub struct Shared {
    /// Everything that can be seen and done.
    pub coordinator: Coordinator,
    pub auth: Auth,
    /// Events as they are committed, for any number of readers.
    pub events: EventFan,
    /// What the program knows of itself.
    pub about: About,
    /// What tasks say before it is committed, for pages.
    pub previews: Previews,
    /// Messages that wait.
    pub queues: Queues,
    /// Proposed skills that are being tried.
    pub trials: SkillTrials,
    /// Whether a page of the owner is in sight, and where notices go otherwise.
    pub presence: Presence,
    pub notify: Option<Notify>,
    /// The checks of the installation.
    pub checkup: Checkup,
    /// What people have begun to write on pages.
    pub drafts: Drafts,
    /// Requests that are being answered and may be repeated.
    pub turns: Turns,
    /// The names under which this server is reached.
    pub names: Names,
    /// Proxies whose `X-Forwarded-For` names the client.
    pub trusted_proxies: Vec<ProxyNetwork>,
    pub access_log: AccessLog,
    /// Where it listens.
    pub address: SocketAddr,
    pub is_tls: bool,
    /// Directories that no task works in.
    pub refused_workspaces: Vec<PathBuf>,
    /// The path under which a proxy shows the server; empty for none.
    pub base: String,
    /// The API in OpenAPI's words.
    pub openapi: String,
}

impl AppState {
    pub fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    pub fn now(&self) -> Timestamp {
        self.0.coordinator.now()
    }

    /// Reads from the coordinator on a thread that may wait for the disk.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Coordinator) -> Result<T, windlass_coordinator::Error> + Send + 'static,
    ) -> Result<T, Problem> {
        let coordinator = self.0.coordinator.clone();
        let done = tokio::task::spawn_blocking(move || read(&coordinator)).await;
        let failed = |error: tokio::task::JoinError| {
            Problem::from(windlass_coordinator::Error::Job(error.to_string()))
        };
        Ok(done.map_err(failed)??)
    }

    /// The address of a page, as a browser on this machine writes it.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.0.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{}{path}", self.0.names.first(), self.0.base)
    }
}

impl std::ops::Deref for AppState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
