//! The bus inside the store: rows that every process of the data directory sees.
//!
//! An injection goes straight into the mailbox, which is the list; so there is never one to be taken over.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_agent::journal::Clock;
use windlass_core::id::{SessionId, TaskId};
use windlass_core::injection::Injection;
use windlass_store::{BusEntry, BusRead, KeyChange, Outgoing, Store};

use super::{Bus, Entry, Error, Flag, InStream, KEPT_ENTRIES, Listed, Reader, flag_key, lease_key};
use crate::BoxFuture;

/// Commits come by the thousand; looking after each would cost more than the wait.
const LOOK: Duration = Duration::from_millis(10);

/// The bus of one data directory.
pub struct Embedded {
    store: Store,
    clock: Clock,
}

impl Embedded {
    /// The bus of a store.
    pub fn new(store: Store, clock: Clock) -> Self {
        Self { store, clock }
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    async fn wait_for_new(&self, streams: &[String]) -> Result<(), Error> {
        let mut changes = self.store.changes();
        loop {
            changes.tick();
            if self.store.bus_has_new(streams)? {
                return Ok(());
            }
            changes.changed().await?;
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Bus for Embedded {
    fn place(&self) -> String {
        format!("embedded in {}", self.store.dir().root().display())
    }

    fn publish<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let (key, body) = (Some(message.key.clone()), message.body.clone());
            let stream = message.stream.as_str();
            Ok(self.store.bus_publish(stream, key, body, Some(KEPT_ENTRIES), self.now()).await?)
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
            Ok(self.store.bus_publish(stream.as_str(), key, body, None, self.now()).await?)
        })
    }

    fn take<'a>(
        &'a self,
        reader: &'a Reader,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        Box::pin(async move {
            let read = rows(reader);
            match tokio::time::timeout(wait, self.wait_for_new(&read.streams)).await {
                Ok(found) => found?,
                Err(_) => return Ok(Vec::new()),
            }
            Ok(entries(self.store.bus_take(read, self.now()).await?))
        })
    }

    fn claim<'a>(
        &'a self,
        reader: &'a Reader,
        idle: Duration,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        Box::pin(async move {
            let now = self.now();
            let idle = SignedDuration::try_from(idle).unwrap_or(SignedDuration::MAX);
            let since = now.checked_sub(idle).unwrap_or(Timestamp::MIN);
            Ok(entries(self.store.bus_claim(rows(reader), since, now).await?))
        })
    }

    fn acknowledge<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let id = entry.id.parse().unwrap_or_default();
            Ok(self.store.bus_acknowledge(id, entry.stream.is_ours_alone()).await?)
        })
    }

    fn push<'a>(
        &'a self,
        task: TaskId,
        injection: &'a Injection,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.store.inject(task, injection.clone(), self.now()).await?;
            Ok(())
        })
    }

    fn listed<'a>(&'a self, _: &'a [TaskId]) -> BoxFuture<'a, Result<Vec<Listed>, Error>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn remove<'a>(&'a self, _: &'a Listed) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }

    fn flags<'a>(
        &'a self,
        tasks: &'a [TaskId],
    ) -> BoxFuture<'a, Result<Vec<(TaskId, Flag)>, Error>> {
        Box::pin(async move {
            let set = self.store.bus_keys("task:status:", self.now())?;
            let of = |task: &TaskId| {
                let name = flag_key(*task);
                let found = set.iter().find(|(key, _)| *key == name)?;
                Some((*task, found.1.parse().ok()?))
            };
            Ok(tasks.iter().filter_map(of).collect())
        })
    }

    fn set_flag<'a>(
        &'a self,
        task: TaskId,
        flag: Option<Flag>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let change = match flag {
                Some(flag) => KeyChange::Set(flag.to_string()),
                None => KeyChange::Remove,
            };
            self.store.bus_change(flag_key(task), change, self.now()).await?;
            Ok(())
        })
    }

    fn hold<'a>(
        &'a self,
        session: SessionId,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let ttl = SignedDuration::try_from(ttl).unwrap_or(SignedDuration::MAX);
            let until = self.now().checked_add(ttl).unwrap_or(Timestamp::MAX);
            let change = KeyChange::Hold { value: owner.to_owned(), until };
            Ok(self.store.bus_change(lease_key(session), change, self.now()).await?)
        })
    }

    fn release<'a>(
        &'a self,
        session: SessionId,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let change = KeyChange::Release(owner.to_owned());
            Ok(self.store.bus_change(lease_key(session), change, self.now()).await?)
        })
    }
}

fn rows(reader: &Reader) -> BusRead {
    BusRead {
        streams: reader.streams.iter().map(ToString::to_string).collect(),
        consumer: reader.consumer.clone(),
        limit: reader.limit,
    }
}

fn entries(rows: Vec<BusEntry>) -> Vec<Entry> {
    let entry = |row: BusEntry| {
        let stream = row.stream.parse().ok()?;
        Some(Entry { stream, id: row.id.to_string(), body: row.body })
    };
    rows.into_iter().filter_map(entry).collect()
}
