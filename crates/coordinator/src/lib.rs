//! The control plane: takes goals in, says who drives them, passes messages, answers and signals on.
//!
//! It is a router, not an agent: it decides nothing about the work (ES-050, ES-051). Every surface
//! holds a `Coordinator` and nothing below it, so what one can do, all can.

pub mod submit;
pub mod drive;
pub mod mailbox;
pub mod watch;
pub mod compactions;
pub mod memory;
pub mod bus;
mod error;

use std::sync::Arc;

use tokio::sync::broadcast;
use windlass_agent::Preview;
use windlass_agent::journal::Clock;
use windlass_store::Store;

pub use compactions::Compaction;
pub use drive::{BoxFuture, Equip};
pub use error::Error;
pub use mailbox::Steered;
pub use submit::{Draft, Share};
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
}

impl Coordinator {
    /// A coordinator over a store; `equip` says what an agent gets to work with.
    pub fn new(store: Store, equip: Arc<dyn Equip>, clock: Clock) -> Self {
        Self { store, equip, clock, previews: broadcast::channel(PREVIEW_BACKLOG).0 }
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
