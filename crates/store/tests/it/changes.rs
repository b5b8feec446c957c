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
    let before = changes.mark_seen();
    store.mailbox().inject(task, Injection::message(injection_id(), "x"), at(1)).await.unwrap();
    changes.changed().await.unwrap();
    assert!(changes.mark_seen() > before);
}

#[tokio::test]
async fn another_processs_message_is_noticed() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let mut other = Other::obeying(world.dir.path());
    let mut changes = store.changes();
    for count in 1..=3 {
        changes.mark_seen();
        assert_eq!(other.ask(&format!("inject {task} hello")), "accepted");
        changes.changed().await.unwrap();
        assert_eq!(store.mailbox().pending(task).unwrap().len(), count);
    }
}

#[tokio::test]
async fn another_processs_message_is_in_the_mailbox_without_waiting() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let mut other = Other::obeying(world.dir.path());
    assert!(!store.mailbox().has_mail(task).unwrap());
    assert_eq!(other.ask(&format!("inject {task} hello")), "accepted");
    assert!(store.mailbox().has_mail(task).unwrap());
}

#[tokio::test]
async fn only_mail_wakes_a_listener_for_mail() {
    let world = World::new();
    let store = world.open();
    let mut mail = store.mailbox().changes();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let before = mail.mark_seen();
    store.sync().await.unwrap();
    assert_eq!(mail.mark_seen(), before);
    store.mailbox().inject(task, Injection::message(injection_id(), "x"), at(1)).await.unwrap();
    assert_eq!(mail.mark_seen(), before + 1);
}

#[tokio::test]
async fn a_signal_file_of_an_earlier_version_is_removed() {
    let world = World::new();
    let file = world.dir.path().join("mail.bell");
    std::fs::write(&file, [0; 8]).unwrap();
    let _store = world.open();
    assert!(!file.exists());
}
