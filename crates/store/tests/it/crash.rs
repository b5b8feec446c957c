//! A process is killed before and after every commit it makes, and nothing that was acknowledged to it is lost; the
//! second time the WAL is also cut to what was synced, as a power loss would.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Signal, getpid, kill_process};
use windlass_core::command::{Deliverable, DeliverableType};
use windlass_core::event::{Event, Record};
use windlass_core::id::{CommandId, InjectionId, QuestionId, SessionId, TaskId};
use windlass_core::injection::Injection;
use windlass_core::question::QuestionKind;
use windlass_core::state::TaskState;
use windlass_core::status::TaskStatus::{Done, Running, Todo};
use windlass_store::{CommitPhase, CommitPoint, Level, Options, Store};

use crate::process::{Other, command, say};
use crate::world::{World, at, child_of, created, moved, question, reply, request};

/// Where the killed process writes how much of the WAL was synced.
const SYNCED: &str = "synced";

/// Plays the workload of the crash test; `role` is `crash <number> <phase>`.
pub async fn play(dir: &Path, role: &str) {
    let words: Vec<_> = role.split(' ').collect();
    let ["crash", number, phase] = words[..] else { panic!("{role}") };
    let number: u64 = number.parse().unwrap();
    let phase = if phase == "before" { CommitPhase::Before } else { CommitPhase::After };
    let synced = dir.join(SYNCED);
    let hook = move |point: CommitPoint| {
        if (point.number, point.phase) == (number, phase) {
            fs::write(&synced, point.synced_bytes.to_string()).unwrap();
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    };
    let options = Options { on_commit: Some(Arc::new(hook)), ..Options::default() };
    work(&Store::open(dir, options).unwrap()).await;
    say("finished");
}

fn task() -> TaskId {
    TaskId::derived("crash", "task")
}

/// A small life of a task, telling of everything as soon as it is acknowledged.
async fn work(store: &Store) {
    let report = |level: &str, records: Vec<Record>| {
        for record in records {
            say(format!("{level} {} {} {}", record.task, record.seq, record.event.kind()));
        }
    };
    let task = task();
    let mut new = created();
    new.command.task_id = task;
    new.root = task;
    new.command.command_id = CommandId::derived("crash", "command");
    new.command.session_id = SessionId::derived("crash", "session");
    store.tasks().create(at(0), new).await.unwrap();
    say(format!("synced {task} 1 task_created"));

    let owner = store.owners().own(task).await.unwrap();
    let mut stream = owner.stream(task).unwrap();
    let written = Level::Written;
    report("written", stream.append(at(1), vec![moved(Todo, Running)], written).await.unwrap());
    report("written", stream.append(at(2), vec![request(), reply("a")], written).await.unwrap());
    let mut asked = question(QuestionKind::AskUser);
    asked.id = QuestionId::derived("crash", "question");
    let events = vec![Event::QuestionAsked(asked.clone())];
    report("synced", stream.append(at(3), events, Level::Synced).await.unwrap());

    for (index, text) in ["one", "two"].iter().enumerate() {
        let message = Injection::message(InjectionId::derived("crash", text), *text);
        store.mailbox().inject(task, message, at(4 + index as i64)).await.unwrap();
        say(format!("injected {text}"));
    }
    let answer = Injection::answer(InjectionId::derived("crash", "answer"), asked.id, "blue");
    store.mailbox().inject(task, answer, at(6)).await.unwrap();
    say("injected blue");
    report("written", stream.drain(at(7)).await.unwrap());

    let mut child = child_of(task, task);
    child.command.task_id = TaskId::derived("crash", "child");
    child.command.command_id = CommandId::derived("crash", "child");
    child.command.session_id = SessionId::derived("crash", "session");
    let child = owner.create_child(at(8), child).await.unwrap().task();
    say(format!("synced {child} 1 task_created"));
    let mut child = owner.stream(child).unwrap();
    let (parents, childs) = tokio::join!(
        stream.append(at(9), vec![request()], Level::Written),
        child.append(at(9), vec![request(), reply("c")], Level::Synced),
    );
    report("written", parents.unwrap());
    report("synced", childs.unwrap());
    let deliverable = Deliverable {
        filepath: "output/a.md".to_owned(),
        description: "it".to_owned(),
        kind: DeliverableType::Report,
        content: None,
        size_bytes: None,
    };
    let events = vec![Event::DeliverablePublished(deliverable), reply("b")];
    report("written", stream.append(at(10), events, Level::Written).await.unwrap());
    let events = vec![moved(Running, Done)];
    report("synced", stream.append(at(11), events, Level::Synced).await.unwrap());
}

/// What was acknowledged to a killed process.
#[derive(Default)]
struct Acknowledged {
    written: Vec<String>,
    synced: Vec<String>,
    injected: Vec<String>,
    finished: bool,
}

fn run(dir: &Path, number: u64, phase: &str) -> Acknowledged {
    let mut other = Other::start(command(dir, &format!("crash {number} {phase}")));
    let mut acknowledged = Acknowledged::default();
    while let Some(line) = other.hear() {
        match line.split_once(' ') {
            Some(("written", event)) => acknowledged.written.push(event.to_owned()),
            Some(("synced", event)) => acknowledged.synced.push(event.to_owned()),
            Some(("injected", text)) => acknowledged.injected.push(text.to_owned()),
            _ => acknowledged.finished = line == "finished",
        }
    }
    acknowledged
}

fn survivors(store: &Store) -> Vec<String> {
    let line = |record: Record| format!("{} {} {}", record.task, record.seq, record.event.kind());
    store.journal().since(0, 1000).unwrap().into_iter().map(line).collect()
}

/// A message that was accepted is in the mailbox or in the journal, once.
fn assert_mail(store: &Store, texts: &[String]) {
    let mut places: BTreeMap<String, u32> = BTreeMap::new();
    for injection in store.mailbox().pending(task()).unwrap() {
        *places.entry(injection.content).or_default() += 1;
    }
    for record in store.journal().of(task()).unwrap() {
        if let Event::InjectionReceived(injection) = record.event {
            *places.entry(injection.content).or_default() += 1;
        }
    }
    assert!(places.values().all(|count| *count == 1), "{places:?}");
    for text in texts {
        assert!(places.contains_key(text), "`{text}` was accepted and is gone");
    }
}

async fn assert_sound(store: &Store) {
    assert_eq!(store.projections().verify().unwrap(), []);
    let journal = store.journal().of(task()).unwrap();
    let events = journal.iter().map(|record| (record.at, &record.event));
    let Some(_) = TaskState::fold(events).unwrap() else { return };
    let owner = store.owners().own(task()).await.unwrap();
    let next = owner.append(at(99), vec![request()], Level::Synced).await.unwrap();
    assert_eq!(next[0].seq, journal.len() as u64 + 1);
}

/// Kills at every point and hands each outcome to `check`; returns how many points there were.
async fn at_every_point(check: impl AsyncFn(&World, Acknowledged)) -> u32 {
    let mut points = 0;
    for number in 1.. {
        for phase in ["before", "after"] {
            let world = World::new();
            let acknowledged = run(world.dir.path(), number, phase);
            let finished = acknowledged.finished;
            check(&world, acknowledged).await;
            if finished {
                return points;
            }
            points += 1;
        }
    }
    points
}

/// ES-045, ES-306
#[tokio::test]
async fn a_kill_at_any_commit_loses_nothing_acknowledged() {
    let points = at_every_point(async |world, acknowledged| {
        let store = world.open();
        let there = survivors(&store);
        for event in acknowledged.written.iter().chain(&acknowledged.synced) {
            assert!(there.contains(event), "`{event}` was acknowledged and is gone");
        }
        assert_mail(&store, &acknowledged.injected);
        assert_sound(&store).await;
    })
    .await;
    println!("killed at {points} points");
    assert!(points >= 24);
}

#[tokio::test]
async fn a_power_loss_at_any_commit_loses_nothing_synced() {
    let lost = AtomicUsize::new(0);
    let points = at_every_point(async |world, acknowledged| {
        if !acknowledged.finished {
            let dir = world.dir.path();
            let synced: u64 = fs::read_to_string(dir.join(SYNCED)).unwrap().parse().unwrap();
            let wal = fs::File::options().write(true).open(dir.join("windlass.db-wal")).unwrap();
            assert!(synced <= wal.metadata().unwrap().len());
            wal.set_len(synced).unwrap();
        }
        let store = world.open();
        let there = survivors(&store);
        for event in &acknowledged.synced {
            assert!(there.contains(event), "`{event}` was synced and is gone");
        }
        let gone = acknowledged.written.iter().filter(|event| !there.contains(*event)).count();
        lost.fetch_add(gone, Ordering::Relaxed);
        assert_mail(&store, &acknowledged.injected);
        assert_sound(&store).await;
    })
    .await;
    assert!(lost.into_inner() > 0, "what was only written is lost: the cut is real");
    println!("lost power at {points} points");
    assert!(points >= 24);
}
