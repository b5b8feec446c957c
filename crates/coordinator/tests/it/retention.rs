//! Removing finished tasks with everything of theirs.

use std::os::unix::fs::PermissionsExt as _;

use jiff::SignedDuration;
use windlass_core::status::TaskStatus;

use crate::world::World;

const SCRIPT: &str = "
replies:
  - write: {path: report.md, content: found}
  - publish_deliverable: {filepath: report.md, description: what was found, type: report}
  - say: done
";

#[tokio::test]
async fn a_removed_task_leaves_what_it_has_published_and_cost() {
    let world = World::routed(SCRIPT, "unused");
    let (old, waiting) = (world.task("old").await, world.task("waiting").await);
    let workspace = world.store().dir().workspaces().join(old.to_string());
    std::fs::write(workspace.join("report.md"), "found").unwrap();
    std::fs::write(workspace.join("scratch.txt"), "x").unwrap();
    let closed = workspace.join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::write(closed.join("a"), "x").unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    world.drive(old).await;
    assert_eq!(world.status(old), TaskStatus::Done);
    let coordinator = world.coordinator();
    let (costs, metrics) = (coordinator.costs().total(10).unwrap(), coordinator.costs().metrics());
    assert_ne!(costs.total.replies, 0);

    world.stage.advance(SignedDuration::from_hours(24));
    let day = SignedDuration::from_hours(12);
    let unpublished = coordinator.storage().retention().plan(day).unwrap();
    assert_eq!(unpublished.going, [], "its result waits to be published");
    for message in world.store().bus().outbox().pending(100).unwrap() {
        world.store().bus().outbox().remove(vec![message.id]).await.unwrap();
    }
    let plan = coordinator.storage().retention().plan(day).unwrap();
    assert_eq!((plan.going.len(), plan.unfinished), (1, 1));
    let removed = coordinator.storage().retention().remove(&plan).await.unwrap();
    assert_eq!((removed.tasks, removed.published.len()), (1, 1));
    assert!(workspace.join("report.md").exists() && !workspace.join("scratch.txt").exists());
    assert!(!closed.exists(), "a directory that is read-only goes too");
    assert!(!world.store().dir().traces().join(old.to_string()).exists());
    assert!(coordinator.tasks().get(old).unwrap().is_none());
    assert_eq!(world.status(waiting), TaskStatus::Todo);
    assert_eq!(world.store().projections().verify().unwrap(), []);
    assert_eq!(coordinator.costs().total(10).unwrap().total, costs.total);
    assert_eq!(coordinator.costs().metrics().unwrap(), metrics.unwrap());
}
