//! Chaos: processes are killed and restarted at random while messages, answers, pauses and cancels arrive.
//! At the end every task is in the state its log implies, everything acknowledged was seen exactly once, no
//! effect happened twice and no question was lost.
//!
//! The seed is printed; `WINDLASS_CHAOS_SEED` repeats a run's decisions, though not its timing.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

mod model;
mod storm;
mod verdict;
#[path = "../service/world.rs"]
#[expect(dead_code, reason = "shared with the tests of the service, which use more of it")]
mod world;

use std::time::Duration;

use storm::Storm;
use world::{On, World};

/// How long the storm lasts. The rest of a run, until all tasks have ended, is bounded by `PATIENCE`.
const STORM: Duration = Duration::from_secs(25);

/// Runs take turns: each keeps all cores busy.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// On the embedded bus: a service and a worker.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_done_twice_on_the_embedded_bus() {
    let _alone = ALONE.lock().await;
    weather(On::Embedded, &["serve", "worker"]).await;
}

/// On Redis: a service, two workers, and Redis killed and restarted in the middle.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_done_twice_on_redis() {
    let _alone = ALONE.lock().await;
    weather(On::Redis, &["serve", "worker", "worker"]).await;
}

async fn weather(on: On, processes: &[&'static str]) {
    let given = std::env::var("WINDLASS_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| jiff::Timestamp::now().as_microsecond().unsigned_abs());
    say(&format!("{on:?}: WINDLASS_CHAOS_SEED={seed}"));
    let (server, script) = model::start();
    let world = World::new(on, server);
    let mut storm = Storm::begin(world, script, processes, seed).await;
    storm.rage(STORM).await;
    storm.calm().await;
    say(&format!("{on:?}: {}", storm.summary()));
    verdict::check(&storm);
}

/// Prints past the capture of passing tests: whoever repeats a run needs its seed.
fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}
