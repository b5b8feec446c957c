//! What appending, reading and draining cost on this machine. Figures are for comparing with each
//! other, not with other machines: `cargo run --release -p windlass-store --example bench`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot continue stops")]

use std::time::Instant;

use jiff::Timestamp;
use tokio::task::JoinSet;
use windlass_core::axes::Axes;
use windlass_core::command::TaskCommand;
use windlass_core::event::{Driver, Event, LlmRequest, TaskCreated};
use windlass_core::id::SessionId;
use windlass_store::{Level, Options, Owner, Store};

const APPENDS: usize = 2_000;
const TASKS: usize = 64;

#[tokio::main]
async fn main() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    for level in [Level::Written, Level::Synced] {
        for tasks in [1, TASKS] {
            let (each, seconds) = appending(&store, level, tasks).await;
            let rate = (each * tasks) as f64 / seconds;
            let mean = seconds / each as f64 * 1e6;
            println!("{level:?}, {tasks:2} tasks: {rate:8.0} appends/s, {mean:7.0} µs each");
        }
    }
    reading(&store).await;
    let began = Instant::now();
    drop(store);
    println!("closing: {:?}", began.elapsed());
    let began = Instant::now();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    println!("opening: {:?}", began.elapsed());
    let began = Instant::now();
    let events = store.projections().rebuild().await.unwrap();
    println!("rebuilding {events} events: {:?}", began.elapsed());
    let began = Instant::now();
    assert!(store.projections().verify().unwrap().is_empty());
    println!("verifying them: {:?}", began.elapsed());
}

async fn appending(store: &Store, level: Level, tasks: usize) -> (usize, f64) {
    let each = APPENDS / tasks.min(8);
    let mut owners = Vec::new();
    for _ in 0..tasks {
        owners.push(owner(store).await);
    }
    let began = Instant::now();
    let mut jobs = JoinSet::new();
    for owner in owners {
        jobs.spawn(async move {
            for _ in 0..each {
                owner.append(Timestamp::UNIX_EPOCH, vec![event()], level).await.unwrap();
            }
        });
    }
    jobs.join_all().await;
    (each, began.elapsed().as_secs_f64())
}

async fn reading(store: &Store) {
    let owner = owner(store).await;
    let task = owner.root();
    owner.append(Timestamp::UNIX_EPOCH, vec![event(); 2_000], Level::Written).await.unwrap();
    let mut stream = owner.stream(task).unwrap();
    let began = Instant::now();
    for _ in 0..APPENDS {
        stream.drain(Timestamp::UNIX_EPOCH).await.unwrap();
    }
    println!("empty drain: {:?} each", began.elapsed() / APPENDS as u32);
    let began = Instant::now();
    let records = store.journal().of(task).unwrap().len();
    println!("journal of {records} events: {:?}", began.elapsed());
    let began = Instant::now();
    for seq in 0..APPENDS {
        store.journal().after(task, seq as u64, 1).unwrap();
    }
    println!("one event after a cursor: {:?} each", began.elapsed() / APPENDS as u32);
}

async fn owner(store: &Store) -> Owner {
    let at = Timestamp::UNIX_EPOCH;
    let command = TaskCommand::new(at, SessionId::new(at), "measure");
    let task_id = command.task_id;
    let created = TaskCreated::new(command, Axes::headless(), "/", Driver::Service);
    store.tasks().create(at, created).await.unwrap();
    store.owners().own(task_id).await.unwrap()
}

/// About 400 bytes, as journal rows go.
fn event() -> Event {
    let (model, hash) = ("litellm/gpt-4o".to_owned(), "x".repeat(320));
    Event::LlmRequest(LlmRequest {
        model,
        messages: 10,
        estimated_tokens: 1_000,
        hash,
        context: None,
        reserved_usd: None,
        segment_ms: None,
    })
}
