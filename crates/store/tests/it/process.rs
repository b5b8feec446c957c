//! Other processes: this test binary started again, with one command in each line of its input.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use windlass_core::id::TaskId;
use windlass_core::injection::{Control, Injection};
use windlass_core::status::TaskStatus;
use windlass_store::{Error, Level, Options, Store};

use crate::crash;
use crate::world::{at, created, injection_id, moved, reply, request};

const ROLE: &str = "WINDLASS_STORE_TEST_ROLE";
const DIR: &str = "WINDLASS_STORE_TEST_DIR";
/// Marks lines that are ours among those of the test harness.
const MARK: &str = "said: ";

/// A running helper process.
pub struct Other {
    pub child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Other {
    /// Starts a process that obeys [`Other::tell`].
    pub fn obeying(dir: &Path) -> Self {
        Self::start(command(dir, "obey"))
    }

    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().unwrap());
        Self { child, to, from }
    }

    /// Sends a line and waits for the answer.
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.hear().unwrap()
    }

    pub fn tell(&mut self, line: &str) {
        writeln!(self.to.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line it says; `None` when it has ended.
    pub fn hear(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The harness prints the test's name without ending the line.
            if let Some((_, said)) = line.trim_end().split_once(MARK) {
                return Some(said.to_owned());
            }
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.to.take());
        let _ = self.child.wait();
    }
}

/// This binary, started to play `role` on a data directory.
pub fn command(dir: &Path, role: &str) -> Command {
    command_of(std::env::current_exe().unwrap(), dir, role)
}

pub fn command_of(binary: PathBuf, dir: &Path, role: &str) -> Command {
    let mut command = Command::new(binary);
    command
        .args(["--exact", "process::a_process_started_by_another_test_plays_its_role"])
        .args(["--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(DIR, dir);
    command
}

pub fn say(text: impl std::fmt::Display) {
    // One write, so that a kill leaves a line whole or absent.
    let line = format!("{MARK}{text}\n");
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Does nothing unless another test started this process.
#[tokio::test]
async fn a_process_started_by_another_test_plays_its_role() {
    let (Ok(role), Ok(dir)) = (std::env::var(ROLE), std::env::var(DIR)) else { return };
    let dir = Path::new(&dir);
    match role.as_str() {
        "obey" => obey(dir).await,
        "open" => match Store::open(dir, Options::default()) {
            Ok(store) => {
                let tasks = store.tasks().list(&Default::default()).unwrap().len();
                match store.tasks().create(at(0), created()).await {
                    Ok(_) => say(format!("{tasks} task; another was written")),
                    Err(refused) => say(format!("{tasks} task; {refused}")),
                }
            }
            Err(error) => say(error),
        },
        "fill" => fill(dir).await,
        role => crash::play(dir, role).await,
    }
}

/// Fills a disk with a task's events, and says what can still be done.
async fn fill(dir: &Path) {
    let store = Store::open(dir, Options::default()).unwrap();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let begun = vec![moved(TaskStatus::Todo, TaskStatus::Running)];
    owner.append(at(1), begun, Level::Synced).await.unwrap();
    let refused = loop {
        let long = vec![reply(&"x".repeat(100_000))];
        if let Err(error) = owner.append(at(2), long, Level::Synced).await {
            break error;
        }
    };
    assert!(matches!(refused, Error::Full { .. }), "{refused:?}");
    let cancel = Injection::control(injection_id(), Control::Cancel { reason: None });
    let accepted = store.mailbox().inject(task, cancel, at(3)).await;
    let parked = vec![moved(TaskStatus::Running, TaskStatus::Paused)];
    let parked = owner.append(at(4), parked, Level::Synced).await.map(|records| records.len());
    say(format!("{accepted:?} {parked:?}"));
}

async fn obey(dir: &Path) {
    let store = Store::open(dir, Options::default()).unwrap();
    let mut owner = None;
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<_> = line.split(' ').collect();
        let task = |index: usize| words[index].parse::<TaskId>().unwrap();
        match words[0] {
            "own" => match store.owners().own(task(1)).await {
                Ok(owned) => {
                    say(format!("owned {}", owned.epoch()));
                    owner = Some(owned);
                }
                Err(error) => say(error),
            },
            "append" => {
                let owner = owner.as_ref().unwrap();
                say(match owner.append(at(9), vec![request()], Level::Written).await {
                    Ok(records) => format!("appended {}", records[0].seq),
                    Err(error @ Error::Superseded { .. }) => error.to_string(),
                    Err(error) => panic!("{error}"),
                });
            }
            "inject" => {
                let message = Injection::message(injection_id(), words[2..].join(" "));
                store.mailbox().inject(task(1), message, at(9)).await.unwrap();
                say("accepted");
            }
            "release" => {
                owner = None;
                say("released");
            }
            other => panic!("{other}"),
        }
    }
}
