//! The control plane: takes goals in, says who drives them, passes messages, answers and signals on.
//!
//! It is a router, not an agent: it decides nothing about the work (ES-050, ES-051). Every surface
//! holds a `Coordinator` and nothing below it, so what one can do, all can.

mod submit;
mod triggers;
mod route;
mod decision;
mod slash;
mod sessions;
mod schedule;
mod due;
mod deadline;
mod hang;
mod scheduler;
mod lease;
mod limits;
mod ready;
mod drive;
mod mailbox;
mod watch;
mod compactions;
mod memory;
pub mod bus;
mod service;
mod worker;
mod outbox;
pub mod explain;
pub mod metrics;
mod error;

use std::sync::Arc;

use tokio::sync::{Notify, broadcast};
use windlass_agent::Preview;
use windlass_agent::journal::Clock;
use windlass_store::Store;

pub use compactions::Compaction;
pub use decision::Decision;
pub use drive::{BoxFuture, Equip};
pub use error::Error;
pub use lease::Lease;
pub use limits::Limits;
pub use mailbox::Steered;
pub use schedule::Ticked;
pub use service::Service;
pub use sessions::{EntryStatus, SessionState, TaskEntry};
pub use submit::{Draft, Manner, Share, Submitted};
pub use triggers::Handled;
pub use watch::Update;

/// Previews a slow surface may fall behind by before it misses some; they are only previews.
const PREVIEW_BACKLOG: usize = 1024;

/// The way in. Cheap to clone; every surface holds one.
#[derive(Clone)]
pub struct Coordinator {
    store: Store,
    equip: Arc<dyn Equip>,
    clock: Clock,
    previews: broadcast::Sender<Preview>,
    leases: Arc<dyn Lease>,
    limits: Limits,
    woken: Arc<Notify>,
    watched: hang::Watched,
}

impl Coordinator {
    /// A coordinator over a store; `equip` says what an agent gets to work with.
    pub fn new(store: Store, equip: Arc<dyn Equip>, clock: Clock) -> Self {
        let leases = lease::Rows { store: store.clone(), clock: clock.clone() };
        Self {
            store,
            equip,
            clock,
            previews: broadcast::channel(PREVIEW_BACKLOG).0,
            leases: Arc::new(leases),
            limits: Limits::default(),
            woken: Arc::default(),
            watched: hang::Watched::default(),
        }
    }

    /// Says that something may be ready to be driven now.
    pub fn wake(&self) {
        self.woken.notify_waiters();
    }

    /// Resolves when this process has something new to drive. Other processes' doings are seen through
    /// the store's changes.
    pub async fn woken(&self) {
        self.woken.notified().await;
    }

    /// The store, for reading. Everything that changes a task goes through methods here.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The present.
    pub fn now(&self) -> jiff::Timestamp {
        (self.clock)()
    }
}
