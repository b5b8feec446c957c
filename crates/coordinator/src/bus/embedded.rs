//! The bus inside the store: rows that every process of the data directory sees.
//!
//! An injection goes straight into the mailbox, which is the list; so there is never one to be taken over.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_agent::Clock;
use windlass_core::id::{SessionId, TaskId};
use windlass_core::injection::Injection;
use windlass_store::{BusEntry, BusRead, Outgoing, Store};

use super::{Bus, Error, Flag, InStream, PendingInjection, StreamEntry, Subscription};
use crate::lease::Rows;
use crate::{BoxFuture, Coordinator, Lease};

/// Entries kept in a stream that others read: they share the journal's file.
const KEPT_ENTRIES: usize = 10_000;

/// Commits come by the thousand; looking after each would cost more than the wait.
const LOOK: Duration = Duration::from_millis(10);

/// The bus of one data directory.
pub struct EmbeddedBus {
    store: Store,
    clock: Arc<dyn Clock>,
    leases: Rows,
}

impl EmbeddedBus {
    /// The bus of a coordinator's store.
    pub fn of(coordinator: &Coordinator) -> Self {
        Self::new(coordinator.store.clone(), coordinator.clock.clone())
    }

    /// The bus of a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        let leases = Rows { store: store.clone(), clock: clock.clone() };
        Self { store, clock, leases }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn wait_for_new(&self, streams: &[String]) -> Result<(), Error> {
        let mut changes = self.store.changes();
        loop {
            changes.mark_seen();
            if self.store.bus().has_new(streams)? {
                return Ok(());
            }
            changes.changed().await?;
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Bus for EmbeddedBus {
    fn place(&self) -> String {
        format!("embedded in {}", self.store.dir().root().display())
    }

    fn publish<'a>(&'a self, messages: &'a [Outgoing]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            Ok(self.store.bus().publish(messages.to_vec(), KEPT_ENTRIES, self.now()).await?)
        })
    }

    fn submit<'a>(
        &'a self,
        stream: InStream,
        key: Option<&'a str>,
        body: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let (key, body) = (key.map(str::to_owned), body.to_owned());
            Ok(self.store.bus().submit(stream.as_str(), key, body, self.now()).await?)
        })
    }

    fn take<'a>(
        &'a self,
        subscription: &'a Subscription,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Vec<StreamEntry>, Error>> {
        Box::pin(async move {
            let read = rows(subscription);
            match tokio::time::timeout(wait, self.wait_for_new(&read.streams)).await {
                Ok(found) => found?,
                Err(_) => return Ok(Vec::new()),
            }
            Ok(entries(self.store.bus().take(read, self.now()).await?))
        })
    }

    fn claim<'a>(
        &'a self,
        subscription: &'a Subscription,
        idle: Duration,
    ) -> BoxFuture<'a, Result<Vec<StreamEntry>, Error>> {
        Box::pin(async move {
            let now = self.now();
            let idle = SignedDuration::try_from(idle).unwrap_or(SignedDuration::MAX);
            let since = now.checked_sub(idle).unwrap_or(Timestamp::MIN);
            Ok(entries(self.store.bus().claim(rows(subscription), since, now).await?))
        })
    }

    fn acknowledge<'a>(&'a self, entry: &'a StreamEntry) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let id = entry.id.parse().unwrap_or_default();
            Ok(self.store.bus().acknowledge(id).await?)
        })
    }

    fn push<'a>(
        &'a self,
        task: TaskId,
        injection: &'a Injection,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.store.mailbox().inject(task, injection.clone(), self.now()).await?;
            Ok(())
        })
    }

    fn list<'a>(&'a self, _: &'a [TaskId]) -> BoxFuture<'a, Result<Vec<PendingInjection>, Error>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn remove<'a>(&'a self, _: &'a PendingInjection) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }

    fn flags<'a>(
        &'a self,
        tasks: &'a [TaskId],
    ) -> BoxFuture<'a, Result<Vec<(TaskId, Flag)>, Error>> {
        Box::pin(async move {
            let set: HashMap<_, _> = self.store.bus().flags()?.into_iter().collect();
            let of = |task: &TaskId| Some((*task, set.get(task)?.parse().ok()?));
            Ok(tasks.iter().filter_map(of).collect())
        })
    }

    fn set_flag<'a>(
        &'a self,
        task: TaskId,
        flag: Option<Flag>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            Ok(self.store.bus().set_flag(task, flag.map(|flag| flag.to_string())).await?)
        })
    }
}

impl Lease for EmbeddedBus {
    fn take<'a>(
        &'a self,
        session: SessionId,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, crate::Error>> {
        self.leases.take(session, owner, ttl)
    }

    fn give_back<'a>(
        &'a self,
        session: SessionId,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<(), crate::Error>> {
        self.leases.give_back(session, owner)
    }
}

fn rows(subscription: &Subscription) -> BusRead {
    BusRead {
        streams: subscription.streams.iter().map(ToString::to_string).collect(),
        consumer: subscription.consumer.clone(),
        limit: subscription.limit,
    }
}

fn entries(rows: Vec<BusEntry>) -> Vec<StreamEntry> {
    let entry = |row: BusEntry| {
        let stream = row.stream.parse().ok()?;
        Some(StreamEntry { stream, id: row.id.to_string(), body: row.body })
    };
    rows.into_iter().filter_map(entry).collect()
}
