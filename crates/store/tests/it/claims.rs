//! Which worker edits what: one of two that claim the same place is refused.

use windlass_core::claim::Claim;
use windlass_core::event::{CheckpointMade, Event, IntentClaimed};
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;
use windlass_store::{Level, RuntimeRow, Store};

use crate::world::{World, at, created, created_at, moved};

const REPOSITORY: &str = "/repo/.git";

fn claim(text: &str) -> Claim {
    text.parse().unwrap()
}

/// A worker that last gave a sign of life at this second.
async fn worker(store: &Store, beat: i64) -> TaskId {
    let task = store.tasks().create(at(beat), created_at(at(beat))).await.unwrap().task();
    let runtime = RuntimeRow {
        process_pid: 7,
        worktree_path: Some(format!("/worktrees/{task}")),
        current_model: None,
        context_usage_percent: None,
        last_heartbeat_at: at(beat),
    };
    store.owners().runtime().set(task, runtime).await.unwrap();
    task
}

/// MS-137, MS-212, O-52: overlapping lines are refused, and the holder is named.
#[tokio::test]
async fn an_overlapping_claim_is_refused_while_its_holder_lives() {
    let world = World::new();
    let store = world.open();
    let (first, second) = (worker(&store, 0).await, worker(&store, 1).await);
    let claims = store.tasks().claims();
    let own = claim("src/foo.ts:10-50");
    assert_eq!(claims.claim(REPOSITORY, first, own.clone(), at(2)).await.unwrap(), None);
    let refused =
        claims.claim(REPOSITORY, second, claim("src/foo.ts:40-60"), at(90)).await.unwrap();
    let holder = refused.expect("the first one is alive");
    assert_eq!((holder.task, &holder.claim), (first, &own));
    for free in ["src/foo.ts:51-60", "src/bar.ts:10-50"] {
        assert_eq!(claims.claim(REPOSITORY, second, claim(free), at(90)).await.unwrap(), None);
    }
    let elsewhere = claims.claim("/other/.git", second, own.clone(), at(90)).await.unwrap();
    assert_eq!(elsewhere, None, "another repository has other files");
    // After 90 seconds without a sign of life the place is free.
    assert_eq!(claims.claim(REPOSITORY, second, own, at(91)).await.unwrap(), None);
}

/// MS-212
#[tokio::test]
async fn a_claim_ends_with_its_task() {
    let world = World::new();
    let store = world.open();
    let (first, second) = (worker(&store, 0).await, worker(&store, 1).await);
    let claims = store.tasks().claims();
    claims.claim(REPOSITORY, first, claim("a.rs#parse"), at(2)).await.unwrap();
    assert!(claims.claim(REPOSITORY, second, claim("a.rs#parse"), at(3)).await.unwrap().is_some());
    assert_eq!(claims.of(REPOSITORY).unwrap().len(), 1);
    let owner = store.owners().own(first).await.unwrap();
    let events = vec![moved(TaskStatus::Todo, TaskStatus::Cancelled)];
    owner.append(at(4), events, Level::Written).await.unwrap();
    assert_eq!(claims.claim(REPOSITORY, second, claim("a.rs#parse"), at(5)).await.unwrap(), None);
}

/// MS-133, MS-137: what other programs read in the table.
#[tokio::test]
async fn the_last_claim_and_checkpoint_are_columns_of_the_task() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let reference = format!("refs/windlass/checkpoints/{task}");
    let events = vec![
        Event::IntentClaimed(IntentClaimed { claim: claim("src/foo.ts:10-50") }),
        Event::CheckpointMade(CheckpointMade {
            checkpoint_ref: reference.clone(),
            commit: "0".repeat(40),
        }),
    ];
    owner.append(at(1), events, Level::Written).await.unwrap();
    let row = store.tasks().get(task).unwrap().unwrap();
    assert_eq!(row.intent_claim.as_deref(), Some("I will edit src/foo.ts lines 10-50"));
    assert_eq!(row.checkpoint_ref, Some(reference));
}
