//! Redis as other programs see it, and Redis during an outage.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use windlass_coordinator::bus::{
    Bus, Error, Flag, InStream, Redis, StreamEntry, flag_key, injections_key, lease_key,
};
use windlass_core::id::{InjectionId, SessionId};
use windlass_core::injection::Injection;
use windlass_store::OutStream;

use crate::suite::{LONG, Place, reader};

/// ES-095…102, ES-386…389: streams and keys have the names of the contract, whatever our types are called.
#[test]
fn streams_have_the_names_of_the_contract() {
    let read: Vec<_> = InStream::ALL.iter().map(|stream| stream.as_str()).collect();
    let names = [
        "task-command",
        "user-message-received",
        "task-result-received",
        "hitl-response-received",
        "scheduled-trigger",
        "external-event-received",
        "task-control-received",
    ];
    assert_eq!(read, names);
    let written: Vec<_> = OutStream::ALL.iter().map(|stream| stream.as_str()).collect();
    assert_eq!(written, ["task-result", "hitl-request-command", "user-message-command"]);
}

/// ES-138, ES-386, ES-390, ES-391, ES-392
#[tokio::test(flavor = "multi_thread")]
async fn streams_lists_and_keys_have_the_names_and_types_of_the_contract() {
    let place = Place::redis();
    let (bus, task) = (place.bus(), place.task().await);
    let session = SessionId::new(Timestamp::now());
    let server = place.redis.as_ref().unwrap();
    bus.submit(InStream::TaskCommand, None, "{}").await.unwrap();
    Bus::take(&*bus, &reader("ada"), LONG).await.unwrap();
    let id = InjectionId::new(Timestamp::now());
    bus.push(task, &Injection::message(id, "hello")).await.unwrap();
    bus.set_flag(task, Some(Flag::Paused)).await.unwrap();
    windlass_coordinator::Lease::take(&*bus, session, "ada", LONG).await.unwrap();

    assert!(server.cli(&["XINFO", "GROUPS", "task-command"]).contains("windlass"));
    let list = format!("injection:{task}");
    assert_eq!(injections_key(task), list);
    assert_eq!(server.cli(&["TYPE", &list]), "list");
    assert_eq!(server.cli(&["LLEN", &list]), "1");
    assert_eq!(flag_key(task), format!("task:status:{task}"));
    assert_eq!(server.cli(&["GET", &flag_key(task)]), "paused");
    bus.set_flag(task, Some(Flag::Cancelled)).await.unwrap();
    assert_eq!(server.cli(&["GET", &flag_key(task)]), "cancelled");
    assert_eq!(lease_key(session), format!("session:lease:{session}"));
    assert_eq!(server.cli(&["GET", &lease_key(session)]), "ada");
    let left: u64 = server.cli(&["PTTL", &lease_key(session)]).parse().unwrap();
    assert!(left > 0 && left <= LONG.as_millis() as u64);
}

/// A killed server comes back with everything it acknowledged, and the same bus continues with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_loses_nothing_that_was_acknowledged() {
    let mut place = Place::redis();
    let (bus, task) = (place.bus(), place.task().await);
    for number in 0..4 {
        bus.submit(InStream::TaskCommand, None, &number.to_string()).await.unwrap();
    }
    let mut reader = reader("ada");
    reader.limit = 2;
    let taken = Bus::take(&*bus, &reader, LONG).await.unwrap();
    bus.acknowledge(&taken[0]).await.unwrap();
    let id = InjectionId::new(Timestamp::now());
    bus.push(task, &Injection::message(id, "hello")).await.unwrap();

    place.redis.as_mut().unwrap().kill();
    assert!(matches!(bus.list(&[task]).await, Err(Error::Unreachable { .. })));
    assert!(Bus::take(&*bus, &reader, LONG).await.is_err());
    place.redis.as_mut().unwrap().restart();

    assert_eq!(bus.list(&[task]).await.unwrap().len(), 1);
    let mut seen = Vec::new();
    while seen.len() < 3 {
        for entry in Bus::take(&*bus, &reader, LONG).await.unwrap() {
            bus.acknowledge(&entry).await.unwrap();
            seen.push(entry.body);
        }
    }
    assert_eq!(seen, ["1", "2", "3"], "what was taken and not acknowledged comes first");
}

/// How long the server does not answer.
const PARTITION: Duration = Duration::from_secs(30);

/// A partition: the server runs but does not answer. Nothing hangs, and nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_noticed_and_loses_nothing() {
    let place = Place::redis();
    let server = place.redis.as_ref().unwrap();
    let bus = Box::new(Redis::new(&server.url()).unwrap());
    bus.submit(InStream::TaskCommand, None, "before").await.unwrap();
    let before = Bus::take(&*bus, &reader("ada"), LONG).await.unwrap();
    server.freeze();
    // Both connections notice the outage independently.
    let name = reader("ada");
    let begun = Instant::now();
    while begun.elapsed() < PARTITION {
        let (submitted, taken) = tokio::join!(
            bus.submit(InStream::TaskCommand, None, "during"),
            Bus::take(&*bus, &name, Duration::from_millis(100)),
        );
        assert!(matches!(submitted, Err(Error::Unreachable { .. })), "{submitted:?}");
        assert!(matches!(taken, Err(Error::Unreachable { .. })), "{taken:?}");
    }
    server.thaw();

    bus.submit(InStream::TaskCommand, None, "after").await.unwrap();
    let mut seen: Vec<StreamEntry> = Vec::new();
    while !seen.iter().any(|entry| entry.body == "after") {
        seen.extend(Bus::take(&*bus, &reader("ada"), LONG).await.unwrap());
        // What was given to a connection that is gone is still ours.
        seen.extend(bus.claim(&reader("ada"), Duration::ZERO).await.unwrap());
    }
    assert!(seen.contains(&before[0]), "it was never acknowledged: {seen:?}");
}

/// Somebody trims a stream while we read it: removed entries are skipped, and the rest is read.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_entry_does_not_stop_the_reader() {
    let place = Place::redis();
    let (bus, server) = (place.bus(), place.redis.as_ref().unwrap());
    bus.submit(InStream::TaskCommand, None, "gone").await.unwrap();
    let taken = Bus::take(&*bus, &reader("ada"), LONG).await.unwrap();
    server.cli(&["XDEL", "task-command", &taken[0].id]);
    server.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
    while bus.submit(InStream::TaskCommand, None, "there").await.is_err() {}
    let mut seen = Vec::new();
    for _ in 0..10 {
        // The first look may find that its connection was cut.
        let Ok(entries) = Bus::take(&*bus, &reader("ada"), LONG).await else { continue };
        seen.extend(entries);
        if seen.iter().any(|entry: &StreamEntry| entry.body == "there") {
            return;
        }
    }
    panic!("the reader is stuck: {seen:?}");
}

/// A server that comes back empty has no groups; they are made again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_its_data_is_used_all_the_same() {
    let place = Place::redis();
    let bus = place.bus();
    bus.submit(InStream::TaskCommand, None, "old").await.unwrap();
    Bus::take(&*bus, &reader("ada"), LONG).await.unwrap();
    place.redis.as_ref().unwrap().cli(&["FLUSHALL"]);
    bus.submit(InStream::TaskCommand, None, "new").await.unwrap();
    let taken = Bus::take(&*bus, &reader("ada"), LONG).await.unwrap();
    assert_eq!(taken[0].body, "new");
}
