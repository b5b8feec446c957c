//! One process drives a task tree; the others hear who does.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use windlass_store::{Error, Level};

use crate::process::Other;
use crate::world::{World, at, child_of, created, request};

#[tokio::test]
async fn only_one_process_drives_and_the_other_gets_its_id() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    assert_eq!(store.owners().driving_process(task).unwrap(), None);
    let mut other = Other::obeying(world.dir.path());
    assert_eq!(other.ask(&format!("own {task}")), "owned 1");
    let pid = other.child.id();
    assert_eq!(store.owners().driving_process(task).unwrap(), Some(pid));
    let error = store.owners().own(task).await.err().unwrap();
    assert_eq!(error.to_string(), format!("`{task}` is running in process {pid}"));

    assert_eq!(other.ask("release"), "released");
    let owner = store.owners().own(task).await.unwrap();
    assert_eq!(owner.epoch(), 2);
    let refused = other.ask(&format!("own {task}"));
    assert_eq!(refused, format!("`{task}` is running in process {}", std::process::id()));
}

#[tokio::test]
async fn a_killed_owner_leaves_the_task_free() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let mut other = Other::obeying(world.dir.path());
    assert_eq!(other.ask(&format!("own {task}")), "owned 1");
    assert_eq!(other.ask("append"), "appended 2");
    other.kill();
    assert_eq!(store.owners().driving_process(task).unwrap(), None);
    let owner = store.owners().own(task).await.unwrap();
    assert_eq!(owner.append(at(1), vec![request()], Level::Written).await.unwrap()[0].seq, 3);
}

#[tokio::test]
async fn a_superseded_owner_that_wakes_cannot_write() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let mut other = Other::obeying(world.dir.path());
    assert_eq!(other.ask(&format!("own {task}")), "owned 1");
    let pid = Pid::from_child(&other.child);
    kill_process(pid, Signal::STOP).unwrap();
    waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();

    // A stopped process keeps its lock, so that only an explicit takeover gets past it.
    assert!(matches!(store.owners().own(task).await, Err(Error::Driven { .. })));
    let owner = store.owners().take_over(task).await.unwrap();
    assert_eq!(store.owners().driving_process(task).unwrap(), Some(std::process::id()));
    owner.append(at(1), vec![request()], Level::Synced).await.unwrap();

    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(other.ask("append"), format!("task `{task}` was taken over by another process"));
    assert_eq!(store.journal().of(task).unwrap().len(), 2);
    // Nor does its letting go free what is not its any more.
    assert_eq!(other.ask("release"), "released");
    assert_eq!(store.owners().driving_process(task).unwrap(), Some(std::process::id()));
    owner.append(at(2), vec![request()], Level::Written).await.unwrap();
    drop(owner);
    assert_eq!(store.owners().driving_process(task).unwrap(), None);
}

#[tokio::test]
async fn an_owner_writes_to_no_other_tree() {
    let world = World::new();
    let store = world.open();
    let ours = store.tasks().create(at(0), created()).await.unwrap().task();
    let theirs = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(ours).await.unwrap();
    let error = owner.append_to(theirs, at(1), vec![request()], Level::Written).await;
    assert!(matches!(error, Err(Error::WrongTree { .. })));
    assert!(matches!(owner.stream(theirs), Err(Error::WrongTree { .. })));
    let child = child_of(theirs, theirs);
    assert!(matches!(owner.create_child(at(1), child).await, Err(Error::WrongTree { .. })));
    assert!(matches!(store.owners().own(created().root).await, Err(Error::UnknownTask(_))));
}

#[tokio::test]
async fn of_many_at_once_only_one_becomes_owner() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    for _ in 0..20 {
        let mut attempts = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let store = store.clone();
            attempts.spawn(async move {
                let _ = store.owners().driving_process(task).unwrap();
                store.owners().own(task).await
            });
        }
        let owned = attempts.join_all().await;
        assert_eq!(owned.iter().filter(|owner| owner.is_ok()).count(), 1);
    }
    assert_eq!(store.tasks().get(task).unwrap().unwrap().epoch, 20);
}
