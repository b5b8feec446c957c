//! Processes that are stopped (SIGSTOP, a frozen machine): a service's tasks go to another process after the lease,
//! a person's stay where they are.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;
use windlass_testkit::{Answer, Gate, ModelServer};

use crate::world::{On, Process, World};

/// A command line for which a lease is short.
fn command(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(args);
    command.env("COORDINATOR_TASK_LEASE_MS", "2000");
    command
}

fn starts(journal: &[Record]) -> usize {
    journal.iter().filter(|one| matches!(one.event, Event::AgentStart(_))).count()
}

async fn until_exists(world: &World, path: &Path) {
    world.until_seen(&format!("{} exists", path.display()), || path.exists().then_some(())).await;
}

fn numbers(path: &Path) -> Vec<u128> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// §15.3: the taker starts no effect before those of the stopped owner have ended, and that one can do nothing
/// when it wakes.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_service_loses_its_task_to_another() {
    let script = "
match:
  - task: another
    replies: [{say: done}]
replies:
  - bash: 'for i in $(seq 12000); do date +%s%N >> ticks; sleep 0.05; done'
  - bash: date +%s%N >> second
  - say: done
";
    let world = World::new(On::Embedded, ModelServer::start(script));
    let stopped = Process::start(command(&world, &["worker"]));
    let task = world.submit("tick").await.task;
    until_exists(&world, &world.workspace(task).join("ticks")).await;
    stopped.signal(Signal::STOP);
    let _other = Process::start(command(&world, &["worker"]));
    world.until_status(task, TaskStatus::Done).await;
    let (ticks, second) = (
        numbers(&world.workspace(task).join("ticks")),
        numbers(&world.workspace(task).join("second")),
    );
    assert_eq!(second.len(), 1, "its effect happened once");
    assert!(ticks.last() < second.first(), "the old command had ended before the new one began");

    let before = world.journal(task).len();
    stopped.signal(Signal::CONT);
    let next = world.submit("another").await.task;
    world.until_status(next, TaskStatus::Done).await;
    assert_eq!((world.journal(task).len(), starts(&world.journal(task))), (before, 2));
    assert_eq!(numbers(&world.workspace(task).join("ticks")).len(), ticks.len());
    assert!(world.store.projections().verify().unwrap().is_empty());
}

/// A `run` in the foreground, as a shell has it.
struct Foreground(std::process::Child);

impl Foreground {
    fn start(world: &World, args: &[&str]) -> Self {
        let mut command = command(world, args);
        Self(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn ended(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let mut stderr = self.0.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
        (self.0.wait().unwrap().code(), said)
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn only_task(world: &World) -> TaskId {
    let tasks = world.store.tasks().list(&windlass_store::Filter::default()).unwrap();
    assert_eq!(tasks.len(), 1);
    tasks[0].id
}

/// Ctrl-Z, and `fg` after more than a lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_run_keeps_its_task_and_its_sandbox() {
    let script = "
replies:
  - bash: touch begun; sleep 4; touch over
  - say: done
";
    let world = World::new(On::Embedded, ModelServer::start(script));
    let _service = Process::start(command(&world, &["serve"]));
    let project = tempfile::tempdir().unwrap();
    let place = project.path().display().to_string();
    let run = Foreground::start(&world, &["run", "wait", "--workspace", &place]);
    until_exists(&world, &project.path().join("begun")).await;
    run.signal(Signal::STOP);
    // Twice the lease: the command runs on, and nobody takes the task.
    until_exists(&world, &project.path().join("over")).await;
    run.signal(Signal::CONT);
    let (code, said) = run.ended();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(starts(&world.journal(only_task(&world))), 1);
}

/// The time in which a process is stopped is not the time in which it works.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_does_not_time_out_while_its_process_is_stopped() {
    let world = World::new(On::Embedded, ModelServer::start("replies: [{say: done}]"));
    let gate = Gate::new();
    world.model.next(Answer::script("say: done").gated(0, &gate));
    let project = tempfile::tempdir().unwrap();
    let place = project.path().display().to_string();
    let args = ["run", "wait", "--workspace", &place, "--timeout", "6"];
    let run = Foreground::start(&world, &args);
    world.model.requests_reach(1).await;
    run.signal(Signal::STOP);
    // Longer than all the time that the task has.
    tokio::time::sleep(Duration::from_secs(8)).await;
    run.signal(Signal::CONT);
    gate.open();
    let (code, said) = run.ended();
    assert_eq!(code, Some(0), "{said}");
    let row = world.task(only_task(&world)).unwrap();
    assert!(row.result.unwrap().usage.duration_ms < 6_000);
}
