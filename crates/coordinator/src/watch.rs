//! Following a task: its events as they are committed, and previews of what is coming.

use tokio::sync::broadcast;
use windlass_agent::Preview;
use windlass_core::event::Record;
use windlass_core::id::TaskId;
use windlass_store::{Changes, Store};

use crate::{Coordinator, Error};

/// Events read at once while following.
const PAGE: usize = 256;

/// Something to show.
#[derive(Clone, Debug)]
pub enum Update {
    /// It happened.
    Event(Box<Record>),
    /// It is happening; not journaled, and void if the reply starts anew.
    Preview(Preview),
}

/// A task as it goes on.
pub struct Following {
    store: Store,
    task: TaskId,
    seq: u64,
    ready: std::collections::VecDeque<Record>,
    changes: Changes,
    previews: broadcast::Receiver<Preview>,
}

impl Coordinator {
    /// Follows a task from behind event `seq`; 0 is the beginning.
    pub fn follow(&self, task: TaskId, seq: u64) -> Following {
        Following {
            store: self.store.clone(),
            task,
            seq,
            ready: std::collections::VecDeque::new(),
            changes: self.store.changes(),
            previews: self.previews.subscribe(),
        }
    }
}

impl Following {
    /// The next thing to show; waits for it.
    pub async fn next(&mut self) -> Result<Update, Error> {
        loop {
            self.changes.tick();
            if let Some(record) = self.committed()? {
                return Ok(Update::Event(Box::new(record)));
            }
            tokio::select! {
                changed = self.changes.changed() => changed?,
                preview = self.previews.recv() => match preview {
                    Ok(preview) if preview.task == self.task => return Ok(Update::Preview(preview)),
                    // Another task's, or too many at once: previews are not promises.
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }

    /// The next event that is committed already, without waiting.
    pub fn committed(&mut self) -> Result<Option<Record>, Error> {
        if self.ready.is_empty() {
            self.ready.extend(self.store.events_after(self.task, self.seq, PAGE)?);
        }
        let next = self.ready.pop_front();
        if let Some(record) = &next {
            self.seq = record.seq;
        }
        Ok(next)
    }
}
