//! Notices of commits, of this process and of others.

use windlass_core::injection::Injection;

use crate::process::Other;
use crate::world::{World, at, created, injection_id};

#[tokio::test]
async fn an_own_commit_is_noticed() {
    let world = World::new();
    let store = world.open();
    let mut changes = store.changes();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    changes.changed().await.unwrap();
    let before = changes.tick();
    store.mailbox().inject(task, Injection::message(injection_id(), "x"), at(1)).await.unwrap();
    changes.changed().await.unwrap();
    assert!(changes.tick() > before);
}

#[tokio::test]
async fn another_processs_message_is_noticed() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let mut other = Other::obeying(world.dir.path());
    let mut changes = store.changes();
    for count in 1..=3 {
        changes.tick();
        assert_eq!(other.ask(&format!("inject {task} hello")), "accepted");
        changes.changed().await.unwrap();
        assert_eq!(store.mailbox().pending(task).unwrap().len(), count);
    }
}

#[tokio::test]
async fn another_processs_message_shows_at_the_next_look_without_waiting() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let mut other = Other::obeying(world.dir.path());
    let mut mail = store.mailbox().changes();
    assert!(mail.look(), "nobody has looked yet");
    for _ in 0..3 {
        assert_eq!(other.ask(&format!("inject {task} hello")), "accepted");
        assert!(mail.look(), "it was accepted before");
    }
    mail.suspect();
    assert!(mail.look(), "it was told to");
}

#[tokio::test]
async fn a_look_after_nothing_happened_says_no() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let mut mail = store.mailbox().changes();
    assert!(mail.look());
    assert!(!mail.look());
    store.mailbox().inject(task, Injection::message(injection_id(), "x"), at(1)).await.unwrap();
    assert!(mail.look());
    assert!(!mail.look());
}
