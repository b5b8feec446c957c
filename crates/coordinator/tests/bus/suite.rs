//! Tests that must pass on both buses.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tempfile::TempDir;
use windlass_coordinator::Lease;
use windlass_coordinator::bus::{
    Bus, EmbeddedBus, Flag, InStream, Redis, StreamEntry, Subscription,
};
use windlass_core::axes::Axes;
use windlass_core::command::TaskCommand;
use windlass_core::event::{Driver, TaskCreated};
use windlass_core::id::{InjectionId, SessionId, TaskId};
use windlass_core::injection::Injection;
use windlass_store::{MAX_WAITING_ENTRIES, Options, OutStream, Outgoing, Store};
use windlass_testkit::RedisServer;

/// Longer than anything here takes; a wait that is over sooner says so.
pub const LONG: Duration = Duration::from_secs(30);

/// A bus with all that belongs to it.
pub struct Place {
    pub store: Store,
    pub redis: Option<RedisServer>,
    _directory: TempDir,
}

impl Place {
    pub fn embedded() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), Options::default()).unwrap();
        Self { store, redis: None, _directory: directory }
    }

    pub fn redis() -> Self {
        Self { redis: Some(RedisServer::start()), ..Self::embedded() }
    }

    /// Opens the same bus as another process would.
    pub fn bus(&self) -> Box<dyn Bus> {
        match &self.redis {
            Some(server) => Box::new(Redis::new(&server.url()).unwrap()),
            None => Box::new(EmbeddedBus::new(self.store.clone(), Arc::new(Timestamp::now))),
        }
    }

    pub async fn task(&self) -> TaskId {
        let now = Timestamp::now();
        let command = TaskCommand::new(now, SessionId::new(now), "wait");
        let created = TaskCreated::new(command, Axes::headless(), "/work", Driver::Service);
        self.store.tasks().create(now, created).await.unwrap().task()
    }

    /// The keys and bodies that were published to a stream.
    pub fn published(&self, stream: OutStream) -> Vec<String> {
        match &self.redis {
            Some(server) => {
                let text = server.cli(&["XRANGE", stream.as_str(), "-", "+"]);
                text.lines().filter(|line| line.starts_with("cmd_")).map(str::to_owned).collect()
            }
            None => {
                let rows = self.store.bus().read(stream.as_str(), 0, 100).unwrap();
                rows.into_iter().filter_map(|row| row.key).collect()
            }
        }
    }
}

/// Runs a test on both.
macro_rules! on_both {
    ($($(#[$doc:meta])* $name:ident)*) => {
        mod embedded {$(
            $(#[$doc])*
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(super::Place::embedded()).await;
            }
        )*}
        mod redis {$(
            $(#[$doc])*
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(super::Place::redis()).await;
            }
        )*}
    };
}

on_both! {
    /// ES-095, ES-386
    each_entry_goes_to_one_consumer_and_comes_in_order
    /// ES-095
    entries_of_a_dead_consumer_are_claimed_by_another
    /// ES-387, ES-388, ES-389
    what_is_published_is_in_its_stream
    /// ES-136, ES-390
    injections_wait_in_order_until_they_are_removed
    /// ES-016, ES-391
    a_control_flag_is_seen_until_it_is_taken_away
    /// ES-392
    a_lease_is_held_by_one_owner_and_released_by_no_other
    /// ES-392
    a_lease_that_ran_out_is_free
}

pub fn reader(consumer: &str) -> Subscription {
    let streams = vec![InStream::TaskCommand, InStream::TaskControl];
    Subscription { streams, consumer: consumer.to_owned(), limit: 10 }
}

fn bodies(entries: &[StreamEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.body.as_str()).collect()
}

async fn each_entry_goes_to_one_consumer_and_comes_in_order(place: Place) {
    let (bus, other) = (place.bus(), place.bus());
    for number in 0..20 {
        bus.submit(InStream::TaskCommand, None, &number.to_string()).await.unwrap();
    }
    let first = Bus::take(&*bus, &reader("ada"), LONG).await.unwrap();
    let second = Bus::take(&*other, &reader("bob"), LONG).await.unwrap();
    assert_eq!(bodies(&first), ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    assert_eq!(bodies(&second), ["10", "11", "12", "13", "14", "15", "16", "17", "18", "19"]);
    for entry in first.iter().chain(&second) {
        bus.acknowledge(entry).await.unwrap();
    }
    assert!(Bus::take(&*bus, &reader("ada"), Duration::ZERO).await.unwrap().is_empty());
    assert!(bus.claim(&reader("ada"), Duration::ZERO).await.unwrap().is_empty());
    bus.submit(InStream::TaskControl, None, "later").await.unwrap();
    let later = Bus::take(&*bus, &reader("ada"), LONG).await.unwrap();
    assert_eq!((later[0].stream, later[0].body.as_str()), (InStream::TaskControl, "later"));
}

async fn entries_of_a_dead_consumer_are_claimed_by_another(place: Place) {
    let bus = place.bus();
    bus.submit(InStream::TaskCommand, None, "half done").await.unwrap();
    let dead = place.bus();
    assert_eq!(Bus::take(&*dead, &reader("dead"), LONG).await.unwrap().len(), 1);
    drop(dead);
    assert!(
        Bus::take(&*bus, &reader("ada"), Duration::ZERO).await.unwrap().is_empty(),
        "it is not new"
    );
    assert!(bus.claim(&reader("ada"), LONG).await.unwrap().is_empty(), "it was taken just now");
    let claimed = bus.claim(&reader("ada"), Duration::ZERO).await.unwrap();
    assert_eq!(bodies(&claimed), ["half done"]);
    bus.acknowledge(&claimed[0]).await.unwrap();
    assert!(bus.claim(&reader("bob"), Duration::ZERO).await.unwrap().is_empty());
}

async fn what_is_published_is_in_its_stream(place: Place) {
    let bus = place.bus();
    for (number, stream) in OutStream::ALL.iter().enumerate() {
        for repetition in 0..2 {
            let message = Outgoing {
                id: 1,
                key: format!("cmd_{number}/{repetition}"),
                command_id: Some("c".to_owned()),
                stream: *stream,
                body: "{}".to_owned(),
            };
            bus.publish(std::slice::from_ref(&message)).await.unwrap();
            bus.publish(&[message]).await.unwrap();
        }
        let seen = place.published(*stream);
        // At least once: a repetition has the same key.
        let once: HashSet<_> = seen.iter().cloned().collect();
        assert_eq!(once, HashSet::from([format!("cmd_{number}/0"), format!("cmd_{number}/1")]));
    }
}

async fn injections_wait_in_order_until_they_are_removed(place: Place) {
    let (bus, task) = (place.bus(), place.task().await);
    for word in ["one", "two", "three"] {
        let id = InjectionId::new(Timestamp::now());
        bus.push(task, &Injection::message(id, word)).await.unwrap();
    }
    // What a worker does: into the mailbox first, then out of the list.
    for listed in bus.list(&[task]).await.unwrap() {
        let injection: Injection = serde_json::from_str(&listed.text).unwrap();
        place.store.mailbox().inject(task, injection.clone(), Timestamp::now()).await.unwrap();
        place.store.mailbox().inject(task, injection, Timestamp::now()).await.unwrap();
        bus.remove(&listed).await.unwrap();
    }
    assert!(bus.list(&[task]).await.unwrap().is_empty());
    let waiting = place.store.mailbox().pending(task).unwrap();
    let words: Vec<_> = waiting.iter().map(|one| one.content.as_str()).collect();
    assert_eq!(words, ["one", "two", "three"], "in order, and each once");
}

async fn a_control_flag_is_seen_until_it_is_taken_away(place: Place) {
    let (bus, task, other) = (place.bus(), place.task().await, place.task().await);
    assert!(bus.flags(&[task, other]).await.unwrap().is_empty());
    place.bus().set_flag(task, Some(Flag::Paused)).await.unwrap();
    assert_eq!(bus.flags(&[other, task]).await.unwrap(), [(task, Flag::Paused)]);
    place.bus().set_flag(task, Some(Flag::Cancelled)).await.unwrap();
    assert_eq!(bus.flags(&[task]).await.unwrap(), [(task, Flag::Cancelled)]);
    bus.set_flag(task, None).await.unwrap();
    assert!(bus.flags(&[task]).await.unwrap().is_empty());
}

async fn a_lease_is_held_by_one_owner_and_released_by_no_other(place: Place) {
    let (bus, session) = (place.bus(), SessionId::new(Timestamp::now()));
    assert!(bus.lease(session, "ada", LONG).await);
    assert!(!bus.lease(session, "bob", LONG).await);
    assert!(bus.lease(session, "ada", LONG).await, "renewed");
    bus.give_back(session, "bob").await.unwrap();
    assert!(!bus.lease(session, "bob", LONG).await, "still hers");
    bus.give_back(session, "ada").await.unwrap();
    assert!(bus.lease(session, "bob", LONG).await);
}

async fn a_lease_that_ran_out_is_free(place: Place) {
    let (bus, session) = (place.bus(), SessionId::new(Timestamp::now()));
    assert!(bus.lease(session, "dead", Duration::from_millis(1)).await);
    while !bus.lease(session, "ada", LONG).await {
        tokio::task::yield_now().await;
    }
    bus.give_back(session, "dead").await.unwrap();
    assert!(!bus.lease(session, "dead", LONG).await);
}

/// Both a bus and its leases have a `take`.
trait Leasing {
    async fn lease(&self, session: SessionId, owner: &str, ttl: Duration) -> bool;
}

impl Leasing for Box<dyn Bus> {
    async fn lease(&self, session: SessionId, owner: &str, ttl: Duration) -> bool {
        Lease::take(&**self, session, owner, ttl).await.unwrap()
    }
}

/// What waits in a stream of the store is bounded, and a signal is not held up by commands.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_too_many_is_refused_until_another_is_processed() {
    let place = Place::embedded();
    let bus = place.bus();
    let keys: Vec<_> = (0..MAX_WAITING_ENTRIES).map(|number| number.to_string()).collect();
    let submitted = keys.iter().map(|key| bus.submit(InStream::TaskCommand, Some(key), "{}"));
    for submitted in join_all(submitted).await {
        submitted.unwrap();
    }
    let refused = bus.submit(InStream::TaskCommand, Some("more"), "{}").await.unwrap_err();
    assert!(refused.to_string().contains("10000 entries waiting"), "{refused}");
    bus.submit(InStream::TaskCommand, Some("0"), "{}").await.unwrap();
    bus.submit(InStream::TaskControl, Some("more"), "{}").await.unwrap();
    let taken = Bus::take(&*bus, &reader("one"), LONG).await.unwrap();
    bus.acknowledge(&taken[0]).await.unwrap();
    bus.submit(InStream::TaskCommand, Some("more"), "{}").await.unwrap();
}
